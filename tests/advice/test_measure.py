"""Rounds of trials with hand-made run times: which placements stay, and what copying counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tiercel.advice.answer import Advice, Result
from tiercel.advice.bench import HOME, Bench, Candidate, Trial
from tiercel.advice.measure import Measuring
from tiercel.advice.words import sentences
from tiercel.advice.workset import Folder
from tiercel.errors import RunFailed
from tiercel.site.model import Site, Storage


class Scripted:
    """A bench that reads run times from lists; a text is why the run fails."""

    cold = False

    def __init__(self, **times: list[float | str]) -> None:
        self.folders = [Folder("/data", "disk", 1000)]
        self.runs = 0
        self._times: dict[str, Iterator[float | str]] = {n: iter(t) for n, t in times.items()}
        self.names: list[str] = []
        self.outputs: dict[str, dict[str, str]] = {}

    def trial(self, candidate: Candidate, _timeout: float | None, **_: Any) -> Trial:
        self.names.append(candidate.name)
        seconds = next(self._times[candidate.name])
        if isinstance(seconds, str):
            raise RunFailed(seconds)
        outputs = self.outputs.get(candidate.name, {"/data/out": "x"})
        return Trial(seconds, 0.0, 0, 0.0, 0.0, outputs)


def measured(bench: Scripted, *scripts: float) -> Advice:
    """Return the advice after two rounds; `scripts`: the seconds of the staging script."""
    storages = {
        name: Storage(type="ext4", mount=f"/{name}", scratch=f"/{name}/x", medium="disk")
        for name in ("disk", "fast")
    }
    advice = Advice(Site(site="s", storages=storages), ("program",), "/data", tuple(bench.folders))
    advice.results[HOME] = Result(Candidate(HOME, {}))
    advice.results["fast"] = Result(Candidate("fast", {"/data": "fast"}))
    script = iter(scripts or (0.1, 0.1, 0.1))
    measuring = Measuring(cast(Bench, bench), advice, math.inf, -math.inf, [], lambda _: None,
                          script=lambda: next(script))  # fmt: skip
    return measuring.measure(Trial(1.0, 0.0, 0, None, None, None))


def test_one_slow_first_run_leaves_no_storage_out() -> None:
    """1.7 s are less than 1.3 times 1 s and half a second; the runs that count are 0.5 s."""
    advice = measured(Scripted(home=[1.0, 1.0], fast=[1.7, 0.5, 0.5]))
    assert advice.advised is not None and advice.advised.name == "fast"


def test_a_storage_that_is_surely_slower_is_left_after_one_run() -> None:
    bench = Scripted(home=[1.0, 1.0], fast=[1.9])
    assert measured(bench).advised is None and bench.names.count("fast") == 1


def test_home_is_not_measured_further_when_nothing_else_is_tried() -> None:
    """The first run on the only other storage fails, so that one run at home is enough."""
    bench = Scripted(home=[1.0, 1.0], fast=["no space left"])
    assert measured(bench).advised is None and bench.names == ["fast", HOME]


def test_a_storage_on_which_the_program_fails_later_is_not_compared() -> None:
    advice = measured(Scripted(home=[1.0, 1.0], fast=[0.1, 0.1, "no space left"]))
    assert advice.judged == [] and "no space left" in sentences(advice)[0]


def test_one_disturbed_run_of_the_staging_script_does_not_count() -> None:
    """0.5 s and 0.1 s of the script against 1 s; with the 5 s of the disturbed run it would be slower."""
    advice = measured(Scripted(home=[1.0, 1.0], fast=[0.5, 0.5, 0.5]), 0.1, 5.0, 0.1)
    [fast] = advice.judged
    assert fast.total.ratio.median == pytest.approx(1 / 0.6)


def test_output_that_differs_is_named_for_a_storage_that_is_not_advised() -> None:
    bench = Scripted(home=[1.0, 1.0], fast=[1.0, 1.0, 1.0])
    bench.outputs["fast"] = {"/data/out": "y"}
    assert any("/data/out" in note and "fast" in note for note in measured(bench).notes)


def test_an_undecided_storage_that_seems_slower_is_called_slower() -> None:
    """0.8 s and 0.2 s of copying: 1.25 times as long as the 0.8 s at home, in the middle."""
    advice = measured(Scripted(home=[0.6, 1.0667], fast=[0.8, 0.6, 1.0667]), 0.2, 0.2, 0.2)
    assert not advice.decided and "slower" in sentences(advice)[0] and "faster" not in sentences(advice)[0]
