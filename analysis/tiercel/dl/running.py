"""Runs one workload once, outside of a study: `tiercel dl run`, the benchmarks, the search for settings."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiercel.children import ending, killed_with_parent
from tiercel.dl.files.spec import needs_dataset
from tiercel.dl.kernel.comm import launched
from tiercel.dl.places import Places, inside, objects_of, places_of
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.workload import Scale, without_effect
from tiercel.engines import Engine, Installation, Measurement, Step, Task, engines
from tiercel.errors import RunFailed, UserError
from tiercel.launchers import Launcher, resolve
from tiercel.locked import FileLock
from tiercel.runs.execute import last_line, last_words
from tiercel.s3.endpoint import Location
from tiercel.temporary import temporary_folder
from tiercel.units import format_duration, format_size

_TIMEOUT_S = 6 * 3600.0


@dataclass(frozen=True)
class Ran:
    """A finished run. `output` holds the engine's files; `seconds` is from its start to its end."""

    workload: DeepLearningWorkload
    engine: str
    version: str
    processes: int
    scale: Scale
    measurements: list[Measurement]
    seconds: float
    output: Path
    cpu: float = 0.0
    """CPU seconds of all its processes, start included."""
    details: dict[str, Any] = field(default_factory=dict)
    dataset: Path | Location | None = None
    """Where the dataset lies; None where the workload has none."""
    found_dataset: bool = False
    """Whether it was there before."""
    without_effect: list[str] = field(default_factory=list)
    """Keys of the workload file that do nothing on this engine."""

    def of(self, operation: str) -> Measurement:
        """Return the measurement of an operation; RunFailed where there is none."""
        found = next((m for m in self.measurements if m.operation == operation), None)
        if found is None:
            raise RunFailed(f"{self.engine} reported no {operation}")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "workload": self.workload.workload,
            "engine": self.engine,
            "engine_version": self.version,
            "processes": self.processes,
            "scale": self.scale.as_dict(),
            "overrides": self.workload.overrides,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu,
            "dataset": None if self.dataset is None else str(self.dataset),
            "found_dataset": self.found_dataset,
            "without_effect": self.without_effect,
            "measurements": [{k: v for k, v in m.row().items() if v is not None} for m in self.measurements],
            **self.details,
        }


def deep_learning(
    name: str, overrides: dict[str, Any] | None = None, scale: float = 1.0, **more: Any
) -> DeepLearningWorkload:
    """Return workload `name` as a study would have it; UserError for a wrong one."""
    if not 0 < scale <= 1:
        raise UserError(f"scale {scale:g}: must be above 0 and at most 1")
    content = {"operation": "deep-learning", "workload": name, "overrides": overrides or {}, "scale": scale}
    return DeepLearningWorkload.model_validate({**content, **more})


def installed(name: str) -> tuple[Engine, Installation]:
    """Return an engine and where it is installed; UserError where it is not."""
    engine = engines.get(name)()
    installation = engine.find()
    if installation is None:
        raise UserError(f"engine {name} is not installed: see docs/deep-learning.md")
    return engine, installation


def alone() -> None:
    """Raise UserError where a launcher started this command several times: each would do all of the work."""
    if launched() > 1:
        raise UserError(
            f"a launcher started this command {launched()} times: start it once, with -n {launched()} for as "
            "many processes"
        )


def output_of(workload: DeepLearningWorkload, folder: Path | Location) -> Path | None:
    """Return where the workload file wants its results (relative: below `folder`, with objects below the
    current one); None without a word."""
    found, _ = workload.resolved()
    below = folder if isinstance(folder, Path) else Path.cwd()
    return None if found.output.folder is None else inside(below, found.output.folder, "output.folder")


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """Yield a folder for datasets: the one named, which stays, or a new one, which goes."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}") from None
        yield folder.resolve()
        return
    with temporary_folder("tiercel-dl-data-", Path(os.environ.get("TMPDIR", "/var/tmp"))) as made:
        yield made


@contextmanager
def place_for(workload: DeepLearningWorkload, folder: str | None) -> Iterator[Path | Location]:
    """Yield where a workload's data goes: a prefix in object storage, or a folder as `place` does."""
    found, _ = workload.resolved()
    objects = objects_of(found, folder)
    if objects is not None:
        yield objects
        return
    with place(None if folder is None else Path(folder)) as made:
        yield made


