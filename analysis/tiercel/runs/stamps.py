"""What tells Snakemake that a batch has been carried out: a stamp of its name.

A batch that ended with runs left out for want of core-hours has such a stamp too. Once there are more, the
next one has another name (``again-1``): so what is to be done is seen by looking, and nothing needs removing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tiercel.runs.planning import Project

#: Beside the stamps: newer than the tables when some batch is to be carried out again. Snakemake does not
#: look for a missing stamp where all that is made from it is there.
AGAIN = "again"


def stamps_folder(results: Path, study: str) -> Path:
    """Return the folder of a study's stamps."""
    return results / "batches" / study


def stamp_name(batch: str, again: int = 0) -> str:
    """Return the file name of a batch's stamp, the first one or a later one."""
    return f"{batch}.again-{again}.done" if again else f"{batch}.done"


def carry_out_again(project: Project, results: Path, batches: Iterable[str]) -> None:
    """Make Snakemake go through these batches once more; their finished runs are not repeated."""
    names = list(batches)
    if not names:
        return
    folder = stamps_folder(results, project.plan.study.study)
    for name in names:
        for stamp in (folder / stamp_name(name), *folder.glob(f"{name}.again-*.done")):
            stamp.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    # A text of its own each time: Snakemake takes a small file that was only touched for unchanged.
    (folder / AGAIN).write_text(f"{time.time_ns()}\n")
