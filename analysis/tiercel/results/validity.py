"""Validity checks: what makes a number mean less than it seems, and what to do about it.

A check is a function of one row of observations under ``@check(...)``; to add one, write it here. It
answers True when the number does *not* pass. Missing values (None, NaN, pandas' NA) reach a check as None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tiercel.site.model import OBJECTS
from tiercel.units import format_share

Severity = Literal["info", "caution", "invalid"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Flag:
    """`severity`: info is worth knowing; caution may change a conclusion; invalid: not what was asked for."""

    code: str
    title: str
    advice: str
    severity: Severity


#: Above this share of the data in the page cache a read is not cold.
COLD = 0.01
#: Above this share of the cores in other hands a number is of a loaded machine.
LOADED = 0.25
#: Above this share of its scheduler periods a control group's CPU quota slows a run, not the storage.
THROTTLED = 0.05
#: Above this share of the cores a hypervisor took them away.
STOLEN = 0.05
#: Above this share of the time some task waited for a core that no other program used.
WAITED = 0.5
#: Below this share of a disk quota file systems write differently: XFS and Lustre stop allocating ahead.
QUOTA_LEFT = 0.05
#: Below this share of the memory that the site file says, a run had less than its node: the rest is the
#: system's (kernel, daemons, a file system's own page pool).
LESS_MEMORY = 0.75
#: A phase shorter than this is mostly start-up and clock.
SHORT_S = 0.05
#: A clock difference above this share of the phase distorts its times.
SKEW = 0.05

#: Pages of 4 KiB that come in less seconds come from memory: flash takes 40 to 100 us to read a cell alone.
AS_MEMORY = 40e-6
#: Below this share a read is cold behind the client, too.
SOME_BEHIND = 0.1
#: Set by the table of results once it knows behind_share, which other runs on the same storage help to tell.
CACHE_BEHIND = "cache-behind"

FLAGS: dict[str, Flag] = {}
_CHECKS: dict[str, Callable[[Row], bool]] = {}


def check(
    code: str, severity: Severity, title: str, advice: str
) -> Callable[[Callable[[Row], bool]], Callable[[Row], bool]]:
    """Return a decorator that files a check under `code`."""

    def file(function: Callable[[Row], bool]) -> Callable[[Row], bool]:
        FLAGS[code] = Flag(code, title, advice, severity)
        _CHECKS[code] = function
        return function

    return file


def flags_of(row: Row) -> list[str]:
    """Return the codes of the checks that `row` does not pass, in the order of this file."""
    return [code for code, failing in _CHECKS.items() if failing(row)]


def _simulated(row: Row) -> bool:
    """Whether there was neither a machine nor a clock to doubt."""
    return row.get("origin") == "simulated"


def _cold_wanted(row: Row) -> bool:
    reads = row["operation"] in ("read", "train", "evaluate", "checkpoint-read")
    return bool(reads and row["access"] == "RO" and row["role"] == "measured" and not _simulated(row))


@check(
    "cache-not-cold", "invalid", "Read from the page cache",
    "Part of the data was in memory before the read, so this is not the speed of the storage. Use more "
    "data than memory, `reorder: node` or `direct: true`.",
)  # fmt: skip
def _cache_not_cold(row: Row) -> bool:
    fraction = row["resident_fraction"]
    if fraction is None or row["memory_backed"] or row["direct"] or not _cold_wanted(row):
        return False
    return float(fraction) > COLD


@check(
    "cache-unknown", "caution", "Not proven cold",
    "The state of the page cache before this read is unknown: the file system does not report it (column "
    "resident_unknown), or iokernel is not installed. Use more data than memory, or `direct: true`.",
)  # fmt: skip
def _cache_unknown(row: Row) -> bool:
    unknown = row["resident_fraction"] is None and row["storage_type"] != OBJECTS
    return _cold_wanted(row) and unknown and not row["direct"]


@check(
    "server-cache", "caution", "Possibly from the server's cache",
    "Object servers may answer from memory, and a client cannot check this. Use more data than the "
    "servers' memory.",
)  # fmt: skip
def _server_cache(row: Row) -> bool:
    return _cold_wanted(row) and row["storage_type"] == OBJECTS


def behind_share(row: Row, slowest_hit: float | None = None) -> float | None:
    """Return which share of a cold read came from a cache behind the client; None where none can tell.

    A cache is seen where some pages were slower the first time than right after it. Where none was, only
    speed tells: faster than flash, on a device that is not (AS_MEMORY), or no slower than `slowest_hit`,
    below which other runs on the same storage saw hits alone.
    """
    alike, hit = row["behind_alike"], row["behind_hit_time"]
    if None in (alike, hit) or not _cold_wanted(row) or row["memory_backed"] or row["layer"] != "none":
        return None
    if row["behind_miss_time"] is not None:
        return float(alike)
    remote = row["medium"] == "network"
    as_memory = hit < AS_MEMORY and (remote or row["fast_medium"] is False)
    return float(alike) if as_memory or (slowest_hit is not None and hit < slowest_hit) else None


@check(
    CACHE_BEHIND, "caution", "Possibly from a server-side cache",
    "The client's page cache was empty, but the data arrived at memory speed. Use more data than the "
    "server can cache, or set `rest:` so that its cache expires.",
)  # fmt: skip
def _cache_behind(row: Row) -> bool:
    return row["behind_share"] is not None and row["behind_share"] >= SOME_BEHIND


@check(
    "memory-storage", "info", "Storage is memory",
    "tmpfs is memory: its reads are never cold. Use it as the upper bound of this machine.",
)  # fmt: skip
def _memory_storage(row: Row) -> bool:
    return bool(row["medium"] == "memory" or row["memory_backed"])


@check(
    "smaller-than-memory", "caution", "Written to memory",
    "The data fits in the page cache and was not synced, so this is the speed of memory. Set `fsync: "
    "phase`, or write more than the memory of the nodes.",
)  # fmt: skip
def _smaller_than_memory(row: Row) -> bool:
    moved, memory, nodes = row["bytes_moved"], row["memory_bytes"], row["nodes"]
    return (
        row["operation"] == "write"
        and row["medium"] != "memory"
        and row["fsync"] == "none"
        and not row["direct"]
        and None not in (moved, memory, nodes)
        and moved < memory * nodes
    )


@check(
    "short-data", "invalid", "Moved less than planned",
    "The engine moved fewer bytes than the workload requests, without a time limit. Read the stderr file "
    "in the folder of the run.",
)  # fmt: skip
def _short_data(row: Row) -> bool:
    moved, expected = row["bytes_moved"], row["bytes_expected"]
    return not row["stonewall_hit"] and None not in (moved, expected) and moved < expected


@check(
    "stonewall-early", "caution", "Cut by the time limit",
    "The stonewall ended the phase early, so caches and start-up have more weight. Raise `stonewall`, or "
    "set `wear_out`.",
)  # fmt: skip
def _stonewall(row: Row) -> bool:
    return bool(row["stonewall_hit"])


@check(
    "short-phase", "caution", "Too short",
    f"The phase took less than {SHORT_S * 1000:.0f} ms, so start-up and clock resolution matter. Use "
    "more data or items.",
)  # fmt: skip
def _short_phase(row: Row) -> bool:
    return row["total_time"] is not None and row["total_time"] < SHORT_S and not _simulated(row)


@check(
    "few-steps", "caution", "Too few steps",
    "Too few steps to exclude the first one from the accelerator utilisation (AU), and the first step "
    "waits longest. Use more data (`scale`), smaller batches or a smaller `metric.exclude_start_steps`.",
)  # fmt: skip
def _few_steps(row: Row) -> bool:
    return bool(row.get("au_short")) and bool(row.get("computation_time"))


@check(
    "inodes-remembered", "caution", "Slowed by earlier deletions",
    "ext4 without a journal reuses a freed inode only after minutes and searches for free ones meanwhile. "
    "File creation after deletions can be up to 40 times slower. Measure on the file system that your "
    "users have.",
)  # fmt: skip
def _inodes_remembered(row: Row) -> bool:
    return (
        row["journal"] is not None
        and not row["journal"]
        and row["operation"] in ("file-create", "directory-create")
    )


@check(
    "clock-skew", "caution", "Clocks differ",
    "The clocks of the nodes differ by more than 5 % of the phase. Check their time service.",
)  # fmt: skip
def _clock_skew(row: Row) -> bool:
    skew, total = row["clock_skew"], row["total_time"]
    return None not in (skew, total) and row["nodes"] != 1 and skew > SKEW * total


@check(
    "loaded-machine", "caution", "Machine not idle",
    f"Other programs used more than {format_share(LOADED)} of the cores during the run. Repeat it on an idle "
    "machine or in an exclusive allocation.",
)  # fmt: skip
def _loaded_machine(row: Row) -> bool:
    return row["others_cpu"] is not None and row["others_cpu"] > LOADED


@check(
    "cpu-throttled", "caution", "CPU quota used up",
    "The container or job had less processor time than its processes needed, so its CPU quota limited the "
    "numbers and not the storage. Raise the quota, or use fewer processes.",
)  # fmt: skip
def _cpu_throttled(row: Row) -> bool:
    if row["throttled"] is not None:
        return bool(row["throttled"] > THROTTLED)
    # A quota outside the container is not seen: then tasks wait for cores that no other program uses.
    waited, others, cores = row["psi_cpu_during"], row["others_cpu"], row["cores"]
    if None in (waited, others, cores, row["processes_per_node"]):
        return False
    return bool(waited > WAITED and others <= LOADED and row["processes_per_node"] <= cores)


@check(
    "stolen-time", "caution", "Cores taken by the hypervisor",
    f"The hypervisor gave more than {format_share(STOLEN)} of this virtual machine's cores to others during "
    "the run. Repeat it on a dedicated host.",
)  # fmt: skip
def _stolen_time(row: Row) -> bool:
    return row["stolen_cpu"] is not None and row["stolen_cpu"] > STOLEN


@check(
    "near-quota", "caution", "Disk quota nearly used up",
    f"Less than {format_share(QUOTA_LEFT)} of the user's disk quota was left, and file systems allocate more "
    "slowly near a quota. Free space, or ask for a larger quota.",
)  # fmt: skip
def _near_quota(row: Row) -> bool:
    quota, left = row["quota_bytes"], row["quota_left_bytes"]
    return None not in (quota, left) and left < QUOTA_LEFT * quota


@check(
    "less-memory", "caution", "Memory limit below the node's memory",
    f"The job or container may use less than {format_share(LESS_MEMORY)} of the node's memory, so caches "
    "were smaller than usual. Request all memory, or correct `memory_per_node` in the site file.",
)  # fmt: skip
def _less_memory(row: Row) -> bool:
    # What the site file states is what users get; where it states nothing, the node's memory counts.
    memory, node = row["memory_bytes"], row["site_memory_bytes"] or row["node_memory_bytes"]
    return None not in (memory, node) and memory < LESS_MEMORY * node


@check(
    "fewer-cores", "caution", "More processes than cores",
    "The node had fewer cores than processes. Use fewer processes, or give jobs all cores without binding "
    "(`bsub -core_isolation 0`, `srun --cpu-bind=none`).",
)  # fmt: skip
def _fewer_cores(row: Row) -> bool:
    cores, processes = row["cores"], row["processes_per_node"]
    return None not in (cores, processes) and cores < processes


@check(
    "same-node", "caution", "Read on the node that wrote it",
    "Some processes read data that their own node wrote, so its cache may have served them. Use `reorder: "
    "node`.",
)  # fmt: skip
def _same_node(row: Row) -> bool:
    share = row["cross_node_fraction"]
    # What a node's own disk holds no other node can read: there the eviction before the read is the proof.
    elsewhere = row["nodes"] != 1 and row["medium"] != "disk"
    return _cold_wanted(row) and elsewhere and share is not None and share < 1


@check(
    "figures-missing", "invalid", "Upper bound only: figures are missing",
    "The topology in the site file has stages without figures, so this is only an upper bound. Add the "
    "figures of the stages in column figures_missing, each with its source.",
)  # fmt: skip
def _figures_missing(row: Row) -> bool:
    return bool(row.get("figures_missing"))


#: Set by the table of results, which sees all storages.
ONE_CACHE = "cache-on-one-side"
FLAGS[ONE_CACHE] = Flag(
    ONE_CACHE,
    "Fits in memory here, not elsewhere",
    "`phase_time` gave another storage more data than memory and this one less, so a cache may cause part of "
    "the difference. Set a size instead of `phase_time`, or use `direct: true`.",
    "caution",
)

#: Set by the table of results, which sees all runs that are compared (results.sessions).
SESSIONS = "sessions-differ"
FLAGS[SESSIONS] = Flag(
    SESSIONS,
    "Different session layout",
    "The processes of this run were grouped in sessions differently from those of most other runs, and the "
    "kernel shares processors between sessions. Start all runs in the same way, and measure these again.",
    "caution",
)

#: Set by the table of results, which sees all repetitions of a configuration, not by a check on one row.
TOO_FEW = "too-few-repetitions"
FLAGS[TOO_FEW] = Flag(
    TOO_FEW,
    "Too few repetitions",
    "Fewer than three valid repetitions, so the interval is wide or unknown. Finish the study, check its "
    "failed runs, or raise its repetitions or budget.",
    "caution",
)
