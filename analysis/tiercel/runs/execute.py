"""Carries out one run: scratch folder, engine commands, context, record."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import tiercel
from tiercel.children import killed_with_parent
from tiercel.engines import Engine, Installation, Measurement, Step, Task
from tiercel.errors import RunFailed, one_line
from tiercel.launchers import Launcher
from tiercel.layers import Layer, Place, View, merged
from tiercel.results.raw import RECORD, RawStore, clean, write_json
from tiercel.runs.context import Sample, between, surroundings
from tiercel.runs.datasets import dataset_of
from tiercel.runs.places import Nodes, scratch_of
from tiercel.runs.scratch import Scratch, space_problem
from tiercel.runs.tracing import tracing_environment
from tiercel.s3.endpoint import Location
from tiercel.site.filesystem import FileSystem
from tiercel.site.model import Site
from tiercel.study.plan import Amount, Run

#: Variables whose values are part of what a number means. Others (user names, tokens) are never recorded.
_RECORDED = ("MPICH_", "OMPI_MCA_", "ROMIO_", "UCX_", "FI_", "HDF5_")

#: The engine's own message, or what MPICH's launcher says of a rank that died.
_TELLING = re.compile(r"error|^iokernel: |exit string", re.IGNORECASE)
#: How Python says what ended it.
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: ")

_GRACE_S = 5.0


class JobBroken(Exception):
    """The job lost a node, or its scheduler: what fails then says nothing of the storage: not recorded."""


class _NotStarted(RunFailed):
    """The launcher found nobody to start the command with."""


@dataclass(frozen=True)
class Equipment:
    """What a run needs beside its row of the plan."""

    engine: Engine
    installation: Installation
    launcher: Launcher
    store: RawStore
    timeout: float
    inherit: tuple[int, ...] = ()
    """Descriptors that the engine's processes keep open (the site's lock)."""
    site: Site | None = None
    layers: Mapping[str, tuple[Layer, Installation]] = field(default_factory=dict)
    """The layers that the plan's stacks name."""
    nodes_answer: Callable[[], bool] = lambda: True
    """Asked when a run failed: a node that died is no result, and the run is to go again."""
    recorded: FileSystem | None = None
    """What the run's storage was when the evaluation began."""
    around: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the job's nodes (runs.job): it wins over what this process sees of its own."""


T = TypeVar("T")
#: Work that lets its data rest (DataWorkload.rest): it yields the moment (time.monotonic) before which it is
#: not to go on, and others may work meanwhile.
Stages = Generator[float, None, T]
#: What a run is for: given its folder and the list that its commands go to, it returns numbers or an amount.
Deed = Callable[[Path, list[dict[str, Any]]], Stages[tuple[list[Measurement], Amount | None]]]


@dataclass(frozen=True)
class Outcome:
    """What a run came to. `measurements` is empty for a failed one."""

    run: Run
    status: str
    reason: str
    duration: float
    engine_time: float
    measurements: list[Measurement]
    amount: Amount | None = None
    """What a calibration found."""


def execute(run: Run, equipment: Equipment) -> Outcome:
    """Carry out `run`, keep its raw folder, and return what it came to (see recording)."""
    return to_the_end(executing(run, equipment))


def executing(run: Run, equipment: Equipment) -> Stages[Outcome]:
    """Do the same as `execute`; what its data rests, others may use."""

    def do(folder: Path, steps: list[dict[str, Any]]) -> Stages[tuple[list[Measurement], Amount | None]]:
        return (yield from _measuring(run, equipment, folder, steps)), None

    return recording(run, equipment, do)


def to_the_end(stages: Stages[T], *, wait: bool = True) -> T:
    """Return what some work comes to; without `wait` its data rests not at all."""
    while True:
        try:
            moment = next(stages)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if wait:
            time.sleep(max(0.0, moment - time.monotonic()))


def recording(run: Run, equipment: Equipment, do: Deed) -> Stages[Outcome]:
    """Make the run's raw folder, `do` what the run is for, and write down what it came to.

    A run that fails (engine killed, disk full, half-written result) is recorded with its reason and
    gives no numbers. Only an interruption of tiercel itself leaves a folder without a record. The duration is
    without the time that data rested.
    """
    rested = 0.0
    started, began = time.time(), time.monotonic()
    folder, attempt = equipment.store.begin(run.id, run.row())
    steps: list[dict[str, Any]] = []
    measurements: list[Measurement] = []
    reason = ""
    found: Amount | None = None
    try:
        with closing(do(folder, steps)) as stages:
            while True:
                try:
                    moment = next(stages)
                except StopIteration as end:
                    measurements, found = end.value
                    break
                paused = time.monotonic()
                yield moment
                rested += time.monotonic() - paused
    except _NotStarted as failure:
        raise JobBroken(f"{run.id}: {one_line(str(failure))}: the scheduler did not answer") from None
    except RunFailed as failure:
        reason = one_line(str(failure))
        if not equipment.nodes_answer():
            raise JobBroken(f"{run.id}: {reason}: a node of the job is gone") from None
    outcome = Outcome(
        run,
        status="failed" if reason else "ok",
        reason=reason,
        duration=time.monotonic() - began - rested,
        engine_time=sum(s["seconds"] for s in steps),
        measurements=measurements,
        amount=found,
    )
    write_json(
        folder / RECORD,
        {
            "run": run.id, "status": outcome.status, "reason": reason, "started": started,
            "duration": outcome.duration, "engine_time": outcome.engine_time, "attempts": attempt,
            "steps": steps, "tiercel": tiercel.__version__,
            **({"amount": asdict(found)} if found else {}),
        },
    )  # fmt: skip
    return outcome


