"""fio (https://github.com/axboe/fio), started once on one node; it forks its jobs, each a session of its own.

fio measures other things under the same names. What differs from IOR's definitions:

- `total_time` is the longest job's time from its first open to its last operation, the fsync at the
  end included, the close not. Jobs start together but wait for no barrier.
- fio rounds that time up to a whole millisecond. We take half a millisecond off, so that the error is
  half a millisecond either way, and refuse times under 20 ms, where that is more than 2.5 %.
- Latency is of the reads and writes alone, as iokernel's; fsync is reported apart from them.
- Random order is fio's own generator's: each block once, like IOR's, but another order for the same seed.

What we switch off so that both do the same: preallocation, access hints (posix_fadvise), and the eviction of
a file when it is opened, unless a cold read wants it.
The clock is the kernel's, as theirs, not the processor's counter.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.plausibility import check_rate
from tiercel.engines.probing import probe
from tiercel.engines.sequence import Phase, block_size, measurements_of, offset_of, steps_of
from tiercel.errors import RunFailed
from tiercel.study.workloads import DataWorkload, Workload

_VERSION = re.compile(r"\Afio-(\S+)")

#: What fio prints on standard error and does not count as an error of the job: lost data, lost processes.
_LOST = re.compile(
    r"^fio: .*(fsync|syncfs|sync) failed|^fio: pid=\d+, got signal|^fio: pid=\d+ disappeared|"
    r"^fio: .*(hung|hasn't exited|stuck)|^fio: .*does not seem to support direct|^fio: bug in|leaked",
    re.MULTILINE,
)

#: Milliseconds below which fio's rounding is too coarse.
SHORTEST_MS = 20


@engines.register("fio")
class Fio(Engine):
    name = "fio"
    needs_mpi = False
    note = ""
    """Why find() found nothing."""

    def find(self) -> Installation | None:
        found = probe("fio", ("--version",), _VERSION, "fio")
        self.note = found.note
        if found.path is None or not found.version:
            return None
        return Installation(self.name, found.version, {"fio": found.path})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, DataWorkload):
            return "fio moves data only"
        if workload.repeats > 1:
            return "fio does its phases once (repeats: 1)"
        if nodes > 1 or workload.waiting_nodes(nodes):
            return "fio is started on one node"
        if workload.api != "posix":
            return "fio has no MPI-IO and no HDF5"
        if workload.verify:
            return "fio checks only data in a format of its own"
        if workload.wear_out:
            return "fio has no wear-out after the time limit"
        return None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        return steps_of(task, partial(self._argv, task, installation), launch="once")

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        def measure(phase: Phase) -> Measurement:
            _check_messages(output / f"{phase.name}.stderr")
            return _measurement(task, _result(output / f"{phase.name}.json"), phase)

        return measurements_of(task, output, measure)

    def _argv(self, task: Task, installation: Installation, phase: Phase) -> tuple[str, ...]:
        w = task.workload
        assert isinstance(w, DataWorkload)
        index, last, writes = phase.index, phase.last, phase.operation == "write"
        shuffled = last and w.pattern == "random"
        syncs_each = writes and w.fsync == "write" and w.operation == "write"
        options = {
            "directory": _escape(str(task.data)),
            "rw": ("rand" if shuffled else "") + phase.operation,
            "bs": w.transfer_size,
            "ioengine": "psync" if w.queue_depth == 1 else "io_uring",
            "iodepth": w.queue_depth,
            "direct": int(w.direct),
            "fallocate": "none",
            "fadvise_hint": 0,
            # Data: a random buffer with new bytes in each 512; with the others every byte is made anew.
            "scramble_buffers": 1,
            "refill_buffers": int(bool(w.refill or w.compressibility or w.dedup)),
            "invalidate": int(last and w.wants_cold),
            "randseed": task.seed + 1,
            "disk_util": 0,
            "clocksource": "clock_gettime",
            "lat_percentiles": 1,
            "clat_percentiles": 0,
            "percentile_list": "50:90:99:99.9",
        }
        if writes and w.compressibility:
            options |= {"buffer_compress_percentage": round(100 * w.compressibility)}
        if writes and w.dedup:
            options |= {"dedupe_percentage": round(100 * w.dedup)}
        if writes:
            options |= {"create_on_open": 1, "overwrite": int(index > 0)}
            # fio syncs before a write, not after it: N-1 times, and end_fsync makes it N.
            options |= {"fsync": 1} if syncs_each else {}
            options |= {"end_fsync": 1} if syncs_each or w.fsync == "phase" or w.wants_cold else {}
        else:
            options |= {"allow_file_create": 0}
        if last and w.stonewall is not None:
            options |= {"runtime": f"{round(w.stonewall * 1000)}ms"}
        argv = [str(installation.programs["fio"]), "--output-format=json"]
        argv += [f"--output={task.output / (phase.name + '.json')}", "--eta=never"]
        argv += [f"--{key}={value}" for key, value in options.items()]
        argv += ["--group_reporting"]
        offset = 0 if writes else offset_of(task, w)
        for rank in range(task.processes):
            argv += _job(task, w, rank, (rank + offset) % task.processes)
        return tuple(argv)


def _job(task: Task, w: DataWorkload, rank: int, target: int) -> list[str]:
    """Return the options of process `rank`, which works on the data of process `target`. Names are IOR's."""
    per_process, block = w.bytes_per_process(task.processes_per_node), block_size(task, w)
    argv = [f"--name=process-{rank}"]
    if w.layout == "file-per-process":
        folder = f"{target}/" if w.unique_directories else ""
        return [*argv, f"--filename={folder}data.{target:08d}", f"--size={per_process}"]
    argv += ["--filename=data", f"--offset={target * block}"]
    if per_process == block:
        return [*argv, f"--size={per_process}"]
    # The blocks of all processes take turns: after one of its own a process skips those of the others.
    reach = (per_process // block - 1) * block * task.processes + block
    return [
        *argv, f"--size={reach}", f"--io_size={per_process}", "--zonemode=strided",
        f"--zonesize={block}", f"--zonerange={block}", f"--zoneskip={block * (task.processes - 1)}",
    ]  # fmt: skip


def _escape(path: str) -> str:
    """Return `path` for fio, which takes a bare colon for a separator."""
    return path.replace("\\", "\\\\").replace(":", "\\:")


def _check_messages(path: Path) -> None:
    """Raise RunFailed where fio lost data or a process; its JSON may still call the job good."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if lost := _LOST.search(text):
        line = text[text.rfind("\n", 0, lost.start()) + 1 :].partition("\n")[0]
        raise RunFailed(f"{path.name}: {line.strip()[:200]}")


def _result(path: Path) -> dict[str, Any]:
    """Return the one (group) result in a JSON file of fio; RunFailed unless it is whole and sound."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise RunFailed(f"{path.name}: {error.strerror}: the engine wrote no result") from None
    start = re.search(r"^\{", text, re.MULTILINE)  # fio's own messages may go before
    try:
        content = json.loads(text[start.start() :] if start else text)
        jobs = content["jobs"]
        failed = [job["error"] for job in jobs if job["error"]]
        if failed:
            raise RunFailed(f"{path.name}: fio: {os.strerror(failed[0])}")
        if len(jobs) != 1:
            raise RunFailed(f"{path.name} has {len(jobs)} results where one group was asked for")
        result: dict[str, Any] = jobs[0]
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error!r}") from None
    return result


