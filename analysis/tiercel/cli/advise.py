"""`tiercel advise`: where the files of one program belong on this machine, measured."""
# The subject's libraries take a second to import, and other commands need none of them.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site
from tiercel.cli.panels import IMPROVE
from tiercel.errors import UserError
from tiercel.project import project_root, results_folder
from tiercel.units import parse_duration

if TYPE_CHECKING:
    from tiercel.advice.capture import Program


def register(app: typer.Typer) -> None:
    app.command(
        rich_help_panel=IMPROVE,
        context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
        options_metavar="[OPTIONS] [--]",
    )(advise)


def advise(
    program: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGUMENTS] | TRACE", help="Program to run, or a trace of it."),
    ],
    site: Site = "local",
    minutes: Annotated[float, typer.Option("--minutes", min=0.1, max=1e6, help="Minutes to measure.")] = 5.0,
    trace_for: Annotated[
        str | None,
        typer.Option(
            "--trace-for", help="Trace only this long (60s, 5min). The program continues to its end."
        ),
    ] = None,
    tracer: Annotated[str, typer.Option("--tracer", help="Tracer: auto, strace or dftracer.")] = "auto",
    home: Annotated[
        str | None,
        typer.Option("--home", help="Assume that all files are on this storage.", show_default=False),
    ] = None,
    runs: Annotated[
        float,
        typer.Option("--runs", min=1, max=1e6, help="Number of runs that use the same copied input."),
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the answer. Default: a new folder in results/."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a program, replay its I/O on every storage, and recommend where its files belong.

    Example: tiercel advise -- ./my-program input.nc

    PROGRAM runs once. Replays write only to scratch folders, never to its files.
    """
    from tiercel.advice.advise import Options, check
    from tiercel.advice.advise import advise as find_advice
    from tiercel.advice.capture import Program
    from tiercel.advice.document import document, write
    from tiercel.advice.tracers import choose
    from tiercel.programs import as_started
    from tiercel.report.advice.page import write_page
    from tiercel.report.advice.terminal import print_advice
    from tiercel.runs.lock import SiteLock
    from tiercel.site import load_site
    from tiercel.traces import open_trace

    root = project_root()
    machine, results = load_site(site, root), results_folder(root, site)
    options = Options(minutes, runs, home)
    check(machine, options)
    until = _seconds(trace_for)
    program = as_started(program)
    running: Program | None = None
    capture = None
    trace = Path(program[0])
    try:
        folder = _folder(output, results, program[0])
        # Held from before the program runs: who waits for another tiercel has lost nothing.
        with SiteLock(results) as lock:
            if len(program) > 1 or not program[0] or not _is_trace(trace):
                trace = folder / "trace"
                chosen = choose(program, tracer)
                running = Program(program, chosen, trace, until, quiet=as_json)
                _say(f"tracing {program[0]} with {chosen.name} ({chosen.why})")
                capture = running.capture()
                _say(f"{program[0]} ran {capture.seconds:.1f} s under the tracer; its trace: {trace}")
            found = open_trace(trace)
            advice = find_advice(found, capture, trace, machine, options, _say, (lock.descriptor,))
        written = write(advice, folder)
        page = write_page(advice, folder)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror or error}") from None
    if as_json:
        print_json({**document(advice), "folder": str(folder)})
    else:
        print_advice(advice, page, written)
    if running is not None and capture is not None and capture.exit_code is None:
        _say(f"waiting for {program[0]} to end")
        running.finish()


def _is_trace(path: Path) -> bool:
    """Return whether the first word is the path of something that is no program."""
    return path.exists() and (path.is_dir() or not os.access(path, os.X_OK))


def _folder(output: Path | None, results: Path, name: str) -> Path:
    """Return the folder for the answer: the one that was named, else a new one in the results."""
    if output is not None:
        if (output / "trace").exists():
            raise UserError(
                f"{output}: holds the trace of an earlier advice: name another folder, or remove it"
            )
        return output.resolve()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name) or "program"
    place, number = results / "advice", 1
    while (place / (f"{stem}-{number}")).exists():
        number += 1
    return place / f"{stem}-{number}"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise UserError(f"--trace-for: {error}") from None
    if not seconds:
        raise UserError(f"--trace-for {text}: must be longer than 0")
    return seconds


def _say(sentence: str) -> None:
    print(f"tiercel: {sentence}", file=sys.stderr)
