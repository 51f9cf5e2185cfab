"""How far do engines agree? The same workloads on every engine, paired, with the A/A noise floor.

Every engine is measured in the same way: bandwidth as it reports it, and CPU time as the kernel counts
it for the step (launcher and all processes), less the same engine's start-up, which is a run of one
operation for each process. The baseline runs twice in every round; what its two halves differ by is the
floor below which no difference between engines means anything.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiercel.engines import Engine, Installation, engines
from tiercel.errors import UserError
from tiercel.launchers import Launcher, launchers, resolve
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, execute
from tiercel.runs.lock import SiteLock
from tiercel.runs.scratch import check_scratch
from tiercel.site import load_site
from tiercel.site.model import Stack
from tiercel.statistics.comparison import Comparison, compare, judge
from tiercel.statistics.noise import noise_floor
from tiercel.study.plan import Configuration, Run, Twin
from tiercel.study.workloads import DataWorkload
from tiercel.units import format_size

_SITE = "local"
_MIB = 1024**2

#: Transfer size, processes, bytes of each process (quick, full). Small transfers on one process: there the
#: CPU time of an operation is the engine's own; two would also measure how they share caches.
_SHAPES = ((4096, 1, (128 * _MIB, 512 * _MIB)), (_MIB, 2, (256 * _MIB, 512 * _MIB)))

#: Rounds at most, and the seconds after which no run begins.
_QUICK, _FULL = (6, 48.0), (10, math.inf)

#: Of one run.
_TIMEOUT_S = 120.0

METRICS = ("bandwidth", "cpu_per_operation")


@dataclass(frozen=True)
class _Contestant:
    """An engine under one launcher. `label` is its name in the answer."""

    label: str
    engine: Engine
    installation: Installation
    launcher: Launcher


@dataclass(frozen=True)
class _Case:
    """One workload on one stack."""

    stack: Stack
    operation: str
    pattern: str
    transfer_size: int
    processes: int
    bytes_per_process: int

    @property
    def name(self) -> str:
        words = ["random"] if self.pattern == "random" else []
        return " ".join([self.stack.name, format_size(self.transfer_size), *words, self.operation])

    @property
    def startup(self) -> _Case:
        """One operation for each process. It hangs neither on the pattern nor on the operation."""
        return _Case(self.stack, "write", "sequential", self.transfer_size, self.processes, 0)

    def workload(self) -> DataWorkload:
        # Reads are warm: from a cold cache the storage would be measured, not the engine.
        return DataWorkload(
            operation="write" if self.operation == "write" else "read",
            pattern="random" if self.pattern == "random" else "sequential",
            transfer_size=self.transfer_size,
            block_size=self.bytes_per_process or None,
            segments=1,
            cold=False,
        )


@dataclass
class _Values:
    """What one contestant's runs of one case gave, by metric and twin."""

    bandwidth: dict[Twin, list[float]] = field(default_factory=lambda: {"a": [], "b": []})
    cpu: dict[Twin, list[float]] = field(default_factory=lambda: {"a": [], "b": []})
    operations: int = 0


def compare_engines(
    names: list[str] | None, quick: bool, root: Path, stacks: Sequence[Stack] | None = None
) -> dict[str, Any]:
    """Compare the engines `names` (default: all that are found) with IOR, or with iokernel without it.

    The stacks are by default this machine's memory and its first disk. ::

        {"pairs": [{"engine", "baseline", "case", "metric", "ratio", "low", "high", "floor": [low, high],
                    "n", "verdict", "reason"}], "engines": {name: version}, "notes": [sentence]}

    `ratio` is of the geometric means, the engine's over the baseline's; `low` and `high` its 95 % interval
    by Welch's t test. The verdict (higher, lower, undecided) is corrected for the number of pairs.
    """
    notes: list[str] = []
    launcher = resolve(load_site(_SITE, root).launcher)
    found = _contestants(names, launcher, notes)
    baseline = next((c for c in found if c.label == "ior"), found[0])
    places = list(stacks) if stacks is not None else _local_stacks(root)
    for stack in places:
        check_scratch(stack)
    cases = [case for case in _cases(places, quick) if _possible(baseline, case) is None]
    with (
        tempfile.TemporaryDirectory(prefix="tiercel-engines-") as folder,
        SiteLock(root / "results" / _SITE) as lock,
    ):
        bench = _Bench(RawStore(Path(folder)), lock.descriptor, notes)
        values, startups = bench.run(found, baseline, cases, _QUICK if quick else _FULL)
    pairs = _pairs(found, baseline, cases, values, startups, notes)
    if not any(c.label != baseline.label for c in found):
        notes.append(f"there is nothing but {baseline.label}, so it is compared with itself")
    if quick:
        notes.append("quick: a few runs each show a gross difference; a claim needs the full comparison")
    return {
        "pairs": pairs,
        "engines": {c.label: c.installation.version for c in found},
        "notes": list(dict.fromkeys(notes)),
    }


