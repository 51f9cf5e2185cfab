"""Ratios, noise and verdicts, counted by hand; what must hold for any numbers."""

import math
import random

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare.sides import AROUND_100, NOVEMBER, later, of_two, pair, together
from tests.statistics.rows import rows
from tiercel.compare.judging import ratio_of, wider
from tiercel.statistics.comparison import NO_PAIR, WITHIN_NOISE
from tiercel.statistics.noise import UNKNOWN, Floor, noise_floor


def test_half_as_fast_is_slower_and_says_by_how_much(tmp_path):
    """100 to 50: all of five lie below all of five, which 2 of 252 ways to deal ten values give."""
    (row,) = of_two(tmp_path, pair(), later(factor=0.5)).rows
    assert (row.median_base, row.median_other) == (100.0, 50.0)
    assert row.comparison.ratio == pytest.approx(0.5)
    assert row.comparison.p_value == pytest.approx(2 / 252)
    assert 49 / 102 <= row.comparison.low <= 0.5 <= row.comparison.high <= 51 / 98
    assert row.outcome == "slower"


def test_the_wider_noise_of_both_sides_counts(tmp_path):
    """The other side's pair lies a factor of 2 apart: so says nothing that it is 1.5 times faster."""
    noisy = rows([v * 1.5 for v in AROUND_100]) + rows([v * 3.0 for v in AROUND_100], twin="b")
    noisy["began"] = [NOVEMBER + 1e6 + i for i in range(10)]
    (row,) = of_two(tmp_path, pair(), noisy).rows
    assert row.comparison.ratio == pytest.approx(1.5)
    assert row.floor_base.high <= 102 / 98
    assert row.floor_other.high >= 2.0
    assert row.comparison.floor.high == row.floor_other.high
    assert row.comparison.reason == WITHIN_NOISE
    (turned,) = of_two(tmp_path, noisy, pair()).rows
    assert turned.outcome == row.outcome == "undecided"


def test_a_side_without_pairs_allows_no_claim(tmp_path):
    alone = rows([v * 9 for v in AROUND_100])
    alone["began"] = NOVEMBER + 1e6
    (row,) = of_two(tmp_path, pair(), alone).rows
    assert row.outcome == "undecided"
    assert row.comparison.reason == NO_PAIR


def test_a_margin_widens_the_noise(tmp_path):
    assert of_two(tmp_path, pair(), later(factor=0.9)).rows[0].outcome == "slower"
    assert of_two(tmp_path, pair(), later(factor=0.9), margin=0.2).rows[0].outcome == "undecided"
    assert wider(Floor(0.9, 1.1, 5), Floor(0.8, 1.25, 4), 0.5).high == 1.5
    assert wider(Floor(0.9, 1.1, 5), UNKNOWN, 0.5) == UNKNOWN


def test_all_matches_are_one_family(tmp_path):
    """2/252 times 6 is 0.048, times 7 is 0.056: of seven, six of them unchanged, none is claimed."""

    def side(make, number):
        return together(make(workload=f"w{i}", transfer_size=i) for i in range(number))

    for number, outcome in ((6, "slower"), (7, "undecided")):
        now = together([
            later(factor=0.5 if i == 0 else 1.0, workload=f"w{i}", transfer_size=i) for i in range(number)
        ])  # fmt: skip
        answer = of_two(tmp_path, side(pair, number), now)
        assert [row.outcome for row in answer.rows] == [outcome] + ["undecided"] * (number - 1)
    assert "among 7 comparisons" in answer.rows[0].comparison.reason
    # All of them slower are claimed, however many: no larger p stands in the way of a smaller one.
    answer = of_two(tmp_path, side(pair, 7), side(lambda **w: later(factor=0.5, **w), 7))
    assert [row.outcome for row in answer.rows] == ["slower"] * 7


def test_several_scales_are_judged_together(tmp_path):
    """The ratios 0.5 and 0.125 have the geometric mean 0.25."""
    one = pair() + pair(processes_per_node=2)
    two = later(factor=0.5) + later(factor=0.125, processes_per_node=2)
    answer = of_two(tmp_path, one, two)
    (row,) = answer.rows
    assert row.comparison.ratio == pytest.approx(0.25)
    assert (row.scale, math.isnan(row.median_base)) == (None, True)
    assert sorted(d.comparison.ratio for d in answer.pairs[0].judged.details) == pytest.approx([0.125, 0.5])


@pytest.mark.parametrize(
    ("calm", "load", "outcome"),
    [(0.05, 0.2, "slower"), (0.05, 0.6, "undecided"), (0.55, 0.6, "slower"), (0.45, 0.6, "undecided")],
)
def test_another_load_by_other_programs_allows_no_claim(tmp_path, calm, load, outcome):
    busy = later(factor=0.5).assign(others_cpu=load)
    (row,) = of_two(tmp_path, pair().assign(others_cpu=calm), busy).rows
    assert row.outcome == outcome
    assert row.loaded == (outcome == "undecided")
    if row.loaded:
        assert (
            row.comparison.reason
            == f"other programs used 60 % of the cores on two and {100 * calm:.0f} % on one"
        )


