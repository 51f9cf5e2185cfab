"""How much a phase does, so that it takes the time that the study aims at: rules without I/O.

A calibration tries small amounts and larger ones until it knows (`next_amount`), then it chooses
(`choose`). There is one measured phase where data is read or written, and several of metadata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiercel.results.validity import SHORT_S

#: No trial does more than this many times what the one before did: a small one tells little of a large one.
GROWTH = 64
#: Trials at most; each is the start of a program or two.
TRIALS = 8
#: No phase may be near to what counts as too short...
ENOUGH_S = 2 * SHORT_S
#: ... unless the longest phase of the run would then take more than so many times what was aimed at.
STRETCH = 4.0
#: Of what may still be written to a storage a run takes at most one in so many parts: runs before it may have
#: left what is not yet freed, and others use the storage, too.
PART_OF_ROOM = 2


@dataclass(frozen=True)
class Trial:
    """What one amount took."""

    amount: int
    longest: float
    """Seconds of the measured phase that takes longest for the amount once."""
    shortest: float
    """Seconds of the measured phase that was over first, whatever it did again included."""
    moving: float
    """Seconds of all phases together, preparing ones included, for the amount once: they grow with it."""
    seconds: float
    """Of all commands of the run: start and end of the programs included."""


@dataclass(frozen=True)
class Limits:
    """What an amount must keep within."""

    aim: float
    """Seconds of a phase."""
    least: int
    most: int
    """What the storage has room for."""
    run_seconds: float = math.inf
    """What a whole run may take."""


@dataclass(frozen=True)
class Choice:
    amount: int
    bound: str
    """phase_time, least, storage or budget."""
    why: str


def choose(trial: Trial, limits: Limits) -> Choice:
    """Return the amount that follows from a trial: a power of two unless it is the least.

    The longest phase comes near to the aim. Where that leaves the shortest below ENOUGH_S, more is done, up
    to STRETCH times the aim.
    """
    aimed = trial.amount * limits.aim / trial.longest
    needed = trial.amount * ENOUGH_S / trial.shortest
    amount = _nearest(aimed)
    if needed > amount:  # rounded up, and yet within the stretch
        amount = max(amount, min(_at_least(needed), _at_most(aimed * STRETCH)))
    bound, why = "phase_time", f"the longest phase takes about {_took(trial, amount):.2g} s"
    # Starting programs takes what it takes; at least a quarter of the time is for what they are started for.
    fixed = max(0.0, trial.seconds - trial.moving)
    left = max(limits.run_seconds - fixed, limits.run_seconds / 4)
    affordable = _at_most(trial.amount * left / trial.moving)
    if amount > affordable:
        amount, bound = affordable, "budget"
        why = f"a run may take {limits.run_seconds:.2g} s of the study's time"
    if amount > limits.most:
        amount, bound, why = limits.most, "storage", "the storage has room for no more"
    if amount < limits.least:
        amount, bound = limits.least, "least"
        why = "less would not be what the study asks for"
    return Choice(amount, bound, why)


def next_amount(trials: Sequence[Trial], limits: Limits) -> int | None:
    """Return the amount to try next, None where the last trial tells enough.

    It does where it was near to what follows from it; but not the first: a slow moment would decide.
    """
    if not trials:
        return min(limits.least, max(1, limits.most))
    last = trials[-1]
    wanted = choose(last, limits).amount
    if wanted == last.amount or len(trials) == TRIALS:
        return None
    if len(trials) > 1 and last.amount <= 2 * wanted and wanted <= 2 * last.amount:
        return None
    return min(wanted, last.amount * GROWTH)


def room(fits: Callable[[int], bool], least: int) -> int:
    """Return the largest power of two that `fits`, 0 where not even `least` does."""
    if not fits(least):
        return 0
    amount = _at_least(least)
    if not fits(amount):
        return least
    while amount < 2**50 and fits(amount * 2):
        amount *= 2
    return amount


def _took(trial: Trial, amount: int) -> float:
    return trial.longest * amount / trial.amount


def _nearest(wanted: float) -> int:
    return int(2 ** max(0, round(math.log2(wanted))))


def _at_least(wanted: float) -> int:
    return int(2 ** max(0, math.ceil(math.log2(wanted))))


def _at_most(wanted: float) -> int:
    return int(2 ** min(60, max(0, math.floor(math.log2(wanted))))) if wanted < math.inf else 2**60
