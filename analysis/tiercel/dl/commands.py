"""Commands on deep-learning I/O: workloads, single runs, datasets, the search for settings, benchmarks."""
# ruff: noqa: PLC0415 (each command imports what it needs)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import MOST_PROCESSES, Json, on_files
from tiercel.dl import commands_rules, commands_verify

if TYPE_CHECKING:
    from tiercel.dl.optimise import Gain

app = typer.Typer(help="Measure deep-learning I/O with DLIO workload files.", no_args_is_help=True)
commands_verify.register(app)
commands_rules.register(app)


def register(to: typer.Typer) -> None:
    """Add the commands to ``tiercel``."""
    to.add_typer(app, name="dl", rich_help_panel=panels.EVALUATE)


Workload = Annotated[str, typer.Argument(help="Workload: a name in workflows/dl-workloads or a path.")]
ScaleOption = Annotated[float, typer.Option("--scale", help="Fraction of the data and computation.")]
Processes = Annotated[
    int, typer.Option("--processes", "-n", min=1, max=MOST_PROCESSES, help="Processes on this machine.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder", callback=on_files, help="Folder on the storage to test. Default: a temporary one."
    ),
]
Anywhere = Annotated[
    str | None,
    typer.Option(
        "--folder", help="Folder on the storage to test, or s3://BUCKET/PREFIX. Default: a temporary one."
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key: reader.read_threads=8 (repeat).")
]


@app.command("list")
def list_workloads(as_json: Json = False) -> None:
    """List the workload files with format, size, readers and computation."""
    from tiercel.dl.workload import known_workloads, load_workload
    from tiercel.units import format_latency, format_size

    rows: list[dict[str, Any]] = []
    for name in known_workloads():
        w = load_workload(name)
        data = w.dataset
        rows.append({
            "workload": name, "format": data.format, "files": data.num_files_train,
            "samples_per_file": data.num_samples_per_file, "sample_bytes": data.sample_bytes,
            "bytes": data.samples_train * data.sample_bytes, "batch": w.reader.batch_size,
            "read_threads": w.reader.read_threads, "loader": w.loader, "epochs": w.train.epochs,
            "computation_time": w.train.computation_time.expected, "au_goal": w.metric.au,
        })  # fmt: skip
    if as_json:
        print_json(rows)
        return
    heads = ("workload", "format", "files", "samples", "sample", "dataset", "batch", "readers", "a step")
    cells = [
        (
            r["workload"], r["format"], str(r["files"]), str(r["files"] * r["samples_per_file"]),
            format_size(r["sample_bytes"]), format_size(r["bytes"]) if r["format"] != "synthetic" else "none",
            str(r["batch"]), str(r["read_threads"]), format_latency(r["computation_time"]),
        )
        for r in rows
    ]  # fmt: skip
    widths = [max(len(line[n]) for line in [heads, *cells]) for n in range(len(heads))]
    for line in [heads, *cells]:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())