def _contestants(names: list[str] | None, launcher: Launcher, notes: list[str]) -> list[_Contestant]:
    """Return what can be compared, iokernel first."""
    found: list[_Contestant] = []
    probe = DataWorkload(operation="write", segments=1)
    for name in dict.fromkeys(names or engines):
        engine = engines.get(name)()
        reason = engine.unsupported(probe, 1) if engine.measures else "it does no I/O"
        if reason:
            if names:
                notes.append(f"{name} is left out: {reason}")
            continue
        installation = engine.find()
        if installation is None:
            notes.append(f"{name} was not found: {getattr(engine, 'note', '') or 'not installed'}")
        elif engine.needs_mpi and not launcher.mpi:
            notes.append(f"{name} is left out: it needs MPI and launcher {launcher.name} has none")
        else:
            found += _with_launchers(name, engine, installation, launcher)
    if not found:
        raise UserError(f"no engine to compare ({'; '.join(notes)}); `make setup` builds iokernel")
    return sorted(found, key=lambda c: not c.label.startswith("iokernel"))


def _with_launchers(
    name: str, engine: Engine, installation: Installation, launcher: Launcher
) -> Iterator[_Contestant]:
    """Yield the engine under the site's launcher; iokernel, which can fork by itself, also without it."""
    if name != "iokernel":
        yield _Contestant(name, engine, installation, launcher)
        return
    programs = installation.programs
    if launcher.mpi and "mpi" in programs:
        yield _Contestant(name, engine, installation, launcher)
        if "fork" in programs:
            yield _Contestant("iokernel-fork", engine, installation, launchers.get("fork")())
    elif "fork" in programs:
        yield _Contestant(name, engine, installation, launchers.get("fork")())


def _local_stacks(root: Path) -> list[Stack]:
    storages = load_site(_SITE, root).storages
    chosen: list[Stack] = []
    for medium in ("memory", "disk"):
        chosen += [Stack(n, s) for n, s in storages.items() if s.medium == medium][:1]
    return chosen or [Stack(n, s) for n, s in storages.items()][:1]


def _cases(stacks: Sequence[Stack], quick: bool) -> list[_Case]:
    kinds = [("write", "sequential"), ("read", "sequential")]
    kinds += [] if quick else [("read", "random")]
    return [
        _Case(stack, operation, pattern, size, processes, amounts[not quick])
        for stack in stacks
        for size, processes, amounts in _SHAPES
        for operation, pattern in kinds
    ]


def _possible(contestant: _Contestant, case: _Case) -> str | None:
    return contestant.engine.unsupported(case.workload(), 1)


