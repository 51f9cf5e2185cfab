"""What can be wrong with a workload, a dataset or a machine: one line for the user."""

from __future__ import annotations


class Failure(Exception):
    """One line that names the file, the key or the sample, and what to do."""


class OtherRankFailed(Exception):
    """Another process has reported what is wrong; this one only stops."""
