"""``tiercel dl rules``: how a planned run stands to MLPerf Storage's rules."""
# ruff: noqa: PLC0415 (imports what it needs when it is called)

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import MOST_PROCESSES, Json


def register(app: typer.Typer) -> None:
    """Add the command to ``tiercel dl``."""
    app.command()(rules)


def rules(
    workload: Annotated[str, typer.Argument(help="Workload: a name in workflows/dl-workloads or a path.")],
    processes: Annotated[
        int,
        typer.Option("--processes", "-n", min=1, max=MOST_PROCESSES, help="Processes on all hosts together."),
    ] = 1,
    hosts: Annotated[int, typer.Option("--hosts", min=1, max=MOST_PROCESSES, help="Number of hosts.")] = 1,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Memory of each host: 512GiB. Default: that of this machine."),
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Fraction of the data and computation.")] = 1.0,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: reader.read_threads=8 (repeat).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a planned run against the CLOSED rules of MLPerf Storage, and its dataset size; exit
    code 2 where it falls short."""
    from rich.console import Console
    from rich.table import Table

    from tiercel.dl.official import nearest
    from tiercel.dl.rules import EDITION, Plan, standings
    from tiercel.dl.workload import FOLDER, load_workload, overrides_of, workload_path
    from tiercel.errors import UserError
    from tiercel.project import built_in
    from tiercel.site.machine import memory as installed
    from tiercel.units import parse_size

    changed = overrides_of(overrides or [])
    try:
        size = parse_size(memory) if memory is not None else installed()
    except ValueError as error:
        raise UserError(f"--memory {memory}: {error}") from None
    if not size:
        raise UserError(f"--memory {memory}: a host has some")
    if not 0 < scale <= 1:
        raise UserError(f"--scale {scale:g}: must be above 0 and at most 1")
    asked = load_workload(workload, changed)
    # A project's file of an official name is its own, too.
    own = not workload_path(workload).resolve().is_relative_to(built_in().resolve() / FOLDER)
    official = nearest(asked) if own else None
    found = standings(asked, Plan(processes, hosts, size, frozenset(changed), scale, official, own))
    if not found:
        raise UserError(f"workload {workload}: neither trains nor only checkpoints: no rules are about it")
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        table = Table("rule", "asks", "here", "")
        for one in found:
            table.add_row(one.rule, one.asks, one.here, one.verdict)
        out = Console()
        out.print(table)
        out.print(f"Rules.md of MLPerf Storage, edition {EDITION}. A submission itself is run by mlpstorage.")
    if any(one.verdict == "short" for one in found):
        raise typer.Exit(2)
