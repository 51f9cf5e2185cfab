"""Is what a study claims true, and does it claim what is there? `python -m benchmarks.decisions [--json]`.

Simulated studies with a known truth go through the method of a study's comparisons (docs/method.md):
workloads on two storages, at one or two scales, with a replicate of every workload and storage at one of the
scales. Counted are

* false studies: of two equal storages one is called better, in at least one comparison;
* power: how many of the true differences are claimed, in the right direction;
* coverage: how often the interval of the ratio contains the true one;
* the same: how many are said to be the same within 10 %.

`--real`: real studies, on storages whose truth is known (`benchmarks/blind.py`; root, half an hour), and cold
reads where it is known what lies behind the client (`benchmarks/behind.py`; minutes; `--behind`: only these).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.behind import run_behind
from benchmarks.blind import run_trials
from tiercel.errors import UserError
from tiercel.statistics.decide import Facts, share, verdicts
from tiercel.statistics.model import Shape, contrast, fit, stack_drift
from tiercel.statistics.verdict import Outcome, Verdict

Floats = npt.NDArray[np.float64]
OPERATIONS = 4
#: Studies that are judged at once.
TOGETHER = 50


@dataclass(frozen=True)
class Case:
    """What is simulated. `variation` and `layout` are standard deviations, as parts of the rate."""

    noise: str = "log-normal"
    """log-normal; t3: Student's t; slow tenth: one run in ten three times slower; two modes: 30 % of the runs
    2.7 times faster; slow tail: exponential; unequal: workloads differ in their variation by factors."""
    variation: float = 0.1
    layout: float = 0.0
    ratio: float = 1.0
    world: str = "steady"
    """
    steady
    uneven: only every second workload differs between layout sessions
    rare-slow: one layout session in twenty is twice as slow
    drift: rates fall by half over the study
    load: each storage changes on its own as much as its runs vary (AR(1) with 0.5; load-long: 0.8;
    load-small: 0.8, by half as much)
    kinds: each workload on each storage does; one-kind: those of one operation
    spikes: one storage is ten times slower in one run of seven
    step: one workload on one storage is twice as fast in the first rounds
    credits-storage, credits-workload: the first rounds on one storage are four times faster, of all
    workloads or of one
    """
    workloads: int = 16
    scales: int = 1
    rounds: int = 5
    differing: int = 0
    """How many workloads differ by `ratio`; 0: all."""


def cases() -> Iterator[Case]:
    yield from equal()
    yield from different()


def equal() -> Iterator[Case]:
    for rounds in (4, 5):
        for workloads in (1, 16, 150):
            for noise in ("log-normal", "t3", "slow tenth", "two modes", "slow tail", "unequal"):
                yield Case(noise, workloads=workloads, rounds=rounds)
            yield Case(variation=0.2, workloads=workloads, rounds=rounds)
            yield Case(world="rare-slow", workloads=workloads, rounds=rounds)
            yield Case(layout=0.1, workloads=workloads, rounds=rounds)
    for scales in (1, 2):
        for workloads in (4, 16):
            yield Case(variation=0.05, layout=0.2, world="uneven", workloads=workloads, scales=scales)
            for world in (
                "drift",
                "load",
                "load-long",
                "load-small",
                "kinds",
                "one-kind",
                "spikes",
                "rare-slow",
            ):
                yield Case(world=world, workloads=workloads, scales=scales)
        for rounds in (4, 5, 10):
            for world in ("credits-storage", "credits-workload"):
                yield Case(world=world, scales=scales, rounds=rounds)
    for world in ("step", "credits-workload"):
        for workloads in (1, 4, 16):
            yield Case(variation=0.2, world=world, workloads=workloads)


def different() -> Iterator[Case]:
    for rounds in (3, 4, 5):
        for ratio in (2.0, 4.0):
            for workloads, differing in ((1, 1), (16, 1), (16, 0), (150, 1)):
                yield Case("log-normal", 0.2, 0.0, ratio, "steady", workloads, 1, rounds, differing)
    for noise, variation, ratio in (
        ("log-normal", 0.1, 1.25), ("log-normal", 0.2, 1.5), ("log-normal", 0.4, 2.0), ("t3", 0.2, 1.5),
        ("slow tenth", 0.2, 2.0), ("two modes", 0.1, 3.0), ("slow tail", 0.2, 1.5),
    ):  # fmt: skip
        yield Case(noise, variation, ratio=ratio, scales=2)
    yield Case(layout=0.1, ratio=1.5, scales=2)
    for world in ("load", "kinds"):
        yield Case(ratio=2.0, world=world, scales=2)


@dataclass(frozen=True)
class Score:
    """What came of a case, in shares."""

    case: Case
    studies: int
    power: float | None
    """Of the comparisons that truly differ; None where none does."""
    same: float
    false_studies: float
    covered: float


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description="Simulated studies with a known truth.")
    parser.add_argument("--studies", type=int, default=400, help="of each case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--real", action="store_true", help="real studies instead of simulated ones")
    parser.add_argument("--behind", action="store_true", help="of the real ones only those of cold reads")
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/tmp"), help="on a disk: backing files of the cold reads"
    )
    parser.add_argument("--trials", type=int, help="with --real: at most so many")
    parser.add_argument("--seed", type=int, default=1, help="with --real: of the draws")
    asked = parser.parse_args(arguments)
    if asked.real or asked.behind:
        return real(None if asked.behind else asked.seed, asked.trials, asked.folder, asked.json)
    with ProcessPoolExecutor(asked.jobs) as pool:
        scores = list(pool.map(partial(score, studies=asked.studies), cases()))
    if asked.json:
        print(json.dumps([asdict(each) for each in scores]))
        return 0
    print(
        "noise       world            family scales rounds varies layout ratio differ  power   same"
        "  false  covered"
    )
    for each in scores:
        c = each.case
        power = "     -" if each.power is None else f"{each.power:6.1%}"
        print(
            f"{c.noise:11} {c.world:16} {c.workloads:6} {c.scales:6} {c.rounds:6} {c.variation:6.0%}"
            f" {c.layout:6.0%} {c.ratio:5.2f} {c.differing or c.workloads:6} {power} {each.same:6.1%}"
            f" {each.false_studies:6.1%} {each.covered:8.1%}"
        )
    return 0


def real(seed: int | None, most: int | None, folder: Path, as_json: bool) -> int:
    """Carry out real trials and print what came of them; 1 where an answer is wrong.

    Without a `seed` those of cold reads alone, whose backing files lie in `folder`.
    """
    try:
        seen = run_behind(folder)
        found = [] if seed is None else run_trials(seed, most)
    except UserError as error:
        print(f"benchmarks.decisions: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps({"behind": [asdict(each) for each in seen], "studies": [asdict(a) for a in found]}))
    elif found:
        print("true  varies  disturbed  answers  right  wrong  none  flagged")
        for trial in sorted(
            {each.trial for each in found}, key=lambda t: (t.ratio, t.variation, t.disturbed)
        ):
            mine = [each for each in found if each.trial == trial]
            counts = [sum(each.verdict == word for each in mine) for word in ("right", "wrong", "none")]
            flagged = sum(each.flagged for each in mine)
            print(
                f"{trial.ratio:4.2f}  {trial.variation:6.0%}  {trial.disturbed or 'no':9}"
                f"  {len(mine):7}  {counts[0]:5}  {counts[1]:5}  {counts[2]:4}  {flagged:7}"
            )
    return int(any(each.verdict == "wrong" for each in [*seen, *found]))


def score(case: Case, studies: int) -> Score:
    """Simulate and judge studies of one case."""
    random = np.random.default_rng([case.workloads, case.rounds, int(1000 * case.variation)])
    differing = case.differing or case.workloads
    truth = np.where(np.arange(case.workloads) < differing, math.log(case.ratio), 0.0)
    claimed = alike = false = covered = 0
    for done in range(0, studies, TOGETHER):
        count = min(TOGETHER, studies - done)
        found = judged(simulated(case, count, random))
        ahead = np.array([(v.outcome is Outcome.BETTER) - (v.outcome is Outcome.WORSE) for v in found])
        ahead = ahead.reshape(count, case.workloads)
        right = (ahead != 0) & (ahead == np.sign(truth))
        claimed += int(right.sum())
        alike += sum(v.outcome is Outcome.SAME for v in found)
        false += int(((ahead != 0) & ~right).any(axis=1).sum())
        ratios = np.tile(np.exp(truth), count)
        covered += sum(v.low <= ratio <= v.high for v, ratio in zip(found, ratios, strict=True))
    whole = studies * case.workloads
    power = None if case.ratio == 1 else claimed / (studies * differing)
    return Score(case, studies, power, alike / whole, false / studies, float(covered / whole))


def judged(logs: Floats) -> list[Verdict]:
    """Return one answer for each study and workload, over all scales, as `tables.comparisons` does.

    `logs`: study, workload, storage, scale, replicate, round.
    """
    studies, workloads = logs.shape[:2]
    work, storage = (each.reshape(-1) for each in np.indices((workloads, 2)))
    cells = logs.reshape(studies, 2 * workloads, *logs.shape[3:])
    made = fit(cells, Shape(storage, work % OPERATIONS, work))
    first = 2 * np.arange(workloads)
    found = contrast(made, first, first + 1, [part[..., None] for part in stack_drift(made, 0, 1)])
    nothing = np.zeros(studies * workloads)
    families = np.repeat(np.arange(studies), workloads).tolist()
    return verdicts(found.flat(), Facts(nothing, nothing), families, share(0))


def simulated(case: Case, studies: int, random: np.random.Generator) -> Floats:
    """Return logarithms of rates: study, workload, storage, scale, replicate, round."""
    shape = (studies, case.workloads, 2, case.scales, 2, case.rounds)
    spread = _log(case.variation)
    placed = random.normal(0.0, 1.0, (*shape[:-1], 1)) * _log(case.layout)
    if case.world == "uneven":
        placed[:, ::2] = 0.0
    if case.world == "rare-slow":
        placed -= math.log(2) * (random.random(placed.shape) < 0.05)
    logs = _noise(case, shape, random) + placed
    if case.world == "drift":
        logs += math.log(0.5) * np.linspace(0.0, 1.0, case.rounds)
    if case.world.startswith("load"):
        size = spread * (0.5 if case.world == "load-small" else 1.0)
        logs += _alike(0.5 if case.world == "load" else 0.8, size, (studies, 1, 2, 1, 1, case.rounds), random)
    if case.world == "spikes":
        logs[:, :, 0] -= math.log(10) * (random.random(logs[:, :, 0].shape) < 1 / 7)
    if case.world in ("kinds", "one-kind"):
        hit = slice(None, None, OPERATIONS if case.world == "one-kind" else 1)
        busy = _alike(0.5, 2 * spread, (studies, case.workloads, 2, 1, 1, case.rounds), random)
        logs[:, hit] += busy[:, hit]
    if case.world.startswith("credits") or case.world == "step":
        until = random.integers(1, case.rounds, (studies, 1, 1, 1, 1))
        fast = math.log(2 if case.world == "step" else 4) * (np.arange(case.rounds) < until)
        logs[:, : None if case.world == "credits-storage" else 1, 0] += fast
    logs[:, : case.differing or None, 0] += math.log(case.ratio)
    logs += np.linspace(0.0, 10.0, case.workloads)[:, None, None, None, None]
    logs += np.linspace(0.0, 0.7, case.scales)[:, None, None]
    # As plan.paired_scales: the replicate of each workload and storage is at one scale, in turn.
    work, storage, scale = np.indices(shape[1:4])
    logs[:, :, :, :, 1][:, (work + storage) % case.scales != scale] = math.nan
    return np.asarray(logs)


def _noise(case: Case, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    spread = _log(case.variation)
    normal = random.normal(0.0, spread, shape)
    if case.noise == "t3":
        return np.asarray(random.standard_t(3, shape) * spread / math.sqrt(3))
    if case.noise == "slow tenth":
        return np.asarray(normal - math.log(3) * (random.random(shape) < 0.1))
    if case.noise == "two modes":
        return np.asarray(normal + 1.0 * (random.random(shape) < 0.3))
    if case.noise == "unequal":
        return np.asarray(normal * np.exp(random.normal(0.0, 0.7, (*shape[:3], 1, 1, 1))))
    return np.asarray(-random.exponential(spread, shape)) if case.noise == "slow tail" else normal


def _alike(correlation: float, spread: float, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return rows of normal values in which each is like the one before (AR(1))."""
    made = random.normal(0.0, spread, shape)
    for number in range(1, shape[-1]):
        made[..., number] = (
            correlation * made[..., number - 1] + math.sqrt(1 - correlation**2) * made[..., number]
        )
    return np.asarray(made)


def _log(variation: float) -> float:
    """Return the standard deviation of logarithms of a log-normal rate that varies by this part."""
    return math.sqrt(math.log(1 + variation**2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