@app.command()
def run(
    workload: Workload,
    engine: Annotated[str, typer.Option("--engine", help="dlkernel or dlio.")] = "dlkernel",
    scale: ScaleOption = 1.0,
    processes: Processes = 1,
    folder: Anywhere = None,
    output: Annotated[
        Path | None, typer.Option("--output", callback=on_files, help="Keep the engine's files here.")
    ] = None,
    cold: Annotated[str, typer.Option("--cold", help="Cold epochs: none, first or every.")] = "first",
    trace: Annotated[bool, typer.Option("--trace", help="Write a DFTracer trace to --output.")] = False,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Generate the dataset of a workload, train on it, and report utilisation and throughput.

    Example: tiercel dl run unet3d --scale 0.01 --folder /scratch/me
    """
    from tempfile import gettempdir

    from tiercel.dl.running import alone, deep_learning, output_of, place_for, run_once
    from tiercel.dl.showing import print_run
    from tiercel.dl.workload import overrides_of
    from tiercel.errors import UserError
    from tiercel.temporary import temporary_folder

    alone()
    if trace and output is None:
        raise UserError("--trace needs --output, the folder that keeps the trace")
    if cold not in ("none", "first", "every"):
        raise UserError(f"--cold {cold}: must be none, first or every")
    chosen = deep_learning(workload, overrides_of(overrides or []), scale, cold=cold)
    with (
        temporary_folder("tiercel-dl-output-", Path(gettempdir())) as temporary,
        place_for(chosen, folder) as data,
    ):
        where = output or output_of(chosen, data) or temporary
        where.mkdir(parents=True, exist_ok=True)
        here = Path.cwd() if folder is None else None
        seed = chosen.resolved()[0].train.seed
        ran = run_once(chosen, engine, data, where.resolve(), processes, trace, seed, here)
        if as_json:
            print_json(ran.as_dict())
        else:
            print_run(ran)


@app.command()
def check(
    workload: Annotated[str | None, typer.Argument(help="Workload. Default: all known keys.")] = None,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Show how dlkernel uses each key of a workload file. The exit code is 2 if it rejects one."""
    from rich.console import Console

    from tiercel.dl.workload import KEYS, load_workload, markdown, outcome_of, overrides_of, refusals, stated
    from tiercel.documents import WrongDocument

    if workload is None:
        rows = [{"key": key, "outcome": k.outcome, "note": k.note} for key, k in KEYS.items()]
        if as_json:
            print_json(rows)
        else:
            print(markdown(), end="")
        return
    try:
        found = load_workload(workload, overrides_of(overrides or []))
    except WrongDocument as wrong:  # the error's line names the first key only
        rows = [{"key": k, "value": "", "outcome": "refused", "note": note} for k, note in wrong.problems]
        _print_checked(rows, as_json)
        raise
    refused = refusals(found)
    rows = []
    for key, value in stated(found):
        here = outcome_of(found, key)
        outcome = "refused" if key in refused else here.outcome
        note = refused.get(key, here.note)
        rows.append({"key": key, "value": f"{value}", "outcome": outcome, "note": note})
    _print_checked(rows, as_json)
    if not as_json:
        words = [f"{key}: {reason}" for key, reason in refused.items()]
        Console().print("refused: " + "; ".join(words) if refused else "runs as it is", markup=False)
    if refused:
        raise typer.Exit(2)


def _print_checked(rows: list[dict[str, Any]], as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if as_json:
        print_json(rows)
        return
    table = Table("key", "value", "", "")
    for row in rows:
        # The allowed keys of a group are many, and the error's own line has them.
        note = (
            row["note"].partition("allowed: ")[0].rstrip(" (:")
            if "unknown key" in row["note"]
            else row["note"]
        )
        table.add_row(*map(escape, (row["key"], row["value"], row["outcome"], note)))
    Console().print(table)


@app.command()
def generate(
    workload: Workload,
    folder: Annotated[
        str, typer.Option("--folder", help="Target folder, or s3://BUCKET/PREFIX. Run again to resume.")
    ],
    scale: ScaleOption = 1.0,
    processes: Annotated[
        int, typer.Option("--processes", "-n", min=1, max=MOST_PROCESSES, help="Processes on each node.")
    ] = 1,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=1, max=MOST_PROCESSES, help="Nodes that generate the dataset together."),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", help="Site whose launcher starts the processes. Default: srun.")
    ] = None,
    start_limit: Annotated[
        str, typer.Option("--start-limit", help="Time limit for the processes of all nodes to start.")
    ] = "5min",
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Generate the dataset of a workload without training."""
    from tempfile import gettempdir

    from tiercel.dl.generating import crew, generate_only
    from tiercel.dl.running import alone, deep_learning, place_for
    from tiercel.dl.workload import overrides_of
    from tiercel.project import project_root
    from tiercel.site import load_site
    from tiercel.temporary import temporary_folder
    from tiercel.units import format_bandwidth, format_size

    alone()
    limit = _seconds("--start-limit", start_limit)
    who = crew(nodes, processes, load_site(site, project_root()) if site else None, limit)
    chosen = deep_learning(workload, overrides_of(overrides or []), scale)
    with (
        temporary_folder("tiercel-dl-output-", Path(gettempdir())) as temporary,
        place_for(chosen, folder) as data,
    ):
        made = generate_only(chosen, data, temporary, who)
    if as_json:
        print_json(made)
        return
    speed = f", {format_bandwidth(made['bytes'] / made['seconds'])}" if made["bytes"] else ""
    print(
        f"{made['files']} files made ({format_size(made['bytes'])}{speed}), {made['kept']} were there before,"
        f" in {made['seconds']:.2f} s: {folder}"
    )


def _seconds(option: str, text: str) -> float:
    """Return the seconds of an option's duration; UserError for none."""
    from tiercel.errors import UserError
    from tiercel.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None


@app.command()
def optimise(
    workload: Workload,
    scale: ScaleOption = 1.0,
    processes: Processes = 1,
    folder: Folder = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=3, help="Repetitions of each measurement.")
    ] = 5,
    real: Annotated[
        bool,
        typer.Option("--real", help="Also train a small network with each setting, to confirm the gain."),
    ] = False,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Find the data-loader settings that are fastest on a storage (DLIO paper, section V.C)."""
    from rich.console import Console
    from rich.table import Table

    from tiercel.dl.optimise import optimise as search
    from tiercel.dl.optimise import told
    from tiercel.dl.running import deep_learning, place
    from tiercel.dl.workload import overrides_of

    console = Console(stderr=True)
    chosen = deep_learning(workload, overrides_of(overrides or []), scale)
    with place(folder) as data:
        answer = search(chosen, data, processes, repetitions, console.print, real)
    if as_json:
        print_json(answer.as_dict())
        return
    trained = answer.real
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("setting", "gain", "95 %", "", *(("real", "95 %") if trained else ())):
        table.add_column(head, no_wrap=True)  # all of it in 80 columns
    for number, gain in enumerate(answer.tried):
        table.add_row(f"{gain.axis} {told(gain.settings)}", *_gain(gain), _verdict(gain.better, gain.high),
                      *(_gain(trained.tried[number]) if trained else ()))  # fmt: skip
    out = Console()
    out.print(table)
    if trained:
        out.print(
            f"real: a small network trained in {trained.framework} on the same files: how many times as fast "
            "it gets them",
            markup=False,
        )
    if answer.gain is None:
        out.print("No setting is proven to be better than the file's own.")
        return
    words = ", ".join(f"{k}={v}" for k, v in answer.settings.items())
    out.print(
        f"Best: {words}: {answer.gain.ratio:.2f} times as fast "
        f"({answer.gain.low:.2f}–{answer.gain.high:.2f})",
        markup=False,
    )
    if trained and trained.gain:
        out.print(
            f"  a real training gets its files {trained.gain.ratio:.2f} times as fast "
            f"({trained.gain.low:.2f}–{trained.gain.high:.2f}): "
            f"{_verdict(trained.gain.low > 1, trained.gain.high)}",
            markup=False,
        )
    for where, line in answer.recommendation.items():
        out.print(f"  {where}: {line}", markup=False)


def _gain(gain: Gain) -> tuple[str, str]:
    return f"{gain.ratio:.2f}", f"{gain.low:.2f}–{gain.high:.2f}"


def _verdict(better: bool, high: float) -> str:
    return "better" if better else "worse" if high < 1 else "not proven"


@app.command()
def bench(
    folder: Folder = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, help="Repetitions of each measurement.")
    ] = 3,
    as_json: Json = False,
) -> None:
    """Benchmark dlkernel: start-up, reading compared with DLIO, generating compared with plain writes."""
    from tiercel.dl.bench import bench as measure
    from tiercel.dl.running import place

    with place(None if folder is None else folder / "tiercel-dl-bench") as data:
        answer = measure(data, repetitions)
    if as_json:
        print_json(answer)
        return
    print(f"start-up {answer['startup']['seconds']:.2f} s (goal: below {answer['startup']['goal']:g} s)")
    made = answer["generation"]
    speeds = [f"{made[key] / 1024**2:.0f} MiB/s" for key in ("bandwidth", "plain_bandwidth")]
    print(f"generating {speeds[0]}, plain writing {speeds[1]}: ratio {made['ratio']:.2f}")
    for case in answer["reading"]:
        line = f"{case['case']}: {case['dlkernel']['samples_per_second']:.0f} samples/s"
        if "samples_ratio" in case:
            line += (
                f", {case['samples_ratio']:.2f} times upstream DLIO, with {case['cpu_ratio']:.2f} of its CPU"
            )
        print(line)
    for note in answer["notes"]:
        print(note)