def measure(run: Run, equipment: Equipment, folder: Path, steps: list[dict[str, Any]]) -> list[Measurement]:
    """Do what a run asks for, once and without a rest for its data, and return its numbers. What the engine
    leaves and the conditions go to `folder`, each command to `steps`, also of one that fails (RunFailed)."""
    return to_the_end(_measuring(run, equipment, folder, steps), wait=False)


def _measuring(
    run: Run, equipment: Equipment, folder: Path, steps: list[dict[str, Any]]
) -> Stages[list[Measurement]]:
    stack = run.configuration.stack
    nodes = elsewhere(run, equipment)
    problem = None if nodes else space_problem(stack, _footprint(run))
    if problem:
        raise RunFailed(problem)
    with scratch_of(stack, run.id, nodes, _footprint_of_node(run), equipment.recorded) as scratch:
        around = {**_said(equipment), **_aimed_at(run), **({} if nodes else surroundings(stack))}
        around |= equipment.around
        if isinstance(scratch, Scratch) and scratch.file_system is not None:
            around["file_system"] = scratch.file_system.row()
        before = Sample.take()
        try:
            place = scratch.data
            with _through_layers(
                run, equipment, folder if isinstance(place, Location) else place, folder
            ) as view:
                task = _task(run, equipment, place if isinstance(place, Location) else view.data, folder)
                rest, written = getattr(run.workload, "rest", None), 0.0
                for step in equipment.engine.steps(task, equipment.installation):
                    if rest is not None and steps:  # what the first one wrote
                        around["data_age"] = time.monotonic() - written
                        if len(steps) == 1:
                            yield written + rest
                            around["data_age"] = time.monotonic() - written
                            before = Sample.take()
                    steps.append(_carry_out(step, run, equipment, view, folder))
                    _check(step, steps[-1], folder, equipment.launcher)
                    if len(steps) == 1:
                        written = time.monotonic()
        finally:
            here = {} if _on_service(equipment) else between(before, Sample.take())
            write_json(folder / "context.json", {**around, **here})
            clean(folder)
    return equipment.engine.measurements(task, folder, [step["seconds"] for step in steps])


def _aimed_at(run: Run) -> dict[str, Any]:
    """Return what the conditions of a run say of its amount."""
    amount = run.amount
    return {} if amount is None else {"phase_time": amount.phase_time, "amount_bound": amount.bound}


def _said(equipment: Equipment) -> dict[str, Any]:
    """Return what the site file says of a node, to be held against what a run finds."""
    site = equipment.site
    return {"site_memory_bytes": site.memory_per_node} if site and site.memory_per_node else {}


def _on_service(equipment: Equipment) -> bool:
    """Whether this process runs on another machine than the engines (LSF's launch node, say)."""
    scheduler = equipment.site.scheduler if equipment.site else None
    return scheduler is not None and scheduler.head == "service"


def elsewhere(run: Run, equipment: Equipment) -> Nodes | None:
    """Return the run's nodes where its storage is another one on each, None where this one will do."""
    site = equipment.site
    if site is None or not site.node_local(run.configuration.stack.storage):
        return None
    return _other_nodes(run, equipment)


def _other_nodes(run: Run, equipment: Equipment) -> Nodes | None:
    """Return the run's nodes, None where this one is all of them."""
    count = run.configuration.job_nodes
    return None if count == 1 and not _on_service(equipment) else Nodes(equipment.launcher, count)


def _footprint(run: Run) -> int:
    c = run.configuration
    return run.workload.footprint(c.nodes, c.processes_per_node)


def _footprint_of_node(run: Run) -> int:
    c = run.configuration
    return run.workload.footprint(1, c.processes_per_node)


def _task(run: Run, equipment: Equipment, data: Path | Location, output: Path) -> Task:
    c = run.configuration
    elsewhere: dict[str, Path | Location] = {}
    if isinstance(data, Location):
        elsewhere = {part: data / part for part in ("dataset", "checkpoints")}
    there = dataset_of(run.workload, c.stack)
    if there is not None:
        elsewhere["dataset"] = there
    return Task(
        run.workload, c.nodes, c.processes_per_node, output if isinstance(data, Location) else data, output,
        run.seed, equipment.launcher.name, elsewhere,
    )  # fmt: skip


