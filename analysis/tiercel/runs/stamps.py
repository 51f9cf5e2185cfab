"""What tells Snakemake that a batch has been carried out: a stamp of its name."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tiercel.runs.planning import Project

#: Beside the stamps: newer than the tables when some batch is to be carried out again. Snakemake does not
#: look for a missing stamp where all that is made from it is there.
AGAIN = "again"


def stamps_folder(project: Project, results: Path) -> Path:
    return results / "batches" / project.plan.study.study


def stamp_of(project: Project, results: Path, batch: str) -> Path:
    return stamps_folder(project, results) / f"{batch}.done"


def carry_out_again(project: Project, results: Path, batches: Iterable[str]) -> None:
    """Make Snakemake go through these batches once more; their finished runs are not repeated."""
    names = list(batches)
    if not names:
        return
    for name in names:
        stamp_of(project, results, name).unlink(missing_ok=True)
    again = stamps_folder(project, results) / AGAIN
    again.parent.mkdir(parents=True, exist_ok=True)
    # A text of its own each time: Snakemake takes a small file that was only touched for unchanged.
    again.write_text(f"{time.time_ns()}\n")
