"""A verdict is a value; every sentence about it follows from it."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.statistics.verdict import Outcome, Rule, Verdict

#: Rules under each outcome.
CLAIMS = {
    Outcome.BETTER: [Rule.DIFFERENCE],
    Outcome.WORSE: [Rule.DIFFERENCE],
    Outcome.SAME: [Rule.EQUIVALENCE],
}
OPEN = [rule for rule in Rule if rule not in (Rule.DIFFERENCE, Rule.EQUIVALENCE)]


@st.composite
def verdicts(draw):
    outcome = draw(st.sampled_from(list(Outcome)))
    rule = draw(st.sampled_from(CLAIMS.get(outcome, OPEN)))
    log = draw(st.floats(0.05, 5.0))
    sign = {Outcome.BETTER: 1, Outcome.WORSE: -1}.get(outcome) or draw(st.sampled_from([-1, 1]))
    middle = sign * log if outcome is not Outcome.SAME else sign * 0.01
    half = draw(st.floats(0.001, 0.9 if not outcome.decided else 0.04))
    return Verdict(
        outcome, rule, math.exp(middle), math.exp(middle - half), math.exp(middle + half),
        p=draw(st.floats(0.0001, 0.04 if outcome.decided else 1.0)), n_a=draw(st.integers(1, 20)),
        n_b=draw(st.integers(1, 20)), family=draw(st.integers(1, 150)),
        detectable=draw(st.one_of(st.just(math.inf), st.floats(1.01, 50.0))),
        needed=None if outcome.decided else draw(st.one_of(st.none(), st.integers(1, 100))),
        extent=draw(st.floats(1.01, 9.0)),
    )  # fmt: skip


def close(text: str, value: float) -> bool:
    """A number in a sentence has two digits or more."""
    return math.isclose(float(text), value, rel_tol=0.06, abs_tol=0.006)


@given(verdicts())
def test_a_sentence_says_the_direction_and_the_interval_of_its_value(v):
    ratio, word, low, high = re.match(
        r"(\S+) times (faster|slower), 95 % CI (\S+) to (\S+)", v.effect()
    ).groups()
    assert word == ("faster" if v.ratio >= 1 else "slower")
    seen = (v.ratio, v.low, v.high) if v.ratio >= 1 else (1 / v.ratio, 1 / v.high, 1 / v.low)
    assert all(close(text, value) for text, value in zip((ratio, low, high), seen, strict=True))
    assert v.sentence().startswith(v.effect())  # the effect is first, whatever is decided


@given(verdicts())
def test_a_sentence_names_the_rule_that_fired_and_no_other(v):
    said = v.confidence()
    assert ("confirmed (p" in said and "not" not in said) == (v.rule is Rule.DIFFERENCE)
    assert said.startswith("the same") == (v.rule is Rule.EQUIVALENCE)
    reasons = {rule: replace(v, rule=rule).reason for rule in OPEN}
    assert len(set(reasons.values())) == len(OPEN)
    if not v.outcome.decided:
        assert [rule for rule, reason in reasons.items() if reason in said] == [v.rule]
    assert (v.reason == "") == v.outcome.decided


@given(verdicts())
def test_what_the_sentence_rests_on_cannot_be_taken_away_from_it(v):
    said = v.sentence()
    without = replace(v, low=math.nan, high=math.nan)
    assert "95 % CI" in said and "95 % CI" not in without.sentence()
    assert replace(v, ratio=math.nan).effect() == "no ratio"
    if v.needed is not None:
        assert f"run {v.needed} more repetition" in said
        assert f"run {v.needed} more repetition" not in replace(v, needed=None).sentence()
    if v.rule is Rule.DIFFERENCE:
        unsure = replace(v, outcome=Outcome.NOT_DECIDED, rule=Rule.REPETITIONS, p=0.5)
        assert "not" in unsure.confidence()
    if v.outcome is Outcome.NO_POWER and "would have been detected" in said:
        assert "would have been detected" not in replace(v, outcome=Outcome.NOT_DECIDED).sentence()


@given(verdicts())
def test_reversed_twice_is_the_same_and_once_says_the_opposite(v):
    turned = v.reversed()
    assert turned.reversed().ratio == pytest.approx(v.ratio) and turned.reversed().outcome is v.outcome
    assert turned.low == pytest.approx(1 / v.high)
    words = {"faster", "slower"}
    assert words & set(re.split(r"[ ,]", v.effect())) != words & set(re.split(r"[ ,]", turned.effect()))
    opposite = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}
    assert turned.outcome is opposite.get(v.outcome, v.outcome)


@given(verdicts())
def test_a_row_of_a_table_is_the_same_value(v):
    assert Verdict.of(v.columns()) == v


def test_a_large_effect_is_said_before_what_it_lacks():
    v = Verdict(Outcome.NO_POWER, Rule.FEW_REPETITIONS, 258.0, 81.0, 562.0, 0.1, 3, 3, needed=1, extent=1.0)
    assert v.sentence() == (
        "258 times faster, 95 % CI 81.0 to 562; not yet confirmed: 3 of 4 repetitions; "
        "run 1 more repetition of each side"
    )
