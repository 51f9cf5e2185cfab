"""Commands on engines: which are there, how they compare."""
# ruff: noqa: PLC0415 (the comparison's statistics take a second to import)

from __future__ import annotations

from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.project import project_root

app = typer.Typer(
    help="List and compare the I/O engines (iokernel, IOR, mdtest, fio, DLIO).", no_args_is_help=True
)


@app.command("list")
def list_engines(as_json: Json = False) -> None:
    """List the engines and their versions."""
    from tiercel.engines import engines

    found = {name: engines.get(name)().find() for name in engines}
    if as_json:
        print_json([
            {"engine": name, "version": there and there.version,
             "programs": {of: str(path) for of, path in there.programs.items()} if there else {}}
            for name, there in found.items()
        ])  # fmt: skip
        return
    for name, there in found.items():
        if there is None:
            print(f"{name:10} not found")
        else:
            paths = ", ".join(str(p) for p in there.programs.values())
            print(f"{name:10} {there.version:24} {paths}")


@app.command()
def compare(
    names: Annotated[
        list[str] | None, typer.Argument(help="Engines to compare. Default: all that are installed.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Finish within a minute.")] = False,
    as_json: Json = False,
) -> None:
    """Compare engines on the same workloads, in interleaved pairs.

    Example: tiercel engines compare iokernel ior --quick
    """
    from rich.console import Console
    from rich.table import Table

    from tiercel.runs.compare import compare_engines

    answer = compare_engines(names, quick, project_root())
    if as_json:
        print_json(answer)
        return
    console = Console()
    table = Table(title="Engines, as ratios to the baseline")
    for heading in ("engine", "baseline", "case", "metric", "ratio", "A/A floor", "verdict"):
        table.add_column(heading)
    for pair in answer["pairs"]:
        low, high = pair["floor"]
        table.add_row(
            pair["engine"], pair["baseline"], pair["case"], pair["metric"],
            f"{pair['ratio']:.2f}", f"{low:.2f}–{high:.2f}", pair["verdict"],
        )  # fmt: skip
    console.print(table)
    for note in answer["notes"]:
        console.print(note, markup=False)
