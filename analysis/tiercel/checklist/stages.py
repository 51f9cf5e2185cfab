"""What the storages of this machine carry, found by small runs: ``tiercel site calibrate``.

A storage's figures are of the whole way from a process to the media and back, as processes see it, so they
stand for all stages (`Stage.whole`). The runs are runs as any; raw folders stay below
``results/<site>/calibration``.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tiercel.checklist.memory import MIB, memory_copy, page_cache
from tiercel.checklist.wire import wire
from tiercel.engines import Measurement, engines
from tiercel.errors import UserError
from tiercel.launchers import resolve
from tiercel.pages.words import count
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, execute
from tiercel.site.model import Site, Stack
from tiercel.site.topology import CALIBRATED, Stage
from tiercel.study.plan import Configuration, Run, digest
from tiercel.study.workloads import DataWorkload, MetadataWorkload, Workload
from tiercel.units import format_size

#: How often each thing is measured; the median counts.
REPETITIONS = 3
#: So many times the slowest of the repetitions may the quickest be before the median says little.
UNSTEADY = 2.0
#: Small transfers: what a device calls an operation.
SMALL = 4096
#: Of a trial whose speed tells how much is measured.
_TRIAL, _FEW = 8 * MIB, 64


@dataclass(frozen=True)
class Bench:
    """Where and how runs are measured."""

    site: Site
    stack: Stack
    results: Path
    seconds: float
    """What one measurement aims at."""
    unsteady: dict[str, float] = field(default_factory=dict)
    """What was measured whose repetitions lie far apart: how many times the slowest the quickest was."""

    def steady(self, what: str, processes: int, rates: Sequence[float]) -> None:
        """Keep in mind where repetitions lie far apart."""
        apart = max(rates) / min(rates) if min(rates) > 0 else math.inf
        if apart > UNSTEADY:
            self.unsteady[f"{what} by {count(processes, 'process', 'processes')}"] = apart

    def measure(self, workload: Workload, processes: int, repetition: int = 0) -> list[Measurement]:
        """Carry out one run on this machine and return what it measured; UserError for a failed one."""
        engine = engines.get("iokernel")()
        installation = engine.find()
        if installation is None or "fork" not in installation.programs:
            raise UserError("engine iokernel: not installed: make setup builds it")
        # Of its own name each time: nothing measured before counts again.
        name = f"c{digest([time.time_ns(), workload.model_dump(mode='json')])}"
        run = Run(
            Configuration(
                self.site.site, "calibration", "calibration", name, workload, self.stack, "iokernel",
                installation.version, "fork", 1, processes, 1,
            ),
            repetition,
        )  # fmt: skip
        equipment = Equipment(engine, installation, resolve("fork"), RawStore(self.results), 600.0)
        outcome = execute(run, equipment)
        if outcome.status != "ok":
            raise UserError(f"{self.stack.name}: {outcome.reason}")
        return [m for m in outcome.measurements if m.role == "measured"]

    def bandwidth(self, operation: str, processes: int, **keys: Any) -> Measurement:
        """Return the median of runs that last about `seconds`, by a trial's speed."""

        def of(amount: int) -> DataWorkload:
            given = {"operation": operation, "transfer_size": MIB, "data_per_process": amount, **keys}
            if operation == "read":
                given = {"reorder": "none", **given}
            return DataWorkload.model_validate(given)

        size = keys.get("transfer_size", MIB)
        trial = self.measure(of(_TRIAL if size >= MIB else _FEW * size), processes)[-1]
        assert trial.bandwidth is not None
        amount = max(size, int(trial.bandwidth * self.seconds / processes) // size * size)
        most = (self.site.memory_per_node or 8 * 1024**3) // 4 // processes
        workload = of(min(amount, max(size, most // size * size)))
        found = [self.measure(workload, processes, n)[-1] for n in range(REPETITIONS)]
        self.steady(f"{operation}s of {format_size(size)}", processes, [m.bandwidth or 0.0 for m in found])
        return sorted(found, key=lambda m: m.bandwidth or 0.0)[len(found) // 2]

    def metadata(self, processes: int) -> dict[str, float]:
        """Return creates, stats... of files per second, by their kind."""

        def of(items: int) -> MetadataWorkload:
            return MetadataWorkload(
                operation="metadata", items_per_process=items, directories=False, reorder="none",
                phases=["create", "stat", "read", "rename", "remove"],
            )  # fmt: skip

        def rates(items: int) -> dict[str, float]:
            found = self.measure(of(items), processes)
            return {m.operation.removeprefix("file-"): m.operation_rate or 0.0 for m in found}

        trial = rates(_FEW)
        items = max(_FEW, min(20_000, int(trial["create"] * self.seconds / processes)))
        several = [rates(items) for _ in range(REPETITIONS)]
        for action in trial:
            self.steady(f"{action} of files", processes, [each[action] for each in several])
        return {action: median(each[action] for each in several) for action in trial}


def calibrate(
    site: Site, results: Path, names: list[str], seconds: float, say: Callable[[str], None]
) -> tuple[dict[str, list[Stage]], list[str]]:
    """Return the stages that were found for each storage, and sentences: on what was left out, and on figures
    whose repetitions lie far apart.

    `names`: the storages; all of the site for none. UserError for an unknown one.
    """
    if unknown := [name for name in names if name not in site.storages]:
        raise UserError(
            f"site {site.site}: no storage {unknown[0]!r} (there are: {', '.join(site.storages)})"
        )
    stages: dict[str, list[Stage]] = {}
    left_out: list[str] = []
    source = f"{CALIBRATED}, {datetime.now(UTC):%Y-%m-%d} (tiercel site calibrate)"
    copies = memory_copy(site.processes_per_node)
    several = site.nodes > 1 or site.scheduler is not None
    for name in names or site.storages:
        storage = site.storages[name]
        if storage.objects:
            left_out.append(f"{name}: object storage is not calibrated")
            continue
        if several and storage.shared:
            left_out.append(
                f"{name}: all nodes share it, and one node does not reach what it carries for all"
            )
            continue
        say(name)
        bench = Bench(site, Stack(name, storage), results, seconds)
        try:
            found = storage_stage(bench, site.processes_per_node)
            memory = memory_stage(bench, site.processes_per_node, copies)
        except UserError as error:
            left_out.append(str(error))
            continue
        link = wire(storage.source, seconds) if storage.medium == "network" else None
        if storage.medium == "network" and link is None:
            left_out.append(f"{name}: its link: nobody says what it carries")
        before = [memory, *([{**link, "stage": "client"}] if link else [])]
        ways = [{**passed(way, found), "per_node": True} for way in before]
        ways += [{**found, "per_node": several}]
        left_out += unsteady(bench)
        stages[name] = [Stage.model_validate({**way, "source": source}) for way in ways]
    return stages, left_out


def unsteady(bench: Bench) -> list[str]:
    """Return a sentence on figures that another day may give otherwise; nothing where all are steady."""
    if not bench.unsteady:
        return []
    worst = [f"{what} ({apart:.3g} times)" for what, apart in bench.unsteady.items()]
    return [
        f"{bench.stack.name}: unsteady, so of little use: {', '.join(worst)} from the slowest to the "
        f"quickest of {REPETITIONS}: calibrate when the machine is quiet (load now {os.getloadavg()[0]:.1f})"
    ]


def memory_stage(bench: Bench, processes: int, copies: float) -> dict[str, Any]:
    """Return the figures of the node's memory as keys of a stage; `copies`: bytes per second copied in it.

    Before a storage lies the page cache: what all processes read from it and write into it, and its room.
    """
    stage = {"stage": "client", "label": "memory of the node"}
    kept = {} if bench.stack.storage.medium == "memory" else page_cache()
    if not kept:
        return {**stage, "bandwidth": copies}
    warm = bench.bandwidth("read", processes, access="RAW").bandwidth or copies
    unsynced = bench.bandwidth("write", processes).bandwidth or copies
    return {**stage, **kept, "read_bandwidth": min(copies, warm), "write_bandwidth": min(copies, unsynced)}


def passed(stage: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Return a stage on the way that carries, at least, what was found from end to end: it went over it."""
    rest = {key: value for key, value in stage.items() if key != "bandwidth"}
    carries = {
        key: max(stage.get(key) or stage.get("bandwidth") or 0.0, whole[key])
        for key in ("read_bandwidth", "write_bandwidth")
    }
    return {**rest, **carries}


def storage_stage(bench: Bench, processes: int) -> dict[str, Any]:
    """Return the figures of a storage as keys of a stage."""
    write = bench.bandwidth("write", processes, fsync="phase")
    read = bench.bandwidth("read", processes)
    small = {"transfer_size": SMALL}
    synced = bench.bandwidth("write", 1, fsync="write", **small)
    direct = _direct(bench)
    waited = bench.bandwidth("read", 1, pattern="random", **direct, **small)
    # All processes at once: what the storage begins when it never has to wait for one of them.
    many_synced = bench.bandwidth("write", processes, fsync="write", **small)
    many = bench.bandwidth("read", processes, pattern="random", **direct, **small)
    together, alone = bench.metadata(processes), bench.metadata(1)
    return {
        "stage": "media",
        "label": "as processes see it",
        "whole": True,
        "write_bandwidth": write.bandwidth,
        "read_bandwidth": read.bandwidth,
        "write_latency": _latency(synced, write),
        "read_latency": _latency(waited, read),
        "write_operations": many_synced.operation_rate,
        "read_operations": many.operation_rate,
        "metadata": together,
        "metadata_latency": {action: 1 / rate for action, rate in alone.items()},
    }


def _direct(bench: Bench) -> dict[str, Any]:
    """Return the keys of reads past the page cache, where the storage allows them; else cold ones it is."""
    probe = DataWorkload.model_validate(
        {
            "operation": "read",
            "direct": True,
            "transfer_size": SMALL,
            "data_per_process": SMALL,
            "reorder": "none",
        }
    )
    try:
        bench.measure(probe, 1)
    except UserError:
        return {}
    return {"direct": True}


def _latency(small: Measurement, large: Measurement) -> float:
    """Return what one operation takes beside moving its bytes."""
    assert small.operation_rate and large.bandwidth
    return max(1e-7, 1 / small.operation_rate - SMALL / large.bandwidth)
