"""Commands on node-local caching of HDF5 files."""
# ruff: noqa: PLC0415 (benchmarks import NumPy and h5py, which take a while)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import Json, size_of
from tiercel.errors import UserError
from tiercel.units import format_size

if TYPE_CHECKING:
    from tiercel.caching.logs import Verb

app = typer.Typer(help="Cache HDF5 files on node-local storage.", no_args_is_help=True)


def register(to: typer.Typer) -> None:
    """Add the commands to ``tiercel``."""
    to.add_typer(app, name="cache", rich_help_panel=panels.IMPROVE)


Storage = Annotated[
    Path | None,
    typer.Option("--storage", metavar="DIR", help="Node-local folder; default $TMPDIR or /tmp."),
]
One = Annotated[str | None, typer.Option("--log", help="Only this log.")]
File = Annotated[Path | None, typer.Option("--file", help="Only the log of this HDF5 file.")]


@app.command("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def run_program(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM...", help="After `--`.")],
    storage: Storage = None,
    size: Annotated[str | None, typer.Option(help="Size limit of the cache: 20GiB.")] = None,
    write: Annotated[bool | None, typer.Option("--write/--no-write", help="Stage writes [yes].")] = None,
    read: Annotated[bool | None, typer.Option("--read/--no-read", help="Cache reads [yes].")] = None,
    prefetch: Annotated[
        bool | None, typer.Option("--prefetch/--no-prefetch", help="Copy whole files in the background [no].")
    ] = None,
    stats: Annotated[Path | None, typer.Option(help="Append a line of counters to this file.")] = None,
) -> None:
    """Run an HDF5 program with node-local caching.

    Example: tiercel cache run --storage /local/scratch -- python train.py
    """
    from tiercel.caching.launch import run

    asked = {"write": write, "read": read, "prefetch": prefetch, "size": size_of("--size", size or None)}
    options: dict[str, bool | int | str] = {name: value for name, value in asked.items() if value is not None}
    if str(stats) == "--":  # taken for the file's name, and made
        raise UserError("--stats: needs a file, before the -- of the program")
    if stats and not stats.resolve().parent.is_dir():  # the connector could only keep silent about it
        raise UserError(f"--stats {stats}: there is no folder {stats.resolve().parent}")
    options |= {"stats": str(stats.resolve())} if stats else {}
    raise typer.Exit(run(command, storage, options))


def _show(verb: Verb, found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif not found:
        print("nothing is staged")
    for log in found if not as_json else ():
        left = f"{log['records']} records, {format_size(log['bytes'])}"
        print(f"{log['log']}  {log['state']:9} {left:28} {log['file']}  {log['reason']}".rstrip())
    if verb != "inspect" and any(log["state"] == "refused" for log in found):
        raise typer.Exit(1)


@app.command()
def inspect(storage: Storage = None, as_json: Json = False) -> None:
    """List staged data that is not yet in its files, of running and of killed programs."""
    from tiercel.caching.launch import node_local
    from tiercel.caching.logs import logs

    _show("inspect", logs("inspect", node_local(storage)), as_json)


@app.command()
def replay(
    storage: Storage = None,
    log: One = None,
    file: File = None,
    force: Annotated[bool, typer.Option("--force", help="Write even if the file has changed since.")] = False,
    as_json: Json = False,
) -> None:
    """Write the staged data of killed programs to their files."""
    from tiercel.caching.launch import node_local
    from tiercel.caching.logs import logs

    _show("replay", logs("replay", node_local(storage), log=log, file=file, force=force), as_json)


@app.command()
def drop(
    storage: Storage = None,
    log: One = None,
    file: File = None,
    everything: Annotated[bool, typer.Option("--all", help="All logs of killed programs.")] = False,
    as_json: Json = False,
) -> None:
    """Delete the staged data of killed programs."""
    from tiercel.caching.launch import node_local
    from tiercel.caching.logs import logs

    if not (log or file or everything):
        raise UserError("drop: name one with --log or --file, or say --all")
    if everything and (log or file):
        raise UserError("drop: --all is every log: leave out --log and --file, or --all")
    _show("drop", logs("drop", node_local(storage), log=log, file=file), as_json)


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Finish in about 90 seconds.")] = False,
    base: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder on the base storage. Default: a rate-limited folder."),
    ] = None,
    rate: Annotated[str, typer.Option(help="Speed of the default base storage per second.")] = "200MiB",
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Measure checkpoints and streaming reads with plain HDF5, with the cache and on node-local storage."""
    from tiercel.caching.bench import bench as measure
    from tiercel.caching.bench import show
    from tiercel.caching.launch import node_local

    answer = measure(quick, base, rate, node_local(storage))
    if as_json:
        print_json(answer)
    else:
        show(answer)
