"""What it takes to decide, and what several looks at one study may claim together."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks.decisions import SCALES, WORKLOADS, Case, judged, simulated, studied
from tests.statistics.test_placements import table_of

from tiercel.statistics.comparison import Parts
from tiercel.statistics.contrasts import scaling
from tiercel.statistics.effort import MOST, repetitions_needed
from tiercel.statistics.looks import share
from tiercel.statistics.ranking import same
from tiercel.statistics.tables import comparisons


def test_the_shares_of_all_looks_are_at_most_the_whole() -> None:
    assert sum(map(share, range(200))) == pytest.approx(1.0)
    assert [share(n) for n in range(3)] == pytest.approx([0.95, 0.025, 0.0125])


def parts(difference: float, variance: float, placed: float = 0.0) -> Parts:
    return Parts(difference, (((variance, 5),), ((variance, 5),)), placed, 8.0)


def test_what_it_takes_by_hand() -> None:
    """The variance of the difference is 2 v / n; it is to be as large as 1.960 (5 %) and 0.84 (four in five)
    standard deviations: n = 2 v (1.96 + 0.84)² / d² = 2 · 0.09 · 7.84 / 0.09 = 15.7; with t of 30 degrees of
    freedom (2.042) 16.6: 17, of which 5 are there."""
    assert repetitions_needed(parts(0.3, 0.09), 1, 1.0) == 12
    # 16 answers: 0.05 / 16 / 2 has the quantile 3.15 (t of 40): n = 2 (3.15 + 0.84)² = 31.8.
    assert repetitions_needed(parts(0.3, 0.09), 16, 1.0) == pytest.approx(26, abs=1)


def test_equal_ones_need_what_shows_them_to_be_equal() -> None:
    """ln 1.1 = 0.0953 must hold 1.96 + 0.84 standard deviations of a difference of 0: n = 2 v (2.8 / 0.0953)²
    = 2 · 0.01 · 863 = 17.3; with t of 34 degrees of freedom (2.03) 18.1: 19, of which 5 are there."""
    assert repetitions_needed(parts(0.0, 0.01), 1, 1.0) == 14


def test_what_repetitions_cannot_decide() -> None:
    assert repetitions_needed(parts(0.1, 0.01, placed=0.04), 1, 1.0) is None
    assert repetitions_needed(parts(0.0953, 0.09), 16, 0.025) is None  # at the margin: neither
    assert repetitions_needed(None, 1, 1.0) is None
    once = ((math.inf, 1),)  # whose variance nobody knows
    assert repetitions_needed(Parts(0.5, (once, once), 0.0, 8.0), 1, 1.0) is None


def further(rates: np.ndarray, planned: int, measured: np.ndarray) -> pd.DataFrame:
    """Return the table of a study of `planned` rounds with one further look."""
    table = table_of(rates)
    work = table["workload"].str[1:].astype(int)
    kept = (table["repetition"] < np.where(table["twin"] == "b", planned, measured[work])).to_numpy()
    return table.assign(look=(table["repetition"] >= planned).astype(int))[kept].reset_index(drop=True)


@pytest.mark.studies
def test_the_benchmark_looks_as_the_report_does() -> None:
    rates = simulated(Case("log-normal", 0.2, 0.02, 1.3), 25, np.random.default_rng(4))
    measured = np.where(np.arange(WORKLOADS) % 2, 25, 5)
    table = comparisons(further(rates, 5, measured))
    answers = table[table["scope"] == "all"].sort_values("workload").to_dict("records")
    first = judged(rates[..., :5])
    second = judged(rates, 5, measured, 1)
    for before, mine, told in zip(first, second, answers, strict=True):
        verdict = before.verdict if before.verdict != "undecided" else mine.verdict
        assert (told["verdict"], told["n_a"]) == (verdict, mine.n_a)
        assert (told["ratio"], told["low"], told["high"]) == pytest.approx((mine.ratio, mine.low, mine.high))
    assert {each.verdict for each in first} == {"higher", "undecided"}
    gained = [b.verdict == "undecided" != t["verdict"] for b, t in zip(first, answers, strict=True)]
    assert 0 < sum(gained) < WORKLOADS


@pytest.mark.studies
def test_what_a_look_claimed_stays_claimed() -> None:
    """The further look may spend a fortieth of 5 %: what the study claims at 3 % it would leave undecided."""
    rates = simulated(Case("log-normal", 0.05), 5, np.random.default_rng(8))
    rates[:, 0] *= 1.17
    table = table_of(rates)
    before = comparisons(table)
    claimed = before[(before["scope"] == "all") & (before["verdict"] != "undecided")]
    assert len(claimed)
    more = table[(table["workload"] == "w00") & (table["twin"] == "a")]
    more = more.assign(repetition=more["repetition"] + 5, look=1)
    after = comparisons(pd.concat([table.assign(look=0), more], ignore_index=True))
    after = after[(after["scope"] == "all") & after["workload"].isin(set(claimed["workload"]))]
    assert after["verdict"].tolist() == claimed["verdict"].tolist()
    assert after["p_corrected"].tolist() == pytest.approx(claimed["p_corrected"].tolist())


@pytest.mark.studies
def test_further_rounds_change_nothing_of_what_was_seen_before() -> None:
    """What the rounds of a study have in common was told anew by those of later looks: where all runs of
    neighbouring times are like each other, 2 of 85 claims were gone, at p = 1 in place of 0.02."""
    rates = simulated(Case("log-normal", 0.1, ratio=1.2, world="wave"), 20, np.random.default_rng(21))
    table = further(rates, 5, np.where(np.arange(WORKLOADS) % 2, 20, 5))
    before = comparisons(table[table["look"] == 0]).query("scope == 'all' and verdict != 'undecided'")
    after = comparisons(table).query("scope == 'all'").set_index("workload").loc[before["workload"]]
    assert len(before) >= 8 and set(after["verdict"]) == {"higher"}
    assert after["p_corrected"].tolist() == pytest.approx(before["p_corrected"].tolist(), rel=1e-9)


def one_sided(rates: np.ndarray, factor: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a study of five rounds, and it with 20 further rounds of storage b alone, slower by `factor`."""
    table = table_of(rates)
    study = table[table["repetition"] < 5].assign(look=0)
    rest = table[(table["repetition"] >= 5) & (table["twin"] == "a")].assign(look=1)
    alone = rest[rest["storage"] == sorted(set(table["storage"]))[1]]
    return study, pd.concat([study, alone.assign(bandwidth=alone["bandwidth"] / factor)], ignore_index=True)


