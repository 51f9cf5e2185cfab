"""``tiercel share bench``: what the layer costs, and whether it shares as the policy says.

Everything is a ratio of things measured beside each other, in interleaved rounds: the speed of a shared
machine is nobody's property.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiercel.children import killed_with_parent
from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.layers.fairshare.server import memory_folder
from tiercel.sharing.contest_runs import deviations, mounted_server, place_of, run_contest, summary
from tiercel.sharing.contests import contests
from tiercel.sharing.jobs import Load, Place, run_jobs
from tiercel.sharing.scaling import measure_scaling

#: Of the file that the solo jobs write and read, bytes: what the limit stores, too.
FILE_SIZE = 10 << 20
#: Turns in which limit and layer are measured within a round.
TURNS = 3
#: Times that a measurement is made twice as long where the processors were too busy for one transfer.
LONGER = 4
#: What the layer is held to: part of the limit's throughput, multiple of its latency.
TARGETS = {"throughput_ratio": 0.70, "read_ratio": 0.70, "latency_ratio": 3.0}


def bench(
    rounds: int = 2,
    seconds: float = 2.0,
    data: Path | None = None,
    parallel: int = 1,
    servers: Sequence[int] = (),
    rate: int = 0,
) -> dict[str, Any]:
    """Measure and return one document; all times in seconds, rates in bytes per second.

    `data`: the folder under test (default: in memory, where the layer's own cost shows most). `servers`:
    numbers of servers to measure the throughput of, for ``tiercel share calibrate``; each of them gives
    `rate` bytes per second (0: what it can). ``notes`` says what a busy machine kept from being measured:
    that is missing, and all else is there.
    """
    programs = required_programs()
    place = data or memory_folder()
    if place is None or not place.is_dir():
        raise UserError(f"{data or '/dev/shm'}: not a folder that can be written to; give --data")
    folder = Path(tempfile.mkdtemp(prefix="tiercel-share-", dir=place))
    try:
        found = _bench(programs, folder, rounds, seconds, parallel)
        if servers:
            found["rate"] = rate
            found["scaling"] = measure_scaling(
                programs, folder, servers, rounds, seconds, parallel, rate, found["notes"]
            )
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bench(programs: Programs, folder: Path, rounds: int, seconds: float, parallel: int) -> dict[str, Any]:
    solo: list[dict[str, float]] = []
    shared: dict[str, list[dict[str, Any]]] = {}
    notes = _busy()
    listed = contests()
    for number in range(rounds):
        solo.append(_costs(programs, folder / f"solo{number}", seconds / 4, parallel, notes))
        for contest in listed if number % 2 == 0 else listed[::-1]:
            place = folder / f"{number}-{contest.name.replace(' ', '-').replace(':', '-')}"
            try:
                result = run_contest(programs, place, contest, seconds, parallel)
            except (RunFailed, UserError) as error:
                notes.append(f"{contest.name}, round {number + 1}: left out: {error}")
            else:
                shared.setdefault(contest.name, []).append(result)
            shutil.rmtree(place, ignore_errors=True)
    sharing = [summary(contest, shared[contest.name]) for contest in listed if contest.name in shared]
    if not sharing:
        raise UserError(f"share bench: nothing could be measured; the last reason: {notes[-1]}")
    return {
        "measured": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "rounds": rounds,
        "parallel": parallel,
        "solo": _solo(solo),
        "sharing": sharing,
        "deviations": deviations(sharing),
        "notes": notes,
    }


def _busy() -> list[str]:
    """Return a note where other programs want the processors now."""
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load < 0.5 * processors:
        return []
    return [
        f"other programs were running (load {load:.1f} on {processors} processors): the kernel shares out "
        "processors by its own policy, so ratios are lower and shares vary more than on a quiet machine"
    ]


def _solo(rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return median times, and each ratio's median over the rounds with [least, greatest].

    None for what no round measured.
    """
    ratios = {
        "throughput_ratio": ("limit_1m", "write_1m"),
        "read_ratio": ("limit_1m", "read_1m"),
        "cached_throughput_ratio": ("cached_limit_1m", "write_1m"),
        "latency_ratio": ("write_4k", "limit_4k"),
    }
    found: dict[str, Any] = {}
    for name in sorted({name for seen in rounds for name in seen}):
        found[name] = statistics.median(seen[name] for seen in rounds if name in seen)
    for name, (above, below) in ratios.items():
        values = [seen[above] / seen[below] for seen in rounds if above in seen and below in seen]
        found[name] = statistics.median(values) if values else None
        found[f"{name}_range"] = [min(values), max(values)] if values else None
    return {**found, "targets": TARGETS}


def _costs(
    programs: Programs, folder: Path, seconds: float, parallel: int, notes: list[str]
) -> dict[str, float]:
    """Return seconds for a transfer: of the limit and through the layer, 1 MiB and 4 KiB.

    Limit and layer take turns, so that both see the same hours of a shared machine; medians of the turns.
    What could not be measured is left out, with a note.
    """
    found: dict[str, list[float]] = {}
    with mounted_server(programs, folder, ["--policy", "job-fair", "--parallel", str(parallel)]) as server:
        for _ in range(TURNS):
            for size, word in ((1 << 20, "1m"), (4096, "4k")):
                for name, extent in (("limit", FILE_SIZE), ("cached_limit", size)):
                    seen = _limit(programs, size, extent, seconds / TURNS)
                    found.setdefault(f"{name}_{word}", []).append(seen)
                for pattern in ("write", "read"):
                    load = Load(
                        Job("solo"), 1, pattern, seconds=seconds / TURNS, transfer=size, size=FILE_SIZE
                    )
                    latency = _latency(place_of(programs, server), load, notes)
                    if latency is not None:
                        found.setdefault(f"{pattern}_{word}", []).append(latency)
    return {name: statistics.median(values) for name, values in found.items()}


def _latency(place: Place, load: Load, notes: list[str]) -> float | None:
    """Return the median time of a transfer; on a busy machine after longer, or None with a note."""
    what = f"{load.pattern} of {load.transfer} bytes"
    for longer in range(LONGER + 1):
        tried = replace(load, seconds=load.seconds * 2**longer)
        try:
            latency = run_jobs(place, [tried])[0].latency_p50
        except RunFailed as error:
            notes.append(f"{what}: left out once: {error}")
            return None
        if latency is not None:
            if longer:
                notes.append(f"{what}: the machine was busy, it took {tried.seconds:g} s for one to end")
            return latency
    notes.append(f"{what}: left out once: the machine was too busy, none ended in {tried.seconds:g} s")
    return None


def _limit(programs: Programs, size: int, extent: int, seconds: float) -> float:
    """Return the median time of one copy and its acknowledgement, into an extent of so many bytes."""
    done = subprocess.run(
        [
            str(programs.limit), "--size", str(size), "--extent", str(extent), "--seconds", f"{seconds:g}",
        ],
        capture_output=True, text=True, check=False, timeout=seconds + 60,
        preexec_fn=killed_with_parent,
    )  # fmt: skip
    if done.returncode:
        raise UserError(f"fairshare-limit: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return float(json.loads(done.stdout)["seconds_p50"])
