"""Any program beside a background job, under each of several policies: paper 001, section 5.5, for one's own.

For each policy a server is started on a folder of its own; the program runs through it alone, beside the
background job, and alone again. Policies take turns, so that none of them gets the quiet moments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tiercel.children import ended_with_parent, ending
from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.sharing.contest_runs import mounted_server
from tiercel.sharing.workload_application import SharingApplicationWorkload
from tiercel.temporary import temporary_folder

#: Folders of this experiment on the storage under test begin so.
_FOLDERS = ".tiercel-share-experiment-"


def own_command(
    workload: SharingApplicationWorkload,
    policies: Sequence[str],
    storage: Path,
    repetitions: int,
    rate: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return for each policy what the program loses beside the background job; UserError where it fails.

    `storage`: a folder on the storage under test. `rate`: bytes per second that the server moves at most, 0
    for no limit.
    """
    programs = required_programs()
    rows: dict[str, list[dict[str, Any]]] = {policy: [] for policy in policies}
    for number in range(repetitions):
        for policy in policies if number % 2 == 0 else reversed(policies):
            say(f"repetition {number + 1} of {repetitions}: {policy}")
            with temporary_folder(_FOLDERS, storage) as folder:
                rows[policy].append(_once(programs, workload, policy, folder, rate))
    return {
        "command": workload.command,
        "size": workload.size,
        "background": {"processes": workload.background.processes, "size": workload.background.size},
        "storage": str(storage),
        "rate": rate,
        "repetitions": repetitions,
        "policies": [_summary(policy, found) for policy, found in rows.items()],
    }


def _once(
    programs: Programs, workload: SharingApplicationWorkload, policy: str, folder: Path, rate: int
) -> dict[str, Any]:
    result = folder / "result.json"
    options = ["--policy", policy, *(["--rate", str(rate)] if rate else [])]
    with mounted_server(programs, folder / "server", options) as server:
        # In a process and session of its own, since it is asked to end, and ends what it started.
        process = subprocess.Popen(
            [sys.executable, "-m", "tiercel.sharing", str(programs.load), f"{server.mounted}/data",
             str(result), workload.model_dump_json()],
            env={**os.environ, "FAIRSHARE_SERVER": str(server.socket)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=ended_with_parent,  # noqa: PLW1509
        )  # fmt: skip
        try:
            _, said = process.communicate()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode:
        last = (said.strip() or ending(process.returncode)).splitlines()[-1]
        raise UserError(f"policy {policy}: {last.removeprefix('sharing: error: ')}")
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _summary(policy: str, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one row: medians over the repetitions, and the range of the slowdown."""
    mine = [document["jobs"][0] for document in found]
    slowdowns = [job["slowdown"] for job in mine]

    def middle(values: Sequence[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return median(known) if known else None

    return {
        "policy": policy,
        "alone_s": median(document["alone"] for document in found),
        "beside_s": median(job["seconds"] for job in mine),
        "slowdown": median(slowdowns),
        "slowdown_range": [min(slowdowns), max(slowdowns)],
        "allowed": middle([job["allowed"] for job in mine]),
        "noise": max(job["noise"] for job in mine),
        "share": middle([job["share"] for job in mine]),
        "entitled": middle([job["entitled"] for job in mine]),
        "bytes": middle([job["bytes"] for job in mine]),
        "operations": middle([job["operations"] for job in mine]),
    }
