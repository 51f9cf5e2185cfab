"""Ratios, verdicts and the gate, on sides whose truth is known."""

import math
import random
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests.compare.sides import (
    AROUND_100,
    DAY,
    NOVEMBER,
    compared,
    later,
    of_two,
    pair,
    read,
    runs_of,
    together,
    write,
)  # fmt: skip
from tests.statistics.rows import rows
from tiercel.compare.answer import compare_sides
from tiercel.compare.gate import no_power
from tiercel.compare.judging import SESSION
from tiercel.compare.matching import INVALID
from tiercel.errors import UserError
from tiercel.statistics.verdict import Outcome, Rule


def session(make, repetitions, count=1, factors=None, seed=0, shift=0.0, variation=0.03):
    """Return a side of `count` workloads that vary by `variation`; `factors`: by number, what is slower."""
    draw = np.random.default_rng(seed)
    parts = []
    for number in range(count):
        base = 100 * (factors or {}).get(number, 1.0) * math.exp(shift)
        values = base * np.exp(draw.normal(0, variation, repetitions))
        parts.append(make(list(values), workload=f"w{number}", transfer_size=number))
    return together(parts)


def gate(answer, fail_on="slower"):
    """Return the exit code of the gate."""
    return 1 if answer.found(fail_on) else 4 if no_power(answer, 0.5) else 0


@pytest.mark.parametrize(
    ("repetitions", "count", "factors", "code"),
    [
        (3, 24, dict.fromkeys(range(24), 0.5), 4),  # everything is halved: three repetitions show nothing
        (4, 24, dict.fromkeys(range(24), 0.5), 1),
        (5, 24, dict.fromkeys(range(24), 0.5), 1),
        (3, 1, {0: 0.0096}, 4),
        (5, 24, {7: 0.5}, 1),  # one row of 24
        (3, 24, {}, 4),
        (5, 24, {}, 0),
    ],
)
def test_the_gate_has_three_answers(tmp_path, repetitions, count, factors, code):
    answer = of_two(
        tmp_path,
        session(pair, repetitions, count, seed=1),
        session(later, repetitions, count, factors, seed=2),
    )
    assert gate(answer) == code
    if code == 4:
        assert f"{count} of {count} rows" in no_power(answer, 0.5) in no_power(answer, 0.5)
        assert no_power(answer, 0.5).endswith("run at least 1 more repetition of each side")


def test_a_gate_does_not_pass_on_what_the_other_side_never_measured(tmp_path):
    """A storage that was not mounted, say: nothing is slower, and nothing could have been."""
    base = together([session(pair, 5, 8, seed=1), session(partial(pair, storage="gone"), 5, 4, seed=2)])
    answer = of_two(tmp_path, base, session(later, 5, 8, seed=3))
    assert gate(answer) == 4 and no_power(answer, 0.5).startswith("no power: 4 numbers of the baseline")
    more = of_two(tmp_path, session(later, 5, 8, seed=3), base)  # more than the baseline has is no lack
    assert gate(more) == 0


def test_a_baseline_without_a_valid_number_is_no_lack_of_the_other_side(tmp_path):
    bad = session(partial(pair, storage="other", flags=["cache-not-cold"]), 5, 2, seed=2)
    base = together([session(pair, 5, 8, seed=1), bad])
    answer = of_two(tmp_path, base, session(later, 5, 8, seed=3))
    assert {each.reason for each in answer.pairs[0].alone} == {INVALID} and gate(answer) == 0


@pytest.mark.parametrize("shift", [-0.1, -0.05, 0.05, 0.1])
def test_sessions_that_differ_by_ten_percent_are_no_alarm(tmp_path, shift):
    answer = of_two(tmp_path, session(pair, 5, 24, seed=1), session(later, 5, 24, seed=2, shift=shift))
    assert gate(answer) == 0


def test_further_baselines_show_how_much_sessions_vary(tmp_path):
    """Slower by a third: found if baselines are alike, not if baselines differ by as much."""
    for day, (name, shift) in enumerate((("one", 0.0), ("two", -0.4), ("alike", 0.01), ("apart", 0.5))):
        made = session(pair, 6, 8, seed=len(name), shift=shift)
        write(tmp_path / name, made.assign(began=made["began"] + day * DAY))
    one, two, alike, apart = read(*(tmp_path / n for n in ("one", "two", "alike", "apart")), root=tmp_path)
    found = {
        side.name: compare_sides([one, two], [], {}, baselines=[side]).found("slower")
        for side in (alike, apart)
    }
    assert list(found.values()) == [True, False]
    for wrong in (one, two):  # a side is no further session: it would say that sessions vary by nothing
        with pytest.raises(UserError, match="has runs of"):
            compare_sides([one, two], [], {}, baselines=[wrong])
    with pytest.raises(UserError, match="has runs of --baseline"):
        compare_sides([one, two], [], {}, baselines=[alike, alike])


