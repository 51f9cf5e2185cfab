"""From a program to advice: one traced run, then trials of the program itself on every storage.

advice = advise(["./simulate", "input.nml"], site, Options())
advice.advised, advice.judged, advice.document
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tiercel.advice import seen
from tiercel.advice.answer import Advice, Result
from tiercel.advice.bench import HOME, Bench, Candidate, Trial, resident, timed_script
from tiercel.advice.isolation import no_isolation
from tiercel.advice.measure import Measuring
from tiercel.advice.stdin import Input
from tiercel.advice.workset import Folder, after_trace, first_folders, parts_of, sized
from tiercel.errors import RunFailed, UserError
from tiercel.launchers import resolve
from tiercel.launchers.base import launchers
from tiercel.programs import own_program
from tiercel.runs.scratch import RUN_PREFIX, check_scratch, leftovers, remove_run_folder, space_problem
from tiercel.runs.strace import no_strace
from tiercel.site.model import Site, Stack, Storage
from tiercel.site.mounts import read_mounts
from tiercel.units import format_duration, format_size

Progress = Callable[[str], None]
#: Minutes for all trials where the user does not say.
MINUTES = 5.0
#: A first run may take this share of the time; copying the working set no more either, at `_COPY_RATE`.
_FIRST, _COPY_RATE = 1 / 3, 200e6
#: Launchers that start processes through a daemon, so outside the namespace in which they are called.
_REMOTE = ("srun", "jsrun", "lrun", "flux", "aprun", "ibrun")


@dataclass(frozen=True)
class Options:
    """What the user may say. `minutes`: the time for all trials (None: some ten runs); `runs`: how many
    runs use
    what is copied in once; `files`: the working set; `cold`: page cache emptied before each run (None: as
    found);
    `processes`: of a parallel program, on `nodes`."""

    minutes: float | None = None
    runs: float = 1.0
    files: tuple[str, ...] = ()
    cold: bool | None = None
    processes: int | None = None
    nodes: int = 1
    seed: int = 1


def advise(
    program: Sequence[str], site: Site, options: Options, progress: Progress = lambda _said: None
) -> Advice:
    """Run a program on every storage of a site; return the advice. UserError where it cannot be tried.

    The caller holds the site's lock. The program's files are read and never written.
    """
    began = time.monotonic()
    argv, command = command_of(program, site, options)
    if forbidden := no_isolation():
        raise UserError(
            f"{forbidden}, so a trial could write to the program's own files. `tiercel advise --once -- "
            "PROGRAM` estimates from one run in place"
        )
    cwd = os.path.realpath(Path.cwd())
    mounts = read_mounts()
    named = first_folders(argv, cwd, options.files)
    site = _scratch_outside(site, named)
    folders = sized(named, site, mounts)
    notes = [*_prepare_storages(site), *_busy()]
    minutes = MINUTES if options.minutes is None else options.minutes
    _check_size(folders, minutes)
    cold = not resident(folders) if options.cold is None else options.cold
    stdin = Input()
    bench = Bench(site, argv, cwd, folders, cold, stdin, command)
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="tiercel-advise-") as place:
        for storage in site.storages.values():
            stack.callback(_remove_empty, storage)
        stack.enter_context(bench)
        log = None if options.files or command is not None or no_strace() else Path(place) / "trace"
        progress("first run, at home" + ("" if log is None else ", traced"))
        first = _first(bench, log, minutes * 60 * _FIRST, argv[0])
        advice = Advice(site, tuple(program), cwd, tuple(folders), runs_sharing=options.runs, cold=cold)
        parts = []
        if log is not None:
            found = seen.read(log)
            used, outside = after_trace(folders, found, site, mounts)
            notes += _outside(outside)
            parts = parts_of(used, found)
            bench.folders = used
            advice = replace(advice, folders=tuple(used))
        if stdin.note:
            notes.append(stdin.note)
        if first.left:
            notes.append(
                f"it leaves processes running ({', '.join(first.left)}): they are ended after each run, so "
                f"the times "
                "are those of the program that you named"
            )
        if not bench.folders:
            advice = replace(advice, method="nothing")
        else:
            for result in _placements(site, bench.folders, options):
                advice.results[result.candidate.name] = result
            soon = began if options.minutes is None else None
            measuring = Measuring(bench, advice, began + minutes * 60, soon, parts, progress, options.seed,
                                  code=first.code or 0, script=timed_script(Path(place)))  # fmt: skip
            try:
                advice = measuring.measure(first)
            except RunFailed as failure:
                raise UserError(f"{argv[0]}: cannot be tried: {failure}") from None
        return replace(
            advice, notes=(*notes, *advice.notes), seconds=time.monotonic() - began, program_runs=bench.runs
        )


def _remove_empty(storage: Storage) -> None:
    """Remove a scratch folder that only this question used."""
    if not storage.objects and storage.scratch_path().name.startswith(RUN_PREFIX):
        with suppress(OSError):
            storage.scratch_path().rmdir()


# -- what is checked before anything runs --------------------------------------------------------------------


def command_of(program: Sequence[str], site: Site, options: Options) -> tuple[list[str], list[str] | None]:
    """Return the program's words, and those of the launcher before them; None: it is started as it is."""
    argv = list(program)
    if not argv:
        raise UserError("name a program, as in `tiercel advise -- PROGRAM ARGUMENTS`, or the path of a trace")
    name = Path(argv[0]).name
    starts_others = name in (*launchers.names(), "mpirun")
    several = int(os.environ.get("SLURM_NNODES", "1") or 1) > 1
    if options.processes is None:
        if name in _REMOTE or (starts_others and several):
            raise UserError(
                f"{name} starts processes where the trial's files are not mounted: leave it out, `tiercel "
                f"advise "
                f"--site {site.site} -n PROCESSES -- PROGRAM`"
            )
        path = own_program(argv[0])
        if os.geteuid() and path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise UserError(f"{argv[0]}: changes its user (set-uid), which no trial can do")
        return argv, None
    if starts_others:
        argv = argv[1:]
        if not argv or argv[0].startswith("-"):
            raise UserError(
                f"{name}: leave it and its options out: -n {options.processes} -- PROGRAM ARGUMENTS"
            )
    own_program(argv[0])
    if site.launcher == "srun" and "SLURM_JOB_ID" not in os.environ:
        raise UserError(
            f"-n {options.processes}: this is no Slurm job, and each run would wait in the queue: "
            f"put the command into a batch script (sbatch --nodes={options.nodes} "
            f"--ntasks={options.processes})"
        )
    launcher = resolve(site.launcher, site.launcher_options)
    if missing := launcher.missing():
        raise UserError(f"-n {options.processes}: {missing}")
    each = -(-options.processes // options.nodes)
    words = launcher.command(["TIERCEL-PROGRAM"], options.nodes, each)
    return argv, words[: words.index("TIERCEL-PROGRAM")]


def _prepare_storages(site: Site) -> list[str]:
    """Remove what killed trials left on the storages, and return a note on that."""
    removed = 0
    for name, storage in site.storages.items():
        with suppress(UserError, OSError):
            for folder in leftovers(Stack(name, storage)):
                host, _, process = folder.name.removeprefix(f"{RUN_PREFIX}advise-").rpartition("-")
                ours = folder.name.startswith(f"{RUN_PREFIX}advise-") and host == os.uname().nodename
                if ours and not Path(f"/proc/{process}").exists():
                    remove_run_folder(folder)
                    removed += 1
    return [f"removed copies that a killed trial had left ({removed} folders)"] if removed else []


def _scratch_outside(site: Site, folders: Sequence[str]) -> Site:
    """Return the site with scratch folders that lie in no folder of the working set: copies go there."""
    storages = dict(site.storages)
    for name, storage in site.storages.items():
        if storage.objects:
            continue
        scratch = os.path.realpath(storage.scratch_path())
        around = next((f for f in folders if f"{scratch}/".startswith(f"{f}/")), None)
        if around is None:
            continue
        parent = Path(around).parent
        if parent.stat().st_dev != Path(around).stat().st_dev or not os.access(parent, os.W_OK):
            raise UserError(
                f"storage {name}: its scratch folder {scratch} lies in {around}, which is to be copied: "
                f"name another in "
                "site.yaml"
            )
        outside = str(parent / f"{RUN_PREFIX}copies-{os.getuid()}").replace("$", "$$")
        storages[name] = storage.model_copy(update={"scratch": outside})
    return site.model_copy(update={"storages": storages})


def _busy() -> list[str]:
    """Return a note where other processes use this machine."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load < 0.7 * processors:
        return []
    return [
        f"this machine is busy (load {load:.1f} on {processors} processors): storages are compared fairly, "
        f"since their "
        "runs alternate, but every time is longer than on an idle machine"
    ]


def _check_size(folders: Sequence[Folder], minutes: float) -> None:
    size = sum(f.size for f in folders)
    if size / _COPY_RATE > minutes * 60 * _FIRST:
        largest = max(folders, key=lambda f: f.size)
        raise UserError(
            f"{largest.path}: {format_size(size)} are to be copied, which takes too long for trials of "
            f"{minutes:g} min; "
            "name smaller folders with --files, or give --minutes more"
        )


# -- the first run, and what to try --------------------------------------------------------------------------


def _first(bench: Bench, log: Path | None, limit: float, name: str) -> Trial:
    try:
        first = bench.traced(log, limit)
        if (
            first.code not in (0, None) and log is not None and not log.exists()
        ):  # the tracer failed, not the program
            first = bench.traced(None, limit)
    except RunFailed as failure:
        raise UserError(f"{name}: cannot be tried: {failure}") from None
    if first.code is None:
        raise UserError(
            f"{name}: still ran after {format_duration(limit)} and was ended; its files are untouched. "
            f"Trials need some "
            "eight runs: give --minutes more, or `tiercel advise --once -- PROGRAM` for an estimate from "
            "one run"
        )
    if first.code:
        how = f"exit code {first.code}" if first.code > 0 else f"signal {-first.code}"
        raise UserError(
            f"{name}: fails on a copy of its files "
            f"({how}{': ' + first.last_line if first.last_line else ''}); nothing "
            "else was tried, and its files are untouched"
        )
    return first


def _placements(site: Site, folders: Sequence[Folder], options: Options) -> list[Result]:
    """Return home, and the whole working set on each other storage."""
    found = [Result(Candidate(HOME, {}))]
    size = sum(f.size for f in folders)
    for name, storage in site.storages.items():
        places = {f.path: name for f in folders if f.home != name}
        if not places or storage.objects:
            continue
        result = Result(Candidate(name, places, "the whole working set"))
        stack = Stack(name, storage)
        try:
            check_scratch(stack)
            result.why_not = space_problem(stack, size) or ""
        except UserError as error:
            result.why_not = str(error)
        if options.nodes > 1 and not storage.shared:
            result.why_not = f"node-local: each of the {options.nodes} nodes would see files of its own"
        elif options.processes and site.launcher == "srun" and not storage.shared and not _on_node():
            result.why_not = (
                f"node-local, and {os.uname().nodename} is no node of the job: use a batch script (sbatch)"
            )
        found.append(result)
    return found


def _on_node() -> bool:
    """Return whether this process runs on a node of its Slurm job, not in a shell that `salloc` started."""
    return "SLURMD_NODENAME" in os.environ


def _outside(folders: Sequence[str]) -> list[str]:
    if not folders:
        return []
    more = f" and {len(folders) - 2} more" if len(folders) > 2 else ""
    return [
        f"it also changes files in {' and '.join(folders[:2])}{more}, which others use, too: each run did "
        f"that, as it does "
        "without tiercel, and what lies there was not moved"
    ]
