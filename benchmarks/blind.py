"""Real studies on storages whose truth is known: `python -m benchmarks.decisions --real` (as root).

Two file systems on loop devices whose images lie in memory, so that the kernel's throttle (blkio, cgroup v1)
alone decides how fast they are. A trial draws a truth (equal, or one of them faster by 1.1, 1.25, 1.5 or 2),
which side the faster one is, and a weather: each device's limit changes every second, by log-normal factors
of its own. A disturbance may come to it (`benchmarks/disturbances.py`): another program burns the processors
and the memory in half of the time; another program writes to one of the devices in half of the rounds; or
processes share a session on one of them, in half of the rounds, beside a program that burns. `tiercel
evaluate` measures it as it measures anything, knows nothing of the draw, and its answers are counted: right,
wrong, or none.

Right is a claim in the true direction, or "the same" of what differs by no more than the margin. Wrong is
every other claim. Flagged are answers of which a number carries a flag that warns (loaded-machine), or that
say that a storage changed from round to round.

The throttle lets a tenth of a second's bytes pass at once, so a phase takes half a second at least; ratios
come out a little off the truth, which the intervals are not held to.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.disturbances import burning, sessions_shared, writer_beside
from benchmarks.project import make_project
from tiercel.errors import UserError
from tiercel.report.data import Results, overall
from tiercel.results.validity import FLAGS
from tiercel.statistics.ranking import same
from tiercel.statistics.verdict import MARGIN
from tiercel.study.load import load_study

_CGROUPS = Path("/sys/fs/cgroup/blkio")
#: What the slower device is limited to (B/s).
RATE = 100e6
#: How often the weather changes (s).
GUST = 1.0
_IMAGE = 256 << 20
_ROUNDS = 5

_SITE = """
site: local
launcher: fork
processes_per_node: 2
storages:
  one: {{type: ext4, mount: "{one}", scratch: "{one}/scratch", medium: disk}}
  two: {{type: ext4, mount: "{two}", scratch: "{two}/scratch", medium: disk}}
"""
_STUDY = """
study: trial
title: Two storages
repetitions: {{minimum: {rounds}, maximum: {rounds}}}
experiments:
  data:
    processes_per_node: [1, 2]
    workloads:
      write: &data {{operation: write, transfer_size: 1MiB, data_per_node: 48MiB, direct: true}}
      random-read: {{<<: *data, operation: read, pattern: random}}
"""


@dataclass(frozen=True, order=True)
class Trial:
    """A truth. `variation`: of the limits."""

    ratio: float
    variation: float = 0.0
    disturbed: str = ""
    """processor, writer or sessions: what comes in the way."""


TRIALS = (
    *[Trial(1.0)] * 3, *[Trial(1.0, 0.2)] * 4, *[Trial(1.0, 0.4)] * 3, *[Trial(1.0, 0.1, "processor")] * 3,
    *[Trial(1.1, 0.1)] * 2, *[Trial(1.25, 0.1)] * 3, *[Trial(1.5, 0.2)] * 3, *[Trial(2.0, 0.4)] * 3,
    *[Trial(1.0, 0.1, "writer")] * 3, Trial(2.0, 0.1, "writer"), *[Trial(1.0, 0.1, "sessions")] * 2,
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a study said of one workload. `ratio`, `low`, `high`: of the faster device to the other."""

    trial: Trial
    workload: str
    verdict: str
    """right, wrong or none."""
    ratio: float
    low: float
    high: float
    flagged: bool


