"""`tiercel advise`: on which storage of this machine a program runs fastest, by running it on each."""
# The subject's libraries take a second to import, and other commands need none of them.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site
from tiercel.cli.panels import IMPROVE
from tiercel.errors import UserError
from tiercel.project import project_root, results_folder


def register(app: typer.Typer) -> None:
    app.command(
        rich_help_panel=IMPROVE,
        context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
        options_metavar="[OPTIONS] [--]",
    )(advise)


def advise(
    program: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGUMENTS] | TRACE", help="Program with its arguments, or a trace."),
    ],
    site: Site = "local",
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", min=0.1, max=1e6, help="For all trials (default: ten runs).", show_default=False
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            help="Folder that the program uses; may be repeated (default: found by a trace).",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        float, typer.Option("--runs", min=1, max=1e6, help="How many runs use what is copied in once.")
    ] = 1.0,
    cold: Annotated[
        bool | None,
        typer.Option(
            "--cold/--warm",
            help="Empty or fill the page cache before each run (default: as found).",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", "-n", min=1, help="Processes of an MPI program.", show_default=False),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Nodes of the allocation for -n.")] = 1,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the staging script here; print its command.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Run it once, in place; estimate from a replay of its I/O.")
    ] = False,
    home: Annotated[
        str | None,
        typer.Option(
            "--home", help="Of a TRACE: take all files as lying on this storage.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the answer (default: in results/).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run PROGRAM several times, with copies of its files on every storage, and report where it runs fastest.

    Its own files are read and never written: what the trials write is removed.
    """
    from tiercel.advice.advise import Options
    from tiercel.advice.ask import ask
    from tiercel.advice.document import apply as write_script
    from tiercel.advice.document import document, write
    from tiercel.programs import as_started
    from tiercel.report.advice.page import write_page
    from tiercel.report.advice.terminal import print_advice

    root = project_root()
    options = Options(minutes, runs, tuple(files or ()), cold, processes, nodes)
    folder = _folder(output, results_folder(root, site), program[0])
    try:
        advice = ask(as_started(program), site, options, once=once, home=home, folder=folder, progress=_say)
        write(advice, folder)
        page = write_page(advice, folder)
        command = write_script(advice, Path.cwd()) if apply else ""
    except KeyboardInterrupt:
        print(
            "tiercel: interrupted; the copies are removed, and the program's files are untouched",
            file=sys.stderr,
        )
        raise
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror or error}") from None
    if as_json:
        print_json({**document(advice), "folder": str(folder), "apply": command or None})
    else:
        print_advice(advice, page, command)
    if apply and not command:
        print("tiercel: --apply: nothing is to be moved, so no script was written", file=sys.stderr)


def _folder(output: Path | None, results: Path, name: str) -> Path:
    """Return the folder for the answer: the one that was named, else a new one in the results."""
    if output is not None:
        return output.resolve()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name) or "program"
    place, number = results / "advice", 1
    while (place / (f"{stem}-{number}")).exists():
        number += 1
    return place / f"{stem}-{number}"


def _say(sentence: str) -> None:
    if sys.stderr.isatty() or os.environ.get("TIERCEL_PROGRESS"):
        print(f"tiercel: {sentence}", file=sys.stderr)
