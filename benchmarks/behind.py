"""Real cold reads where it is known what lies behind the client: `python -m benchmarks.decisions --real`.

Each trial is a study by `tiercel evaluate` on one file system (root). Wrong is a flag where there is no cache
behind, or a share that is off by more than a fifth; none: that of some reads nothing could be told.

A virtual machine's disk may lie in its host's memory. Where pages of a backing file come from it as fast as
from memory, past this machine's page cache, that is a cache behind: what no loop device keeps, the host does.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loops import forget, loop_mounted, missing, page_time, remember
from benchmarks.project import make_project
from tiercel.errors import UserError
from tiercel.results.observations import load_observations
from tiercel.results.validity import AS_MEMORY, CACHE_BEHIND

#: Off the truth by more is wrong: 256 touches, on a busy machine.
TOLERANCE = 0.2
_SIZE = 384 << 20
_SITE = """
site: local
launcher: fork
processes_per_node: 2
storages:
  one: {{type: {type}, mount: "{mount}", scratch: "{mount}/scratch", medium: {medium}}}
"""
_STUDY = """
study: trial
title: A cold read
repetitions: {{minimum: 3, maximum: 3}}
twins: false
experiments:
  data:
    processes_per_node: [2]
    workloads:
      read: {{operation: read, transfer_size: 1MiB, data_per_node: 96MiB{rest}}}
"""


@dataclass(frozen=True)
class Trial:
    name: str
    share: float | None
    """Of the reads that come from a cache behind; None: there is none."""
    direct: bool = False
    memory: bool = False
    """The backing file lies on tmpfs: memory is the medium."""
    keeps: Callable[[Path], None] | None = None
    """What the cache behind does with a backing file while the data rests."""


def _half(image: Path) -> None:
    forget(image, 2)
    remember(image, 2)


TRIALS = (
    Trial("warm cache behind", 1.0),
    Trial("no cache behind", None, direct=True),
    Trial("cache behind forgot", 0.0, keeps=forget),
    Trial("cache behind forgot half", 0.5, keeps=_half),
    Trial("medium is memory", None, memory=True),
)


@dataclass(frozen=True)
class Seen:
    """What a study said of one trial; `shares` of the repetitions, None where nothing could be told."""

    trial: str
    truth: float | None
    shares: list[float | None]
    flagged: int
    verdict: str
    """right, wrong, or none."""


def run_behind(folder: Path) -> list[Seen]:
    """Carry out the trials, with backing files in `folder`, which is on a disk; each is told on stderr."""
    if why := missing():
        raise UserError(f"real trials of caches behind the client: {why}")
    found = []
    for trial in TRIALS:
        found.append(each := _seen(trial, folder))
        told = ", ".join("none" if s is None else f"{s:.0%}" for s in each.shares)
        truth = "none" if each.truth is None else f"{each.truth:.0%}"
        print(
            f"{each.trial:25} true {truth:5} seen {told}; {each.flagged} flagged; "
            f"{each.verdict}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return found


def _seen(trial: Trial, folder: Path) -> Seen:
    place = Path("/dev/shm") if trial.memory else folder
    with ExitStack() as stack:
        made = [
            stack.enter_context(tempfile.TemporaryDirectory(prefix="tiercel-behind-", dir=where))
            for where in (place, folder)
        ]
        root, image = Path(made[1]), Path(made[0]) / "image"
        mount = stack.enter_context(loop_mounted(image, Path(made[0]) / "mount", _SIZE, direct=trial.direct))
        if trial.keeps:
            stack.enter_context(_over_and_over(trial.keeps, image))
        project = make_project(
            root / "project",
            _SITE.format(type="ext4", mount=mount, medium="disk"),
            _STUDY.format(rest=", rest: 5s" if trial.keeps else ""),
        )
        command = [sys.executable, "-m", "tiercel", "evaluate", "--study", "trial"]
        truth = trial.share
        if trial.direct and page_time(image) < AS_MEMORY:
            truth = 1.0
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"a trial failed: {done.stderr.strip() or done.stdout.strip()}")
        rows = load_observations(project / "results" / "local")
    rows = rows[rows["role"] == "measured"]
    shares = [None if math.isnan(share) else float(share) for share in rows["behind_share"].astype(float)]
    flagged = sum(CACHE_BEHIND in flags for flags in rows["flags"])
    return Seen(trial.name, truth, shares, flagged, _verdict(truth, shares, flagged))


def _verdict(truth: float | None, shares: list[float | None], flagged: int) -> str:
    if truth is None:
        return "wrong" if flagged else "right"
    told = [share for share in shares if share is not None]
    expected = len(told) if truth >= TOLERANCE else 0
    if flagged != expected or any(abs(share - truth) > TOLERANCE for share in told):
        return "wrong"
    return "right" if len(told) == len(shares) else "none"


@contextmanager
def _over_and_over(keep: Callable[[Path], None], image: Path) -> Iterator[None]:
    """Do it once while each batch of data rests: every two seconds, the reads come after five."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(2.0):
            keep(image)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
