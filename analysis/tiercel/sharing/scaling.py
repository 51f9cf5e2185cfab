"""Throughput over several servers, measured for ``tiercel share calibrate``."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.sharing.contest_runs import mounted_server, place_of
from tiercel.sharing.jobs import Place, membership

#: As in the paper's section 5.2: so many processes for each server, each with a file of its own.
PROCESSES = 8
TRANSFER = 1 << 20
#: A process writes the same part of its file again and again: what is measured is not the room for it.
FILE_SIZE = 2 << 20
#: What a process moves where no rate says how long that takes, bytes.
UNPACED = 128 << 20
_GRACE_S = 120.0


def measure_scaling(
    programs: Programs,
    folder: Path,
    servers: Sequence[int],
    rounds: int,
    seconds: float,
    parallel: int,
    rate: int,
    notes: list[str],
) -> list[dict[str, Any]]:
    """Return a row for each number of `servers` in each round, as ``tiercel share calibrate`` reads it.

    A job of 8 processes a server writes a file each, all of them to their ends, and the files lie on servers
    as hashing would lay them: unevenly, and differently in each round. All servers run on this machine, so
    they need a `rate` (bytes per second, of each) well below what its processors and
    memory give, else these are measured. What did not end is left out, with a note.
    """
    rows = []
    for number in range(rounds):
        for count in servers:
            place = folder / f"scaling{number}-{count}"
            try:
                rows.append(_measure(programs, place, count, seconds, parallel, rate))
            except RunFailed as error:
                notes.append(f"scaling, round {number + 1}: left out: {error}")
            shutil.rmtree(place, ignore_errors=True)
    return rows


def _measure(
    programs: Programs, folder: Path, count: int, seconds: float, parallel: int, rate: int
) -> dict[str, Any]:
    processes = PROCESSES * count
    # Whole transfers; with the files spread evenly it takes `seconds`.
    total = max(1, round((rate * seconds / PROCESSES if rate else UNPACED) / TRANSFER)) * TRANSFER
    options = ["--policy", "job-fair", "--parallel", str(parallel), "--rate", str(rate)]
    with ExitStack() as stack:
        folder.mkdir(parents=True)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(32))
        places = [
            place_of(programs, stack.enter_context(
                mounted_server(programs, folder / f"server{n}", [*options, "--key", str(key)])
            ))
            for n in range(count)
        ]  # fmt: skip
        # As consistent hashing lays files: each on any server, whatever the others have.
        draw = random.Random(str(folder))
        on_server = Counter(draw.randrange(count) for _ in range(processes))
        # Time to start, and for the files that are there before the time begins (all on one server at worst).
        at = time.time() + 1.0 + (processes * FILE_SIZE / rate if rate else 0.0)
        started = [
            _writing(stack, places[number], several, total, at) for number, several in on_server.items()
        ]
        answers = [process.communicate(timeout=at - time.time() + 2 * _GRACE_S) for process in started]
    failed = [err for process, (_, err) in zip(started, answers, strict=True) if process.returncode]
    if failed:
        raise RunFailed(
            f"{count} servers: {(failed[0].strip().splitlines() or ['fairshare-load failed'])[-1]}"
        )
    found = [json.loads(out) for out, _ in answers]
    moved = total * processes
    if sum(each["total_bytes"] for each in found) < moved:
        raise RunFailed(f"{count} servers: not done after {_GRACE_S:g} s")
    return {
        "servers": count, "nodes": 1, "processes_per_node": processes, "operation": "write",
        "transfer_size": TRANSFER, "data_per_process": total,
        "throughput": moved / max(each["ended"] for each in found),
    }  # fmt: skip


def _writing(stack: ExitStack, place: Place, processes: int, total: int, at: float) -> subprocess.Popen[str]:
    member = stack.enter_context(membership(place, Job("scaling")))
    argv = [
        str(place.load), "--path", member.folder, "--pattern", "write", "--processes", str(processes),
        "--seconds", f"{_GRACE_S:g}", "--interval", f"{_GRACE_S:g}", "--at", f"{at:.6f}",
        "--size", str(FILE_SIZE), "--transfer", str(TRANSFER), "--total", str(total),
    ]  # fmt: skip
    return subprocess.Popen(
        argv, env=member.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=member.enter,  # noqa: PLW1509
    )  # fmt: skip
