"""Is what a study claims true, and does it claim what is there? `python -m benchmarks.decisions [--json]`.

Simulated studies with a known truth go through the functions that make the report's comparisons: 16 workloads
(in some cases fewer) on two storages, at two scales, five rounds, with an A/A pair of every workload and
storage at one of the scales. Counted are

* false claims: of two equal storages one is called better; for each comparison, and for each study
  (one false claim among its answers spoils it);
* power: how many of the true differences are claimed, in the right direction (wrong ones count as false);
* coverage: how often the interval of the ratio holds the true one;
* the same: how many are said to be the same within 10 % (of storages that differ by more: a false claim).

`--real`: real studies, on storages whose truth is known (`benchmarks/blind.py`; root, half an hour), and
cold reads where it is known what lies behind the client (`benchmarks/behind.py`; a few minutes; `--behind`:
these alone).

`--looks 3`: each study is measured further twice, as `tiercel evaluate --decide` would, without an end to its
minutes: what is undecided gets the repetitions that are said to decide it, and is judged again.

Noise models (on the logarithm of a rate): log-normal; Student's t with 3 degrees of freedom; one run in ten
three times slower; two modes (30 % of the runs 2.7 times faster: a cache that hits); exponential tails to the
slow side; each with and without variance between placements, the same for all workloads or of every second
one alone; a drift over the study by half; runs of neighbouring times that are like each other.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.behind import run_behind
from benchmarks.blind import run_trials
from tiercel.errors import UserError
from tiercel.statistics.comparison import Comparison, compare_placed, judge
from tiercel.statistics.effort import MOST, repetitions_needed
from tiercel.statistics.kinds import changed, kind
from tiercel.statistics.looks import share
from tiercel.statistics.placements import pair_of, shrunk, together
from tiercel.statistics.ranking import MARGIN, same
from tiercel.statistics.rounds import common
from tiercel.statistics.wander import STEADY, level, wander

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WORKLOADS, OPERATIONS, SCALES = 16, 4, 2


@dataclass(frozen=True)
class Case:
    """What is simulated. `variation` and `placements` are standard deviations, as parts of the rate."""

    noise: str
    variation: float
    placements: float = 0.0
    ratio: float = 1.0
    world: str = "steady"
    """steady; uneven: every second workload alone differs between placements; scales: placements differ twice
    as much at the smaller scale; drift: rates fall by half over the study; wave: runs that are near in time
    are like each other (AR(1) with 0.8 from round to round); load: the same, each storage on its own, by as
    much as its runs vary (AR(1) with 0.5; load-long: 0.8; load-small: 0.8, by half as much); spikes: one
    storage alone is ten times slower in one run of seven; kinds: each workload on each
    storage on its own, by twice as much as its runs vary (0.5); one-kind: only of those of one operation."""
    workloads: int = WORKLOADS


#: Two equal storages.
EQUAL = [
    *(Case(noise, variation, placements)
      for noise in ("log-normal", "t3", "slow tenth", "two modes", "slow tail")
      for variation, placements in ((0.1, 0.0), (0.1, 0.05), (0.1, 0.2), (0.4, 0.1))),
    Case("log-normal", 0.05, 0.2, world="uneven"), Case("two modes", 0.05, 0.03),
    Case("log-normal", 0.1, 0.1, world="scales"), Case("log-normal", 0.05, 0.1, world="scales"),
    Case("log-normal", 0.1, world="drift"), Case("slow tenth", 0.1, world="drift"),
    Case("log-normal", 0.1, world="wave"), Case("log-normal", 0.1, 0.05, world="wave"),
    Case("log-normal", 0.1, world="load"), Case("log-normal", 0.05, world="load"),
    Case("slow tenth", 0.2, world="load"), Case("log-normal", 0.1, world="load-long"),
    Case("log-normal", 0.1, world="load-small"), Case("log-normal", 0.1, world="spikes"),
    Case("log-normal", 0.1, world="kinds"), Case("slow tenth", 0.2, world="kinds"),
    Case("log-normal", 0.1, world="one-kind"),
    *(Case("log-normal", 0.1, world="load", workloads=few) for few in (1, 2, 4, 8)),
]  # fmt: skip
#: One storage is better. The first three are what is aimed at.
DIFFERENT = [
    Case("log-normal", 0.1, ratio=1.25), Case("log-normal", 0.2, ratio=1.5),
    Case("log-normal", 0.4, ratio=2.0), Case("log-normal", 0.2, ratio=1.25),
    Case("t3", 0.2, ratio=1.5), Case("slow tenth", 0.2, ratio=2.0),
    Case("two modes", 0.1, ratio=3.0), Case("slow tail", 0.2, ratio=1.5), Case("log-normal", 0.1, 0.1, 1.5),
    Case("log-normal", 0.1, ratio=1.25, world="drift"), Case("log-normal", 0.1, ratio=1.25, world="wave"),
    Case("log-normal", 0.1, ratio=2.0, world="load"), Case("log-normal", 0.1, ratio=2.0, world="kinds"),
    *(Case("log-normal", 0.1, ratio=1.25, workloads=few) for few in (1, 2, 4, 8)),
]  # fmt: skip


@dataclass(frozen=True)
class Score:
    """What came of a case, in shares; `claimed`: of the comparisons, in the right direction."""

    case: Case
    studies: int
    claimed: float
    same: float
    wrong: float
    studies_wrong: float
    covered: float
    rounds: float
    """Repetitions of a workload, in the mean."""


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description="Simulated studies with a known truth.")
    parser.add_argument("--studies", type=int, default=200, help="of each case")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--looks", type=int, default=1, help="the study itself is the first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--real", action="store_true", help="real studies instead of simulated ones")
    parser.add_argument("--behind", action="store_true", help="of the real ones those of cold reads alone")
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/tmp"), help="on a disk: backing files of the cold reads"
    )
    parser.add_argument("--trials", type=int, help="with --real: at most so many")
    parser.add_argument("--seed", type=int, default=1, help="with --real: of the draws")
    asked = parser.parse_args(arguments)
    if asked.real or asked.behind:
        return real(None if asked.behind else asked.seed, asked.trials, asked.folder, asked.json)
    with ProcessPoolExecutor(asked.jobs) as pool:
        work = partial(score, studies=asked.studies, rounds=asked.rounds, looks=asked.looks)
        scores = list(pool.map(work, [*EQUAL, *DIFFERENT]))
    if asked.json:
        print(json.dumps([asdict(each) for each in scores]))
        return 0
    print(
        f"{'noise':11} {'world':9} of varies  placed  ratio  claimed     same    wrong  wrong studies"
        "  covered  rounds"
    )
    for each in scores:
        c = each.case
        print(
            f"{c.noise:11} {c.world:9} {c.workloads:2} {c.variation:6.0%}  {c.placements:6.0%}"
            f"  {c.ratio:5.2f}"
            f"  {each.claimed:7.1%}  {each.same:7.1%}  {each.wrong:7.2%}  {each.studies_wrong:13.1%}"
            f"  {each.covered:7.1%}  {each.rounds:6.1f}"
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


def score(case: Case, studies: int, rounds: int, looks: int = 1) -> Score:
    """Simulate and judge studies of one case."""
    random = np.random.default_rng([int(v * 1000) for v in (case.variation, case.placements, case.ratio)])
    claimed = alike = wrong = spoilt = covered = ran = 0
    for _ in range(studies):
        verdicts, answers, measured = studied(case, rounds, looks, random)
        right = verdicts.count("higher") if case.ratio > 1 else 0
        equal = verdicts.count("same") if case.ratio <= MARGIN else 0
        false = sum(each != "undecided" for each in verdicts) - right - equal
        claimed, alike, wrong = claimed + right, alike + equal, wrong + false
        spoilt += bool(false)
        covered += sum(each.low <= case.ratio <= each.high for each in answers)
        ran += int(measured.sum())
    whole = studies * case.workloads
    return Score(
        case, studies, claimed / whole, alike / whole, wrong / whole, spoilt / studies, covered / whole,
        ran / whole,
    )  # fmt: skip


def studied(
    case: Case, rounds: int, looks: int, random: np.random.Generator
) -> tuple[list[str], list[Comparison], Ints]:
    """Simulate a study and its further looks; return the verdict of each workload, the last look's
    comparisons, and how many rounds each workload had."""
    rates = simulated(case, rounds + (looks - 1) * MOST, random)
    measured: Ints = np.full(case.workloads, rounds)
    verdicts = ["undecided"] * case.workloads
    for look in range(looks):
        answers = judged(rates, rounds, measured, look)
        left = 0
        for work, each in enumerate(answers):
            found = "same" if same(each.columns()) else each.verdict
            verdicts[work] = found if verdicts[work] == "undecided" else verdicts[work]
            left += verdicts[work] == "undecided"
        for work, each in enumerate(answers):
            if look + 1 < looks and verdicts[work] == "undecided":
                measured[work] += repetitions_needed(each.parts, left, share(look + 1)) or 0
    return verdicts, answers, measured


def judged(
    rates: Floats, planned: int | None = None, measured: Ints | None = None, look: int = 0
) -> list[Comparison]:
    """Return the answers over all scales, one for each workload: what `tables.comparisons` makes of a table,
    without the table (tests/statistics/test_placements.py holds the two against each other).

    `measured`: how many of the rounds each workload has; `planned`: how many of them A/A pairs have."""
    workloads, rounds = len(rates), rates.shape[-1]
    planned = planned or rounds
    if measured is None:
        measured = np.full(workloads, rounds)
    logs = np.log(rates)
    seen = np.where(np.arange(rounds) < measured[:, None], 0.0, np.nan)[:, None, None, :]
    # As plan.paired_scales: each workload's pair on a storage is at one scale, in turn.
    work, storage = np.indices((workloads, 2))
    paired = (work + storage) % SCALES
    twins = np.where(np.arange(rounds) < planned, logs[work, storage, paired, 1], np.nan)
    ran = np.concatenate([(logs[:, :, :, 0] + seen).reshape(-1, rounds), twins.reshape(-1, rounds)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounds that nothing ran in
        shared = common(ran)
    flat = np.exp(logs - shared)
    rows = [
        {"origin": "", "site": "", "study": "", "storage": storage, "layer": "",
         "pairs": [p for p in [pair_of(*flat[work, storage, (work + storage) % SCALES, :, :planned])] if p]}
        for work in range(workloads) for storage in range(2)
    ]  # fmt: skip
    spread = shrunk(rows)
    series = np.log(flat)[:, :, :, 0] + seen
    halves = np.swapaxes(twins - shared, 0, 1)
    series = np.concatenate([np.swapaxes(series, 0, 1).reshape(2, -1, rounds), halves], axis=1)
    whole = wander(*(level(mine, np.arange(len(mine))) for mine in series))
    names = [(work, str(work % OPERATIONS), "") for work in range(workloads)]
    kinds = zip(names, (kind(one, other) for one, other in logs[:, :, :, 0] + seen), strict=True)
    of_kind = changed({name: each for name, each in kinds if each})
    return judge([
        compare_placed(
            [(flat[work, 0, scale, 0, :n], flat[work, 1, scale, 0, :n]) for scale in range(SCALES)],
            together(spread[2 * work], spread[2 * work + 1]),
            [(rates[work, 0, scale, 0, :n], rates[work, 1, scale, 0, :n]) for scale in range(SCALES)],
            max(whole, of_kind.get(names[work], STEADY), key=lambda each: each.variance),
        )
        for work in range(workloads) for n in [measured[work]]
    ], share(look))  # fmt: skip


def simulated(case: Case, rounds: int, random: np.random.Generator) -> Floats:
    """Return rates: workload, storage, scale, twin, round."""
    shape = (case.workloads, 2, SCALES, 2, rounds)
    placed = random.normal(0.0, 1.0, (*shape[:4], 1)) * _log(case.placements)
    if case.world == "uneven":
        placed[::2] = 0.0
    if case.world == "scales":
        placed[:, :, :-1] *= 2.0
    logs = _noise(case, shape, random) + placed
    if case.world == "drift":
        logs += math.log(0.5) * np.linspace(0.0, 1.0, rounds)
    if case.world.startswith("load"):
        size = _log(case.variation) * (0.5 if case.world == "load-small" else 1.0)
        logs += _alike(0.5 if case.world == "load" else 0.8, size, (2, rounds), random)[:, None, None]
    if case.world == "spikes":
        logs[:, 0] -= math.log(10) * (random.random(logs[:, 0].shape) < 1 / 7)
    if case.world in ("kinds", "one-kind"):
        hit = slice(None, None, OPERATIONS if case.world == "one-kind" else 1)
        busy = _alike(0.5, 2 * _log(case.variation), (case.workloads, 2, rounds), random)
        logs[hit] += busy[hit, :, None, None]
    logs[:, 0] += math.log(case.ratio)
    # Workloads differ by orders of magnitude, scales by a factor.
    logs += np.linspace(0.0, 10.0, case.workloads)[:, None, None, None, None]
    logs += np.linspace(0.0, 0.7, SCALES)[None, None, :, None, None]
    rates: Floats = np.exp(logs)
    return rates


def _noise(case: Case, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    spread = _log(case.variation)
    normal = random.normal(0.0, spread, shape)
    if case.world == "wave":  # what all runs of a round share goes on into the next one
        return np.asarray(normal + _alike(0.8, 2 * spread, shape[-1:], random))
    if case.noise == "t3":
        return np.asarray(random.standard_t(3, shape) * spread / math.sqrt(3))
    if case.noise == "slow tenth":
        return np.asarray(normal - math.log(3) * (random.random(shape) < 0.1))
    if case.noise == "two modes":
        return np.asarray(normal + 1.0 * (random.random(shape) < 0.3))
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
