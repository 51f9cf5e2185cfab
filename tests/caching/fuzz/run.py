"""Plays random HDF5 programs with and without the connector and compares all that they saw and left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.caching.fuzz.play import QUIET
from tiercel.layers.cachevol import settings

#: The connector's settings that cases run under, in turn: each path of its code has a turn.
SETTINGS: tuple[dict[str, bool | int | str], ...] = (
    {"adaptive": False, "checkpoint": False},
    {"adaptive": False, "checkpoint": True, "fusion": 65536},
    {"adaptive": True, "checkpoint": True},
    {"adaptive": False, "checkpoint": False, "prefetch": True, "read_buffer": 65536},
    {"adaptive": False, "checkpoint": False, "size": 200_000, "policy": "FIFO"},  # nearly always full
    {"adaptive": False, "checkpoint": False, "size": 40_000_000, "policy": "LFU", "write_buffer": 1},
    {"adaptive": False, "write": False, "policy": "LFU"},
    {"adaptive": False, "read": False, "checkpoint": False},
)  # fmt: skip

_ROOT = Path(__file__).parents[3]
_BATCH = 25
"""Cases a process plays: a crash loses no more of them, and h5py's start is shared by as many."""

Answers = dict[int, dict[str, Any]]


@dataclass
class Outcome:
    """What a campaign found. A mismatch names its seed, settings and what differs."""

    cases: int = 0
    mismatches: list[dict[str, Any]] = field(default_factory=list)
    staged_bytes: int = 0
    hit_bytes: int = 0


def _work(mode: str, folder: Path, first: int, count: int, environment: dict[str, str]) -> Answers:
    """Run a worker; a case that crashed it is answered with its exit code, and the next ones go on."""
    answers: Answers = {}
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
    while (done := len(answers)) < count:
        command = [sys.executable, "-m", "tests.caching.fuzz.worker", mode, str(folder)]
        worker = subprocess.run(
            [*command, str(first + done), str(count - done)],
            capture_output=True, text=True, check=False, env={**plain, **environment}, cwd=_ROOT,
        )  # fmt: skip
        for line in worker.stdout.splitlines():
            answer = json.loads(line)
            answers[answer["seed"]] = answer
        if len(answers) < count:
            seed = first + len(answers)
            answers[seed] = {"seed": seed, "failed": f"exit code {worker.returncode}: {worker.stderr[-300:]}"}
    return answers


def _differences(plain: dict[str, Any], cached: dict[str, Any], same_bytes: bool) -> list[str]:
    """Return which answers differ; whole files are compared byte by byte where nothing was flushed early."""
    names = ["failed", "seen", "contents", *(["bytes"] if same_bytes else [])]
    return [name for name in names if plain.get(name) != cached.get(name)]


def _places(one: Path, other: Path) -> set[int] | None:
    """Return the offsets at which two files differ, None where they differ in length."""
    a, b = one.read_bytes(), other.read_bytes()
    return {i for i in range(len(a)) if a[i] != b[i]} if len(a) == len(b) else None


def _only_times(seed: int, parts: dict[str, Path]) -> bool:
    """Tell whether plain and cached file differ only where two plain runs do: HDF5 stores times of change, in
    seconds (4 bytes)."""
    time.sleep(1.1)
    _work("play", parts["again"], seed, 1, {})
    name = f"{seed}.h5"
    expected = _places(parts["plain"] / name, parts["again"] / name)
    found = _places(parts["plain"] / name, parts["cached"] / name)
    if expected is None or found is None:
        return False
    return all(any(abs(at - other) < 4 for other in expected) for at in found)


def _batch(first: int, count: int, options: dict[str, bool | int | str]) -> Outcome:
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="tiercel-fuzz-") as folder:
        parts = {name: Path(folder) / name for name in ("plain", "cached", "again", "node")}
        for part in parts.values():
            part.mkdir()
        stats = Path(folder) / "stats"
        on = settings(parts["node"], {**options, "quiet": QUIET, "recheck": 0, "stats": str(stats)})
        plain = _work("play", parts["plain"], first, count, {})
        cached = _work("play", parts["cached"], first, count, on)
        for name, answers in (("plain", plain), ("cached", cached)):
            for seed, found in _work("contents", parts[name], first, count, {}).items():
                answers[seed].setdefault("failed", found.get("failed"))
                answers[seed]["contents"] = found.get("contents")
        for seed in plain:
            outcome.cases += 1
            differ = _differences(plain[seed], cached[seed], not options.get("checkpoint", True))
            if differ and not (differ == ["bytes"] and _only_times(seed, parts)):
                case = {"seed": seed, "settings": options, "differs": differ}
                case |= {"plain": plain[seed].get("failed"), "cached": cached[seed].get("failed")}
                outcome.mismatches.append(case)
        left = list((parts["node"] / f"cachevol-{os.geteuid()}" / "logs").glob("*"))
        markers = list(parts["cached"].glob(".*.cachevol"))
        if left or markers:
            outcome.mismatches.append(
                {"seed": first, "settings": options, "differs": ["logs or markers left"]}
            )
        for line in stats.read_text().splitlines() if stats.exists() else []:
            counts = json.loads(line)
            outcome.staged_bytes += counts["staged_bytes"]
            outcome.hit_bytes += counts["hit_bytes"]
    return outcome


def fuzz(
    cases: int, seed: int = 0, jobs: int = 1, progress: Callable[[Outcome], None] | None = None
) -> Outcome:
    """Play `cases` programs, from number `seed` on, `jobs` at a time.

    A case's number and settings repeat it exactly.
    """
    whole = Outcome()
    with ThreadPoolExecutor(jobs) as pool:
        batches = []
        for number, first in enumerate(range(seed, seed + cases, _BATCH)):
            options = SETTINGS[(number + seed // _BATCH) % len(SETTINGS)]
            batches.append(pool.submit(_batch, first, min(_BATCH, seed + cases - first), options))
        try:
            for batch in batches:
                part = batch.result()
                whole.cases += part.cases
                whole.mismatches += part.mismatches
                whole.staged_bytes += part.staged_bytes
                whole.hit_bytes += part.hit_bytes
                if progress:
                    progress(whole)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return whole
