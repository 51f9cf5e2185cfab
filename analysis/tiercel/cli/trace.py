"""Commands on traces: what a program's I/O was like."""

# ruff: noqa: PLC0415 -- pandas, pyarrow and DuckDB take a second to import, which other commands need not wait

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site, Study, size_of
from tiercel.errors import UserError, one_line, suggest
from tiercel.pages.words import capital, percent
from tiercel.units import format_bandwidth, format_duration, format_latency, format_size

if TYPE_CHECKING:
    from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from tiercel.traces.findings import Finding
    from tiercel.traces.frame import IOFrame

app = typer.Typer(help="Analyse I/O traces (DFTracer, Darshan, Recorder, strace).", no_args_is_help=True)

Trace = Annotated[
    Path, typer.Argument(metavar="PATH", help="Trace: a file, a folder or a tar.", show_default=False)
]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT", help="The file to write.", show_default=False)]
Format = Annotated[str | None, typer.Option("--format", help="Format of the trace, if it is not recognised.")]
Rank = Annotated[list[int] | None, typer.Option("--rank", "-r", help="Only this rank (may be repeated).")]
Where = Annotated[
    str | None, typer.Option("--filter", "-f", help="Only these events: \"kind = 'read' AND size < 4096\".")
]
Picture = Annotated[Path, typer.Option("--output", "-o", help="The HTML file, or .png, .svg, .pdf.")]
Memory = Annotated[str | None, typer.Option("--memory", help="Memory that analyses may use: 512MiB.")]
Api = Annotated[
    str | None, typer.Option("--api", help="Count the calls of this layer: posix, stdio, mpiio or hdf5.")
]
ReadBandwidth = Annotated[
    str | None, typer.Option("--read-bandwidth", help="Peak read bandwidth of the storage per second: 5GiB.")
]
Stripe = Annotated[str, typer.Option("--stripe", help="Stripe size of the storage.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder that caches traces already read.")]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let numpy start no threads for linear algebra: on each core they spin for a while before they rest."""
    name = "OPENBLAS_NUM_THREADS"
    given = name in os.environ
    os.environ.setdefault(name, "1")
    try:
        yield
    finally:
        if not given:
            del os.environ[name]


def opened(path: Path, format: str | None, memory: str | None, cache: Path | None) -> IOFrame:
    """Return the trace that a command names, with its options."""
    with _one_thread():
        from tiercel.traces.engine import LEAST_MEMORY
        from tiercel.traces.frame import open_trace

    limit = size_of("--memory", memory)
    if limit is not None and limit < LEAST_MEMORY:
        raise UserError(f"--memory {memory}: at least {format_size(LEAST_MEMORY)} are needed")
    return open_trace(path, format=format, memory=limit, cache=cache)


def chosen(frame: IOFrame, rank: list[int] | None, where: str | None) -> IOFrame:
    """Return the events that are asked for; UserError where there are counters alone."""
    from tiercel.traces.analysis.counters import only_counters

    if where is not None and not where.strip():
        raise UserError("--filter: is empty: leave it out for all events")
    if (rank or where) and only_counters(frame):
        raise UserError("--rank and --filter need events, and this log contains counters only")
    return frame if not rank and not where else frame.select(rank, where)


def _with_events(frame: IOFrame, path: Path) -> IOFrame:
    """Return `frame`; UserError where there are counters alone, which cannot say what happened when."""
    from tiercel.traces.analysis.counters import only_counters

    if only_counters(frame):
        raise UserError(
            f"{path}: contains counters only, without times of events: use `tiercel trace summary`, "
            "`files` or `explain`"
        )
    return frame


@app.command()
def summary(
    path: Trace, as_json: Json = False, rank: Rank = None, where: Where = None, format: Format = None,
    memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """Summarize a trace: layers, bytes, times, transfer sizes and outlier ranks.

    Example: tiercel trace summary app.darshan
    """
    from tiercel.traces.kept import answered

    def ask() -> dict[str, Any]:
        frame = chosen(opened(path, format, memory, cache), rank, where)
        from tiercel.traces.analysis.summary import summarise

        return summarise(frame)

    answer = answered(f"summary {format} {rank} {where}", path, cache, ask)
    if as_json:
        print_json(answer)
        return
    from rich.console import Console

    console = Console()
    whole = "counters alone" if answer["from"] == "counters" else f"{answer['events']:,} events"
    if answer["from"] == "counters and events":
        whole += " (reads and writes) and counters"
    took = answer["job_time_s"]
    length = "" if took is None else f" in {format_duration(took) if took >= 60 else format_latency(took)}"
    console.print(
        f"{path.name}: {whole}{length}, "
        + ", ".join(_counted(answer[t], t) for t in ("ranks", "hosts", "files") if answer[t] is not None),
        markup=False,
    )
    table = table_of("layer", "calls", "read", "written", "data time", "metadata time", "sync time")
    for row in answer["layers"]:
        table.add_row(
            row["api"],
            "–" if row["calls"] is None else f"{row['calls']:,}",
            format_size(row["bytes_read"]),
            format_size(row["bytes_written"]),
            *(_latency(row[column]) for column in ("data_s", "metadata_s", "sync_s")),
        )
    console.print(table)
    table = table_of("transfers", "from", "calls", "bytes", "median time", "bandwidth in a call")
    for row in answer["transfer_sizes"]:
        table.add_row(
            row["kind"],
            format_size(row["size"]),
            f"{row['calls']:,}",
            "–" if row["bytes"] is None else format_size(row["bytes"]),
            _latency(row["median_duration_s"]),
            _bandwidth(row["bandwidth_bytes_s"]),
        )
    console.print(table)
    for sentence in answer["notes"]:
        console.print(sentence, markup=False)
    warn(answer["warnings"])


@app.command()
def overlap(
    path: Trace, as_json: Json = False, rank: Rank = None, api: Api = None, format: Format = None,
    memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """Show how much I/O overlaps computation, and application and system throughput."""
    from rich.console import Console

    from tiercel.traces.analysis.overlap import evidence

    frame = _with_events(opened(path, format, memory, cache), path).select(rank)
    answer: dict[str, Any] = evidence(frame, api)
    if as_json:
        print_json(answer)
        return
    table = table_of(
        "rank", "bytes", "I/O", "overlapped", "not overlapped", "compute", "application", "system"
    )
    for number, row in frame.overlap(api=api).iterrows():
        times = (format_latency(row[c]) for c in ("io_time", "overlapped_io", "nonoverlapped_io", "compute"))
        table.add_row(str(number), format_size(row["bytes"]), *times, _bandwidth(row["app_throughput"]),
                      _bandwidth(row["system_throughput"]))  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        f"{answer['events']:,} events, job time {format_latency(frame.job_time, 5)}. Row all: wall-clock "
        "time in which at least one rank does I/O; application throughput counts only I/O that the rank's "
        "own computation does not hide.",
        markup=False,
    )
    warn(answer["warnings"])


@app.command()
def timeline(
    path: Trace,
    output: Picture = Path("timeline.html"), as_json: Json = False,
    rank: Rank = None, where: Where = None, format: Format = None, memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """Draw the calls of each rank over time, as an interactive page or a picture.

    With --json its blocks are printed instead, and no file is written.
    """
    pictures = {".png", ".svg", ".pdf"}
    if output.suffix not in {".html", *pictures}:
        raise UserError(f"{output}: {suggest(output.suffix, ['.html', *pictures])}")
    frame = _with_events(opened(path, format, memory, cache), path)
    if as_json:
        print_json({"blocks": _records(frame.timeline(rank, where)), "warnings": list(frame.warnings)})
        return
    try:
        if output.suffix == ".html":
            frame.write_timeline(output, rank, where)
        else:
            _draw(frame, output, rank, where)
    except OSError as error:
        raise UserError(f"{output}: {error.strerror or error}") from None
    warn(list(frame.warnings))
    print(output)


@app.command()
def explain(
    path: Trace, as_json: Json = False,
    bandwidth: ReadBandwidth = None, stripe: Stripe = "1MiB",
    api: Api = None, rank: Rank = None, where: Where = None, format: Format = None, memory: Memory = None,
    cache: Cache = None,
) -> None:  # fmt: skip
    """List problems of a program's I/O with numbers and remedies, the most severe first.

    Example: tiercel trace explain app.darshan
    """
    from tiercel.traces.kept import answered

    storage = (size_of("--read-bandwidth", bandwidth), size_of("--stripe", stripe))

    def ask() -> dict[str, Any]:
        return _explained(chosen(opened(path, format, memory, cache), rank, where), storage, api)

    answer = answered(f"explain {format} {rank} {where} {storage} {api}", path, cache, ask)
    if as_json:
        print_json({name: value for name, value in answer.items() if name != "said"})
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for finding in answer["findings"]:
        _print_finding(console, *(finding[n] for n in ("severity", "rule", "share", "sentence", "advice")))
    if not answer["findings"]:
        console.print(answer["said"]["no_findings"], highlight=False)
    for sentence in answer["said"]["unjudged"]:
        console.print(Text(f"{capital(sentence)}.", style="dim"))
    if answer["said"]["numbered"]:
        console.print(f"note: {answer['said']['numbered']}.", markup=False, highlight=False)
    warn(answer["warnings"])


def _print_finding(
    console: Console, severity: str, rule: str, share: float | None, sentence: str, advice: str
) -> None:
    from rich.padding import Padding
    from rich.text import Text

    of = "" if not share else f" ({percent(share)})"
    console.print(f"[bold]{severity}[/bold] {rule}{of}", highlight=False)
    for words in (sentence, advice):
        console.print(Padding(Text(words), (0, 0, 0, 2)))


@app.command()
def follow(
    path: Trace, as_json: Json = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between two looks, at least.")
    ] = 5.0,
    idle: Annotated[
        float | None, typer.Option("--idle", min=0, help="End after this many seconds without a change.")
    ] = None,
    bandwidth: ReadBandwidth = None, stripe: Stripe = "1MiB", format: Format = None, memory: Memory = None,
) -> None:  # fmt: skip
    """Print findings on a trace while the job writes it (DFTracer, strace). Ctrl-C ends it.

    Example: tiercel trace follow traces/ --idle 60
    """
    with _one_thread():
        from tiercel.traces.findings import Storage
        from tiercel.traces.follow import follow as looks

    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    from rich.console import Console

    os.nice(19)  # the job comes first
    console = Console()
    storage = Storage(size_of("--read-bandwidth", bandwidth), size_of("--stripe", stripe) or Storage.stripe)
    limit = size_of("--memory", memory)
    for look in looks(path, storage, format=format, memory=limit, interval=interval, idle=idle):
        if as_json:
            rows = [_row(finding) for finding in look.findings]
            print_json({"events": look.events, "job_time_s": look.job_time, "findings": rows,
                        "warnings": look.warnings})  # fmt: skip
            sys.stdout.flush()
            continue
        console.print(
            f"{path.name}: {_counted(look.events, 'events')} in {format_latency(look.job_time)}, "
            f"{_counted(len(look.findings), 'findings')}",
            markup=False,
        )
        for rule in look.gone:
            console.print(f"no longer: {rule}", markup=False)
        for f in look.news:
            _print_finding(console, f.severity, f.rule, f.share, f.sentence, f.advice)
        warn(list(look.warnings))


def _row(finding: Finding) -> dict[str, Any]:
    f = finding
    return {"severity": f.severity, "rule": f.rule, "seconds": f.seconds, "share": f.share,
            "sentence": f.sentence, "advice": f.advice, "evidence": _records(f.evidence)}  # fmt: skip


def _explained(frame: IOFrame, storage: tuple[int | None, int | None], api: str | None) -> dict[str, Any]:
    """Return the findings on a trace, and under ``said`` what stands beside them in the terminal."""
    from tiercel.traces.analysis.counters import told_from
    from tiercel.traces.findings import Storage, mute, no_findings, tellable, unjudged
    from tiercel.traces.findings import explain as ask

    findings = ask(frame, Storage(storage[0], storage[1] or Storage.stripe), api=api)
    rows = [_row(finding) for finding in findings]
    by_rank = any(f.sentence.lower().startswith("rank ") for f in findings)
    return {
        "findings": rows, "from": told_from(frame), "checked": sorted(tellable(frame)),
        "not_judged": mute(frame),
        "ranks_from": str(frame.metadata.get("ranks_from", "")), "warnings": list(frame.warnings),
        "said": {"no_findings": f"{capital(no_findings(frame))}.", "unjudged": unjudged(frame),
                 "numbered": frame.ranks_are_numbered if by_rank else ""},
    }  # fmt: skip


def _draw(frame: IOFrame, output: Path, rank: list[int] | None, where: str | None) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    frame.plot_timeline(rank, where)
    plt.savefig(output, dpi=150)
    plt.close()


@app.command()
def files(
    path: Trace, as_json: Json = False, rank: Rank = None, where: Where = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Show this many files; 0: all.")] = 40,
    format: Format = None, memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """List the files of a trace with bytes, bandwidth, ranks and patterns, slowest first."""
    from rich.console import Console

    from tiercel.traces.analysis.names import common_folder
    from tiercel.traces.analysis.summary import files_table

    frame = opened(path, format, memory, cache)
    chosen(frame, rank, where)
    table = files_table(frame, rank, where)
    if as_json:
        print_json({"files": _records(table), "warnings": list(frame.warnings)})
        return
    shown = table if limit == 0 else table.head(limit)
    folder = common_folder([str(file) for file in shown.index])
    columns = table_of("file", "ranks", "read", "written", "I/O time", "bandwidth", "pattern", "history")
    for file, row in shown.iterrows():
        sizes = (format_size(row[column]) for column in ("bytes_read", "bytes_written"))
        columns.add_row(
            str(file).removeprefix(folder), str(row["num_ranks"]), *sizes, format_latency(row["io_time"]),
            _bandwidth(row["bandwidth"]), row["pattern"], row["history"],
        )  # fmt: skip
    console = Console()
    if folder:
        console.print(f"in {folder}", markup=False, overflow="fold")
    console.print(columns)
    if len(shown) < len(table):
        console.print(f"{len(table) - len(shown)} more files: --limit 0 shows all")
    warn(list(frame.warnings))


@app.command()
def convert(
    path: Trace, output: Output, rank: Rank = None, where: Where = None, format: Format = None,
    memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """Write the events of a trace to a Parquet file in tiercel's schema."""
    frame = opened(path, format, memory, cache)
    if output.suffix != ".parquet":
        raise UserError(f"{output}: the converted trace is a .parquet file")
    refuse_own_source(path, output)
    frame.select(rank, where).to_parquet(output)
    warn(list(frame.warnings))
    print(output)


