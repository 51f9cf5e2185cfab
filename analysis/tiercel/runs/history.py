"""What a study's finished runs have shown so far: values, times, failures.

It decides which runs of the plan are still wanted (adaptive repetition) and how long the rest will take.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tiercel.engines import Measurement
from tiercel.errors import RunFailed, UserError
from tiercel.results.measured import measurements_of
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Outcome
from tiercel.statistics.adaptive import enough
from tiercel.study.looks import Look
from tiercel.study.model import Study
from tiercel.study.plan import Run, RunPlan

#: A configuration that failed this often in a row is not tried again: the reason is recorded already.
GIVE_UP = 2


@dataclass
class _Mean:
    """A mean that another value is added to without looking at the earlier ones."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


class History:
    """The finished runs of one study; feed it with add() as runs end."""

    def __init__(
        self, study: Study, calibrations: Mapping[str, Run] | None = None, looks: Iterable[Look] = ()
    ) -> None:
        """`calibrations`: by a configuration's key, the run that finds its amount (RunPlan.calibrations)."""
        self._study = study
        self._left_of_look = {look.number: look.seconds for look in looks}
        self._calibrations = calibrations or {}
        self._values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._seconds: dict[str, _Mean] = defaultdict(_Mean)
        self._by_experiment: dict[str, _Mean] = defaultdict(_Mean)
        self._of_all = _Mean()
        self._failures: dict[str, int] = defaultdict(int)
        self.engine_time = 0.0
        self.node_hours = 0.0
        self.ended: dict[str, str] = {}
        """Each finished run, and why it failed; empty for one that ended well."""

    @classmethod
    def load(cls, plan: RunPlan, store: RawStore, damaged: list[str] | None = None) -> History:
        """Return the history of the plan's runs that are on disk.

        Where a run is damaged: UserError, or a sentence in `damaged` where that is given.
        """
        history = cls(plan.study, plan.calibrations, plan.looks)
        done = set(store.ids())
        for run in plan.runs:
            try:
                raw = store.read(run.id) if run.id in done else None
            except UserError as error:
                if damaged is None:
                    raise
                damaged.append(str(error))
                continue
            if raw is None:
                continue
            reason = "" if raw.ok else str(raw.record["reason"] or "no reason recorded")
            try:
                measurements = measurements_of(raw) if raw.ok and not run.calibration else []
            except RunFailed as failure:
                measurements, reason = [], str(failure)
            history.ended[run.id] = reason
            ok = bool(measurements) or (run.calibration and raw.ok)
            history._add(run, ok, raw.record["duration"], raw.record["engine_time"], measurements)
        return history

    def add(self, outcome: Outcome) -> None:
        ok = outcome.status == "ok"
        self.ended[outcome.run.id] = "" if ok else str(outcome.reason or "no reason recorded")
        self._add(outcome.run, ok, outcome.duration, outcome.engine_time, outcome.measurements)

    def wanted(self, run: Run) -> bool:
        """Return whether a planned run is still to be done.

        Within the minimum it is, unless the configuration keeps failing: a budget does not cut what
        comparisons need. Beyond it, while some measured operation's interval is too wide and budget is left.
        What a follow-up asks for is wanted until its own minutes are used.
        """
        configuration = run.configuration
        bounds = self._study.repetitions_of(configuration.experiment)
        calibration = self._calibrations.get(configuration.key)
        if calibration is not None and self._failures[_key(calibration)]:
            return False
        budget = self._study.budget
        if self._failures[configuration.key] >= GIVE_UP:
            return False
        if run.calibration:
            return True
        if run.look:
            return self._left_of_look.get(run.look, math.inf) > 0
        if run.repetition < bounds.minimum:
            return True
        if run.twin == "b" or (budget is not None and self.engine_time >= budget):
            return False
        operations = self._values[configuration.key]
        return not operations or any(enough(values, bounds).go_on for values in operations.values())

    def seconds(self, run: Run) -> float | None:
        """Return how long `run` will take, judged by its likes; None before any have run."""
        likes = self.seconds_of_likes(run)
        return self._of_all.value if likes is None else likes

    def seconds_of_likes(self, run: Run) -> float | None:
        """Return how long runs of the same configuration took, or else of the same experiment."""
        likes = self._seconds.get(_key(run)) or self._by_experiment.get(_experiment(run))
        return likes.value if likes else None

    def _add(
        self, run: Run, ok: bool, duration: float, engine_time: float, measurements: list[Measurement]
    ) -> None:
        key = _key(run)
        if run.look in self._left_of_look:
            self._left_of_look[run.look] -= duration
        for mean in (self._seconds[key], self._by_experiment[_experiment(run)], self._of_all):
            mean.add(duration)
        self.engine_time += engine_time
        self.node_hours += duration * run.configuration.job_nodes / 3600
        self._failures[key] = 0 if ok else self._failures[key] + 1
        if ok and not run.traced and run.twin == "a":
            for m in measurements:
                value = m.bandwidth if m.bandwidth is not None else m.operation_rate
                if m.role == "measured" and value is not None:
                    self._values[key][m.operation].append(value)


def _key(run: Run) -> str:
    """What runs share that are repetitions of each other; a calibration is none of anything."""
    return run.id if run.calibration else run.configuration.key


def _experiment(run: Run) -> str:
    return (
        f"{run.configuration.experiment} (calibration)" if run.calibration else run.configuration.experiment
    )
