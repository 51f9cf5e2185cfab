"""Runs the applications on every storage system of a site, traced, in interleaved repetitions.

``results/<site>/placement/applications/<application>.<variant>/<system>.r<n>/`` holds the trace, the output
and ``record.json`` (written last: without it the run goes again). Inputs are evicted from the page cache
before the program starts.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiercel
from tiercel import pagecache
from tiercel.children import killed_with_parent
from tiercel.errors import RunFailed, UserError, suggest
from tiercel.launchers import Launcher, resolve
from tiercel.placement.applications.base import Application, Variant, applications
from tiercel.programs import program
from tiercel.results.raw import clean, read_json, write_json
from tiercel.runs.execute import last_words
from tiercel.runs.lock import SiteLock
from tiercel.runs.scratch import Scratch, check_scratch
from tiercel.runs.tracing import preload_library, tracing_environment
from tiercel.site.model import Site, Stack

RECORD = "record.json"
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class AppRun:
    """One execution of one variant on one system."""

    application: str
    variant: Variant
    stack: Stack
    repetition: int
    processes: int = 1

    def folder(self, root: Path) -> Path:
        return root / f"{self.application}.{self.variant.name}" / f"{self.stack.name}.r{self.repetition}"


def available(
    only: list[str] | None = None, launcher: Launcher | None = None
) -> tuple[dict[str, Application], list[str]]:
    """Return the applications that are installed and that `launcher` (default: auto) can start, and sentences
    on the others."""
    launcher = launcher or resolve("auto")
    for name in only or []:
        if name not in applications:
            raise UserError(f"no application named {name!r}: {suggest(name, applications)}")
    found, notes = {}, []
    for name in only or applications.names():
        application = applications.get(name)()
        reason = application.missing() or lacks_tracer(application)
        alone = [v for v in application.variants if not v.parallel]
        if not reason and not launcher.mpi:
            if not alone:
                reason = f"its processes need MPI, and launcher {launcher.name} has none"
            elif len(alone) < len(application.variants):
                notes.append(
                    f"{name} goes without its parallel variants: launcher {launcher.name} has no MPI"
                )
        if reason:
            notes.append(f"{name} left out: {reason}")
        else:
            found[name] = application
    return found, notes


def lacks_tracer(application: Application) -> str | None:
    """Return what to install for an application to be traced; None where it can be."""
    if application.tracer == "strace":
        return None if program("strace") else "strace is not installed (Debian: strace)"
    return None if preload_library() else "DFTracer is not installed for this machine and Python"


def measure(
    site: Site,
    results: Path,
    repetitions: int = 3,
    only: list[str] | None = None,
    seed: int = 1,
    own: Application | None = None,
) -> Iterator[tuple[int, int, AppRun, str]]:
    """Run what is not there yet, of the user's `own` application or of those of tiercel.

    Yield (position, all, run, reason of failure or "") after each.
    """
    launcher = resolve(site.launcher, site.launcher_options)
    found = {own.name: own} if own else available(only, launcher)[0]
    cores = max(2, site.processes_per_node)
    stacks = [Stack(name, storage) for name, storage in site.storages.items() if not storage.objects]
    for stack in stacks:
        check_scratch(stack)
    root = results / "placement" / "applications"
    runs: list[AppRun] = []
    for number in range(repetitions):
        part = [
            AppRun(n, v, s, number, cores if v.parallel else 1)
            for n, a in found.items()
            for v in a.variants
            if launcher.mpi or not v.parallel
            for s in stacks
        ]
        random.Random(f"applications:{seed}:{number}").shuffle(part)
        runs += part
    with SiteLock(results):
        for position, run in enumerate(runs, 1):
            if _done(run, run.folder(root)):
                continue
            yield position, len(runs), run, _run(run, found[run.application], launcher, run.folder(root))


def _done(run: AppRun, folder: Path) -> bool:
    """Return whether a run is there and good; failed ones go again, and those of what has changed."""
    if not (folder / RECORD).exists():
        return False
    record = read_json(folder / RECORD)
    return bool(
        record["status"] == "ok"
        and record["options"] == run.variant.options
        and record["processes"] == run.processes
    )


def _run(run: AppRun, application: Application, launcher: Launcher, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for old in [p for p in folder.rglob("*") if p.is_file()]:  # what an interrupted attempt left
        old.unlink()
    record: dict[str, Any] = {
        "application": run.application, "variant": run.variant.name, "options": dict(run.variant.options),
        "system": run.stack.name, "repetition": run.repetition, "tracer": application.tracer,
        "processes": run.processes, "launcher": launcher.name if run.processes > 1 else "",
        "tiercel": tiercel.__version__, "started": time.time(), "status": "ok", "reason": "",
    }  # fmt: skip
    try:
        name = f"{run.application}.{run.variant.name}.{run.stack.name}.r{run.repetition}"
        with Scratch(run.stack, name) as scratch:
            application.prepare(scratch.data, run.variant.options)
            evict(scratch.data)
            record["data"] = str(scratch.data)
            record |= _traced(application, run, launcher, scratch.data, folder)
            record["bytes_left"] = sum(p.stat().st_size for p in scratch.data.rglob("*") if p.is_file())
    except (RunFailed, subprocess.SubprocessError, OSError) as error:
        record |= {"status": "failed", "reason": str(error)}
    clean(folder)
    write_json(folder / RECORD, record)
    return str(record["reason"])


def _traced(
    application: Application, run: AppRun, launcher: Launcher, data: Path, folder: Path
) -> dict[str, Any]:
    argv = application.command(data, run.variant.options)
    environment = {**os.environ, **application.environment()}
    if application.tracer == "strace":
        (folder / "trace").mkdir(exist_ok=True)
        log = folder / "trace" / "run.strace"
        argv = [
            str(program("strace")),
            # Each process of a parallel program has a strace of its own, and so needs a file of its own.
            "-ff" if run.processes > 1 else "-f",
            "-ttt",
            "-T",
            "-y",
            "-e",
            "trace=%file,%desc",
            "-o",
            str(log),
            *argv,
        ]
    else:
        # The launcher of the program is not traced: env sets the variables for the program alone.
        argv = ["env", *(f"{k}={v}" for k, v in tracing_environment(folder, data).items()), *argv]
    if run.processes > 1:
        argv = launcher.command(argv, 1, run.processes)
        environment |= launcher.environment()
    began = time.monotonic()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
            cwd=folder if application.apart else None,
            timeout=_TIMEOUT_S, check=False, preexec_fn=killed_with_parent,
        )  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode:
        said = last_words(folder / "stderr") or last_words(folder / "stdout")
        raise RunFailed(f"exit code {done.returncode}: {said}")
    return {"argv": argv, "seconds": seconds}


def evict(folder: Path) -> None:
    """Write the files under `folder` to the medium and drop them from the page cache (tmpfs keeps them)."""
    pagecache.evict(p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())


def show_progress(steps: Iterator[tuple[int, int, AppRun, str]]) -> tuple[int, int]:
    """Print one line a run to standard error; return how many ran and how many failed."""
    ran = failed = 0
    for position, total, run, reason in steps:
        ran, failed = ran + 1, failed + bool(reason)
        what = f"{run.application} {run.variant.name}  {run.stack.name}"
        print(f"[{position:4}/{total}] {what}{'  FAILED: ' + reason if reason else ''}", file=sys.stderr)
    return ran, failed