def test_origins_are_families_of_their_own(tmp_path):
    def side(make):
        simulated = [make(workload=f"w{i}", transfer_size=i, origin="simulated") for i in range(6)]
        return together([*simulated, make(transfer_size=99)])

    answer = of_two(tmp_path, side(pair), side(lambda **w: later(factor=0.5, **w)))
    assert answer.pairs[0].origins == ["measured", "simulated"]
    assert [row.outcome for row in answer.rows] == ["slower"] * 7


def test_only_numbers_of_one_origin_make_it_fail(tmp_path):
    mixed = of_two(tmp_path, pair(), later(factor=0.5, origin="imported"))
    assert mixed.rows[0].outcome == "slower"
    assert not mixed.found("slower")
    same = of_two(tmp_path, pair(), later(factor=0.5))
    assert (same.found("slower"), same.found("different"), same.found("faster")) == (True, True, False)


SAMPLES = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=8)


@settings(max_examples=25)
@given(SAMPLES, st.randoms(use_true_random=False))
def test_a_sample_against_itself_is_nothing(values, shuffle):
    floor = noise_floor(values, values)
    other = shuffle.sample(values, len(values))
    made = ratio_of([(sorted(values), sorted(other))], floor)
    assert made.ratio == pytest.approx(1.0)
    assert made.verdict == "undecided"


@settings(max_examples=25)
@given(st.lists(st.tuples(SAMPLES, SAMPLES), min_size=1, max_size=3), st.floats(1.0, 3.0))
def test_swapping_the_sides_inverts_ratio_interval_and_verdict(strata, high):
    floor = Floor(1 / high, high, 5)
    one = ratio_of(strata, floor)
    two = ratio_of([(b, a) for a, b in strata], floor)
    assert two.ratio == pytest.approx(1 / one.ratio)
    assert (two.low, two.high) == pytest.approx((1 / one.high, 1 / one.low))
    assert two.p_value == pytest.approx(one.p_value)
    opposite = {"higher": "lower", "lower": "higher"}
    assert two.verdict == opposite.get(one.verdict, one.verdict)


def test_the_order_of_rows_changes_nothing(tmp_path):
    draw = random.Random(7).lognormvariate

    def side(make):
        scales = [(p, o) for p in (1, 2, 4) for o in ("write", "read")]
        return together(
            make([draw(4, 0.3) for _ in range(6)], processes_per_node=p, operation=o) for p, o in scales
        )

    one, two = side(pair), side(later)
    straight = of_two(tmp_path, one, two).rows
    mixed = of_two(tmp_path, *(pd.DataFrame(side).sample(frac=1, random_state=3) for side in (one, two))).rows
    assert [r.comparison for r in straight] == [r.comparison for r in mixed]


def test_an_undecided_row_says_what_it_could_have_shown(tmp_path):
    """A little above the ratio that it names nothing is claimed, a little below it is."""
    (row,) = of_two(tmp_path, pair(), later()).rows
    assert row.outcome == "undecided"
    assert 0.9 < row.findable < 1.0
    just, not_yet = row.findable * 0.9999, row.findable * 1.0001
    assert of_two(tmp_path, pair(), later(factor=just)).rows[0].outcome == "slower"
    assert of_two(tmp_path, pair(), later(factor=not_yet)).rows[0].outcome == "undecided"


def test_what_a_row_can_never_show_has_a_reason(tmp_path):
    """Seven rows of five against five: 7 times 2/252 is 0.056; two against two: 2/6."""
    seven = [together(make(workload=f"w{i}", transfer_size=i) for i in range(7)) for make in (pair, later)]
    for row in of_two(tmp_path, *seven).rows:
        assert math.isnan(row.findable)
        assert row.unfindable == "too few repetitions for a rank test at 5 % among 7 rows (5 against 5)"
    (row,) = of_two(tmp_path, pair((99.0, 101.0)), later((99.0, 101.0))).rows
    assert row.unfindable == "too few repetitions for a rank test at 5 % (2 against 2)"


@pytest.mark.parametrize(("calm", "load", "outcome"), [(None, 0.5, "undecided"), (None, 0.1, "slower")])
def test_an_unknown_load_beside_a_high_one_allows_no_claim(tmp_path, calm, load, outcome):
    base = pair().assign(others_cpu=calm).astype({"others_cpu": "float64"})
    found = of_two(tmp_path, base, later(factor=0.5).assign(others_cpu=load))
    (row,) = found.rows
    assert row.outcome == outcome
    assert found.pairs[0].load_unknown == "one"


def test_a_margin_is_a_ratio_either_way(tmp_path):
    """60 % is 1.6, and 1 / 1.6 = 0.625 downward."""
    assert of_two(tmp_path, pair(), later(factor=0.68), margin=0.6).rows[0].outcome == "undecided"
    assert of_two(tmp_path, pair(), later(factor=0.58), margin=0.6).rows[0].outcome == "slower"
    assert of_two(tmp_path, pair(), later(factor=1.52), margin=0.6).rows[0].outcome == "undecided"
