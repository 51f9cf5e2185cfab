"""``tiercel share policy``: what a policy promises, before anybody measures or simulates it."""
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.errors import UserError
from tiercel.sharing.commands_simulate import File, Jobs, check_figure, save_figure, scenario_of
from tiercel.units import format_share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tiercel.sharing.parts import Part

#: Wider matrices than this are for --json.
_COLUMNS = 12


def register(app: typer.Typer) -> None:
    """Add the command to ``tiercel share``."""
    app.command("policy")(policy)


def policy(
    name: Annotated[str, typer.Argument(metavar="POLICY", help="Policy, for example user-then-size-fair.")],
    file: File = None,
    job: Jobs = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the tree of shares: .png, .svg or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the share of each job under a policy.

    Without jobs: the paper's of 4 and 1 nodes.
    """
    from rich.console import Console

    from tiercel.sharing.promise import promise, promised_parts
    from tiercel.sharing.scenario import four_to_one

    check_figure(figure)
    scenario = scenario_of(file, job or []) or four_to_one(1)
    document = promise(name, scenario)
    tops = promised_parts(document, scenario)
    if figure:
        if not tops:
            raise UserError(
                f"--figure: {document['policy']} guarantees no shares, so there is no tree to draw"
            )
        _draw(tops, document["policy"], figure)
    if as_json:
        print_json(document)
        return
    console = Console()
    if not tops:
        console.print("fifo guarantees no shares: a job with more waiting requests gets more bandwidth.")
        return
    console.print(_tree(document["policy"], tops))
    console.print(_jobs(document["jobs"]))
    _matrices(console, document)


def _tree(name: str, tops: Sequence[Part]) -> Tree:
    from rich.tree import Tree

    tree = Tree(f"{name}, while all have requests", highlight=False)
    branches = {0: tree}
    for top in tops:
        for depth, part in top.walk():
            label = part.name if not part.below else f"{part.level} {part.name}"
            branches[depth + 1] = branches[depth].add(f"{label}  {format_share(part.entitled, 2)}")
    return tree


def _jobs(jobs: Sequence[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table("job", "share", "a token's number")
    for job in jobs:
        begin, end = job["segment"]
        table.add_row(job["name"], format_share(job["share"], 2), f"{begin:.4f}–{end:.4f}")
    return table


def _matrices(console: Console, document: dict[str, Any]) -> None:
    """Print each level's matrix: a row for each entity above, a column for each of its own."""
    from rich.table import Table

    above = "all"
    for level, matrix in zip([*document["levels"][:-1], "job"], document["matrices"], strict=True):
        columns = matrix["columns"]
        if len(columns) > _COLUMNS:
            console.print(
                f"Matrix from {above} to {level}: {matrix['rows']} x {len(columns)}, see --json", markup=False
            )
        else:
            grid = Table.grid(padding=(0, 2))
            for row in range(matrix["rows"]):
                grid.add_row(
                    *(f"{column['value']:.4g}" if column["row"] == row else "0" for column in columns)
                )
            console.print(f"Matrix from {above} to {level}:", markup=False)
            console.print(grid)
        above = level


def _draw(tops: Sequence[Part], name: str, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from tiercel.sharing.parts_figure import draw_parts

    levels = 1 + max(depth for top in tops for depth, _ in top.walk())
    figure, ax = plt.subplots(figsize=(8.4, 0.6 + 0.75 * levels), layout="constrained")
    draw_parts(ax, tops, 8)
    ax.set_title(f"{name}: what each is promised", fontsize=10)
    save_figure(figure, path)