class _Bench:
    """Carries out the runs."""

    def __init__(self, store: RawStore, lock: int, notes: list[str]) -> None:
        self._store, self._lock, self._notes = store, lock, notes

    def run(
        self,
        found: Sequence[_Contestant],
        baseline: _Contestant,
        cases: Sequence[_Case],
        limits: tuple[int, float],
    ) -> tuple[Mapping[tuple[str, str], _Values], Mapping[tuple[str, int], list[float]]]:
        """Return the values of every contestant and case, and the CPU seconds of the start-ups."""
        rounds, budget = limits
        deadline = time.monotonic() + budget
        values = {(c.label, case.name): _Values() for c in found for case in cases}
        starts = {case.processes: case.startup for case in reversed(cases)}
        startups: dict[tuple[str, int], list[float]] = {(c.label, n): [] for c in found for n in starts}
        for number in range(rounds):
            jobs: list[tuple[_Contestant, _Case, Twin]] = [(c, case, "a") for c in found for case in cases]
            jobs += [(baseline, case, "b") for case in cases]
            jobs += [(c, case, "a") for c in found for case in starts.values()]
            random.Random(number).shuffle(jobs)
            for contestant, case, twin in jobs:
                if time.monotonic() > deadline:
                    return values, startups
                run = Run(_configuration(contestant, case), number, twin)
                if case.bytes_per_process:
                    self._measure(contestant, case, run, values)
                else:
                    seconds = self._cpu(contestant, run)[0]
                    startups[contestant.label, case.processes] += [] if seconds is None else [seconds]
        return values, startups

    def _measure(
        self, contestant: _Contestant, case: _Case, run: Run, values: Mapping[tuple[str, str], _Values]
    ) -> None:
        reason = _possible(contestant, case)
        if reason:
            self._notes.append(f"{contestant.label} cannot do {case.name}: {reason}")
            return
        cpu, outcome_reason, bandwidth, operations = self._cpu(contestant, run)
        if cpu is None or bandwidth is None or not operations:
            self._notes.append(f"{contestant.label} failed in {case.name}: {outcome_reason}")
            return
        mine = values[contestant.label, case.name]
        mine.bandwidth[run.twin].append(bandwidth)
        mine.cpu[run.twin].append(cpu)
        mine.operations = operations

    def _cpu(self, contestant: _Contestant, run: Run) -> tuple[float | None, str, float | None, int | None]:
        """Carry out `run`; return the last step's CPU seconds, the failure, bandwidth and operations.

        A run of one operation may be too short for an engine's clock, and yet its CPU time is good.
        """
        equipment = Equipment(
            contestant.engine, contestant.installation, contestant.launcher, self._store, _TIMEOUT_S,
            (self._lock,),
        )  # fmt: skip
        outcome = execute(run, equipment)
        raw = self._store.read(run.id)
        last = raw.record["steps"][-1] if raw and raw.record["steps"] else None
        cpu = None
        if last and last["exit_code"] == 0 and last["name"] in ("main", run.configuration.workload.operation):
            cpu = float(last["cpu_user"]) + float(last["cpu_system"])
        measured = next((m for m in outcome.measurements if m.role == "measured"), None)
        if measured is None:
            return cpu, outcome.reason, None, None
        return cpu, outcome.reason, measured.bandwidth, measured.operations


def _configuration(contestant: _Contestant, case: _Case) -> Configuration:
    words = f"{case.operation}-{case.pattern}-{case.transfer_size}-{case.bytes_per_process}"
    return Configuration(
        site=_SITE, study="engine-agreement", experiment=contestant.label, name=words,
        workload=case.workload(), stack=case.stack, engine=contestant.engine.name,
        engine_version=contestant.installation.version, launcher=contestant.launcher.name,
        nodes=1, processes_per_node=case.processes, seed=1,
    )  # fmt: skip


def _pairs(
    found: Sequence[_Contestant],
    baseline: _Contestant,
    cases: Sequence[_Case],
    values: Mapping[tuple[str, str], _Values],
    startups: Mapping[tuple[str, int], list[float]],
    notes: list[str],
) -> list[dict[str, Any]]:
    """Return every pair; the baseline with its own second half where there is nothing else."""
    others = [c for c in found if c is not baseline]
    heads: list[dict[str, Any]] = []
    made: list[Comparison] = []

    def numbers(contestant: _Contestant, case: _Case, metric: str) -> dict[Twin, list[float]]:
        mine = values[contestant.label, case.name]
        if metric == "bandwidth":
            return mine.bandwidth
        start = startups[contestant.label, case.processes]
        if not start or not mine.operations:
            return {"a": [], "b": []}
        base = statistics.median(start)
        return {twin: [(v - base) / mine.operations for v in mine.cpu[twin]] for twin in ("a", "b")}

    for case in cases:
        for metric in METRICS:
            halves = numbers(baseline, case, metric)
            if any(v <= 0 for v in halves["a"] + halves["b"]):
                notes.append(f"the CPU time of {case.name} cannot be told from start-up")
                continue
            floor = noise_floor(halves["a"], halves["b"])
            if not floor.known or not math.isfinite(floor.high):
                continue
            rows = [(c.label, numbers(c, case, metric)["a"], halves["a"] + halves["b"]) for c in others]
            for label, mine, theirs in rows or [(baseline.label, halves["b"], halves["a"])]:
                comparison = compare(mine, theirs, floor)
                if not math.isfinite(comparison.ratio):
                    continue
                heads.append(
                    {"engine": label, "baseline": baseline.label, "case": case.name, "metric": metric}
                )
                made.append(comparison)
    return [
        head
        | {
            "ratio": c.ratio, "low": c.low, "high": c.high, "floor": [c.floor.low, c.floor.high],
            "n": c.n_a, "verdict": c.verdict, "reason": c.reason,
        }
        for head, c in zip(heads, judge(made) if made else [], strict=True)
    ]  # fmt: skip