@pytest.mark.parametrize("origin", ["imported", "simulated"])
def test_a_gate_does_not_pass_on_numbers_that_nobody_measured(tmp_path, origin):
    base = session(pair, 5, 4, seed=1)
    answer = of_two(tmp_path, base, session(partial(later, origin=origin), 5, 4, seed=2))
    assert gate(answer) == 4
    other = session(later, 5, 4, seed=2, shift=math.log(0.1))  # a tenth of what nobody measured
    answer = of_two(tmp_path / "turned", session(partial(pair, origin=origin), 5, 4, seed=1), other)
    assert gate(answer) == 4


def test_a_scale_that_is_slower_is_not_hidden_by_the_others(tmp_path):
    """1.3, 1 and 0.3 times: 0.73 in the geometric mean, and the largest scale is what counts."""

    def side(make, factors, seed):
        draw = np.random.default_rng(seed)
        return together(
            make(list(100 * factor * np.exp(draw.normal(0, 0.03, 5))), processes_per_node=2**at)
            for at, factor in enumerate(factors)
        )

    answer = of_two(tmp_path, side(pair, (1, 1, 1), 1), side(later, (1.3, 1, 0.3), 2))
    assert len(answer.rows) == 1 and gate(answer) == 1
    assert gate(of_two(tmp_path, side(pair, (1, 1, 1), 1), side(later, (1.02, 1, 1.01), 2))) == 0


@pytest.mark.parametrize(("failed", "lost"), [(2, False), (5, True)])
def test_a_storage_on_which_half_of_the_runs_fail_is_lost(tmp_path, failed, lost):
    """5 of 10 of its runs failed, and the other half is as fast as before."""
    write(tmp_path / "results" / "one", session(pair, 5, seed=1))
    there = session(later, 5, seed=2)
    runs = runs_of(there)
    runs.loc[runs.index[: 2 * failed : 2], "status"] = "failed"
    kept = there[~there["run"].isin(runs.loc[runs["status"] == "failed", "run"])]
    write(tmp_path / "results" / "two", kept, runs)
    answer = compared("one", "two", root=tmp_path)
    assert (answer.rows[0].lost != "") is lost and (gate(answer) == 1) is lost


@pytest.mark.parametrize(("failed", "lost"), [(2, False), (8, True)])
def test_a_scale_at_which_most_runs_fail_is_lost(tmp_path, failed, lost):
    """At one of four scales, of ten runs: the others of 40 do not make up for it."""

    def side(make, seed):
        draw = np.random.default_rng(seed)
        return together(
            make(list(100 * np.exp(draw.normal(0, 0.03, 5))), processes_per_node=2**at) for at in range(4)
        )

    there = side(later, 2)
    runs = runs_of(there)
    gone = runs.index[runs["processes_per_node"] == 8][:failed]
    runs.loc[gone, "status"] = "failed"
    kept = there[~there["run"].isin(runs.loc[gone, "run"])]
    write(tmp_path / "results" / "one", side(pair, 1))
    write(tmp_path / "results" / "two", kept, runs)
    assert (gate(compared("one", "two", root=tmp_path)) == 1) is lost


def test_a_workload_that_is_gone_is_not_replaced_by_one_that_does_the_same(tmp_path):
    both = [session(partial(make, experiment=name), 5, seed=seed) for seed, (make, name) in
            enumerate([(pair, "a"), (pair, "b"), (later, "a"), (later, "b")])]  # fmt: skip
    assert gate(of_two(tmp_path, together(both[:2]), together(both[2:]))) == 0
    assert gate(of_two(tmp_path / "gone", together(both[:2]), both[2])) == 4


@pytest.mark.parametrize("value", [math.nan, 0.0])
def test_a_baseline_without_a_rate_is_not_passed(tmp_path, value):
    base, other = session(pair, 5, 3, seed=1), session(later, 5, 3, seed=2)
    base.loc[base["workload"] == "w0", "bandwidth"] = value
    assert gate(of_two(tmp_path, base, other)) == 4
    other.loc[other["workload"] == "w0", "bandwidth"] = value
    answer = of_two(tmp_path / "both", base, other)
    assert gate(answer) == 0 and len(answer.untested()) == 1  # which the gate says


@pytest.mark.parametrize("side", ["one", "two"])
def test_a_gate_does_not_pass_where_failed_runs_are_not_known(tmp_path, side):
    write(tmp_path / "results" / "one", session(pair, 5, 4, seed=1))
    write(tmp_path / "results" / "two", session(later, 5, 4, seed=2))
    assert gate(compared("one", "two", root=tmp_path)) == 0
    (tmp_path / "results" / side / "runs.parquet").unlink()
    assert gate(compared("one", "two", root=tmp_path)) == 4


