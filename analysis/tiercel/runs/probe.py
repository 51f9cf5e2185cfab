"""A minute of a study's own runs, to judge by how long the others take: ``tiercel plan --cost --probe``.

They are runs like all others: what they measured counts, and the study goes on from there.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tiercel.errors import UserError
from tiercel.runs.batch import OutOfTime, run_batch
from tiercel.runs.filesystems import record_file_systems
from tiercel.runs.job import RESERVE_S
from tiercel.runs.planning import Project, certain, check_site
from tiercel.study.assumptions import GOOD, assumed_seconds
from tiercel.study.plan import Batch, Run

#: After which no further run begins.
PROBING_S = 60.0


def probe(project: Project, results: Path, seconds: float = PROBING_S) -> None:
    """Carry out the shortest run of each experiment on each storage, one after the other, for `seconds`.

    UserError where the site's runs go to other nodes.
    """
    site = project.plan.site
    if site.scheduler is not None:
        raise UserError(
            f"site {site.site}: cannot be probed from here: its runs go to nodes of its scheduler"
        )
    check_site(project)
    record_file_systems(project.plan, results)
    shortest: dict[tuple[str, str], Run] = {}
    for run in project.plan.runs:
        c = run.configuration
        if not certain(project, run) or run.traced or run.calibration:
            continue
        best = shortest.setdefault((c.experiment, c.stack.name), run)
        if assumed_seconds(c, GOOD) < assumed_seconds(best.configuration, GOOD):
            shortest[c.experiment, c.stack.name] = run
    runs = sorted(shortest.values(), key=lambda run: assumed_seconds(run.configuration, GOOD))
    with suppress(OutOfTime):
        run_batch(project, Batch(round=0, nodes=1, part=0, runs=tuple(runs)), results, seconds + RESERVE_S)
