"""Which system is best: from hand-made comparisons, and how often "the same" is said wrongly."""

import math

import numpy as np
import pytest

from tiercel.statistics.comparison import compare
from tiercel.statistics.noise import Floor
from tiercel.statistics.ranking import MARGIN, outcome, rank, same


def row(a, b, ratio, verdict=None, spread=1.2):
    """Return a comparison; its verdict is what `ratio` says unless one is given."""
    verdict = verdict or ("higher" if ratio > 1 else "lower")
    return {
        "stack_a": a, "stack_b": b, "ratio": ratio, "low": ratio / spread, "high": ratio * spread,
        "effect": 1.0, "verdict": verdict, "n_a": 5, "n_b": 5,
    }  # fmt: skip


def test_the_best_that_keeps_files_is_used_and_memory_is_fastest_not_used():
    made = rank([row("nfs", "ssd", 0.25), row("nfs", "ram", 0.1), row("ram", "ssd", 2.5)], {"ram"})
    assert (made.reference, made.winner, made.fastest) == ("ssd", "ssd", "ram")
    assert made.advice == {"ssd": "use", "nfs": "avoid", "ram": "fastest"}
    # Each is told against the best that keeps files, itself as the first side: 0.25 of it, and 2.5 times.
    assert made.standings["nfs"].rows[0]["ratio"] == 0.25
    assert made.standings["ram"].rows[0]["ratio"] == 2.5
    # The best is told against its next rival: 1 / 0.25.
    assert (made.standings["ssd"].against, made.standings["ssd"].rows[0]["ratio"]) == ("nfs", 4.0)


def test_undecided_with_one_rival_is_undecided_though_ahead_of_another():
    rows = [row("a", "b", 1.1, "undecided"), row("a", "c", 3.0), row("b", "c", 2.8)]
    made = rank(rows)
    assert made.reference == "a" and made.winner == ""
    assert made.advice == {"a": "undecided", "b": "undecided", "c": "avoid"}
    # The rival that counts is the one that it is not ahead of, not the one that comes last.
    assert made.standings["a"].against == "b"


def test_the_same_is_as_good():
    made = rank([row("a", "b", 1.01, "undecided", spread=1.02), row("a", "c", 3.0), row("b", "c", 3.0)])
    assert made.advice == {"a": "use", "b": "use", "c": "avoid"}
    assert made.winner == ""  # ahead of every other one it is not


def test_verdicts_come_before_medians():
    # By its ratios b is ahead in sum, but a is decided ahead of b: then b is not the best.
    rows = [row("a", "b", 1.2), row("a", "c", 1.05, "undecided"), row("b", "c", 2.0, "undecided")]
    assert rank(rows).reference == "a"


def test_memory_has_no_say_among_those_that_keep_files():
    # Between themselves a is ahead by 1.1; against memory b looks better, which is another measurement.
    rows = [
        row("a", "b", 1.1, "undecided"), row("a", "ram", 0.1), row("b", "ram", 0.9, "undecided"),
    ]  # fmt: skip
    assert rank(rows, {"ram"}).reference == "a"


def test_one_system_and_none():
    assert rank([]) is None
    made = rank([], present=["a"])
    assert made.advice == {"a": "only"} and made.reference == "a"
    # One that keeps files beside memory is the place to use, whether or not memory is faster.
    made = rank([row("a", "ram", 0.5, "undecided")], {"ram"})
    assert made.advice == {"a": "use", "ram": "undecided"}


def test_memory_alone_is_ranked_all_the_same():
    made = rank([row("ram", "shm", 2.0)], {"ram", "shm"})
    assert made.advice == {"ram": "use", "shm": "avoid"}


def test_a_layer_is_compared_on_its_own_storage():
    rows = [row("a", "b", 2.0), row("a", "a+cache", 0.5), row("b", "b+cache", 0.8)]
    made = rank(rows)
    # a+cache is twice a, four times b: the best of all, though it has no row with b.
    assert made.reference == "a+cache"
    assert made.standings["b"].against in ("a", "b+cache")
    assert made.advice["b"] == "nothing"


def test_several_operations_make_one_outcome():
    ahead, open_, behind = row("a", "b", 2.0), row("a", "b", 1.1, "undecided"), row("a", "b", 0.5)
    assert outcome([ahead, open_]) == "higher"
    assert outcome([ahead, behind]) == "undecided"
    assert outcome([]) == "undecided"


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.06])
def test_the_same_is_seldom_said_of_what_differs_by_the_margin(spread):
    """At a true ratio of exactly the margin, "the same" is wrong: at most in 5 % of 400 (and chance)."""
    random = np.random.default_rng(1)
    wrong = 0
    for seed in range(400):
        a = MARGIN * random.lognormal(0, spread, 5)
        b = random.lognormal(0, spread, 5)
        found = compare(a, b, Floor(0.95, 1.05, 5), seed)
        wrong += same(found.columns())
    assert wrong <= 400 * 0.05 + 2 * math.sqrt(400 * 0.05 * 0.95)


def test_the_same_is_found_where_it_is_true_and_quiet():
    random = np.random.default_rng(2)
    found = sum(
        same(
            compare(
                random.lognormal(0, 0.02, 5), random.lognormal(0, 0.02, 5), Floor(0.95, 1.05, 5), i
            ).columns()
        )
        for i in range(100)
    )
    assert found >= 90
