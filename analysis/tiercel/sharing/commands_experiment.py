"""``tiercel share experiment``: what a background job costs a program of the user, by policy."""
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, size_of, split_words
from tiercel.errors import UserError
from tiercel.units import format_share


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
        experiment
    )


def experiment(
    command: Annotated[
        list[str], typer.Argument(help="Command, after --. {folder} stands for its folder on the storage.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", "-p", help="Policy to test (repeat). [default: fifo, job-fair, size-fair]"),
    ] = None,
    size: Annotated[int, typer.Option("--size", min=1, help="Node count of the command.")] = 4,
    processes: Annotated[int, typer.Option(min=1, help="Processes of the background job.")] = 2,
    prepare: Annotated[
        str | None, typer.Option(help="Command that prepares the input before each run.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder on the storage under test (default: temporary).")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Bandwidth limit of the storage per second: 400MiB.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions of each policy, interleaved.")] = 3,
    longest: Annotated[str, typer.Option(help="Time limit of the command.")] = "5min",
    as_json: Json = False,
) -> None:
    """Measure how a background job slows a command under each policy (ThemisIO paper, section 5.5)."""
    from tiercel.documents import parse
    from tiercel.layers.fairshare.policies import check_policy
    from tiercel.programs import own_program
    from tiercel.sharing.own_command import own_command
    from tiercel.sharing.workload_application import SharingApplicationWorkload

    policies = list(dict.fromkeys(policy or ["fifo", "job-fair", "size-fair"]))
    for each in policies:
        check_policy(each)
    storage = data or Path(tempfile.gettempdir())
    if not storage.is_dir():
        raise UserError(f"--data {storage}: not a folder")
    before = split_words("--prepare", prepare)
    if not any("{folder}" in word for word in (*command, *before)):
        raise UserError(
            "share experiment: no argument of the command contains {folder}, the shared folder: "
            "use {folder} as the path of its files"
        )
    for first in (command[0], *before[:1]):
        if "{folder}" not in first:
            own_program(first)
    content = {
        "operation": "sharing-application", "application": "command", "command": command, "prepare": before,
        "data": "1GiB", "size": size, "longest": longest, "background": {"processes": processes},
    }  # fmt: skip
    workload = parse(SharingApplicationWorkload, content, "share experiment")
    found = own_command(
        workload, policies, storage, repetitions, size_of("--rate", rate) or 0,
        lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{' '.join(found['command'])}, as {found['size']} nodes beside one"
    table = Table(title=title)
    for heading in ("policy", "alone", "beside", "slower by", "allowed", "alone differs by", "share"):
        table.add_column(heading)
    for row in found["policies"]:
        low, high = row["slowdown_range"]
        slower = format_share(row["slowdown"], 1)
        if low < high:
            slower += f" ({format_share(low, 1)} to {format_share(high, 1)})"
        share = _percent(row["share"])
        if row["entitled"] is not None:
            share += f" of {_percent(row['entitled'])}"
        table.add_row(
            row["policy"], f"{row['alone_s']:.2f} s", f"{row['beside_s']:.2f} s",
            slower, _percent(row["allowed"]), _percent(row["noise"]), share,
        )  # fmt: skip
    Console().print(table)
    if not any(row["operations"] for row in found["policies"]):
        print("Note: the command did no I/O under {folder}. Use {folder} as the path of its files.")
    elif not any(row["bytes"] for row in found["policies"]):
        print("Note: the command moved no bytes under {folder}. Shares count bytes only.")
    print(
        "Medians. allowed: the slowdown that its share permits, without the CPU time of the background job."
    )
    print("Use --rate to emulate a storage that is slower than the processors.")


def _percent(value: float | None) -> str:
    return "-" if value is None else format_share(value, 1)