@contextmanager
def _through_layers(run: Run, equipment: Equipment, data: Path, folder: Path) -> Iterator[View]:
    """Switch the run's layers on, from the storage up to the program; yield what the engine sees."""
    c, nodes = run.configuration, _other_nodes(run, equipment)
    with ExitStack() as sessions:
        view = View(data)
        for choice in reversed(c.stack.layers):
            layer, installation = equipment.layers[choice.layer]
            assert equipment.site is not None
            place = Place(
                view.data, folder, equipment.site, c.stack.storage, c.job_nodes, c.processes_per_node,
                choice.options, run.seed, nodes.each if nodes else None,
            )  # fmt: skip
            above = sessions.enter_context(layer.session(place, installation))
            view = View(
                above.data,
                merged(view.environment, above.environment),
                (*above.command, *view.command),
            )
        yield view


def _carry_out(step: Step, run: Run, equipment: Equipment, view: View, folder: Path) -> dict[str, Any]:
    """Run one command to its end (or the time limit) and return what is recorded of it."""
    c = run.configuration
    argv = [*view.command, *step.argv]
    tracing = _tracing(equipment.engine, folder, view.data) if run.traced else {}
    private = merged(view.environment, tracing)
    if private:  # for the engine alone: the launcher's own I/O is nobody's business
        argv = ["env", *(f"{name}={value}" for name, value in private.items()), *argv]
    if step.launch == "parallel":
        argv = equipment.launcher.command(argv, c.job_nodes, c.processes_per_node)
    elif _on_service(equipment):
        argv = equipment.launcher.command(argv, 1, 1)
    environment = {**os.environ, **equipment.launcher.environment(), **step.environment}
    began = time.monotonic()
    with (
        (folder / f"{step.name}.stdout").open("wb") as out,
        (folder / f"{step.name}.stderr").open("wb") as err,
    ):
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder,
                start_new_session=True, pass_fds=equipment.inherit, preexec_fn=killed_with_parent,  # noqa: PLW1509
            )  # fmt: skip
        except OSError as error:
            raise RunFailed(f"{step.name}: {argv[0]} does not start: {error.strerror}") from None
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            timed_out = not wait(process, equipment.timeout)
        finally:
            if process.returncode is None:
                _end(process)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "name": step.name,
        "argv": argv,
        "environment": _worth_recording(environment),
        "exit_code": process.returncode,
        "timed_out": timed_out,
        "seconds": time.monotonic() - began,
        # Of the launcher and all that it waited for; on other nodes nobody counts it.
        "cpu_user": after.ru_utime - before.ru_utime,
        "cpu_system": after.ru_stime - before.ru_stime,
    }


def _tracing(engine: Engine, folder: Path, data: Path) -> Mapping[str, str]:
    """Return the variables that make an engine leave a trace: its own, or that of a preload library."""
    own = engine.tracing(folder)
    return tracing_environment(folder, data) if own is None else own


def _check(step: Step, done: Mapping[str, Any], folder: Path, launcher: Launcher) -> None:
    """Raise RunFailed with the most telling line there is, unless the step ended well."""
    code = done["exit_code"]
    if code in step.ok_codes and not done["timed_out"]:
        return
    of_launcher = (folder / f"{step.name}.stderr").read_text(errors="replace")
    kind = _NotStarted if launcher.lost_contact(of_launcher) else RunFailed
    if done["timed_out"]:
        raise kind(f"{step.name}: stopped after {done['seconds']:.0f} s (the study's timeout)")
    if launcher.used_up_memory(of_launcher):
        raise RunFailed(f"{step.name}: killed: its processes needed more memory than their job has")
    said = last_words(folder / f"{step.name}.stderr") or last_words(folder / f"{step.name}.stdout")
    ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    raise kind(f"{step.name}: {ended}{': ' + said if said else ''}")


def last_words(path: Path) -> str:
    """Return the most telling line of a program's output."""
    return last_line(path.read_text(errors="replace"))


def last_line(text: str, limit: int = 300) -> str:
    """Return the first line in `text` that says what went wrong, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _EXCEPTION.match(line)]
    telling = telling or [line for line in lines if _TELLING.search(line)]
    return (telling[:1] or lines[-1:] or [""])[0][:limit]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that we started: politely (a launcher passes it on to its ranks), then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_S)
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def wait(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for a command to end and return True, or False after `timeout` seconds.

    Popen.wait(timeout) looks only every 50 ms, which would be half of a short run's time.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(min(timeout * 1000, 2**31 - 1)):
            return False
    finally:
        os.close(descriptor)
    process.wait()
    return True


def _worth_recording(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in sorted(environment.items()) if k.startswith(_RECORDED)}
