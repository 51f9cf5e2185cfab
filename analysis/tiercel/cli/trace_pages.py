"""Commands that make pages of traces: one job, and two traces side by side."""

# ruff: noqa: PLC0415 -- pandas, pyarrow and DuckDB take a second to import, which other commands need not wait

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiercel.cli import trace
from tiercel.cli.options import size_of
from tiercel.cli.trace import Api, Cache, Format, Memory, Rank, ReadBandwidth, Stripe, Trace, Where
from tiercel.errors import UserError

Page = Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file to write.")]


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    path: Trace,
    output: Page = None, bandwidth: ReadBandwidth = None, stripe: Stripe = "1MiB",
    api: Api = None, rank: Rank = None, where: Where = None, format: Format = None, memory: Memory = None,
    cache: Cache = None,
) -> None:  # fmt: skip
    """Write a page about one job: findings first, then time, files, ranks. It works offline and prints."""
    from tiercel.traces.findings import Storage
    from tiercel.traces.page import write_job_page

    target = _html(output or Path("report.html"))
    storage = Storage(size_of("--read-bandwidth", bandwidth), size_of("--stripe", stripe))
    frame = trace.chosen(trace.opened(path, format, memory, cache), rank, where)
    try:
        write_job_page(frame, target, storage, api)
    except OSError as error:
        raise UserError(f"{target}: {error.strerror or error}") from None
    trace.warn(list(frame.warnings))
    print(target)


def _html(output: Path) -> Path:
    if output.suffix != ".html":
        raise UserError(f"{output}: the page is an .html file")
    return output
