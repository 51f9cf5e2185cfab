"""Flows over time, computed by hand."""

from __future__ import annotations

import math
import random

import pytest

from tiercel.simulation.events import Work, simulate
from tiercel.simulation.fair import Flows


def work(amount: float, *names: str, count: int = 1, start: float = 0.0, limit: float = math.inf) -> Work:
    return Work(Flows(count, dict.fromkeys(names, 1.0), limit), amount, start)


def test_who_ends_leaves_its_share() -> None:
    # 10/s. 5 each until the small one's 20 are done (t = 4); the large one has moved 20 of 50, and takes the
    # rest with all of the link: 30 / 10 = 3 more seconds.
    course = simulate([work(20, "a"), work(50, "a")], {"a": 10})
    assert [each.end for each in course.done] == [4, 7]
    assert course.filled == {"a": 7}


def test_who_comes_later_takes_its_share() -> None:
    # Alone 0 to 2 (20 of 40 moved), then 5/s each: 4 seconds more. The late one has moved 20 of 30: 1 more.
    course = simulate([work(40, "a"), work(30, "a", start=2)], {"a": 10})
    assert [each.end for each in course.done] == [6, 7]


def test_a_pause_between_flows_fills_nothing() -> None:
    course = simulate([work(10, "a"), work(10, "a", start=5)], {"a": 10})
    assert [each.end for each in course.done] == [1, 6]
    assert course.filled == {"a": 2}


def test_the_time_limit_ends_what_is_under_way() -> None:
    course = simulate([work(20, "a"), work(50, "a")], {"a": 10}, until=5)
    assert [(each.moved, each.end) for each in course.done] == [(20, 4), (30, 5)]


def test_what_never_ends_and_what_nothing_bounds_are_told() -> None:
    with pytest.raises(ValueError, match="rate zero"):
        simulate([work(1, "a")], {"a": 0})
    with pytest.raises(ValueError, match="no resource bounds"):
        simulate([work(1)], {})


@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_lost_and_order_makes_no_difference(seed: int) -> None:
    choose = random.Random(seed)
    names = ["a", "b", "c", "d"]
    capacities = {name: choose.uniform(1, 100) for name in names}
    works = [
        work(choose.uniform(1, 500), *choose.sample(names, choose.randint(1, 4)), count=choose.randint(1, 50),
             start=choose.choice([0.0, choose.uniform(0, 20)]))
        for _ in range(10)
    ]  # fmt: skip
    course = simulate(works, capacities)
    assert [each.moved for each in course.done] == pytest.approx([w.amount for w in works])
    turned = simulate(works[::-1], capacities)
    assert [each.end for each in turned.done[::-1]] == pytest.approx([each.end for each in course.done])
    # A resource that everything passes cannot be quicker than its capacity.
    for name, most in capacities.items():
        carried = sum(w.amount * w.flows.count for w in works if name in w.flows.uses)
        assert carried <= most * course.end * (1 + 1e-9)
