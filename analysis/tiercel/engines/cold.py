"""Makes and proves a read cold for engines that cannot do either themselves.

Before the read iokernel runs over the same files, with ``--prepare-only``: it evicts them from the page
cache and reports what is still resident, without reading. Its file names are IOR's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tiercel.engines import behind
from tiercel.engines.base import Step, Task
from tiercel.errors import RunFailed
from tiercel.programs import program
from tiercel.study.workloads import DataWorkload

_NAME = "prepare"


def prepare_step(
    task: Task, workload: DataWorkload, block: int, reorder: tuple[str, ...] = ()
) -> Step | None:
    """Return the step that goes before the read, or None where iokernel is not installed.

    On one node forked processes do: the page cache is the node's. On several, every node must evict
    what it is going to read, so `reorder` names the options that move readers away from writers.
    """
    fork, mpi = program("iokernel"), program("iokernel-mpi")
    if task.nodes == 1 and fork:
        head = [str(fork), "-n", str(task.processes)]
    elif mpi and task.launcher != "fork":
        head = [str(mpi)]
    else:
        return None
    argv = [
        *head,
        # An HDF5 file holds more than the data; nothing goes through HDF5 here.
        *(
            "-a",
            "HDF5" if workload.api == "hdf5" else "POSIX",
            "-t",
            str(workload.transfer_size),
            "-b",
            str(block),
        ),
        *("-s", str(workload.bytes_per_process(task.processes_per_node) // block)),
        *("-o", str(task.data / "data"), "-k", "-E", "-r", "--prepare-only", "--evict", "--behind", *reorder),
        *(["-F"] if workload.layout == "file-per-process" else []),
        *(["-u"] if workload.unique_directories else []),
        *("-O", "summaryFormat=JSON", "-O", f"summaryFile={task.output / (_NAME + '.json')}"),
    ]
    return Step(_NAME, tuple(argv), launch="once" if head[0] == str(fork) else "parallel")


def residency(output: Path) -> dict[str, Any]:
    """Return what the step found, as fields of a Measurement; empty where it did not go."""
    path = output / f"{_NAME}.json"
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        result = content["tests"][0]["Results"][0]
        found = result["residency"]
        return behind.fields([result]) | {
            "resident_fraction": found["fraction"],
            "resident_method": found["method"],
            "resident_unknown": found.get("unknown"),
            "memory_backed": found["memoryBacked"],
        }
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error!r}") from None