@app.command("export-perfetto")
def export_perfetto(
    path: Trace, output: Output, rank: Rank = None, where: Where = None, format: Format = None,
    memory: Memory = None, cache: Cache = None,
) -> None:  # fmt: skip
    """Write the events of a trace for Perfetto and chrome://tracing (.json or .json.gz)."""
    if not output.name.endswith((".json", ".json.gz")):
        raise UserError(f"{output}: a Chrome trace is a .json or .json.gz file")
    frame = opened(path, format, memory, cache)
    refuse_own_source(path, output)
    try:
        frame.export_perfetto(output, rank, where)
    except OSError as error:
        raise UserError(f"{output}: {error.strerror or error}") from None
    warn(list(frame.warnings))
    print(output)


@app.command()
def collect(site: Site = "local", study: Study = "quick") -> None:
    """Build the tables of the traced runs: traces.parquet, trace-groups.parquet, traces.nc."""
    from tiercel.project import project_root
    from tiercel.site.measured import measured_folder
    from tiercel.study.load import load_study
    from tiercel.traced import collect as collect_tables
    from tiercel.traced import load_traces
    from tiercel.traced.dataset import write_dataset

    root = project_root()
    results, name = measured_folder(site, root), load_study(study, root).study
    collect_tables(results)
    traces = load_traces(results, name)
    write_dataset(traces, results / "traces.nc")
    lost = traces[traces["reason"] != ""]
    for run, reason in zip(lost["run"], lost["reason"], strict=True):
        print(f"tiercel: {run}: {one_line(reason)}", file=sys.stderr)
    print(f"{_counted(len(traces), 'traced runs')} of study {name}, {len(lost)} incomplete")


def refuse_own_source(path: Path, output: Path) -> None:
    """UserError where a command would write over the trace that it reads."""
    if output.exists() and output.resolve() == path.resolve():
        raise UserError(f"{output}: is the trace itself")


def _counted(number: int, things: str) -> str:
    return f"{number:,} {things if number != 1 else things.removesuffix('s')}"


def table_of(first: str, *others: str) -> Table:
    """Return a table for the terminal: words in the first column, numbers in the others."""
    from rich.table import Table

    table = Table()
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _latency(value: float | None) -> str:
    return "–" if value is None else format_latency(value)


def _bandwidth(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else format_bandwidth(value)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in table.reset_index().to_dict("records")]


def warn(warnings: list[str]) -> None:
    for sentence in warnings:
        print(f"tiercel: {one_line(sentence)}", file=sys.stderr)
