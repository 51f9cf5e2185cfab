"""The command on a folder of many traces: what a centre's jobs do, who is slow, who would gain most."""

# ruff: noqa: PLC0415 -- pandas, pyarrow and DuckDB take a second to import, which other commands need not wait

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.errors import UserError, one_line
from tiercel.units import format_latency, format_size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Darshan logs or other traces, at any depth.", show_default=False),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The table, a row for each job (Parquet).")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Traces read in parallel. Default: the number of cores."),
]
Dask = Annotated[
    str | None, typer.Option("--dask", help="Read on the workers of this Dask scheduler: tcp://host:8786.")
]
Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous", help="Replace user names by pseudonyms, and leave out paths, commands and sentences."
    ),
]
Seconds = Annotated[
    float, typer.Option("--time-limit", min=0.1, max=1e6, help="Skip a trace after this many seconds.")
]
Since = Annotated[
    str | None, typer.Option("--since", help="Only jobs that began on or after this date: 2026-11-03.")
]
Until = Annotated[
    str | None, typer.Option("--until", help="Only jobs that began before this date: 2026-12-01.")
]
Where = Annotated[
    str | None, typer.Option("--filter", "-f", help="Only these rows: \"ranks > 64 AND kind = 'small'\".")
]
By = Annotated[str | None, typer.Option("--by", help="Show one ranking only: executable, user or rule.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Lines of each list; 0: all.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(survey)


def survey(
    folder: Folder, output: Output = Path("survey.parquet"), jobs: Jobs = None, dask: Dask = None,
    anonymous: Anonymous = False, seconds: Seconds = 120.0, since: Since = None, until: Until = None,
    where: Where = None, by: By = None, limit: Limit = 10, as_json: Json = False,
) -> None:  # fmt: skip
    """Survey a folder of many traces: kinds of I/O, cost of each finding, slow jobs, possible gains.

    A second call reads only what is new or changed.
    """
    from rich.console import Console
    from rich.progress import Progress

    from tiercel.traces.survey import answers
    from tiercel.traces.survey import survey as fill
    from tiercel.traces.survey.choose import check_choice, choose

    if output.suffix != ".parquet":
        raise UserError(f"{output}: the table is a .parquet file")
    check_choice(since, until, where)
    with (
        Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown,
        _client(dask) as client,
    ):
        task = shown.add_task("traces", total=None)

        def progress(done: int, whole: int) -> None:
            shown.update(task, completed=done, total=whole)

        rows = fill(
            folder, output, jobs=jobs, client=client, anonymous=anonymous, seconds=seconds,
            progress=progress,
        )  # fmt: skip
    for sentence in rows.attrs["lost"]:
        print(f"tiercel: {one_line(sentence)}", file=sys.stderr)
    page = answers(choose(rows, output, since, until, where), by, limit)  # type: ignore[arg-type]
    if as_json:
        print_json({**page, "table": str(output)})
        return
    _show(page, output)


@contextlib.contextmanager
def _client(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs the package distributed: pip install distributed") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"--dask {address}: {one_line(str(error))}") from None
    with client:
        yield client


def _show(page: dict[str, Any], output: Path) -> None:
    from rich.console import Console

    console = Console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    time = "" if page["began"] is None else f", {_day(page['began'])} to {_day(page['ended'])}"
    lost = page["jobs"] - page["read"]
    say(f"{page['jobs']:,} jobs{time}: {page['read']:,} read" + (f", {lost:,} unreadable" if lost else ""))
    share = "" if page["io_share"] is None else f" ({_percent(page['io_share'])})"
    say(
        f"{format_size(page['bytes_read'])} read, {format_size(page['bytes_written'])} written; "
        f"{_hours(page['core_hours'])} core-hours, {_hours(page['io_core_hours'])} in I/O calls{share}"
    )
    if page["bytes_unknown"]:
        say(f"{page['bytes_unknown']:,} logs do not tell how many bytes moved: these are in no sum")
    if page["warned"]:
        say(f"{page['warned']:,} logs say that they do not hold everything (column warnings)")
    for each in page["unreadable"]:
        example = f" (such as {each['example']})" if each["example"] else ""
        say(f"  {each['jobs']:,} unreadable: {one_line(each['reason'])}{example}")
    _kinds(console, page.get("kinds", []))
    _mounts(console, page.get("mounts", []))
    _rules(console, page.get("rules", []))
    for by in ("executable", "user"):
        _gains(console, page.get(f"{by}s", []), by)
    _slow(console, page.get("slow", []))
    say(f"{output}: a row for each job")


def _kinds(console: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = _table(
        "Kinds of I/O", "kind", "jobs", "read", "written", "I/O core-h", "of their time", "meaning"
    )
    table.columns[-1].justify = "left"
    for row in rows:
        table.add_row(
            row["kind"], f"{row['jobs']:,}", format_size(row["bytes_read"]),
            format_size(row["bytes_written"]), _hours(row["io_core_hours"]), _percent(row["io_share"]),
            row["meaning"],
        )  # fmt: skip
    console.print(table)


def _mounts(console: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = _table("File systems", "mount", "type", "jobs", "files", "read", "written", "I/O core-h")
    for row in rows:
        table.add_row(
            row["mount"], row["type"], f"{row['jobs']:,}", f"{row['files']:,}",
            format_size(row["bytes_read"]), format_size(row["bytes_written"]), _hours(row["io_core_hours"]),
        )  # fmt: skip
    console.print(table)


def _rules(console: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    title = "Findings, and what they cost at most (the same calls may be in several)"
    table = _table(title, "rule", "jobs", "problems", "core-h", "of all", "most in")
    for row in rows:
        table.add_row(
            row["rule"], f"{row['jobs']:,}", f"{row['problems']:,}", _hours(row["core_hours"]),
            _percent(row["share"]), row["most"] or "–",
        )  # fmt: skip
    console.print(table)


def _gains(console: Console, rows: list[dict[str, Any]], by: str) -> None:
    rows = [row for row in rows if row["gain_core_hours"] > 0]
    if not rows:
        return
    table = _table(
        f"Which {by}s would gain most", by, "jobs", "core-h", "in I/O", "could gain", "mainly", "such as"
    )
    for column in table.columns[-2:]:
        column.justify = "left"
    for row in rows:
        table.add_row(
            row[by], f"{row['jobs']:,}", _hours(row["core_hours"]), _hours(row["io_core_hours"]),
            _hours(row["gain_core_hours"]), row["rule"] or "–", one_line(row["sentence"] or "–"),
        )  # fmt: skip
    console.print(table)


def _slow(console: Console, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    title = "Slow jobs: longer in I/O than like jobs (same executable, about as many processes and bytes)"
    table = _table(
        title, "job", "executable", "began", "processes", "I/O each", "like jobs", "lost core-h", "why"
    )
    table.columns[-1].justify = "left"
    for row in rows:
        name = row["job"] or (Path(row["path"]).name if row["path"] else row["log"])
        table.add_row(
            one_line(str(name)), one_line(row["executable"]),
            "–" if row["start"] is None else _day(row["start"]), f"{row['ranks']:,}",
            format_latency(row["io_s_each"]), f"{format_latency(row['median_s'])} ({row['like_jobs']})",
            _hours(row["lost_core_hours"]), row["why"],
        )  # fmt: skip
    console.print(table)


def _table(title: str, first: str, *others: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _hours(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    if value is None:
        return "–"
    if 0 < value < 1e-4:
        return "< 0.01 %"
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
