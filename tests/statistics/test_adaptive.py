"""The decision to repeat."""

from tiercel.statistics.adaptive import enough
from tiercel.study.model import Repetitions

BOUNDS = Repetitions(minimum=3, maximum=8, target=0.1)


def test_the_minimum_is_reached_first():
    assert enough([], BOUNDS).go_on
    assert enough([1.0, 1.0], BOUNDS).why == "2 of at least 3 repetitions"


def test_a_tight_sample_stops_and_says_how_sure_it_is():
    decision = enough([100, 101, 102], BOUNDS)
    # Range 2 around 101: half of it is 0.99 %.
    assert not decision.go_on
    assert decision.why == "the median is known to ±0.99 % (75 % interval), target ±10 %, after 3 repetitions"


def test_a_sample_as_wide_as_the_target_stops():
    # Half of the range, 10, over the median, 100: just the target.
    assert enough([90, 100, 110], BOUNDS).go_on is False
    assert enough([89, 100, 110], BOUNDS).go_on is True


def test_a_wide_sample_goes_on_to_the_maximum():
    decision = enough([50, 100, 150], BOUNDS)
    assert decision.go_on is True
    assert decision.why == "the median is known to ±50 % (75 % interval), target ±10 %"
    decision = enough([50, 100, 150, 60, 140, 100, 55, 145], BOUNDS)
    assert decision.go_on is False
    assert "8 repetitions are the limit" in decision.why


def test_zeros_and_missing_values_end_at_the_maximum():
    assert enough([0.0] * 7, BOUNDS).why == "the median's interval is unknown, target ±10 %"
    assert not enough([0.0] * 8, BOUNDS).go_on
    assert enough([None] * 20, BOUNDS).go_on
    assert not enough([5.0], Repetitions(minimum=1, maximum=1)).go_on
