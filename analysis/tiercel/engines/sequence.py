"""A data workload as starts of an engine that does one phase for each start (IOR, fio).

What went before the measured phase (writing what is read, reading what is overwritten) are phases too; a
cold read is made ready and proven just before it (see `cold`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tiercel.engines.base import Measurement, Role, Step, Task
from tiercel.engines.cold import prepare_step, residency
from tiercel.study.workloads import DataWorkload

_PHASES = {
    "WO": ("write",), "WAW": ("write", "write"), "WAR": ("write", "read", "write"),
    "RO": ("write", "read"), "RAW": ("write", "read"), "RAR": ("write", "read", "read"),
}  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """One phase of the sequence; the last one is the measured one."""

    index: int
    operation: Literal["write", "read"]
    name: str
    """write, read, read-2...: names its step and its files."""
    access: str
    last: bool

    @property
    def role(self) -> Role:
        return "measured" if self.last else "setup"


def phases_of(workload: DataWorkload) -> list[Phase]:
    """Return the phases of a workload's access type, in order."""
    operations = _PHASES[workload.access_type]
    found = []
    for index, operation in enumerate(operations):
        earlier, last = operations[:index], index == len(operations) - 1
        again = earlier.count(operation)
        access = workload.access_type if last else _access_after(earlier, operation)
        name = f"{operation}-{again + 1}" if again else operation
        found.append(Phase(index, "write" if operation == "write" else "read", name, access, last))
    return found


def _access_after(before: tuple[str, ...], operation: str) -> str:
    if not before:
        return "WO" if operation == "write" else "RO"
    return f"{operation[0].upper()}A{before[-1][0].upper()}"


def steps_of(
    task: Task,
    argv: Callable[[Phase], tuple[str, ...]],
    launch: Literal["parallel", "once"] = "parallel",
    reorder: tuple[str, ...] = (),
) -> list[Step]:
    """Return one step for each phase, and the one that makes a read cold before it.

    `reorder`: iokernel's options that move readers away from writers, where several nodes read.
    """
    w = task.workload
    assert isinstance(w, DataWorkload)
    steps: list[Step] = []
    for phase in phases_of(w):
        if phase.last and w.wants_cold:
            ready = prepare_step(task, w, block_size(task, w), reorder)
            steps += [ready] if ready else []
        steps.append(Step(phase.name, argv(phase), launch))
    return steps


def measurements_of(task: Task, output: Path, measure: Callable[[Phase], Measurement]) -> list[Measurement]:
    """Return what `measure` reads of each phase, with its access type and what was in the page cache."""
    w = task.workload
    assert isinstance(w, DataWorkload)
    found = []
    for phase in phases_of(w):
        measurement = measure(phase)
        measurement.access = phase.access
        found.append(measurement)
    if w.operation == "read" and w.wants_cold:
        for key, value in residency(output).items():
            setattr(found[-1], key, value)
    return found


def block_size(task: Task, w: DataWorkload) -> int:
    """Return -b. Random order lies within a block, so then all of a process is one block."""
    if w.pattern == "random":
        return w.bytes_per_process(task.processes_per_node)
    return w.block_size or w.transfer_size


def offset_of(task: Task, w: DataWorkload) -> int:
    """Return how many processes away the writer of what a process reads is."""
    if w.reorder == "none" or (w.pattern == "random" and w.layout == "shared"):
        return 0
    distance = w.reorder if isinstance(w.reorder, int) else task.processes_per_node
    return distance % task.processes


def cross_node_fraction(task: Task, offset: int) -> float:
    """Return the share of processes that read what another node wrote, ranks filling node after node."""
    per, processes = task.processes_per_node, task.processes
    return sum(((r + offset) % processes) // per != r // per for r in range(processes)) / processes
