"""IOR (https://github.com/hpc/ior), versions 3.3, 4.0 and 4.1.

Every phase is a program start of its own, because IOR applies random order, stonewall and verification
to all phases of a start. Page cache and file-system locks belong to the node, not to the program, so a
read after a write (RAW) finds the same state as in one start.

Results are read from IOR's text, not from its JSON: the JSON rounds times to 0.1 ms, does not escape
strings, differs between 3.3 and 4.0, and replaces the text on standard output.

Differences between versions that show in numbers:

- ``fsync: write`` (-Y) with POSIX: 3.3 calls fsync once after each write, 4.0 and 4.1 twice.
- Data: from 4.0 on every byte is new in each transfer (-l random), which takes processor time. 3.3 writes one
  random buffer over and over (-l incompressible), which storage can deduplicate.
- ``pattern: random``: 3.3 has no seed, so every run has another order, the same run again too.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.ior_text import IorRow, parse_ior_text
from tiercel.engines.probing import probe, release
from tiercel.engines.sequence import (
    Phase,
    block_size,
    cross_node_fraction,
    measurements_of,
    offset_of,
    steps_of,
)
from tiercel.errors import RunFailed
from tiercel.study.workloads import DataWorkload, Workload

_LINE_1 = re.compile(r"\AIOR-(\S+): MPI Coordinated Test of Parallel I/O")

#: No version option: a run of a few kilobytes says it in its first line.
_TINY = ("-w", "-b", "64k", "-t", "16k", "-o", "probe")
#: In what it answers to -h: the interfaces that it was built with.
_HDF5 = re.compile(r"API for I/O \[[^\]]*\b(HDF5)\b")


@engines.register("ior")
class IOR(Engine):
    name = "ior"
    note = ""
    """Why find() found nothing."""

    def find(self) -> Installation | None:
        found = probe("ior", _TINY, _LINE_1, "IOR")
        self.note = found.note
        if found.path is None or not found.version:
            return None
        return Installation(self.name, found.version, {"ior": found.path})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, DataWorkload):
            return "IOR moves data only"
        if workload.waiting_nodes(nodes):
            return "IOR cannot leave one of two nodes waiting (another_client)"
        if workload.repeats > 1:
            return "IOR's repetitions are not read as one run (repeats: 1)"
        if workload.queue_depth > 1:
            return "a process of IOR has one operation in flight"
        if workload.direct and workload.api != "posix":
            return "IOR has O_DIRECT for POSIX only"
        if workload.api == "hdf5" and (problem := _no_hdf5(workload)):
            return problem
        if workload.compressibility or workload.dedup:
            return "IOR cannot say how far its data compress or repeat"
        if workload.transfer_size % 8:
            return "IOR transfers multiples of 8 bytes only"
        if workload.stonewall is not None and workload.stonewall != int(workload.stonewall):
            return "IOR's stonewall is a whole number of seconds"
        shared_random = workload.pattern == "random" and workload.layout == "shared"
        if shared_random and isinstance(workload.reorder, int) and workload.reorder:
            return "IOR cannot move readers of a shared file in random order"
        if workload.verify and workload.pattern == "random":
            found = self.find()
            if found and release(found.version) < (4, 0):
                return "IOR before 4.0 cannot check data that it accesses in random order"
        return None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        return steps_of(task, partial(self._argv, task, installation), reorder=_reorder(task))

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        w = task.workload
        assert isinstance(w, DataWorkload)

        def measure(phase: Phase) -> Measurement:
            row = _only_row(output / f"{phase.name}.stdout", phase.operation)
            measurement = _measurement(row, phase)
            if phase.operation == "read":
                measurement.task_offset = offset_of(task, w)
                measurement.cross_node_fraction = cross_node_fraction(task, measurement.task_offset)
            _check_bytes(task, w, measurement)
            if phase.last and w.stonewall is not None:
                whole = w.footprint(task.nodes, task.processes_per_node)
                measurement.stonewall_hit = (measurement.bytes_moved or 0) < whole
            return measurement

        return measurements_of(task, output, measure)

    def _argv(self, task: Task, installation: Installation, phase: Phase) -> tuple[str, ...]:
        w = task.workload
        assert isinstance(w, DataWorkload)
        index, last, writes = phase.index, phase.last, phase.operation == "write"
        version = release(installation.version)
        per_process, block = w.bytes_per_process(task.processes_per_node), block_size(task, w)
        argv = [
            *(str(installation.programs["ior"]), "-a", w.api.upper(), "-w" if writes else "-r"),
            *("-t", str(w.transfer_size), "-b", str(block), "-s", str(per_process // block)),
            *("-o", str(task.data / "data"), "-k"),
        ]
        # A block of one transfer has one order only, and 4.0 refuses to shuffle it.
        shuffled = last and w.pattern == "random" and block > w.transfer_size
        switches = {
            "-E": index > 0, "-c": w.collective, "-F": w.layout == "file-per-process",
            "-u": w.unique_directories, "-z": shuffled,
            "-e": writes and (w.fsync == "phase" or w.wants_cold),
            "-Y": writes and w.fsync == "write" and w.operation == "write",
            ("--mpiio.preallocate" if version >= (4, 0) else "-p"): writes and w.preallocate,
            ("--mpiio.useFileView" if version >= (4, 0) else "-V"): w.file_view,
            "--posix.odirect": w.direct,
            ("-W" if writes else "-R"): w.verify and last,
        }  # fmt: skip
        argv += [switch for switch, on in switches.items() if on]
        if shuffled and version >= (4, 0):
            argv.append(f"--random-offset-seed={task.seed}")
        if writes and not w.verify:
            # Without it one buffer is written over and over. Since 4.0 "incompressible" repeats 8 bytes.
            argv += ["-l", "random" if version >= (4, 0) else "incompressible"]
        if w.verify:  # a later start checks what an earlier one wrote: both need the same data
            argv += ["-G", str(max(1, task.seed))]
        if not writes:
            argv += _reorder(task)
        if last and w.stonewall is not None:
            argv += ["-D", f"{w.stonewall:g}"]
            argv += ["-O", "stoneWallingWearOut=1"] if w.wear_out else []
        return tuple(argv)


def _no_hdf5(workload: DataWorkload) -> str | None:
    """Return why IOR cannot do a workload through HDF5, or None."""
    if workload.pattern == "random":
        return "IOR has no random order with HDF5"
    if workload.access_type in ("WAW", "WAR"):
        return "IOR makes the data sets of an HDF5 file in each write, so it cannot write them twice"
    if not probe("ior", ("-h",), _HDF5, "an IOR built with HDF5").version:
        return "IOR is built without HDF5"
    return None


def _reorder(task: Task) -> tuple[str, ...]:
    """Return the options for that. -Q counts nodes, unless a node has one task, which -O can say."""
    w = task.workload
    assert isinstance(w, DataWorkload)
    offset = offset_of(task, w)
    if not offset:
        return ()
    if w.reorder == "node":
        return ("-C",)
    return ("-C", "-Q", str(offset), "-O", "numTasksOnNode0=1")


def _only_row(path: Path, access: str) -> IorRow:
    """Return the row of a phase; RunFailed unless the output is whole and has exactly that one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunFailed(f"{path.name}: {error.strerror}: the engine wrote no result") from None
    logs = parse_ior_text(text)
    if not logs:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise RunFailed(f"{path.name} is no result of IOR: {first[:200]}")
    if logs[0].problems:
        raise RunFailed(f"{path.name}: {logs[0].problems[0]}")
    rows = logs[0].rows
    if len(logs) != 1 or len(rows) != 1 or rows[0].access != access:
        seen = ", ".join(row.access for log in logs for row in log.rows) or "none"
        raise RunFailed(f"{path.name}: one {access} row was asked for (found: {seen})")
    return rows[0]


def _measurement(row: IorRow, phase: Phase) -> Measurement:
    return Measurement(
        operation=row.access, role=phase.role, phase=phase.index, bandwidth=row.bandwidth,
        operation_rate=row.operations / row.total_time if row.operations else None,
        bytes_moved=row.bytes_moved, bytes_expected=row.bytes_expected, operations=row.operations,
        total_time=row.total_time, open_time=row.open_time, transfer_time=row.transfer_time,
        close_time=row.close_time,
    )  # fmt: skip


def _check_bytes(task: Task, w: DataWorkload, m: Measurement) -> None:
    """Raise RunFailed unless the run moved what it was to move."""
    wanted = w.footprint(task.nodes, task.processes_per_node)
    if m.bytes_expected != wanted:
        raise RunFailed(
            f"IOR was to move {wanted} bytes in the {m.operation} and set out for {m.bytes_expected}"
        )
    cut = m.role == "measured" and w.stonewall is not None
    if m.bytes_moved != wanted and not (cut and 0 < (m.bytes_moved or 0) <= wanted):
        raise RunFailed(f"IOR moved {m.bytes_moved} of {wanted} bytes in the {m.operation}")
