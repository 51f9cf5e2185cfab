"""By how much two storages changed against each other over a study."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.decisions import Case, simulated
from scipy import stats
from tests.statistics.rows import rows
from tests.statistics.test_placements import table_of

from tiercel.statistics.comparison import compare_placed, judge
from tiercel.statistics.noise import Floor
from tiercel.statistics.select import usable
from tiercel.statistics.tables import comparisons
from tiercel.statistics.wander import (
    ENOUGH,
    EXPLAINS,
    STEADY,
    Wander,
    carried,
    level,
    wander,
    wanders,
)

HALF = math.log(0.5)
NAMES = range(16)
FLOOR = Floor(1.0, 1.0, 30)


def noise(seed: int, rows: int = 16, rounds: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 0.1, (rows, rounds))


def test_a_storage_that_was_slower_in_some_rounds() -> None:
    """Two of five at half: 0.4 * 0.6 * 5 / 4 is the variance of that, in units of ln 2 squared. All of it is
    the storage's, however few configurations say so."""
    busy = np.tile([0.0, HALF, HALF, 0.0, 0.0], (16, 1))
    found = wander(level(busy, NAMES), level(np.zeros((16, 5)), NAMES))
    assert found.variance == pytest.approx(carried(5).variance * 0.3 * HALF**2)
    few = wander(level(busy[:3], range(3)), level(np.zeros((3, 5)), range(3)))
    assert few.variance == pytest.approx(found.variance)
    assert found.freedom == carried(5).freedom
    # What both have in common is no change against each other.
    assert wander(level(busy, NAMES), level(busy, NAMES)) == STEADY


def test_what_errs_alone_is_no_change() -> None:
    found = [wander(level(noise(seed), NAMES), level(noise(seed + 500), NAMES)) for seed in range(300)]
    # A fifth of 300; more than 82: 0.1 % of all times. And then it is little: the mean of five rounds of one
    # series on each side has a variance of 0.004.
    assert sum(each != STEADY for each in found) <= 82
    assert np.quantile([each.variance for each in found], 0.95) < 0.004


def test_rounds_that_are_like_each_other_tell_little() -> None:
    """Two rounds with a correlation of 0.8: their mean has a variance of (1 + 0.8) / 2, and they show
    1 - 0.8. Many do as independent ones of a ninth of their number: (1 + 0.8) / (1 - 0.8)."""
    assert carried(2).variance == pytest.approx(0.9 / 0.2) and carried(2).freedom == pytest.approx(1.0)
    assert carried(900).variance == pytest.approx(9 / 900, rel=0.02)
    # By simulation: equal storages, and the ratio of their means to what the rounds show.
    random = np.random.default_rng(1)
    load = random.normal(0.0, 1.0, (20_000, 5))
    for number in range(1, 5):
        load[:, number] = 0.8 * load[:, number - 1] + 0.6 * load[:, number]
    shown = load.var(axis=1, ddof=1)
    assert carried(5).variance == pytest.approx(load.mean(axis=1).var() / shown.mean(), rel=0.05)
    t = np.abs(load.mean(axis=1)) / np.sqrt(carried(5).variance * shown)
    assert EXPLAINS / 3 < np.mean(2 * stats.t.sf(t, carried(5).freedom) < EXPLAINS) < EXPLAINS


def test_what_a_change_alone_explains_is_not_claimed() -> None:
    """A difference of four standard deviations of the change, of 2.5 degrees of freedom: p = 0.04. It is the
    same for all comparisons of two storages, so that no family makes it surer; at six, p = 0.016."""
    quiet = np.exp([-0.002, -0.001, 0.0, 0.001, 0.002])
    busy = Wander(0.04, 2.5)
    assert busy.alone(0.8) == pytest.approx(0.0403, abs=0.002) and STEADY.alone(0.8) == 0.0

    def verdicts(apart: float) -> list[str]:
        pair = (quiet * math.exp(apart), quiet)
        return [each.verdict for each in judge([compare_placed([pair, pair], FLOOR, changed=busy)] * 16)]

    assert set(verdicts(0.8)) == {"undecided"} and set(verdicts(1.2)) == {"higher"}
    held = compare_placed([(quiet * math.exp(0.8), quiet)] * 2, FLOOR, changed=busy)
    assert held.model_p is not None and held.model_p < 0.05
    assert held.reason.startswith("one of the two changed against the other from round to round, by 22 %")


def test_operations_of_one_run_err_together() -> None:
    """Eight phases of one run that was slow are one thing that happened, not eight."""
    runs = noise(1, 4)
    series, names = np.repeat(runs, 8, axis=0), np.repeat(np.arange(4), 8)
    one, alone = level(series, names), level(runs, range(4))
    assert one is not None and alone is not None
    assert one.configurations == 4 and one.error == pytest.approx(alone.error)


