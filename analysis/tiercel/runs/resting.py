"""Runs whose data rests before it is read (`rest:`): what they wait, others of their job work.

All data that is to rest is written first, then come the other runs of the job, then the reads: a job waits
once, not once for each run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType

from tiercel.runs.execute import Outcome, Stages, to_the_end
from tiercel.runs.scratch import space_problem
from tiercel.study.plan import Run


def rest_of(run: Run) -> float:
    """Return for how many seconds the data of a run rests; calibrations let none."""
    rest = getattr(run.configuration.workload, "rest", None)
    return 0.0 if rest is None or run.calibration else float(rest)


def rest_of_job(runs: Iterable[Run]) -> float:
    """Return for how many seconds a job with these runs waits, at most: their data rests at the same time.

    Behind layers, whose programs would work beside others, each waits by itself.
    """
    together, alone = 0.0, 0.0
    for run in runs:
        if run.configuration.stack.layers:
            alone += rest_of(run)
        else:
            together = max(together, rest_of(run))
    return together + alone


def resting_first(runs: Iterable[Run]) -> list[Run]:
    """Return the runs with those whose data rests at the beginning, else in their order."""
    return sorted(runs, key=lambda run: rest_of(run) == 0)


class Resting:
    """Runs that have written and are still to read, as a context: what is left at its end is taken back."""

    def __init__(self) -> None:
        self._runs: list[tuple[Run, Stages[Outcome], float, Outcome | None]] = []

    def __enter__(self) -> Resting:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: BaseException | TracebackType | None) -> None:
        while self._runs:
            self._runs.pop()[1].close()

    def began(self, run: Run, stages: Stages[Outcome]) -> bool:
        """Begin a run whose data may rest beside the work of others, and keep it; False for others."""
        if not rest_of(run) or run.configuration.stack.layers:
            return False
        try:
            self._runs.append((run, stages, next(stages), None))
        except StopIteration as end:  # it failed before
            self._runs.append((run, stages, 0.0, end.value))
        return True

    def leaves_room(self, run: Run) -> bool:
        """Return whether a run fits beside what rests."""
        c = run.configuration
        return not self._runs or not space_problem(
            c.stack, c.workload.footprint(c.nodes, c.processes_per_node)
        )

    def end(self, settle: Callable[[Run, Outcome], None]) -> None:
        """Carry all of them to their end, in the order in which they wrote."""
        while self._runs:
            run, stages, moment, outcome = self._runs[0]
            if outcome is None:
                time.sleep(max(0.0, moment - time.monotonic()))
                outcome = to_the_end(stages)
            del self._runs[0]
            settle(run, outcome)
