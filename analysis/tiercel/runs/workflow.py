"""Starts Snakemake, and ends it as a whole: a signal to tiercel ends the workflow and its jobs too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from tiercel.children import killed_with_parent
from tiercel.errors import Interrupted
from tiercel.extras import need


def run_workflow(
    command: list[str], root: Path, output: int | None = None, enough: Callable[[], bool] | None = None
) -> int:
    """Run Snakemake in folder `root` and return its exit code; Interrupted where a signal ended it, UserError
    where Snakemake is not installed.

    `output`: a descriptor for what it says (None: where tiercel's own goes). `enough` is asked every second;
    once it is true the workflow is ended as by Ctrl-C, and its exit code returned.

    Asked to terminate, Snakemake waits for its running jobs, which may take hours; interrupted, it ends them.
    So SIGTERM (of a scheduler, of kill) and SIGINT reach the workflow and its local jobs as SIGINT.

    Where this process is killed, so is Snakemake, and with it what it runs on this machine (`tiercel batch`);
    jobs of a scheduler go on, and the next Snakemake waits for them (runs.controller).
    """
    need("snakemake")
    process: subprocess.Popen[bytes] | None = None
    asked = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)

    # Handled here also where a shell had it ignored (`&` in a script): else Snakemake's jobs would ignore it.
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen(
            command, cwd=root, env=_environment(root), process_group=0, stdout=output, stderr=output,
            preexec_fn=killed_with_parent,  # noqa: PLW1509
        )  # fmt: skip
        if asked:  # while it was being started
            os.killpg(process.pid, signal.SIGINT)
        code = _wait(process, enough)
        if asked and code:
            raise Interrupted
        return code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _environment(root: Path) -> dict[str, str] | None:
    """Return the variables for Snakemake: with a cache in the project where the home folder takes none.

    Else Snakemake ends in a traceback on accounts whose home folder is absent or read-only.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    with suppress(OSError, RuntimeError):  # RuntimeError: no home folder is known at all
        cache = cache.expanduser()
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return None
    return {**os.environ, "XDG_CACHE_HOME": str(root / ".snakemake" / "cache")}


def _wait(process: subprocess.Popen[bytes], enough: Callable[[], bool] | None) -> int:
    ended = False
    while enough is not None:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        if not ended and enough():
            ended = True
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
    return process.wait()