def run_once(
    workload: DeepLearningWorkload,
    engine_name: str,
    folder: Path | Location,
    output: Path,
    processes: int = 1,
    trace: bool = False,
    seed: int = 1,
    here: Path | None = None,
) -> Ran:
    """Run a workload with its data in `folder` (see `places_of`, also for `here`), results in `output`.

    A dataset that is there is checked and used, another made first.

    Raises UserError for an engine that cannot do it, and for whatever the engine says is wrong.
    """
    engine, installation = installed(engine_name)
    reason = engine.unsupported(workload, 1) or (
        engine.unsupported_on_objects(workload) if isinstance(folder, Location) else None
    )
    if reason:
        raise UserError(f"workload {workload.workload}: {reason}")
    found, scale = workload.resolved(1, processes)
    places = places_of(found, folder, here)
    used_dataset = needs_dataset(found)
    had = used_dataset and places.has_dataset
    _check_space(workload, places, processes, had)
    launcher = resolve("auto" if engine.needs_mpi else "fork")
    task = Task(workload, 1, processes, folder if isinstance(folder, Path) else output, output, seed,
                launcher.name,
                {"dataset": places.dataset, "checkpoints": places.checkpoints})  # fmt: skip
    environment: dict[str, str] = {}
    if trace:
        own = engine.tracing(output)
        if own is None:
            raise UserError(f"engine {engine_name} does not write a trace: trace it in a study")
        environment = dict(own)
        _clear_trace(output)
    began, used = time.monotonic(), os.times()
    with _alone_with_checkpoints(workload, places, processes):
        for step in engine.steps(task, installation):
            _carry_out(step, launcher, processes, output, environment, engine_name)
    seconds, after = time.monotonic() - began, os.times()
    try:
        measurements = engine.parse(task, output)
    except RunFailed as failure:
        raise UserError(f"workload {workload.workload}: {failure}") from None
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    return Ran(
        workload, engine_name, installation.version, processes, scale, measurements, seconds, output, cpu,
        _details(output), places.dataset if used_dataset else None, had,
        without_effect(found) if engine_name == "dlkernel" else [],
    )  # fmt: skip


def _clear_trace(output: Path) -> None:
    """Remove the trace of an earlier run from `output`: read together, two runs are one that never was."""
    for log in (output / "trace").glob("*.pfw*"):
        if not log.is_symlink():  # a link is somebody's, and written through
            log.unlink()


def _alone_with_checkpoints(
    workload: DeepLearningWorkload, places: Places, processes: int
) -> AbstractContextManager[object]:
    """Keep other runs from writing checkpoints in the same folder, where this one does: names are the same.

    UserError where another run has it. A dataset has its own lock while it is made, and is only read then.
    """
    folder = places.checkpoints
    if not workload.checkpoint_footprint(1, processes) or not isinstance(folder, Path):
        return nullcontext()
    return FileLock(
        folder.with_name(f".{folder.name}.lock"),
        f"another run writes its checkpoints in {folder}: wait until it is over, or name another --folder",
    )


def _check_space(workload: DeepLearningWorkload, places: Places, processes: int, had: bool) -> None:
    """Raise UserError where dataset and checkpoints have no room on the file systems that they go to."""
    dataset = workload.dataset_footprint(1, processes)
    checkpoints = workload.checkpoint_footprint(1, processes)
    needed: dict[int, int] = {}
    for place, size in ((places.dataset, 0 if had else dataset), (places.checkpoints, checkpoints)):
        if not isinstance(place, Path) or not size:
            continue
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        device, space = there.stat().st_dev, os.statvfs(there)
        free, needed[device] = space.f_bavail * space.f_frsize, needed.get(device, 0) + size
        if needed[device] > free:
            raise UserError(
                f"{place}: {format_size(free)} are free and workload {workload.workload} needs "
                f"{format_size(needed[device])}: name another --folder or a smaller --scale"
            )


def _carry_out(
    step: Step, launcher: Launcher, processes: int, output: Path, environment: dict[str, str], engine: str
) -> None:
    argv = list(step.argv)
    if step.launch == "parallel":
        argv = launcher.command(argv, 1, processes)
    with (output / f"{step.name}.stdout").open("wb") as out:
        # Its words come through a pipe: a folder that is full has no room for why it failed.
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=killed_with_parent,  # noqa: PLW1509
            env={**os.environ, **launcher.environment(), **step.environment, **environment},
        )  # fmt: skip
        try:
            _, words = process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{engine}: {step.name}: stopped after {format_duration(_TIMEOUT_S)}: runs that take longer "
                "are for studies, which state their own timeout"
            ) from None
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    failed = process.returncode not in step.ok_codes
    with suppress(OSError) if failed else nullcontext():  # of a failure the reason is told, kept or not
        (output / f"{step.name}.stderr").write_bytes(words)
    if failed:
        said = last_line(words.decode(errors="replace")) or last_words(output / f"{step.name}.stdout")
        raise UserError(said or f"{engine}: {step.name} {ending(process.returncode)} and said nothing")


def _details(output: Path) -> dict[str, Any]:
    """Return DLIO's summary and the rows of dlkernel, where they are."""
    found: dict[str, Any] = {}
    for key, name in (("summary", "summary.json"), ("run", "dlkernel.json")):
        try:
            content = json.loads((output / name).read_text())
        except (OSError, ValueError):
            continue
        found[key] = (
            content
            if key == "summary"
            else {k: content[k] for k in ("startup", "generated", "files", "rows")}
        )
    return found
