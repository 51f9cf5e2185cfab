"""What tells Snakemake that a batch has been carried out: a stamp of its name.

A batch that ended with runs left out for want of core-hours has such a stamp too, and so has one whose runs
were moved away since. The next one has another name (``again-1``): so what is to be done is seen by looking,
and nothing needs removing (runs.budget).
"""

from __future__ import annotations

from pathlib import Path


def stamps_folder(results: Path, study: str) -> Path:
    """Return the folder of a study's stamps."""
    return results / "batches" / study


def stamp_name(batch: str, again: int = 0) -> str:
    """Return the file name of a batch's stamp, the first one or a later one."""
    return f"{batch}.again-{again}.done" if again else f"{batch}.done"