def test_too_little_tells_nothing() -> None:
    assert level(noise(1, ENOUGH - 1), range(ENOUGH - 1)) is None
    assert level(noise(1, 16, 1), NAMES) is None
    assert wander(None, level(noise(1), NAMES)) == STEADY
    few = level(noise(1)[:, :2], NAMES, (0, 1))
    assert wander(few, level(noise(2)[:, :2], NAMES, (1, 2))) == STEADY  # one round in common


def test_a_single_workload_and_its_pair_tell() -> None:
    """Both halves of a pair ran in the same rounds, apart from each other: two witnesses of these."""
    frame = rows([])
    for twin, off in (("a", 0.01), ("b", -0.01)):
        frame += rows([100 + off, 51, 50 - off, 99, 101], storage="slow", twin=twin)
        frame += rows([100, 101 - off, 99, 100 + off, 102], storage="fast", twin=twin)
    study = {"origin": "measured", "site": "test", "study": "quick"}
    sides = [{"storage": name, "layer": "none"} for name in ("slow", "fast")]
    assert wanders(usable(frame, twins=True))(study, *sides).variance > 0.1
    assert wanders(usable(frame))(study, *sides) == STEADY  # one alone may be its own noise


def test_few_workloads_under_load_claim_little_that_is_false() -> None:
    """Two workloads at two scales, on equal storages each of which is slower or faster by itself from round
    to round, by as much as runs vary. Judged as 16 workloads are, one study in four made a false claim; now
    one in nine (a twelfth with placements that differ as well)."""
    random, spoilt = np.random.default_rng(7), 0
    for _ in range(120):
        busy = random.normal(0.0, 0.1, (2, 5))
        for number in range(1, 5):
            busy[:, number] = 0.5 * busy[:, number - 1] + math.sqrt(0.75) * busy[:, number]
        logs = random.normal(0.0, 0.1, (2, 6, 5)) + busy[:, None]  # storage; workload and scale, two twins
        changed = wander(*(level(side, range(6)) for side in logs))
        answers = judge(
            [
                compare_placed(
                    [(np.exp(logs[0, 2 * w + s]), np.exp(logs[1, 2 * w + s])) for s in range(2)],
                    Floor(1.0, 1.0, 4),
                    changed=changed,
                )
                for w in range(2)
            ]
        )
        spoilt += any(each.verdict != "undecided" for each in answers)
    assert spoilt <= 18  # it was 30


def test_one_infinite_rate_hides_no_change() -> None:
    """It is left out as a missing one is: the storage was taken for steady."""
    busy = np.tile([0.0, HALF, HALF, 0.0, 0.0], (16, 1)) + noise(3)
    lost, broken = busy.copy(), busy.copy()
    lost[2, 3], broken[2, 3] = np.nan, np.inf
    found = [wander(level(each, NAMES), level(noise(4), NAMES)) for each in (lost, broken)]
    assert found[0] == found[1] != STEADY


def test_rounds_that_are_missing_are_left_out() -> None:
    busy = np.tile([0.0, HALF, HALF, 0.0, 0.0], (16, 1)) + noise(3)
    whole = wander(level(busy, NAMES), level(noise(4), NAMES))
    some = busy.copy()
    some[::2, 4] = np.nan
    found = wander(level(some, NAMES), level(noise(4), NAMES))
    assert found.variance == pytest.approx(whole.variance, rel=0.2)


def test_a_missing_round_of_a_slow_configuration_is_no_slow_round() -> None:
    """Sixteen steady series of quite different speeds, each without another round: nothing is off in any."""
    steady = np.tile(np.arange(16.0)[:, None], (1, 5))
    steady[np.arange(16), np.arange(16) % 5] = np.nan
    found = level(steady, NAMES)
    assert found is not None
    assert found.off == pytest.approx([0.0] * 5, abs=1e-9) and found.error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.studies
def test_a_claim_is_held_back_and_says_why() -> None:
    """A neighbour of one of two equal storages, who is there in the last rounds."""
    rates = simulated(Case("log-normal", 0.05), 5, np.random.default_rng(5))
    quiet = comparisons(table_of(rates))
    assert set(quiet[quiet["scope"] == "all"]["verdict"]) == {"undecided"}
    rates[:, 0, :, :, 3:] *= 0.7
    table = comparisons(table_of(rates))
    answers = table[table["scope"] == "all"]
    assert set(answers["verdict"]) == {"undecided"}
    assert all("one of the two changed against the other" in reason for reason in answers["reason"])
    assert all(row["low"] < 1 < row["high"] for _, row in answers.iterrows())
    # One that is five times as fast is so in every round.
    rates[:, 0] *= 5.0
    table = comparisons(table_of(rates))
    assert set(table[table["scope"] == "all"]["verdict"]) == {"higher"}