def _measurement(task: Task, result: dict[str, Any], phase: Phase) -> Measurement:
    w = task.workload
    assert isinstance(w, DataWorkload)
    walled = phase.last and w.stonewall is not None
    expected = w.footprint(task.nodes, task.processes_per_node)
    try:
        numbers = result[phase.operation]
        moved, operations = int(numbers["io_bytes"]), int(numbers["total_ios"])
        milliseconds = int(numbers["runtime"])
        cut = walled and moved < expected
        if moved != expected and not (cut and moved):
            raise RunFailed(f"fio moved {moved} of {expected} bytes in the {phase.operation}")
        if phase.last and milliseconds < SHORTEST_MS:
            raise RunFailed(
                f"the {phase.operation} took {milliseconds} ms which fio cannot time: use more data "
                f"(at least {SHORTEST_MS} ms)"
            )
        if milliseconds:
            check_rate(f"fio: {phase.operation}", float(numbers["bw_bytes"]), moved, milliseconds / 1000)
        seconds = (milliseconds - 0.5) / 1000 if milliseconds else None
        latency = numbers["lat_ns"]
        busy = float(result["job_runtime"]) / 1000 / 100
        measurement = Measurement(
            operation=phase.operation, role=phase.role, phase=phase.index, bytes_moved=moved,
            bytes_expected=expected,
            operations=operations, total_time=seconds,
            bandwidth=moved / seconds if seconds else None,
            operation_rate=operations / seconds if seconds else None,
            latency_mean=float(latency["mean"]) / 1e9, latency_max=float(latency["max"]) / 1e9,
            cpu_user=float(result["usr_cpu"]) * busy, cpu_system=float(result["sys_cpu"]) * busy,
            stonewall_hit=cut if walled else None,
        )  # fmt: skip
        percentiles = latency.get("percentile") or {}
        for field, key in (("p50", "50"), ("p90", "90"), ("p99", "99"), ("p999", "99.9")):
            value = percentiles.get(f"{float(key):.6f}")
            setattr(measurement, f"latency_{field}", None if value is None else value / 1e9)
    except (KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"fio's result has no valid {error}") from None
    if phase.operation == "read":
        measurement.task_offset, measurement.cross_node_fraction = offset_of(task, w), 0.0
    return measurement
