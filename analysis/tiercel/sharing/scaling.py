"""Throughput over several servers, measured for ``tiercel share calibrate``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tiercel.children import killed_with_parent
from tiercel.errors import RunFailed
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import client_environment
from tiercel.layers.fairshare.server import running_server
from tiercel.sharing.jobs import PREFIX

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

    A job of 8 processes a server writes a file each, all of them to their ends, and consistent hashing lays
    the files on servers: differently in each round. All servers run on this machine, so they need a `rate`
    (bytes per second, of each) well below what its processors and memory give, else these are measured.
    What did not end is left out, with a note.
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
        sockets = [
            str(stack.enter_context(
                running_server(programs, folder / f"server{n}", [*options, "--key", str(key)])
            ).socket)
            for n in range(count)
        ]  # fmt: skip
        # Time to start, and for the files that are there before the time begins (all on one server at worst).
        head = 1.0 + (processes * FILE_SIZE / rate if rate else 0.0)
        argv = [
            str(programs.load), "--path", PREFIX, "--pattern", "write", "--processes", str(processes),
            "--seconds", f"{_GRACE_S:g}", "--interval", f"{_GRACE_S:g}", "--at", f"{time.time() + head:.6f}",
            "--size", str(FILE_SIZE), "--transfer", str(TRANSFER), "--total", str(total),
        ]  # fmt: skip
        environment = client_environment(programs.library, PREFIX, ",".join(sockets))
        done = subprocess.run(
            argv, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=head + 2 * _GRACE_S, preexec_fn=killed_with_parent,
        )  # fmt: skip
    if done.returncode:
        raise RunFailed(
            f"{count} servers: {(done.stderr.strip().splitlines() or ['fairshare-load failed'])[-1]}"
        )
    found = json.loads(done.stdout)
    moved = total * processes
    if found["total_bytes"] < moved:
        raise RunFailed(f"{count} servers: not done after {_GRACE_S:g} s")
    return {
        "servers": count, "nodes": 1, "processes_per_node": processes, "operation": "write",
        "transfer_size": TRANSFER, "data_per_process": total, "throughput": moved / found["ended"],
    }  # fmt: skip
