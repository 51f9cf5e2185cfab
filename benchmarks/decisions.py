"""Is what a study claims true, and does it claim what is there? `python -m benchmarks.decisions [--json]`.

Simulated studies with a known truth go through the functions that make the report's comparisons: 16 workloads
on two storages, at two scales, five rounds, with an A/A pair of every workload and storage at the larger
scale. Counted are

* false claims: of two equal storages one is called better; for each comparison, and for each study
  (one false claim among its 16 spoils it);
* power: how many of the true differences are claimed, in the right direction (wrong ones count as false);
* coverage: how often the interval of the ratio holds the true one.

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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tiercel.statistics.comparison import Comparison, compare_placed, judge
from tiercel.statistics.placements import pair_of, shrunk, together
from tiercel.statistics.rounds import common

Floats = npt.NDArray[np.float64]
WORKLOADS, SCALES = 16, 2


@dataclass(frozen=True)
class Case:
    """What is simulated. `variation` and `placements` are standard deviations, as parts of the rate."""

    noise: str
    variation: float
    placements: float = 0.0
    ratio: float = 1.0
    world: str = "steady"
    """steady; uneven: every second workload alone differs between placements; drift: rates fall by half over
    the study; wave: runs that are near in time are like each other (AR(1) with 0.8 from round to round)."""


#: Two equal storages.
EQUAL = [
    *(Case(noise, variation, placements)
      for noise in ("log-normal", "t3", "slow tenth", "two modes", "slow tail")
      for variation, placements in ((0.1, 0.0), (0.1, 0.05), (0.1, 0.2), (0.4, 0.1))),
    Case("log-normal", 0.05, 0.2, world="uneven"), Case("two modes", 0.05, 0.03),
    Case("log-normal", 0.1, world="drift"), Case("slow tenth", 0.1, world="drift"),
    Case("log-normal", 0.1, world="wave"), Case("log-normal", 0.1, 0.05, world="wave"),
]  # fmt: skip
#: One storage is better. The first three are what is aimed at.
DIFFERENT = [
    Case("log-normal", 0.1, ratio=1.25), Case("log-normal", 0.2, ratio=1.5),
    Case("log-normal", 0.4, ratio=2.0), Case("log-normal", 0.2, ratio=1.25),
    Case("t3", 0.2, ratio=1.5), Case("slow tenth", 0.2, ratio=2.0),
    Case("two modes", 0.1, ratio=3.0), Case("slow tail", 0.2, ratio=1.5), Case("log-normal", 0.1, 0.1, 1.5),
    Case("log-normal", 0.1, ratio=1.25, world="drift"), Case("log-normal", 0.1, ratio=1.25, world="wave"),
]  # fmt: skip


@dataclass(frozen=True)
class Score:
    """What came of a case, in shares; `claimed`: of the comparisons, in the right direction."""

    case: Case
    studies: int
    claimed: float
    wrong: float
    studies_wrong: float
    covered: float


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description="Simulated studies with a known truth.")
    parser.add_argument("--studies", type=int, default=200, help="of each case")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    with ProcessPoolExecutor(asked.jobs) as pool:
        work = partial(score, studies=asked.studies, rounds=asked.rounds)
        scores = list(pool.map(work, [*EQUAL, *DIFFERENT]))
    if asked.json:
        print(json.dumps([asdict(each) for each in scores]))
        return 0
    print(f"{'noise':11} {'world':7} varies  placed  ratio  claimed    wrong  wrong studies  covered")
    for each in scores:
        c = each.case
        print(
            f"{c.noise:11} {c.world:7} {c.variation:6.0%}  {c.placements:6.0%}  {c.ratio:5.2f}"
            f"  {each.claimed:7.1%}  {each.wrong:7.2%}  {each.studies_wrong:13.1%}  {each.covered:7.1%}"
        )
    return 0


def score(case: Case, studies: int, rounds: int) -> Score:
    """Simulate and judge studies of one case."""
    random = np.random.default_rng([int(v * 1000) for v in (case.variation, case.placements, case.ratio)])
    claimed = wrong = spoilt = covered = 0
    for _ in range(studies):
        answers = judged(simulated(case, rounds, random))
        right = sum(each.verdict == "higher" for each in answers) if case.ratio > 1 else 0
        false = sum(each.verdict != "undecided" for each in answers) - right
        claimed, wrong, spoilt = claimed + right, wrong + false, spoilt + bool(false)
        covered += sum(each.low <= case.ratio <= each.high for each in answers)
    whole = studies * WORKLOADS
    return Score(case, studies, claimed / whole, wrong / whole, spoilt / studies, covered / whole)


def judged(rates: Floats) -> list[Comparison]:
    """Return the answers over all scales, one for each workload: what `tables.comparisons` makes of a table,
    without the table (tests/statistics/test_placements.py holds the two against each other)."""
    logs, rounds = np.log(rates), rates.shape[-1]
    ran = np.concatenate([logs[:, :, :, 0].reshape(-1, rounds), logs[:, :, -1, 1].reshape(-1, rounds)])
    flat = np.exp(logs - common(ran))
    rows = [
        {"origin": "", "site": "", "study": "", "storage": storage, "layer": "",
         "pairs": [p for p in [pair_of(flat[work, storage, -1, 0], flat[work, storage, -1, 1])] if p]}
        for work in range(WORKLOADS) for storage in range(2)
    ]  # fmt: skip
    spread = shrunk(rows)
    return judge([
        compare_placed(
            [(flat[work, 0, scale, 0], flat[work, 1, scale, 0]) for scale in range(SCALES)],
            together(spread[2 * work], spread[2 * work + 1]),
            [(rates[work, 0, scale, 0], rates[work, 1, scale, 0]) for scale in range(SCALES)],
        )
        for work in range(WORKLOADS)
    ])  # fmt: skip


def simulated(case: Case, rounds: int, random: np.random.Generator) -> Floats:
    """Return rates: workload, storage, scale, twin, round."""
    shape = (WORKLOADS, 2, SCALES, 2, rounds)
    placed = random.normal(0.0, 1.0, (*shape[:4], 1)) * _log(case.placements)
    if case.world == "uneven":
        placed[::2] = 0.0
    logs = _noise(case, shape, random) + placed
    if case.world == "drift":
        logs += math.log(0.5) * np.linspace(0.0, 1.0, rounds)
    logs[:, 0] += math.log(case.ratio)
    # Workloads differ by orders of magnitude, scales by a factor.
    logs += np.linspace(0.0, 10.0, WORKLOADS)[:, None, None, None, None]
    logs += np.linspace(0.0, 0.7, SCALES)[None, None, :, None, None]
    rates: Floats = np.exp(logs)
    return rates


def _noise(case: Case, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    spread = _log(case.variation)
    normal = random.normal(0.0, spread, shape)
    if case.world == "wave":  # what all runs of a round share goes on into the next one
        shared = np.zeros(shape[-1])
        for number in range(shape[-1]):
            before = shared[number - 1] if number else random.normal(0.0, 2 * spread)
            shared[number] = 0.8 * before + 0.6 * random.normal(0.0, 2 * spread)
        return np.asarray(normal + shared)
    if case.noise == "t3":
        return np.asarray(random.standard_t(3, shape) * spread / math.sqrt(3))
    if case.noise == "slow tenth":
        return np.asarray(normal - math.log(3) * (random.random(shape) < 0.1))
    if case.noise == "two modes":
        return np.asarray(normal + 1.0 * (random.random(shape) < 0.3))
    return np.asarray(-random.exponential(spread, shape)) if case.noise == "slow tail" else normal


def _log(variation: float) -> float:
    """Return the standard deviation of logarithms of a log-normal rate that varies by this part."""
    return math.sqrt(math.log(1 + variation**2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
