"""``tiercel share bench``: what the layer costs, and whether it shares as the policy says.

Everything is a ratio of things measured beside each other, in interleaved rounds: the speed of a shared
machine is nobody's property.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.layers.fairshare.server import memory_folder, running_server
from tiercel.sharing.contest_runs import deviations, place_of, run_contest, summary
from tiercel.sharing.contests import contests
from tiercel.sharing.jobs import Load, run_jobs

#: Of the file that the solo jobs write and read, bytes: what the limit stores, too.
FILE_SIZE = 10 << 20
#: Turns in which limit and layer are measured within a round.
TURNS = 3
#: What the layer is held to: part of the limit's throughput, multiple of its latency.
TARGETS = {"throughput_ratio": 0.70, "read_ratio": 0.70, "latency_ratio": 3.0}


def bench(
    rounds: int = 2,
    seconds: float = 2.0,
    data: Path | None = None,
    parallel: int = 1,
) -> dict[str, Any]:
    """Measure and return one document; all times in seconds, rates in bytes per second.

    `data`: the folder under test (default: in memory, where the layer's own cost shows most).
    """  # fmt: skip
    programs = required_programs()
    place = data or memory_folder()
    if place is None or not place.is_dir():
        raise UserError(f"{data or '/dev/shm'}: not a folder that can be written to; give --data")
    folder = Path(tempfile.mkdtemp(prefix="tiercel-share-", dir=place))
    try:
        return _bench(programs, folder, rounds, seconds, parallel)
    except RunFailed as error:
        raise UserError(f"share bench: {error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bench(programs: Programs, folder: Path, rounds: int, seconds: float, parallel: int) -> dict[str, Any]:
    solo: dict[str, list[float]] = {}
    shared: dict[str, list[dict[str, Any]]] = {}
    listed = contests()
    for number in range(rounds):
        for name, seen in _costs(programs, folder / f"solo{number}", seconds / 4, parallel).items():
            solo.setdefault(name, []).append(seen)
        for contest in listed if number % 2 == 0 else listed[::-1]:
            place = folder / f"{number}-{contest.name.replace(' ', '-').replace(':', '-')}"
            result = run_contest(programs, place, contest, seconds, parallel)
            shared.setdefault(contest.name, []).append(result)
            shutil.rmtree(place, ignore_errors=True)
    sharing = [summary(contest, shared[contest.name]) for contest in listed]
    return {
        "measured": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "rounds": rounds,
        "parallel": parallel,
        "solo": _solo(solo),
        "sharing": sharing,
        "deviations": deviations(sharing),
    }


def _solo(seen: dict[str, list[float]]) -> dict[str, Any]:
    """Return median times, and each ratio's median over the rounds with [least, greatest]."""
    ratios = {
        "throughput_ratio": ("limit_1m", "write_1m"),
        "read_ratio": ("limit_1m", "read_1m"),
        "cached_throughput_ratio": ("cached_limit_1m", "write_1m"),
        "latency_ratio": ("write_4k", "limit_4k"),
    }
    found: dict[str, Any] = {name: statistics.median(values) for name, values in seen.items()}
    for name, (above, below) in ratios.items():
        values = [a / b for a, b in zip(seen[above], seen[below], strict=True)]
        found[name] = statistics.median(values)
        found[f"{name}_range"] = [min(values), max(values)]
    return {**found, "targets": TARGETS}


def _costs(programs: Programs, folder: Path, seconds: float, parallel: int) -> dict[str, float]:
    """Return seconds for a transfer: of the limit and through the layer, 1 MiB and 4 KiB.

    Limit and layer take turns, so that both see the same hours of a shared machine; medians of the turns.
    """
    found: dict[str, list[float]] = {}
    with running_server(programs, folder, ["--policy", "job-fair", "--parallel", str(parallel)]) as server:
        for _ in range(TURNS):
            for size, word in ((1 << 20, "1m"), (4096, "4k")):
                for name, extent in (("limit", FILE_SIZE), ("cached_limit", size)):
                    seen = _limit(programs, size, extent, seconds / TURNS)
                    found.setdefault(f"{name}_{word}", []).append(seen)
                for pattern in ("write", "read"):
                    load = Load(
                        Job("solo"), 1, pattern, seconds=seconds / TURNS, transfer=size, size=FILE_SIZE
                    )
                    latency = run_jobs(place_of(programs, server, load.job), [load])[0].latency_p50
                    if latency is None:
                        raise RunFailed(f"no {pattern} of {size} bytes ended in {load.seconds:g} s")
                    found.setdefault(f"{pattern}_{word}", []).append(latency)
    return {name: statistics.median(values) for name, values in found.items()}


def _limit(programs: Programs, size: int, extent: int, seconds: float) -> float:
    """Return the median time of one copy and its acknowledgement, into an extent of so many bytes."""
    done = subprocess.run(
        [
            str(programs.limit), "--size", str(size), "--extent", str(extent), "--seconds", f"{seconds:g}",
        ],
        capture_output=True, text=True, check=False, timeout=seconds + 60,
    )  # fmt: skip
    if done.returncode:
        raise RunFailed(f"fairshare-limit: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["seconds_p50"])
