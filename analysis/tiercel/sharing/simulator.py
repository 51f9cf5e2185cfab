"""Runs ``fairshare-sim``, the simulator of the fairshare layer: one document in, one out."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Literal

from tiercel.errors import UserError, one_line
from tiercel.programs import program

NOT_BUILT = "fairshare-sim is not built: run `make layers`, which needs Rust's cargo"


def available() -> bool:
    """Return whether the simulator is built and installed beside this Python, or on PATH."""
    return program("fairshare-sim") is not None


def run_simulator(task: Literal["run", "promise", "calibrate"], document: dict[str, Any]) -> dict[str, Any]:
    """Return the simulator's answer to `document`; UserError with its one sentence where it refuses."""
    simulator = program("fairshare-sim")
    if simulator is None:
        raise UserError(NOT_BUILT)
    done = subprocess.run(
        [str(simulator), task],
        input=json.dumps(document, allow_nan=False),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 2:
        reason = done.stderr.strip().removeprefix("fairshare-sim: ").removeprefix("standard input: ")
        raise UserError(f"simulation: {one_line(reason)}")
    if done.returncode != 0:
        raise RuntimeError(f"{simulator} {task} ended with {done.returncode}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
