"""One question from the command line or a notebook: a program to try, or a trace to estimate from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tiercel.advice.advise import Options, advise, command_of
from tiercel.advice.answer import Advice
from tiercel.advice.document import answer_folder
from tiercel.advice.estimate import estimate
from tiercel.errors import UserError
from tiercel.programs import own_program
from tiercel.project import project_root, results_folder
from tiercel.runs.lock import SiteLock
from tiercel.runs.strace import no_strace, under_strace
from tiercel.site import load_site
from tiercel.traces import open_trace


def ask(
    program: Sequence[str], site: str, options: Options, *, once: bool = False, home: str | None = None,
    folder: Path | None = None, progress: Callable[[str], None] = lambda _said: None,
) -> Advice:  # fmt: skip
    """Return advice on a program, or on the one of a trace. `once`: run it in place, traced in full, and
    replay that.

    `folder` takes the answer, and the trace of `once`. UserError for what cannot be answered.
    """
    root = project_root()
    machine, results = load_site(site, root), results_folder(root, site)
    if home is not None and home not in machine.storages:
        raise UserError(
            f"--home {home}: site {site} has no such storage (storages: {', '.join(machine.storages)})"
        )
    # What no waiting can mend is refused before waiting for the lock.
    frame = (
        open_trace(Path(program[0])) if len(program) == 1 and program[0] and _is_trace(program[0]) else None
    )
    if frame is None and not once:
        command_of(program, machine, options)
    with SiteLock(results) as lock, answer_folder(folder):
        inherit = (lock.descriptor,)
        if frame is not None:
            why = "it was asked of a trace"
            return estimate(frame, machine, why, home=home, progress=progress, inherit=inherit)
        if not once:
            return advise(program, machine, options, progress)
        log, code = _traced(program, folder or results / "advice")
        found = estimate(open_trace(log), machine, "the program ran once", program=program, home=home,
                         progress=progress, inherit=inherit)  # fmt: skip
        ended = [f"the program ended with exit code {code}: the estimate is on what it did"] if code else []
        return replace(found, notes=(*found.notes, *ended), program_runs=1)


def _is_trace(name: str) -> bool:
    """Return whether the only word is the path of something that is no program."""
    path = Path(name)
    return path.exists() and (path.is_dir() or not os.access(path, os.X_OK))


def _traced(program: Sequence[str], folder: Path) -> tuple[Path, int]:
    """Run a program in place under strace; return its trace and exit code."""
    own_program(program[0])
    if lacking := no_strace():
        raise UserError(f"--once: strace cannot be used: {lacking}")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "run.strace"
    return log, subprocess.run(under_strace(program, log, "-DDD"), check=False).returncode
