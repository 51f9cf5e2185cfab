"""The conditions under which a run goes: load, pressure, mount options, free space.

Sources: proc(5); ext4(5); pressure stall information: Documentation/accounting/psi.rst of Linux.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.runs.device import fast_by_itself
from tiercel.runs.quota import quota_of
from tiercel.site.machine import cores, memory, memory_limit, throttling, whole_memory
from tiercel.site.model import Stack
from tiercel.site.mounts import Mount, mount_of, read_mounts
from tiercel.site.objects import location_of


@dataclass(frozen=True)
class Sample:
    """Counters of this node at one moment."""

    monotonic: float
    load1: float
    busy_cpu: float | None
    """CPU seconds that all cores spent working since boot."""
    children_cpu: float
    """CPU seconds of this process' ended children."""
    stolen_cpu: float | None
    """CPU seconds since boot in which a core was ready and its hypervisor ran something else."""
    throttling: dict[str, tuple[int, int]]
    """Of each control group with a CPU quota: periods, and those in which the quota was used up."""
    pressure: dict[str, dict[str, float]]
    """cpu, io, memory: share of the last 10 s (avg10) and seconds in all (total) some task waited."""

    @classmethod
    def take(cls) -> Sample:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(
            monotonic=time.monotonic(),
            load1=os.getloadavg()[0],
            busy_cpu=_cpu("user", "nice", "system", "irq", "softirq"),
            stolen_cpu=_cpu("steal"),
            throttling=throttling(),
            children_cpu=children.ru_utime + children.ru_stime,
            pressure={kind: p for kind in ("cpu", "io", "memory") if (p := _pressure(kind))},
        )


def surroundings(stack: Stack) -> dict[str, Any]:
    """Return what a run's numbers hang on and no command line shows."""
    return {
        **_of_storage(stack),
        "host": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "memory_bytes": memory(),
        "memory_limit_bytes": memory_limit(),
        "node_memory_bytes": whole_memory(),
        "cores": cores(),
        "autogroup": _flag("/proc/sys/kernel/sched_autogroup_enabled"),
    }


def _of_storage(stack: Stack) -> dict[str, Any]:
    if stack.storage.objects:
        server = location_of(stack.storage).endpoint
        style = "bucket in the path" if server.in_path else "bucket in the host's name"
        return {"mount_options": f"{server.url}, {server.region}, {style}", "free_bytes": None}
    folder = stack.storage.scratch_path()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    mount = mount_of(existing, read_mounts())
    space = os.statvfs(existing)
    quota, left = quota_of(existing)
    return {
        "mount_options": mount.options if mount else "",
        "quota_bytes": quota,
        "quota_left_bytes": left,
        "journal": journal(mount),
        "fast_medium": fast_by_itself(mount),
        "free_bytes": space.f_bavail * space.f_frsize,
    }


def journal(mount: Mount | None, proc: Path = Path("/proc/fs/ext4")) -> bool | None:
    """Return whether ext4 keeps a journal on `mount`; None for other file systems, or where it is not said.

    /proc/mounts leaves defaults out; of ext4's own list of options ``data=`` is there with a journal only.
    """
    if mount is None or mount.type != "ext4":
        return None
    try:
        options = (proc / Path(mount.source).resolve().name / "options").read_text()
    except OSError:
        return None
    return any(option.startswith("data=") for option in options.splitlines())


def between(before: Sample, after: Sample) -> dict[str, Any]:
    """Return what happened on this node between two samples, for ``context.json``."""
    seconds = max(after.monotonic - before.monotonic, 1e-9)
    result: dict[str, Any] = {"load1_before": before.load1, "load1_after": after.load1}
    if before.busy_cpu is not None and after.busy_cpu is not None:
        others = (after.busy_cpu - before.busy_cpu) - (after.children_cpu - before.children_cpu)
        # Whole ticks of 10 ms on one side, exact times on the other: never below zero.
        result["others_cpu"] = max(0.0, others / seconds / os.sysconf("SC_NPROCESSORS_ONLN"))
    if before.stolen_cpu is not None and after.stolen_cpu is not None:
        cores = os.sysconf("SC_NPROCESSORS_ONLN")
        result["stolen_cpu"] = max(0.0, after.stolen_cpu - before.stolen_cpu) / seconds / cores
    periods = [
        (
            (throttled - before.throttling.get(group, (0, 0))[1]),
            count - before.throttling.get(group, (0, 0))[0],
        )
        for group, (count, throttled) in after.throttling.items()
    ]
    result["throttled"] = max((part / count for part, count in periods if count > 0), default=None)
    for kind, pressure in after.pressure.items():
        if kind in before.pressure:
            result[f"psi_{kind}_before"] = before.pressure[kind]["avg10"] / 100
            waited = pressure["total"] - before.pressure[kind]["total"]
            result[f"psi_{kind}_during"] = min(1.0, waited / seconds)
    return result


def _cpu(*kinds: str) -> float | None:
    """Return the CPU seconds of these kinds that all cores have spent since boot."""
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    spent = dict(zip(names, map(int, first[1:]), strict=False))
    if not spent.keys() >= set(kinds):
        return None
    return sum(spent[kind] for kind in kinds) / os.sysconf("SC_CLK_TCK")


def _pressure(kind: str) -> dict[str, float] | None:
    try:
        some = Path(f"/proc/pressure/{kind}").read_text().splitlines()[0]
    except (OSError, IndexError):  # a kernel without PSI
        return None
    fields = dict(part.split("=") for part in some.split()[1:])
    return {"avg10": float(fields["avg10"]), "total": int(fields["total"]) / 1e6}


def _flag(path: str) -> bool | None:
    try:
        return Path(path).read_text().strip() == "1"
    except OSError:
        return None