def run_trials(seed: int, most: int | None = None) -> list[Answer]:
    """Carry out the trials in random order, at most so many; each answer is told on stderr as it comes."""
    if os.geteuid() != 0 or not _CGROUPS.is_dir():
        raise UserError("real trials need root and cgroup v1's blkio")
    draw = random.Random(seed)
    trials = list(TRIALS)
    draw.shuffle(trials)
    found: list[Answer] = []
    for number, trial in enumerate(trials[:most], 1):
        for each in _answers(trial, draw):
            found.append(each)
            print(
                f"{number:2}/{len(trials[:most])}  true {trial.ratio:4.2f}  varies {trial.variation:4.0%}  "
                f"{trial.disturbed:9}  {each.workload:11}  {each.verdict:5}  "
                f"{each.ratio:.2f} ({each.low:.2f} to {each.high:.2f}){'  flagged' if each.flagged else ''}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    return found


def _answers(trial: Trial, draw: random.Random) -> list[Answer]:
    faster = draw.choice(["one", "two"])
    with tempfile.TemporaryDirectory(prefix="tiercel-blind-", dir="/dev/shm") as name, ExitStack() as stack:
        root = Path(name)
        mounts = {
            side: stack.enter_context(mounted(root / f"{side}.image", root / side)) for side in ("one", "two")
        }
        group = stack.enter_context(throttled_group(root.name))
        rates = {
            path.stat().st_dev: RATE * (trial.ratio if side == faster else 1.0)
            for side, path in mounts.items()
        }
        stack.enter_context(_weather(group, rates, trial.variation, draw.random()))
        environment: Mapping[str, str] = {}
        if trial.disturbed in ("writer", "sessions"):
            come = writer_beside if trial.disturbed == "writer" else sessions_shared
            hit, rounds = mounts[draw.choice(["one", "two"])], draw.sample(range(_ROUNDS), _ROUNDS // 2)
            environment = come(root / "disturbance", hit, rounds)
        if trial.disturbed in ("processor", "sessions"):
            stack.enter_context(burning(draw.random()))
        project = make_project(root / "project", _SITE.format(**mounts), _STUDY.format(rounds=_ROUNDS))
        command = [sys.executable, "-m", "tiercel", "evaluate", "--study", "trial"]

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            command, cwd=project, env={**os.environ, **environment}, preexec_fn=enter, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if environment and not (root / "disturbance" / "log").exists():
            raise UserError("a disturbance never came")
        if done.returncode:
            raise UserError(f"a trial failed: {done.stderr.strip() or done.stdout.strip()}")
        results = Results.from_folder(project / "results" / "local", load_study("trial", project), FLAGS)
        return [_answer(trial, faster, row, results) for row in overall(results)]


def _answer(trial: Trial, faster: str, row: dict[str, object], results: Results) -> Answer:
    turned = row["stack_a"] != faster
    low, ratio, high = (float(str(row[name])) for name in ("low", "ratio", "high"))
    if turned:
        low, ratio, high = 1 / high, 1 / ratio, 1 / low
    claim = {"higher": "lower", "lower": "higher"}.get(str(row["verdict"]), "") if turned else row["verdict"]
    verdict = "none"
    if same(row):
        verdict = "right" if trial.ratio <= MARGIN else "wrong"
    elif claim in ("higher", "lower"):
        verdict = "right" if trial.ratio > 1 and claim == "higher" else "wrong"
    numbers = [n for n in results.numbers if n.workload == row["workload"]]
    flagged = any(flag.severity != "info" for n in numbers for flag in n.flags.values())
    flagged |= str(row["reason"]).startswith("one of the two changed")
    return Answer(trial, str(row["workload"]), verdict, ratio, low, high, flagged)


@contextmanager
def mounted(image: Path, mount: Path) -> Iterator[Path]:
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(_IMAGE)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        (mount / "scratch").mkdir()
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


@contextmanager
def throttled_group(name: str) -> Iterator[Path]:
    group = _CGROUPS / name
    group.mkdir()
    try:
        yield group
    finally:
        for _ in range(50):  # its processes may be on their way out
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


@contextmanager
def _weather(group: Path, rates: dict[int, float], variation: float, seed: float) -> Iterator[None]:
    """Limit the devices to their rates, times a factor that changes with each gust."""
    draw, spread = random.Random(seed), math.sqrt(math.log(1 + variation**2))
    over = threading.Event()

    def blow() -> None:
        while True:
            for device, rate in rates.items():
                limit = (
                    f"{os.major(device)}:{os.minor(device)} {int(rate * math.exp(draw.gauss(0.0, spread)))}"
                )
                for way in ("read", "write"):
                    (group / f"blkio.throttle.{way}_bps_device").write_text(limit)
            if not variation or over.wait(GUST):
                return

    blow_once = threading.Thread(target=blow)
    blow_once.start()
    if not variation:
        blow_once.join()
    try:
        yield
    finally:
        over.set()
        blow_once.join()
