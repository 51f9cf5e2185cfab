"""How much a phase does, so that it takes the time that the study aims at: by hand-computed examples."""

from __future__ import annotations

import pytest

from tiercel.runs.amounts import GROWTH, TRIALS, Limits, Trial, choose, next_amount, room

FREE = Limits(aim=1.0, least=8, most=2**40)


def trial(amount: int, *phases: float, around: float = 0.0) -> Trial:
    """Return what an amount took whose phases all are measured and done once."""
    return Trial(amount, max(phases), min(phases), sum(phases), sum(phases) + around)


@pytest.mark.parametrize(
    ("amount", "phases", "wanted"),
    [
        (8, (0.004,), 2048),  # 8 / 0.004 s = 2,000 a second; the nearest power of two
        (100, (1.0,), 128),  # 100 a second
        (64, (4.0,), 16),  # 16 a second: less than what was tried
        # The slow phase alone would give 100, of which the quick one took 0.02 s; 0.1 s of it are 500, but
        # then the slow one would take 5 s: up to four times the aim are 400, in powers of two 256.
        (100, (1.0, 0.02), 256),
        (100, (1.0, 0.05), 256),  # 0.1 s of the quick one are 200
        (100, (1.0, 0.2), 128),  # long enough: the slow one alone decides
    ],
)
def test_the_amount_follows_from_what_a_trial_took(
    amount: int, phases: tuple[float, ...], wanted: int
) -> None:
    choice = choose(trial(amount, *phases), FREE)
    assert (choice.amount, choice.bound) == (wanted, "phase_time")


def test_what_bounds_it_is_said() -> None:
    took = trial(100, 0.1, around=0.4)  # wants 1,000, so 1,024
    assert choose(took, FREE).amount == 1024
    # Programs start and end in 0.4 s, whatever they do: of 0.9 s 0.5 are left, for 500, in powers of two 256.
    budget = choose(took, Limits(1.0, 8, 2**40, run_seconds=0.9))
    assert (budget.amount, budget.bound) == (256, "budget")
    # Where starting them alone takes longer than a run may, a quarter of that is for the work: 0.075 s, 75.
    slow = choose(took, Limits(1.0, 8, 2**40, run_seconds=0.3))
    assert (slow.amount, slow.bound) == (64, "budget")
    full = choose(took, Limits(1.0, 8, 128, run_seconds=0.9))
    assert (full.amount, full.bound) == (128, "storage")
    # The least wins over time: below it a number would mean something else. It need be no power of two.
    honest = choose(took, Limits(1.0, 3000, 2**40, run_seconds=0.9))
    assert (honest.amount, honest.bound) == (3000, "least")


def test_a_phase_that_is_done_again_asks_for_no_more_items() -> None:
    # 100 creates took 0.5 s; their stats took 1 ms, and were done again until 0.1 s were over.
    took = Trial(100, longest=0.5, shortest=0.1, moving=0.501, seconds=0.7)
    assert choose(took, FREE).amount == 256  # 200 a second


def amounts_tried(rate: float, limits: Limits, start: float = 0.0) -> list[int]:
    """Return what is tried on a storage of so many operations a second, and what is chosen in the end."""
    trials: list[Trial] = []
    while (amount := next_amount(trials, limits)) is not None:
        trials.append(trial(amount, amount / rate, around=start))
    return [*(t.amount for t in trials), choose(trials[-1], limits).amount]


def test_storages_a_thousandfold_apart_get_what_takes_them_as_long() -> None:
    # 100 a second: 8 take 0.08 s; 128 are tried and chosen.
    assert amounts_tried(100, FREE) == [8, 128, 128]
    # 100,000 a second: no trial does more than 64 times the one before; 131,072 take 1.3 s.
    assert amounts_tried(100_000, FREE) == [8, 512, 32768, 131072, 131072]
    assert GROWTH == 64


def test_one_slow_moment_at_the_first_trial_decides_nothing() -> None:
    # It took 0.5 s where 16 take 0.2 ms: another trial of about as much tells.
    assert next_amount([trial(8, 0.5)], FREE) == 16
    assert next_amount([trial(8, 0.5), trial(16, 0.0002)], FREE) == 16 * GROWTH


def test_trials_end() -> None:
    # A storage that is never twice the same.
    trials: list[Trial] = []
    while (amount := next_amount(trials, FREE)) is not None:
        trials.append(trial(amount, 100.0 if len(trials) % 2 else 0.001))
    assert len(trials) == TRIALS
    assert amounts_tried(10**9, Limits(1.0, 8, 4096)) == [8, 512, 4096, 4096]


def test_room_is_the_largest_power_of_two_that_fits() -> None:
    assert room(lambda amount: amount <= 1000, 8) == 512
    assert room(lambda amount: amount <= 1000, 900) == 900  # the least is what the study says
    assert room(lambda amount: amount <= 1000, 1001) == 0
