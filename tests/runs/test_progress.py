"""The line of progress: what it costs in a plan of thousands of short runs."""

from __future__ import annotations

import io

import pytest

from tiercel.engines import Measurement
from tiercel.runs import progress as module
from tiercel.runs.execute import Outcome
from tiercel.runs.planning import make_plan
from tiercel.runs.progress import Progress, result_of
from tiercel.study.plan import Run

from ..conftest import ONE, Project


class Clock:
    """The time that `Progress` sees."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module.time, "monotonic", made)
    return made


@pytest.fixture
def run(project: Project) -> Run:
    project.study("tiny", ONE)
    return make_plan("local", "tiny", project.root).plan.runs[0]


def test_the_time_left_is_reckoned_only_for_lines_that_are_shown(run: Run, clock: Clock) -> None:
    """It looks at every run of the plan: after each of thousands it cost more than the runs."""
    asked = []

    def time_left() -> float:
        asked.append(clock.now)
        return 100.0 - clock.now

    stream = io.StringIO()
    progress = Progress(0, 1000, stream)
    for number in range(100):  # a run every eighth of a second: the last one ends at 12.375 s
        clock.now = number / 8
        status = "failed" if number == 20 else "ok"
        progress.end(
            Outcome(run, status, "broken" if status == "failed" else "", 0.1, 0.1, []), time_left, True
        )
    # Lines at most every 5 s; a failed run always has one, and the 5 s begin again with it (2.5 s).
    assert asked == [0, 7.5]
    lines = stream.getvalue().splitlines()
    assert [line.split("]")[0] for line in lines] == ["[   1/1000", "[  21/1000", "[  61/1000"]
    assert [line.rsplit("  ", 1)[-1] for line in lines] == [
        "about 1 min 40 s left",
        "FAILED: broken",
        "about 1 min 32 s left",
    ]


def test_runs_beyond_the_certain_ones_are_told_as_such(run: Run, clock: Clock) -> None:
    """They stood as [2/2], [3/3]: each as if it were the last, with time left, and a line for each."""
    stream = io.StringIO()
    progress = Progress(0, 1, stream)
    for number in range(9):
        clock.now = float(number)
        progress.end(Outcome(run, "ok", "", 0.1, 0.1, []), lambda: 3.0, number == 0)
    assert [line.split("]")[0] for line in stream.getvalue().splitlines()] == ["[1/1", "[ 6/6+"]


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (Measurement("write", bandwidth=1024.0**2), "1 MiB/s"),
        (Measurement("create", operation_rate=2000.0), "create 2 kop/s"),
        # A program on plain storage: nobody counts what it moves, and it was called 0 op/s.
        (Measurement("job-h5py", total_time=3.0), "job-h5py 3 s"),
        (Measurement("job-h5py"), "done"),
    ],
)
def test_what_is_shown_of_a_run_is_what_it_measured(run: Run, measured: Measurement, said: str) -> None:
    assert result_of(Outcome(run, "ok", "", 1.0, 1.0, [measured])) == said
