"""Findings: sentences for one audience, each with the numbers that support it.

A rule is a function from results to findings. No rule claims a difference that the statistics did not:
`claim` needs a verdict, `hint` says what was seen in all repetitions and why that is no claim, `open` says
what could not be told apart. `fact` describes a number without comparing; `caution` and `failure` say what
to mind and what went wrong. To add one: a function, and its name in RULES of its file: one of this folder,
or a module that a subject names (`tiercel.subjects`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.report.data import Results
from tiercel.report.findings.finding import AUDIENCES, Evidence, Finding, Rule
from tiercel.subjects import fill

__all__ = ["AUDIENCES", "Evidence", "Finding", "find"]


def find(results: Results) -> list[Finding]:
    """Return the findings of all rules: by audience, then in the order of the rules."""
    modules = fill("findings", f"{__name__}.finding")
    rules: Iterator[Rule] = (rule for module in modules for rule in getattr(module, "RULES", ()))
    found = [finding for rule in rules for finding in rule(results)]
    return sorted(found, key=lambda finding: list(AUDIENCES).index(finding.audience))
