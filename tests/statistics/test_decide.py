"""The method on arrays: what a known truth makes of it."""

import math

import numpy as np
import pytest
from scipy import stats

from tiercel.statistics.decide import Facts, share, smallest_detectable, verdicts
from tiercel.statistics.model import Shape, component, contrast, fit, holm, moderated, stack_drift
from tiercel.statistics.verdict import Outcome, Rule


def study(factor=1.0, repetitions=5, workloads=8, spread=0.05, extra=0):
    """Return logs of workloads on two storages, at one scale, with replicates; `extra` rounds of one side."""
    draw = np.random.default_rng(5)
    logs = draw.normal(0.0, spread, (workloads, 2, 1, 2, repetitions + extra))
    logs[:, 0] += math.log(factor)
    logs[:, 1, :, :, repetitions:] = math.nan
    return logs


def judged(logs):
    work, storage = (each.reshape(-1) for each in np.indices(logs.shape[:2]))
    made = fit(logs.reshape(-1, *logs.shape[2:]), Shape(storage, np.zeros_like(work), work))
    first, nothing = 2 * np.arange(len(logs)), np.zeros(len(logs))
    return verdicts(contrast(made, first, first + 1), Facts(nothing, nothing), [0] * len(logs), share(0))


@pytest.mark.parametrize(
    ("repetitions", "factor", "outcomes"),
    [
        (3, 4.0, {Outcome.NO_POWER}),  # fewer than four repetitions decide nothing
        (4, 4.0, {Outcome.BETTER}),  # at one scale, where an exact rank test never could with a family of 8
        (5, 0.5, {Outcome.WORSE}),
    ],
)
def test_four_repetitions_at_one_scale_decide(repetitions, factor, outcomes):
    found = judged(study(factor, repetitions))
    assert {v.outcome for v in found} == outcomes
    if repetitions == 3:
        assert {(v.rule, v.needed) for v in found} == {(Rule.FEW_REPETITIONS, 1)}
        assert all(v.ratio > 3 for v in found)  # the effect is said all the same


def test_repetitions_of_one_side_are_not_discarded():
    """Ten against five: all ten count, unless the side was another one in the rounds that it has alone."""
    assert {(v.n_a, v.n_b) for v in judged(study(2.0, 5, extra=5))} == {(10, 5)}
    moved = study(2.0, 5, extra=5)
    moved[:, 0, :, :, 5:] -= 1.0
    assert all(v.n_a == 5 and v.ratio == pytest.approx(2.0, rel=0.2) for v in judged(moved))


def test_one_workload_with_burst_credits_is_not_faster():
    """The first four of ten rounds are four times faster, of one workload on one storage."""
    logs = study(1.0, 10)
    logs[0, 0, :, :, :4] += math.log(4)
    found = judged(logs)[0]
    assert not found.outcome.decided and found.rule is Rule.ROUND_DRIFT and found.ratio > 1.5


def test_one_workload_that_changes_once_is_not_faster():
    """On one storage, one of eight workloads is twice as fast in the first three of five rounds."""
    logs = study(1.0, 5, spread=0.1)
    logs[7, 0, :, :, :3] += math.log(2)
    found = judged(logs)[7]
    assert not found.outcome.decided and found.rule is Rule.ROUND_DRIFT and found.ratio > 1.3


def test_follow_up_rounds_of_one_workload_say_nothing_of_the_stack():
    logs = study(1.0, 8)
    logs[1:, ..., 5:] = math.nan
    work, storage = (each.reshape(-1) for each in np.indices(logs.shape[:2]))
    shape = Shape(storage, np.zeros_like(work), work)
    more, once = (
        stack_drift(fit(each.reshape(-1, *each.shape[2:]), shape), 0, 1) for each in (logs, logs[..., :5])
    )
    assert more[1] == once[1] and more[0] < 4 * once[0]
    logs[0, 0, ..., 5:] += 5.0  # a day on which this workload, and as far as is known no other, is fast
    wild, _ = stack_drift(fit(logs.reshape(-1, *logs.shape[2:]), shape), 0, 1)
    assert wild < 4 * once[0]


def test_a_layout_session_that_differs_is_no_difference():
    logs = study(1.0, 5, workloads=1, spread=0.01)
    logs[0, 0, :, 0] += math.log(2)  # replicate A alone
    (found,) = judged(logs)
    assert not found.outcome.decided and found.rule is Rule.LAYOUT


def test_holm_by_hand():
    # Ordered 0.01, 0.02, 0.04: times 3, 2 and 1, and never less than the one before.
    assert holm(np.array([0.04, 0.01, 0.02])) == pytest.approx([0.04, 0.03, 0.04])


def test_variances_are_shrunk_towards_each_other_only_if_there_are_enough():
    draw = np.random.default_rng(1)
    seen = draw.chisquare(4, 500) / 4  # all cells vary alike: the prior is firm
    shrunk, freedom = moderated(seen, np.full(500, 4.0))
    assert shrunk.std() < seen.std() / 5 and (freedom > 40).all()
    few, freedom = moderated(seen[:5], np.full(5, 4.0))
    assert few == pytest.approx(seen[:5]) and (freedom == 4).all()


def test_the_layout_variance_is_where_chi_squared_has_its_median():
    # Three pairs, each 0.09 apart in square, with errors of 0.01: 3 x 0.09 / (t + 0.01) = 2.366.
    found = float(component(np.full(3, 0.09), np.full(3, 0.01)))
    assert found == pytest.approx(0.27 / stats.chi2.median(3) - 0.01, rel=1e-6)
    assert float(component(np.full(3, 0.001), np.full(3, 0.01))) == 0.0
    assert math.isnan(float(component(np.full(3, math.nan), np.full(3, math.nan))))


def test_what_a_plan_can_detect():
    assert math.isinf(smallest_detectable(0.1, 3, 1, 1))
    # Two sides of five: sd x sqrt(2 / 5); t of 8 degrees of freedom at 0.95 x 5 % two-sided, and at 80 %.
    error = math.sqrt(2 * math.log(1.01) / 5)
    reach = stats.t.ppf(1 - 0.0475 / 2, 8) + stats.t.ppf(0.8, 8)
    assert smallest_detectable(0.1, 5, 1, 1) == pytest.approx(math.exp(reach * error))
    assert smallest_detectable(0.1, 5, 1, 16) > smallest_detectable(0.1, 5, 1, 1)
    assert smallest_detectable(0.1, 5, 2, 16) < smallest_detectable(0.1, 5, 1, 16)


def test_scales_are_the_reason_only_where_comparing_them_apart_helps():
    """Faster at one scale, slower at the other, and one workload varies more than the others.

    The larger scale alone has p = 0.011 in workload 2, times 8 comparisons 0.09; in workload 5 0.03.
    """
    logs = study(1.0, 10, spread=0.3)[:, :, 0][:, :, None].repeat(2, axis=2)
    logs[:, :, 1] = logs[::-1, :, 0].copy()
    logs[:, 0] += np.log([1.3, 1 / 1.3])[:, None, None]
    found = judged(logs)
    assert not any(v.outcome.decided for v in found)
    assert [found[workload].rule for workload in (2, 5)] == [Rule.REPETITIONS, Rule.SCALES]
