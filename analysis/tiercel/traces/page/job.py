"""The job page: what a program's I/O was like, findings first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tiercel
from tiercel.atomic_file import write_text
from tiercel.pages.environment import environment
from tiercel.pages.secured import secured
from tiercel.pages.words import capital
from tiercel.traces.analysis.summary import summarise
from tiercel.traces.findings import Storage, explain, no_findings
from tiercel.traces.page import head
from tiercel.traces.page.calls import layers_part, sizes_part
from tiercel.traces.page.files import files_part
from tiercel.traces.page.findings import shown
from tiercel.traces.page.missing import missing_part
from tiercel.traces.page.ranks import ranks_part
from tiercel.traces.page.times import bandwidth_part, heat_part, moved_over_time, overlap_part

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame


def job_page(frame: IOFrame, storage: Storage | None = None, api: str | None = None) -> str:
    """Return the page of a trace as text: one file, no network, bounded however large the trace.

    `storage` is what is known of the storage below (see `findings.Storage`), `api` the layer whose calls
    count (default: the lowest one that moved bytes).
    """
    numbers = summarise(frame, api)
    findings = explain(frame, storage, api=api)
    parts = [
        overlap_part(frame, numbers, api),
        bandwidth_part(frame, moved_over_time(frame, api)),
        heat_part(frame, api),
        sizes_part(numbers),
        layers_part(numbers),
        files_part(frame, numbers["ranks"], api),
        ranks_part(frame, numbers, api),
        missing_part(frame, numbers),
    ]
    return secured(
        environment("tiercel.traces.page")
        .get_template("job.html.j2")
        .render(
            title=head.title(frame),
            command=head.command(frame),
            verdict=head.verdict(frame, numbers, findings),
            caution=head.caution(frame),
            facts=head.facts(frame, numbers),
            findings=shown(findings),
            no_findings=f"{capital(no_findings(frame))}.",
            parts=parts,
            severities={},
            version=tiercel.__version__,
        )
    )


def write_job_page(
    frame: IOFrame, path: Path, storage: Storage | None = None, api: str | None = None
) -> Path:
    """Write `job_page` to `path`, whole or not at all; return `path`."""
    return write_text(path, job_page(frame, storage, api), errors="replace")
