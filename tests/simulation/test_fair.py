"""Max-min fairness: cases computed by hand, and its definition on random networks."""

from __future__ import annotations

import math
import random

import pytest

from tiercel.simulation.fair import Flows, fair_rates, full_resources


def flows(count: int, *names: str, limit: float = math.inf, part: float = 1.0) -> Flows:
    return Flows(count, dict.fromkeys(names, part), limit)


def test_one_link_is_shared_alike() -> None:
    assert fair_rates([flows(4, "link")], {"link": 100}) == [25]


def test_the_textbook_chain() -> None:
    # Links a (10) and b (4). Long passes both, short only a, other only b. b fills first: 2 each; then a has
    # 10 - 2 = 8 for short alone.
    rates = fair_rates([flows(1, "a", "b"), flows(1, "a"), flows(1, "b")], {"a": 10, "b": 4})
    assert rates == [2, 8, 2]


def test_what_a_limited_flow_leaves_goes_to_the_others() -> None:
    # Three flows of 30 in all; one takes 4 at most, so two share 26.
    assert fair_rates([flows(1, "a", limit=4), flows(2, "a")], {"a": 30}) == [4, 13]


def test_a_flow_that_takes_more_of_a_resource_fills_it_sooner() -> None:
    # Rates are alike (x each): x + 3x = 40, so 10.
    assert fair_rates([flows(1, "a"), flows(1, "a", part=3)], {"a": 40}) == [10, 10]


def test_operations_bound_small_transfers() -> None:
    # 4 processes with transfers of 4 KiB on a server of 1,000 operations per second and 1 GB/s.
    small = Flows(4, {"bytes": 1, "operations": 1 / 4096})
    assert fair_rates([small], {"bytes": 1e9, "operations": 1000}) == [1000 * 4096 / 4]


def test_what_nothing_bounds_is_infinite() -> None:
    assert fair_rates([flows(1), flows(1, "a")], {"a": 5}) == [math.inf, 5]


def test_a_class_of_many_is_the_same_as_many_classes() -> None:
    together = fair_rates([flows(5, "a", "b"), flows(3, "a")], {"a": 100, "b": 20})
    apart = fair_rates([*[flows(1, "a", "b")] * 5, *[flows(1, "a")] * 3], {"a": 100, "b": 20})
    assert [together[0]] * 5 + [together[1]] * 3 == pytest.approx(apart)


def test_a_resource_without_a_capacity_is_told() -> None:
    with pytest.raises(KeyError, match="b"):
        fair_rates([flows(1, "b")], {"a": 1})


def random_network(seed: int) -> tuple[list[Flows], dict[str, float]]:
    choose = random.Random(seed)
    capacities = {f"r{n}": choose.uniform(1, 1000) for n in range(choose.randint(1, 8))}
    classes = []
    for _ in range(choose.randint(1, 12)):
        names = choose.sample(sorted(capacities), choose.randint(1, len(capacities)))
        limit = choose.uniform(0.1, 200) if choose.random() < 0.4 else math.inf
        uses = {name: choose.choice([1.0, 1.0, choose.uniform(0.1, 5)]) for name in names}
        classes.append(Flows(choose.choice([1, 2, 7, 5632]), uses, limit))
    return classes, capacities


@pytest.mark.parametrize("seed", range(200))
def test_the_definition(seed: int) -> None:
    """Nothing carries more than it can; and each flow is at its limit, or passes a full resource on which no
    flow has a higher rate (the bottleneck condition, equivalent to max-min fairness: Bertsekas and Gallager,
    section 6.5.2)."""
    classes, capacities = random_network(seed)
    rates = fair_rates(classes, capacities)
    used = {
        name: sum(c.count * c.uses.get(name, 0) * rate for c, rate in zip(classes, rates, strict=True))
        for name in capacities
    }
    assert all(used[name] <= most * (1 + 1e-9) for name, most in capacities.items())
    full = full_resources(classes, rates, capacities)
    highest = {
        name: max((rate for c, rate in zip(classes, rates, strict=True) if name in c.uses), default=0.0)
        for name in full
    }
    for c, rate in zip(classes, rates, strict=True):
        assert rate <= c.limit
        at_limit = rate >= c.limit * (1 - 1e-9)
        assert at_limit or any(rate >= highest[name] * (1 - 1e-9) for name in c.uses if name in full)
