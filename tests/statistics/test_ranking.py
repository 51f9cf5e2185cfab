"""Which system is best: from hand-made comparisons, and how often "the same" is said wrongly."""

import math

import pytest

from tiercel.statistics.ranking import outcome, rank, reverse
from tiercel.statistics.verdict import Outcome, Rule, Verdict

OUTCOMES = {"higher": Outcome.BETTER, "lower": Outcome.WORSE, "undecided": Outcome.NOT_DECIDED}
RULES = {Outcome.NOT_DECIDED: Rule.REPETITIONS, Outcome.SAME: Rule.EQUIVALENCE}


def row(a, b, ratio, verdict=None, spread=1.2):
    """Return a comparison; its verdict is what `ratio` says unless one is given."""
    of = OUTCOMES[verdict or ("higher" if ratio > 1 else "lower")]
    low, high = ratio / spread, ratio * spread
    if low > 1 / 1.1 and high < 1.1:
        of = Outcome.SAME
    value = Verdict(of, RULES.get(of, Rule.DIFFERENCE), ratio, low, high, 0.01, 5, 5)
    return {"stack_a": a, "stack_b": b} | value.columns()


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


def test_where_nothing_is_decided_ratios_put_in_order():
    # In logs to base 2: a - b = 2, b - c = 3, a - d = -1. So d is 1 above a, b 2 and c 5 below it.
    rows = [
        row("a", "b", 4.0, "undecided"), row("b", "c", 8.0, "undecided"), row("a", "d", 0.5, "undecided"),
    ]  # fmt: skip
    made = rank(rows)
    assert list(made.standings) == ["d", "a", "b", "c"] and made.reference == "d" and made.winner == ""
    assert set(made.advice.values()) == {"undecided", "nothing"}
    # c has no row with d: it is held against the best that it has one with.
    assert made.standings["c"].against == "b" and made.standings["c"].rows[0]["ratio"] == 1 / 8
    assert made.advice["c"] == "nothing"


def test_the_reference_comes_first_and_memory_last_however_fast():
    # a is decided ahead of b, and b of c, as the levels say; ram is ahead of all of them.
    rows = [
        row("c", "b", 0.25), row("b", "a", 1 / 1.2), row("c", "a", 0.2),
        row("ram", "a", 50.0), row("ram", "b", 60.0), row("ram", "c", 250.0),
    ]  # fmt: skip
    assert list(rank(rows, {"ram"}).standings) == ["a", "b", "c", "ram"]
    # The first is the reference even where a ratio alone would put another one there.
    rows = [row("a", "b", 1.2), row("a", "c", 1.05, "undecided"), row("b", "c", 9.0, "undecided")]
    assert list(rank(rows).standings) == ["a", "b", "c"]


def test_of_two_that_memory_leaves_open_their_own_row_says_which_is_better():
    # By all rows in least squares b is ahead of a (against ram by 9), by their own one a is.
    rows = [
        row("a", "b", 1.1, "undecided"), row("a", "ram", 0.1), row("b", "ram", 0.9, "undecided"),
        row("a", "b", 1.1, "undecided"),
    ]  # fmt: skip
    assert list(rank(rows, {"ram"}).standings) == ["a", "b", "ram"]


def test_a_ratio_that_is_none_takes_no_part():
    for ratio in (math.nan, math.inf):
        bad = row("b", "a", 2.0) | {"ratio": ratio}
        made = rank([row("a", "b", 2.0), bad])
        assert made.advice == {"a": "use", "b": "avoid"} and len(made.standings["a"].rows) == 1
    assert rank([row("a", "b", 2.0) | {"ratio": 0.0}]).standings["a"].rows == ()
    assert rank([row("a", "b", 2.0) | {"ratio": -2.0}]).advice == {"a": "undecided", "b": "nothing"}


def test_memory_behind_or_alike_is_no_gain():
    rows = [row("ssd", "ram", 3.0), row("ssd", "shm", 1.0, spread=1.02), row("ssd", "zram", 1.1, "undecided")]
    made = rank(rows, {"ram", "shm", "zram"})
    assert made.advice == {"ssd": "use", "ram": "avoid", "shm": "no gain", "zram": "undecided"}
    assert made.fastest == ""


def test_the_fastest_is_the_best_of_those_that_are_ahead_of_the_reference():
    rows = [row("ssd", "ram", 0.5), row("ssd", "shm", 0.25), row("shm", "ram", 2.0), row("ssd", "hdd", 3.0)]
    made = rank(rows, {"ram", "shm"})
    assert made.fastest == "shm"
    # hdd is not ahead of ssd, and keeps its files.
    assert made.advice == {"ssd": "use", "hdd": "avoid", "shm": "fastest", "ram": "fastest"}


def test_beside_one_that_was_tried_in_vain_nothing_is_the_only_choice():
    # ssd kept files and has no number: what is left was not held against it.
    assert rank([], present=["a"], silent=["ssd"]).advice == {"a": "nothing"}
    # Memory alone is no place to advise, though it was compared.
    made = rank([row("ram", "shm", 2.0)], {"ram", "shm"}, silent=["ssd"])
    assert made.advice == {"ram": "nothing", "shm": "avoid"}
    # Memory that has no number changes nothing, and neither does a silent one beside two that keep files.
    assert rank([], {"ram"}, present=["a"], silent=["ram"]).advice == {"a": "only"}
    assert rank([row("a", "b", 2.0)], silent=["ssd"]).advice == {"a": "use", "b": "avoid"}
    made = rank([row("a", "b", 2.0), row("a", "ram", 2.0)], {"ram"}, silent=["ssd"])
    assert made.advice == {"a": "use", "b": "avoid", "ram": "avoid"}


def test_one_without_a_comparison_stands_alone():
    made = rank([row("a", "b", 2.0)], present=["a", "b", "c"])
    assert (made.standings["c"].stack, made.standings["c"].against, made.standings["c"].rows) == ("c", "", ())
    assert made.advice == {"a": "undecided", "b": "avoid", "c": "nothing"}
    made = rank([], present=["a", "b"])
    assert (made.standings["a"].stack, made.standings["a"].against, made.standings["a"].rows) == ("a", "", ())


def test_every_standing_names_its_own_system():
    rows = [row("a", "b", 2.0), row("a", "a+cache", 0.5), row("b", "b+cache", 0.8)]
    made = rank(rows)
    assert {name: standing.stack for name, standing in made.standings.items()} == {
        name: name for name in ("a", "b", "a+cache", "b+cache")
    }
    # Logs to base 2: a+cache 1, a 0, b+cache -0.68, b -1. b has rows with a and b+cache: a is the better.
    assert made.standings["b"].against == "a" and made.standings["b"].rows[0]["ratio"] == 0.5


def test_turned_round_a_comparison_says_the_same():
    turned = reverse(row("a", "b", 4.0) | {"n_a": 5, "n_b": 7, "repetition": 3})
    assert (turned["stack_a"], turned["ratio"], turned["verdict"]) == ("b", 0.25, "lower")
    assert turned["low"] == pytest.approx(1 / 4.8) and turned["high"] == pytest.approx(1.2 / 4)
    assert (turned["n_a"], turned["n_b"], turned["repetition"], turned["outcome"]) == (7, 5, 3, "worse")
    assert reverse(row("a", "b", 1.0) | {"farthest": 4.0})["farthest"] == 0.25
    assert reverse(row("a", "b", 1.0, "undecided"))["verdict"] == "undecided"


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
