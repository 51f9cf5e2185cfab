"""``tiercel dl verify``: do the deep-learning engines do the I/O of a real training?"""
# ruff: noqa: PLC0415 (the comparison reads traces, which takes a second to import)

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import MOST_PROCESSES, Json, on_files

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command to ``tiercel dl``."""
    app.command()(verify)


def verify(
    workloads: Annotated[
        list[str] | None, typer.Argument(help="Workloads. Default: all that can be verified.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer files and two repetitions.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            callback=on_files,
            help="Keep datasets, traces and logs in this folder. Default: a temporary one.",
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option("--repetitions", min=1, help="Repetitions of each measurement.")
    ] = None,
    tracer: Annotated[
        str,
        typer.Option("--tracer", help="dftracer, strace, or auto (strace where DFTracer sees too little)."),
    ] = "auto",
    sizes: Annotated[bool, typer.Option("--sizes", help="Show the distribution of transfer sizes.")] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", "-n", min=1, max=MOST_PROCESSES, help="Number of ranks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the I/O traces of dlkernel, DLIO and real trainings (cosine similarity)."""
    from tiercel.dl.running import place
    from tiercel.dl.verify.cases import known
    from tiercel.dl.verify.compare import verify as compare
    from tiercel.dl.verify.order import CASES as ORDERS
    from tiercel.dl.verify.order import verify_order
    from tiercel.errors import UserError, suggest

    named, sequences = known(), [case.name for case in ORDERS]
    for name in workloads or []:
        if name not in (*named, *sequences):
            raise UserError(f"dl verify: no workload named {name!r}: {suggest(name, [*named, *sequences])}")
    wanted = [name for name in workloads or named if name in named]
    wanted_orders = [name for name in workloads or sequences if name in sequences]

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty: name a new folder")
    with place(folder) as data:
        rows = compare(
            data, quick=quick, workloads=wanted, repetitions=repetitions, processes=processes, tracer=tracer,
            say=say,
        ) if wanted else []  # fmt: skip
        orders = verify_order(data, wanted_orders, say) if wanted_orders else []
    if as_json:
        print_json([*rows, *orders])
        return
    if rows:
        _show(rows, sizes)
    if orders:
        _show_orders(orders)


def _show(rows: list[dict[str, Any]], sizes: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="Similarity of I/O, 1 is equal (goal: above 0.95)")
    for heading in ("workload", "program", "compared with", "similarity", "requests", "closeness",
                    "itself"):  # fmt: skip
        table.add_column(heading)
    for row in rows:
        itself = row["reference_with_itself"]["similarity"]
        table.add_row(
            row["workload"], row["engine"], row["reference"], f"{row['similarity']:.3f}",
            f"{row['similarity_of_requests']:.3f}", f"{row['closeness']:.3f}",
            "-" if itself is None else f"{itself:.3f}",
        )  # fmt: skip
    console.print(table)
    for row in rows:
        console.print(f"{row['workload']}: {row['engine']} and {row['reference']}:", markup=False)
        metrics = Table("metric", row["engine"], row["reference"], "ratio")
        for name, metric in row["metrics"].items():
            cells = [_amount(metric[key], metric["unit"]) for key in ("value", "reference")]
            metrics.add_row(name, *cells, "-" if metric["ratio"] is None else f"{metric['ratio']:.3f}")
        console.print(metrics)
        console.print(row["explanation"], markup=False)
        if sizes:
            _show_sizes(console, row)


def _show_orders(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from tiercel.units import format_share

    table = Table(
        title="Order of files: dlkernel and the program that it emulates, two processes, three epochs"
    )
    for heading in ("workload", "order", "compared with", "same", "files read again", "by the other"):
        table.add_column(heading)
    for row in rows:
        same = {True: f"{row['compared']} equal", False: f"{row['compared']} differ", None: "not comparable"}
        again = [row["reuse"][row[key]] for key in ("engine", "reference")]
        table.add_row(
            row["workload"], row["order"], row["reference"], same[row["equal"]],
            *("-" if share is None else format_share(share) for share in again),
        )  # fmt: skip
    Console().print(table)


def _show_sizes(console: Console, row: dict[str, Any]) -> None:
    from rich.table import Table

    from tiercel.units import format_size

    names = (row["engine"], row["reference"])
    counts = [row["transfers"][name] for name in names]
    table = Table("transfers from", *names)
    for size in sorted({int(size) for found in counts for size in found}):
        table.add_row(format_size(size), *(str(found.get(str(size), 0)) for found in counts))
    console.print(table)


def _amount(value: float | None, unit: str) -> str:
    from tiercel.units import format_bandwidth, format_latency, format_share, format_size

    if value is None:
        return "-"
    if unit == "":
        return f"{value:g}"
    ways = {"B": format_size, "B/s": format_bandwidth, "s": format_latency}
    return ways[unit](value) if unit in ways else format_share(value, 1)
