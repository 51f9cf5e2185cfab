"""The variance between placements, what rounds have in common, and claims that rest on both."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks.decisions import OPERATIONS, SCALES, WORKLOADS, Case, judged, simulated
from scipy import stats
from tests.statistics.rows import rows

from tiercel.statistics.comparison import NO_PAIR, Parts, compare_placed, judge
from tiercel.statistics.effort import repetitions_needed
from tiercel.statistics.noise import UNKNOWN, Floor
from tiercel.statistics.placements import (
    FREEDOM,
    LEVEL,
    PRIOR,
    WIDTH,
    Pair,
    between,
    component,
    pair_of,
    shrunk,
    spreads,
    together,
)
from tiercel.statistics.ranking import reverse, same
from tiercel.statistics.rounds import ENOUGH, common, flattened, unflattened
from tiercel.statistics.tables import comparisons
from tiercel.statistics.wander import EXPLAINS, Wander

NONE = Floor(1.0, 1.0, 30, "own")


def test_a_pair_is_the_difference_of_mean_logarithms() -> None:
    pair = pair_of([math.e, math.e**3], [1.0, math.e**2])
    assert pair is not None
    assert pair.difference == pytest.approx(2 - 1) and pair.n == 2
    assert pair.variance == pytest.approx(2 / 2 + 2 / 2)  # of two values 1 apart from their mean: 2, over n
    assert pair_of([1.0], [1.0, 2.0]) is None and pair_of([0.0, 1.0], [1.0, 2.0]) is None


def test_the_component_is_what_repetitions_do_not_explain() -> None:
    """Of equal pairs, d² / (2 t + s²) adds up to the quantile of chi square at LEVEL."""
    quantile = float(stats.chi2.ppf(LEVEL, 10))
    assert component([Pair(0.3, 0.01, 5)] * 10) == pytest.approx(10 * 0.09 / quantile - 0.01, rel=1e-6)
    assert component([Pair(0.05, 0.01, 5)] * 10) == 0.0
    assert component([Pair(0.3, 0.0, 5)] * 10) == pytest.approx(10 * 0.09 / quantile, rel=1e-6)
    assert math.isnan(component([]))


def row(storage: str, *pairs: Pair) -> dict[str, object]:
    return {"origin": "", "site": "", "study": "", "storage": storage, "layer": "", "pairs": list(pairs)}


def test_few_pairs_are_shrunk_towards_their_storage_and_study() -> None:
    quiet, loud = Pair(0.0, 0.01, 5), Pair(0.4, 0.01, 5)
    found = shrunk([*(row("a", quiet) for _ in range(20)), row("b", loud), row("b")])
    # The study as a whole shows nothing; one loud pair of 1 + PRIOR raises its storage and itself.
    assert between(found[0]) == 0.0
    of_b = component([loud]) / (1 + PRIOR)
    assert between(found[-1]) == pytest.approx(of_b) and found[-1].source == "storage"
    own = (0.4**2 - 0.01 + PRIOR * of_b) / (1 + PRIOR)
    assert between(found[-2]) == pytest.approx(own) and found[-2].source == "own"
    assert found[0].n == FREEDOM
    assert shrunk([row("a"), row("b")]) == [UNKNOWN, UNKNOWN]


def test_a_ratio_has_the_variance_of_both_sides() -> None:
    wide = Floor(math.exp(-WIDTH * 0.2), math.exp(WIDTH * 0.2), 7, "own")
    assert between(wide) == pytest.approx(0.04)
    assert between(together(wide, NONE)) == pytest.approx(0.02) and together(wide, NONE).n == 7
    assert together(wide, UNKNOWN) is UNKNOWN


def test_the_interval_is_welchs_where_placements_add_nothing() -> None:
    a, b = np.exp([1.0, 1.2, 1.4]), np.exp([0.0, 0.1, 0.2, 0.3])
    made = compare_placed([(a, b)], Floor(1.0, 1.0, 1000, "own"))
    told = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
    interval = told.confidence_interval(0.95)
    assert made.model_p == pytest.approx(told.pvalue)
    assert (math.log(made.low), math.log(made.high)) == pytest.approx((interval.low, interval.high))
    assert made.ratio == pytest.approx(math.exp(1.2) / ((math.exp(0.1) + math.exp(0.2)) / 2))  # of medians


def test_what_varies_at_one_scale_alone_has_the_freedom_of_that_scale() -> None:
    """Five runs a side that vary at one of two scales: eight degrees of freedom, not sixteen. With sixteen,
    18 of 300 studies of equal storages (3 % at one scale, 40 % at the other) made a false claim."""
    loud, quiet = (0.16, 5), (1e-6, 5)
    assert Parts(0.5, ((quiet, loud), (quiet, loud)), 0.0, 8.0).repeated()[1] == pytest.approx(10, abs=0.1)
    assert Parts(0.5, ((quiet, loud), (quiet, quiet)), 0.0, 8.0).repeated()[1] == pytest.approx(4, abs=0.1)
    # Alike, they have those of all, in the mean: what seems to differ by chance takes some off.
    random = np.random.default_rng(3)
    seen = random.chisquare(4, (4000, 4)) / 4
    found = [Parts(0.5, (((a, 5), (b, 5)), ((c, 5), (d, 5))), 0.0, 8.0).repeated()[1] for a, b, c, d in seen]
    assert np.mean(found) == pytest.approx(16, abs=1.0)
    variance, freedom = Parts(0.5, ((loud,), (loud,)), 0.0, 8.0).repeated()
    assert (variance, freedom) == pytest.approx((0.064, 8.0))


def test_placements_widen_it_however_many_repetitions_there_are() -> None:
    """2 t = 0.08 of both sides: 95 % of ratios of equal systems lie within exp(1.96 * 0.283) = 1.74."""
    random = np.random.default_rng(5)
    a, b = (np.exp(random.normal(mean, 0.01, 400)) for mean in (0.3, 0.0))
    wide = Floor(math.exp(-WIDTH * math.sqrt(0.08)), math.exp(WIDTH * math.sqrt(0.08)), 1000, "own")
    made = compare_placed([(a, b)], wide)
    assert made.verdict == "undecided" and made.reason.startswith("runs of one system differ as much")
    assert math.log(made.high) == pytest.approx(0.3 + 1.962 * math.sqrt(0.08), abs=5e-3)
    assert compare_placed([(a, b)], NONE).verdict == "higher"
    assert compare_placed([(a, b)], UNKNOWN).reason == NO_PAIR


def test_three_against_three_claim_nothing_and_two_scales_of_them_do() -> None:
    a, b = [10.0, 10.1, 10.2], [1.0, 1.01, 1.02]
    assert "too few repetitions" in compare_placed([(a, b)], NONE).reason
    assert compare_placed([(a, b), (a, b)], NONE).verdict == "higher"
    assert compare_placed([([10.0], [1.0])] * 3, NONE).verdict == "undecided"


def test_a_difference_at_one_scale_alone_is_a_difference() -> None:
    """As fast with one process, twice with all: ranks of both scales together say nothing (p = 0.16), those
    of the one scale do (2 of 252 ways, for two scales), and so does the model."""
    even = np.array([0.98, 0.99, 1.0, 1.01, 1.02])
    made = compare_placed([(even, even * 1.002), (2 * even, even)], NONE)
    assert made.p_value > 0.05 and made.scale_p == pytest.approx(2 * 2 / 252)
    assert made.verdict == "higher" and made.farthest == pytest.approx(2.0)
    # What is ahead at one scale by chance, while the other decides the ratio, does not count.
    turned = compare_placed([(even, even * 1.002), (even, 2 * even)], NONE)
    assert turned.verdict == "lower" and turned.scale_p == made.scale_p
    assert compare_placed([(2 * even, even)], NONE).scale_p == 1.0  # a single scale has its own p


def test_what_changes_places_between_scales_is_not_the_same() -> None:
    """Half as fast again at one scale and that much slower at the other: 1.0 over both, and surely so."""
    noise = [0.99, 1.0, 1.01, 0.995, 1.005]
    even, fast, slow = (np.array(noise) * level for level in (1.0, 1.5, 1 / 1.5))
    made = compare_placed([(fast, even), (slow, even)], NONE)
    assert 0.95 < made.low < 1.0 < made.high < 1.05 and made.farthest == pytest.approx(1.5)
    assert made.verdict == "undecided" and made.reason.startswith(
        "scales differ: a ratio of 1.5 at one of them"
    )
    assert not same(made.columns()) and not same(reverse(made.columns()))
    assert repetitions_needed(made.parts, 1, 1.0) is None
    # Noise is no difference between scales, and a small one is within the margin all the same.
    alike = compare_placed([(even, even[::-1] * 1.001), (even, even)], NONE)
    assert math.isnan(alike.farthest) and same(alike.columns())
    small = compare_placed([(even * 1.04, even), (even / 1.04, even)], NONE)
    assert abs(math.log(small.farthest)) == pytest.approx(math.log(1.04)) and same(small.columns())
    # Placements that differ as much explain it.
    wide = Floor(1 / 2.0, 2.0, 30, "own")
    assert math.isnan(compare_placed([(fast, even), (slow, even)], wide).farthest)


def test_two_repetitions_are_enough_to_see_that_scales_differ() -> None:
    even = np.array([1.0, 1.001])
    made = compare_placed([(even * 2, even), (even / 2, even)], NONE)
    assert abs(math.log(made.farthest)) == pytest.approx(math.log(2), rel=1e-6)
    # With one there is no saying how much of it is noise.
    assert math.isnan(compare_placed([(even * 2, even[:1]), (even / 2, even)], NONE).farthest)


def test_more_repetitions_do_not_help_against_placements() -> None:
    """Twice the standard deviation between placements is where a claim begins: 0.2 apart with 0.15 of it is
    never decided, with 0.01 it is."""
    sides = (((1e-4, 5),), ((1e-4, 5),))
    assert repetitions_needed(Parts(0.2, sides, 0.15**2, 30.0), 1, 1.0) is None
    assert repetitions_needed(Parts(0.2, sides, 0.01**2, 30.0), 1, 1.0) == 1


def test_a_change_over_the_rounds_asks_for_more_of_them() -> None:
    """Rounds with a correlation of 0.8 tell slowly: repetitions alone would decide with one more. A claim
    needs what the change alone does not explain; fifty times the change is beyond a hundred rounds."""
    sides = (((1e-4, 5),), ((1e-4, 5),))

    def needed(variance: float) -> int | None:
        return repetitions_needed(Parts(0.6, sides, 0.0, 30.0, changed=Wander(variance, 2.5, 5)), 1, 1.0)

    assert needed(0.0) == 1
    more = needed(0.02)
    assert more is not None and more > 1
    assert Wander(0.02, 2.5, 5).after(more).alone(0.6) < EXPLAINS
    assert (needed(0.04) or 0) > more and needed(1.0) is None


def test_a_single_pair_is_taken_for_a_lucky_one() -> None:
    """Chi square with 1 degree of freedom is below 0.455 in half of the cases, below 0.0248 in one of eight:
    halves 0.1 apart may stand for 0.01 / 0.0248, and two such pairs for 0.02 / 1.386."""
    pair = Pair(0.1, 0.0, 5)
    assert component([pair]) == pytest.approx(0.01 / 0.0248, rel=0.01)
    assert component([pair, pair]) == pytest.approx(0.02 / 1.386, rel=0.01)


def test_the_family_is_counted() -> None:
    """p of the model times 16: 0.01 is a claim alone, and none among 16 of which it is the best."""
    random = np.random.default_rng(3)
    pairs = [np.exp(random.normal(0, 0.1, (2, 8))) for _ in range(200)]
    one = min(
        (compare_placed([(a, b)], NONE) for a, b in pairs),
        key=lambda c: abs((c.model_p or 0) - 0.01),
    )
    assert one.verdict != "undecided"
    none = compare_placed([([1.0, 1.1, 0.9, 1.0, 1.05], [1.0, 1.1, 0.9, 1.02, 1.04])], NONE)
    best = judge([one, *[none] * 15])[0]
    assert best.verdict == "undecided" and "among 16 comparisons" in best.reason
    assert best.p_corrected == pytest.approx(16 * (one.model_p or 0))


def test_rounds_have_in_common_what_most_series_show() -> None:
    logs = np.zeros((ENOUGH, 3)) + np.arange(ENOUGH)[:, None]
    logs[:, 2] -= 0.7
    logs[0, 1] += 5.0  # one series alone is its own affair
    assert common(logs).tolist() == pytest.approx([0.0, 0.0, -0.7])
    assert common(logs[: ENOUGH - 1]).tolist() == [0.0, 0.0, 0.0]
    logs[: ENOUGH // 2 + 1, 2] = np.nan  # known of less than half
    assert common(logs).tolist() == [0.0, 0.0, 0.0]


def test_what_rounds_share_is_taken_off_and_can_be_put_back() -> None:
    frame = pd.concat([rows([10, 10, 5], workload=f"w{n}", storage="s") for n in range(ENOUGH)])
    frame["features"] = ""
    flat = flattened(frame.reset_index(drop=True))
    assert flat["bandwidth"].tolist() == pytest.approx([10.0] * 3 * ENOUGH)
    assert unflattened(flat, "bandwidth").tolist() == pytest.approx([10.0, 10.0, 5.0] * ENOUGH)


def table_of(rates: np.ndarray) -> pd.DataFrame:
    made = [
        rows(rates[work, storage, scale, twin], workload=f"w{work:02}", storage=f"s{storage}",
             processes_per_node=1 + scale, processes=1 + scale, twin="ab"[twin],
             operation=str(work % OPERATIONS))
        for work in range(len(rates)) for storage in range(2) for scale in range(SCALES) for twin in range(2)
        if not twin or scale == (work + storage) % SCALES
    ]  # fmt: skip
    return pd.concat(made, ignore_index=True)


@pytest.mark.studies
@pytest.mark.parametrize(
    ("world", "workloads"),
    [("steady", 16), ("drift", 16), ("kinds", 16), ("load", 16), ("load", 2), ("load", 1)],
)
def test_the_benchmark_judges_as_the_report_does(world: str, workloads: int) -> None:
    case = Case("log-normal", 0.2, 0.1, 1.5, world, workloads)
    rates = simulated(case, 5, np.random.default_rng(11))
    table = comparisons(table_of(rates))
    answers = table[table["scope"] == "all"].sort_values("workload").to_dict("records")
    for mine, told in zip(judged(rates), answers, strict=True):
        assert (mine.verdict, mine.n_a) == (told["verdict"], told["n_a"])
        assert (mine.ratio, mine.low, mine.high, mine.p_corrected, mine.floor.high) == pytest.approx(
            (told["ratio"], told["low"], told["high"], told["p_corrected"], told["floor_high"])
        )


@pytest.mark.studies
def test_a_storage_twice_as_fast_is_found_and_an_equal_one_is_not() -> None:
    """Fixed seeds; shares over many studies are the benchmark's (python -m benchmarks.decisions)."""
    twice = judged(simulated(Case("log-normal", 0.2, ratio=2.0), 5, np.random.default_rng(1)))
    assert [each.verdict for each in twice] == ["higher"] * WORKLOADS
    equal = judged(simulated(Case("log-normal", 0.2), 5, np.random.default_rng(1)))
    assert [each.verdict for each in equal] == ["undecided"] * WORKLOADS
    found = spreads(table_of(simulated(Case("log-normal", 0.1, 0.3), 5, np.random.default_rng(2))))
    # Of 0.3 between placements 95 % of ratios lie within exp(1.96 * 0.3 * sqrt 2) = 2.3.
    assert 1.7 < float(found["high"].median()) < 3.1 and set(found["source"]) == {"own"}