@pytest.mark.studies
def test_a_later_hour_of_one_side_alone_is_no_difference() -> None:
    """Two equal storages; a look gave one of them 20 more rounds, while the machine was slower by a fifth."""
    rates = simulated(Case("log-normal", 0.05), 25, np.random.default_rng(11))
    study, whole = one_sided(rates, 1.2)
    before, after = (comparisons(t).query("scope == 'all'").reset_index(drop=True) for t in (study, whole))
    assert after["ratio"].tolist() == pytest.approx(before["ratio"].tolist(), rel=0.02)
    assert after["n_b"].tolist() == before["n_b"].tolist() == [5 * SCALES] * WORKLOADS
    assert set(after["verdict"]) == {"undecided"}


@pytest.mark.studies
def test_a_claim_that_later_rounds_contradict_is_withdrawn() -> None:
    """Ahead by 1.4 in the study, behind by as much in 20 further rounds of both sides: nobody knows."""
    rates = simulated(Case("log-normal", 0.03), 25, np.random.default_rng(12))
    rates[:, 0, ..., :5] *= 1.4
    rates[:, 0, ..., 5:] /= 1.4
    table = further(rates, 5, np.full(WORKLOADS, 25))
    before = comparisons(table[table["look"] == 0]).query("scope == 'all'")
    assert set(before["verdict"]) == {"higher"}
    after = comparisons(table).query("scope == 'all'")
    assert set(after["verdict"]) == {"undecided"} and (after["ratio"] < 1).all()
    assert after["reason"].str.contains("an earlier look claimed higher").all()


@pytest.mark.studies
def test_questions_that_were_not_looked_at_again_use_the_study_alone() -> None:
    rates = simulated(Case("log-normal", 0.1), 10, np.random.default_rng(5))
    table = further(rates, 5, np.full(WORKLOADS, 10))
    assert set(scaling(table)["n_a"]) == {5}
    assert set(comparisons(table).query("scope == 'all'")["n_a"]) == {10 * SCALES}


@pytest.mark.studies
def test_measuring_further_decides_more_and_claims_nothing_false() -> None:
    """Fixed seeds; shares over many studies are the benchmark's (--looks 3)."""
    different = Case("log-normal", 0.2, ratio=1.25)
    once = [studied(different, 5, 1, np.random.default_rng(seed))[0] for seed in range(3)]
    thrice = [studied(different, 5, 3, np.random.default_rng(seed)) for seed in range(3)]
    more = [verdicts for verdicts, _, _ in thrice]
    assert sum(v.count("higher") for v in more) >= sum(v.count("higher") for v in once) + 8
    assert not any("lower" in verdicts for verdicts in (*once, *more))
    assert 5 < max(int(measured.max()) for _, _, measured in thrice) <= 5 + 2 * MOST
    equal, _, _ = studied(Case("log-normal", 0.1), 5, 3, np.random.default_rng(5))
    assert set(equal) <= {"same", "undecided"} and equal.count("same") >= 4


def test_a_storage_that_was_measured_later_is_not_compared_with_what_was_measured_before() -> None:
    """Two equal storages; the second came to the study a week later, when all was slower by 1.4: six of six
    workloads were claimed, as if both had run in the same rounds."""
    rates = simulated(Case("log-normal", 0.05, workloads=6), 5, np.random.default_rng(4))
    rates[:, 1] /= 1.4
    table = table_of(rates)
    began = 600.0 * table["repetition"] + np.where(table["storage"] == "s1", 60.0, 0.0)
    turns = comparisons(table.assign(began=began)).query("scope == 'all'")
    assert set(turns["verdict"]) == {"higher"}
    week = began + np.where(table["storage"] == "s1", 7 * 86400.0, 0.0)
    later = comparisons(table.assign(began=week))
    assert set(later["verdict"]) == {"undecided"} and later["needed"].isna().all()
    assert later["reason"].str.startswith("not measured in turn: one ran 167 h").all()
    assert not any(map(same, later.assign(low=0.99, high=1.01).to_dict("records")))
    # A single round of each is one after the other, and claims nothing anyhow.
    assert not comparisons(table[table["repetition"] == 0].assign(began=week)).empty
