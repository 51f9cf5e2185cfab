"""Commands that make pages of traces: one job, and two traces side by side."""

# ruff: noqa: PLC0415 -- pandas, pyarrow and DuckDB take a second to import, which other commands need not wait

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli import trace
from tiercel.cli.console import print_json
from tiercel.cli.options import Json, size_of
from tiercel.cli.trace import Api, Cache, Format, Memory, Rank, ReadBandwidth, Stripe, Trace, Where
from tiercel.errors import UserError, one_line

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from tiercel.traces.against import Comparison

Before = Annotated[
    Path,
    typer.Argument(metavar="A", help="First trace: before a change, or on one storage.", show_default=False),
]
After = Annotated[
    Path,
    typer.Argument(
        metavar="B", help="Second trace: after the change, or on another storage.", show_default=False
    ),
]
#: Files in the terminal.
_FILES = 10
Page = Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file to write.")]


def register(app: typer.Typer) -> None:
    app.command()(report)
    app.command()(compare)


def report(
    path: Trace,
    output: Page = None, bandwidth: ReadBandwidth = None, stripe: Stripe = "1MiB",
    api: Api = None, rank: Rank = None, where: Where = None, format: Format = None, memory: Memory = None,
    cache: Cache = None,
) -> None:  # fmt: skip
    """Write an HTML page about one job: findings, time, files, ranks.

    Example: tiercel trace report app.darshan -o app.html
    """
    from tiercel.traces.findings import Storage
    from tiercel.traces.page import write_job_page

    target = _html(output or Path("report.html"), path)
    storage = Storage(size_of("--read-bandwidth", bandwidth), size_of("--stripe", stripe))
    frame = trace.chosen(trace.opened(path, format, memory, cache), rank, where)
    try:
        write_job_page(frame, target, storage, api)
    except OSError as error:
        raise UserError(f"{target}: {error.strerror or error}") from None
    trace.warn(list(frame.warnings))
    print(target)


def compare(
    a: Before, b: After,
    as_json: Json = False, output: Page = None, bandwidth: ReadBandwidth = None, stripe: Stripe = "1MiB",
    api: Api = None, rank: Rank = None, where: Where = None, format: Format = None, memory: Memory = None,
    cache: Cache = None,
) -> None:  # fmt: skip
    """Compare two traces and list the differences, the largest time difference first."""
    from tiercel.traces.against import compare as ask
    from tiercel.traces.findings import Storage
    from tiercel.traces.page import write_pair_page

    target = None if output is None else _html(output, a, b)
    storage = Storage(size_of("--read-bandwidth", bandwidth), size_of("--stripe", stripe))
    frames = [trace.chosen(trace.opened(path, format, memory, cache), rank, where) for path in (a, b)]
    comparison = ask(frames[0], frames[1], storage, api)
    if target is not None:
        try:
            write_pair_page(comparison, target, api)
        except OSError as error:
            raise UserError(f"{target}: {error.strerror or error}") from None
    if as_json:
        from tiercel.traces.against.document import document

        print_json(document(comparison))
        return
    _show(comparison)
    for letter, frame in zip("AB", frames, strict=True):
        trace.warn([f"{letter}: {sentence}" for sentence in frame.warnings])
    if target is not None:
        print(target)


def _show(comparison: Comparison) -> None:
    from rich.console import Console

    from tiercel.traces.against.words import FATES, matched_words, verdict
    from tiercel.traces.page.pair import differences_table, files_table

    console = Console()

    def say(text: str) -> None:
        console.print(one_line(text), markup=False, highlight=False)

    for side in (comparison.a, comparison.b):
        say(f"{side.letter}: {side.frame.metadata.get('path', '')}")
    say(verdict(comparison))
    for shown in (differences_table(comparison.differences, ""), files_table(comparison, _FILES)):
        if shown is not None:
            _print_table(console, shown)
    say(matched_words(comparison))
    say("Times in reads, writes, metadata calls and syncs are sums over all processes.")
    if comparison.same:
        say(f"The same in both: {', '.join(d.quantity.words for d in comparison.same)}.")
    for key, words in FATES.items():
        for found in comparison.found:
            finding = found.b or found.a
            if found.fate == key and finding is not None:
                say(f"{words.partition(':')[0]} ({finding.severity}): {finding.sentence}")
    for letter, finding in comparison.untold:
        say(f"{letter} alone can tell ({finding.severity}): {finding.sentence}")
    for what, why in comparison.incomparable:
        say(f"Not compared: {what}: {why}.")
    for note in comparison.notes:
        say(note)


def _print_table(console: Console, shown: Any) -> None:
    from rich.text import Text

    table = trace.table_of(*shown.columns)
    for _, cells in shown.rows:
        table.add_row(*(Text(one_line(cell.text)) for cell in cells))
    console.print(table)


def _html(output: Path, *sources: Path) -> Path:
    """Return where the page goes; UserError for what is no page's name, a trace, or another's page."""
    from tiercel.pages.words import MARK

    if output.suffix != ".html":
        raise UserError(f"{output}: the page is an .html file")
    for source in sources:
        trace.refuse_own_source(source, output)
    try:
        if output.is_file() and output.stat().st_size and MARK not in output.read_bytes()[:1024]:
            raise UserError(f"{output}: is there and is no page of tiercel's: name another file with -o")
    except OSError as error:
        raise UserError(f"{output}: {error.strerror or error}") from None
    return output
