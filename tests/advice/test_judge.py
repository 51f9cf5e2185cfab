"""A way is advised only where it is surely better; what it saves has an honest interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiercel.advice.judge import results_of, verdict, wished_systems
from tiercel.advice.measured import Measured, Terms
from tiercel.advice.trial import Trial
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, Way

UNIT = Unit("/a", Path("/a"), True, ("/a/f",), "disk", size=1)
OTHER = Unit("/b", Path("/b"), True, ("/b/f",), "disk", size=1)


UNITS = [UNIT, OTHER]
#: A run pays nothing beside its replay.
NOTHING_ELSE = Terms()


def trials(walls: list[float], io: tuple[float, float] = (0.5, 0.0), copies: float = 0.0) -> list[Trial]:
    seconds = np.array([[io[0], 0, 0, 0], [io[1], 0, 0, 0]])
    return [Trial(w, seconds, np.ones((2, 4)), copies, copies) for w in walls]


def measured(terms: Terms = NOTHING_ELSE, **ways: list[Trial]) -> Measured:
    names = {"home": HOME, "again": AGAIN, "fast": "all on fast", "slow": "all on slow"}
    systems = {"home": "disk", "again": "disk", "fast": "fast", "slow": "slow"}
    return Measured(
        {names[n]: Way(names[n], {"/a": systems[n], "/b": systems[n]}) for n in ways},
        {"/a": [0], "/b": [1]},
        terms,
        {names[n]: t for n, t in ways.items()},
        rounds=5,
    )


HOME_S = [2.00, 2.02, 2.01, 1.99, 2.03]
AGAIN_S = [2.01, 2.00, 2.02, 2.01, 1.98]
NOT_VOLATILE = {"disk": False, "fast": False, "slow": False}


def test_the_faster_way_is_taken_with_what_it_saves() -> None:
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=trials([1.00, 1.01, 1.02, 0.99, 1.00]))
    found.terms = Terms(outside=3.0)
    ways = results_of(found, UNITS)
    assert [w.name for w in ways] == [HOME, "all on fast"]
    # 3 s lie outside what was replayed: they are in the run on both sides, and not in what is saved.
    assert ways[0].run.median == pytest.approx(2.01 + 3.0)
    assert ways[1].saved.median == pytest.approx(2.01 - 1.0)
    assert ways[1].saved.low < 1.0 < ways[1].saved.high < 1.3  # 5 % of 5 s, and the trials
    v = verdict(ways, NOT_VOLATILE, 0.5)
    assert v is not None and v.decided and v.way.name == "all on fast"


def test_copying_can_cost_more_than_is_saved() -> None:
    fast = trials([1.00, 1.01, 1.02, 0.99, 1.00], copies=0.8)  # 0.8 s in and 0.8 s out, for 1 s
    ways = results_of(measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=fast), UNITS)
    v = verdict(ways, NOT_VOLATILE, 0.5)
    assert v is not None and v.decided and v.way is v.home
    # It would pay if the files lived there, and where the inputs that were copied once serve ten runs.
    assert v.living is not None and v.living.name == "all on fast"
    often = verdict(
        results_of(measured(Terms(runs=100.0), home=trials(HOME_S), again=trials(AGAIN_S), fast=fast), UNITS),
        NOT_VOLATILE, 0.5,
    )  # fmt: skip
    assert often is not None and often.way.name == "all on fast" and often.copied is None


def test_how_many_runs_must_share_a_copy() -> None:
    fast = [replace(t, copy_out=0.1) for t in trials([1.00, 1.01, 1.02, 0.99, 1.00], copies=2.0)]
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=fast)
    v = verdict(results_of(found, UNITS), {**NOT_VOLATILE, "fast": True}, 0.5)
    assert v is not None and v.way is v.home and v.copied is not None and v.copied.name == "all on fast"
    # 2 s in, 0.1 s out, for about 0.9 s at least: two runs may not pay, three do. Asked so, it is advised.
    runs = v.copied.pays_from
    assert runs == 3
    found.terms = Terms(runs=float(runs))
    shared = verdict(results_of(found, UNITS), {**NOT_VOLATILE, "fast": True}, 0.5)
    assert shared is not None and shared.way.name == "all on fast" and shared.way.pays_from == runs


def test_no_number_of_runs_pays_for_what_is_copied_out_after_each() -> None:
    fast = trials([1.00, 1.01, 1.02, 0.99, 1.00], copies=2.0)
    ways = results_of(measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=fast), UNITS)
    v = verdict(ways, NOT_VOLATILE, 0.5)
    assert v is not None and v.copied is not None and v.copied.pays_from is None


def test_the_script_costs_something_too() -> None:
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=trials([1.00, 1.01, 1.02, 0.99, 1.00]))
    # 0.2 s to begin with and 0.1 s for each of two folders, half of it in, half out.
    found.terms = Terms(script=(0.2, 0.1))
    fast = results_of(found, UNITS)[1]
    assert (fast.copy_in, fast.copy_out) == pytest.approx((0.2, 0.2))
    found.terms = Terms(script=(2.0, 0.0))
    v = verdict(results_of(found, UNITS), NOT_VOLATILE, 0.5)
    assert v is not None and v.way is v.home


def test_files_cannot_live_in_memory() -> None:
    fast = trials([1.00, 1.01, 1.02, 0.99, 1.00], copies=0.8)
    ways = results_of(measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=fast), UNITS)
    v = verdict(ways, {**NOT_VOLATILE, "fast": True}, 0.5)
    assert v is not None and v.living is None


def test_within_the_noise_of_home_against_home_nothing_is_advised() -> None:
    shaky = [2.0, 3.1, 1.4, 2.6, 1.9]
    again = [1.2, 2.9, 2.2, 1.6, 3.0]
    fast = trials([1.5, 1.6, 1.7, 1.4, 1.6])
    ways = results_of(measured(home=trials(shaky), again=trials(again), fast=fast), UNITS)
    v = verdict(ways, NOT_VOLATILE, 0.5)
    assert v is not None and not v.decided and v.way is v.home


def test_no_way_can_save_what_is_not_waited_for() -> None:
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=trials([1.9, 1.9, 1.9, 1.9, 1.9]))
    v = verdict(results_of(found, UNITS), NOT_VOLATILE, 0.01)
    assert v is not None and v.decided and v.way is v.home and "1.0 %" in v.reason


def test_a_slower_way_is_never_taken() -> None:
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), slow=trials([4.0, 4.1, 4.0, 3.9, 4.2]))
    v = verdict(results_of(found, UNITS), NOT_VOLATILE, 0.9)
    assert v is not None and v.decided and v.way is v.home and v.living is None


def test_a_replay_that_is_off_widens_what_is_said() -> None:
    fast = trials([1.00, 1.01, 1.02, 0.99, 1.00])
    # Replays at home spend 0.5 s in calls.
    found = measured(home=trials(HOME_S), again=trials(AGAIN_S), fast=fast)
    saved = []
    for found.terms in (Terms(in_calls=0.5), Terms(in_calls=0.25)):
        saved.append(results_of(found, UNITS)[1].saved)
    near, off = saved
    # The trace shows half of the replay's I/O time: half of the gain may be the replay's own.
    assert off.low < 0.55 < near.low and off.high == near.high


def test_units_wish_for_where_their_own_calls_take_least() -> None:
    found = measured(
        home=trials(HOME_S, io=(0.5, 0.4)), again=trials(AGAIN_S, io=(0.5, 0.4)),
        fast=trials([1.5] * 5, io=(0.1, 0.9)), slow=trials([3.0] * 5, io=(0.9, 0.39)),
    )  # fmt: skip
    # /b would gain 10 ms of 900 ms on "slow": less than 2 % of all I/O, so it stays.
    assert wished_systems(found, [UNIT, OTHER]) == {"/a": "fast", "/b": "disk"}