def test_what_the_margin_hides_is_not_shown(tmp_path):
    """6 % slower beyond noise is the same within 10 %: that does not exclude a slowdown by 3 %."""
    base, slower = session(pair, 10, 8, seed=1, variation=0.01), later
    answer = of_two(tmp_path, base, session(slower, 10, 8, seed=2, variation=0.01, shift=-0.06))
    same = [row for row in answer.rows if row.same]
    assert all(row.blind(0.97) and not row.blind(0.5) for row in same)


def test_half_as_fast_is_slower_and_says_by_how_much(tmp_path):
    (row,) = of_two(tmp_path, pair(), later(factor=0.5)).rows
    assert (row.median_base, row.median_other) == (100.0, 50.0)
    assert row.comparison.ratio == pytest.approx(0.5)
    assert row.outcome == "slower"
    # Wider than one session's own repetitions: sessions vary by 5 % each.
    assert math.log(row.comparison.high / 0.5) > 1.96 * math.sqrt(2) * SESSION


def test_a_side_whose_layout_sessions_differ_claims_nothing(tmp_path):
    """The other side's replicate lies a factor of 2 apart: so says nothing that it is 1.5 times faster."""
    noisy = rows([v * 1.5 for v in AROUND_100]) + rows([v * 3.0 for v in AROUND_100], twin="b")
    noisy["began"] = [NOVEMBER + 1e6 + i for i in range(10)]
    (row,) = of_two(tmp_path, pair(), noisy).rows
    assert row.comparison.ratio == pytest.approx(1.5)
    assert row.outcome == "undecided" and row.comparison.value.rule is Rule.LAYOUT
    (turned,) = of_two(tmp_path, noisy, pair()).rows
    assert turned.comparison.ratio == pytest.approx(1 / 1.5) and turned.outcome == "undecided"


def test_a_side_without_replicates_allows_no_claim(tmp_path):
    alone = rows([v * 9 for v in AROUND_100])
    alone["began"] = NOVEMBER + 1e6
    (row,) = of_two(tmp_path, pair(), alone).rows
    assert (row.outcome, row.comparison.value.rule) == ("undecided", Rule.NO_REPLICATE)
    assert row.comparison.value.outcome is Outcome.NO_POWER


def test_a_margin_is_a_ratio_either_way(tmp_path):
    """60 % is 1.6, and 1 / 1.6 = 0.625 downward."""
    assert of_two(tmp_path, pair(), later(factor=0.68), margin=0.6).rows[0].outcome == "undecided"
    assert of_two(tmp_path, pair(), later(factor=0.58), margin=0.6).rows[0].outcome == "slower"
    assert of_two(tmp_path, pair(), later(factor=1.52), margin=0.6).rows[0].outcome == "undecided"


def test_an_open_row_says_what_it_could_have_shown(tmp_path):
    (row,) = of_two(tmp_path, pair(), later()).rows
    assert 0.5 < row.findable < 0.95
    assert of_two(tmp_path, pair(), later(factor=row.findable * 0.95)).rows[0].outcome == "slower"


@pytest.mark.parametrize(
    ("calm", "load", "outcome"),
    [(0.05, 0.2, "slower"), (0.05, 0.6, "undecided"), (0.55, 0.6, "slower"), (0.45, 0.6, "undecided")],
)
def test_another_load_by_other_programs_allows_no_claim(tmp_path, calm, load, outcome):
    busy = later(factor=0.5).assign(others_cpu=load)
    (row,) = of_two(tmp_path, pair().assign(others_cpu=calm), busy).rows
    assert row.outcome == outcome
    assert row.loaded == (outcome == "undecided")
    assert (row.comparison.value.rule is Rule.LOAD) == row.loaded


def test_only_numbers_of_one_origin_make_it_fail(tmp_path):
    mixed = of_two(tmp_path, pair(), later(factor=0.5, origin="imported"))
    assert mixed.rows[0].outcome == "slower"
    assert not mixed.found("slower")
    same = of_two(tmp_path, pair(), later(factor=0.5))
    assert (same.found("slower"), same.found("different"), same.found("faster")) == (True, True, False)


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
    assert [r.outcome for r in straight] == [r.outcome for r in mixed]
    ratios = [[r.comparison.ratio for r in found] for found in (straight, mixed)]
    assert ratios[0] == pytest.approx(ratios[1])


@pytest.mark.parametrize(("calm", "load", "outcome"), [(None, 0.5, "undecided"), (None, 0.1, "slower")])
def test_an_unknown_load_beside_a_high_one_allows_no_claim(tmp_path, calm, load, outcome):
    base = pair().assign(others_cpu=calm).astype({"others_cpu": "float64"})
    found = of_two(tmp_path, base, later(factor=0.5).assign(others_cpu=load))
    (row,) = found.rows
    assert row.outcome == outcome
    assert found.pairs[0].load_unknown == "one"
