"""Validity checks: each on both sides of its threshold."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.results import schema
from tiercel.results.validity import FLAGS, behind_share, flags_of

GIB = 1024**3

#: A cold read on a disk that passes every check.
READ: dict[str, Any] = {
    **dict.fromkeys(c.name for c in schema.OBSERVATIONS),
    "operation": "read", "access": "RO", "role": "measured", "medium": "disk", "nodes": 1, "direct": False,
    "memory_backed": False, "resident_fraction": 0.0, "bytes_moved": GIB, "bytes_expected": GIB,
    "total_time": 1.0, "others_cpu": 0.01, "clock_skew": 0.0, "memory_bytes": 4 * GIB, "fsync": "none",
}  # fmt: skip
WRITE = {**READ, "operation": "write", "access": "WO", "resident_fraction": None, "fsync": "phase"}


def test_good_numbers_have_no_flags() -> None:
    assert flags_of(READ) == []
    assert flags_of(WRITE) == []


@pytest.mark.parametrize(
    ("base", "change", "flags"),
    [
        (READ, {"resident_fraction": 0.011}, ["cache-not-cold"]),
        (READ, {"resident_fraction": 0.01}, []),
        (READ, {"resident_fraction": 0.9, "access": "RAW"}, []),  # a warm read was asked for
        (READ, {"resident_fraction": 0.9, "direct": True}, []),  # O_DIRECT passes the cache by
        (READ, {"resident_fraction": 1.0, "memory_backed": True, "medium": "memory"}, ["memory-storage"]),
        (READ, {"resident_fraction": None}, ["cache-unknown"]),
        (READ, {"role": "setup", "resident_fraction": None}, []),
        (WRITE, {"fsync": "none"}, ["smaller-than-memory"]),
        (WRITE, {"fsync": "none", "bytes_moved": 4 * GIB, "bytes_expected": 4 * GIB}, []),
        (WRITE, {"fsync": "none", "nodes": 2, "bytes_moved": 4 * GIB, "bytes_expected": 4 * GIB},
         ["smaller-than-memory"]),
        (WRITE, {"fsync": "none", "direct": True}, []),
        (READ, {"bytes_moved": GIB - 1}, ["short-data"]),
        (READ, {"bytes_moved": GIB - 1, "stonewall_hit": True}, ["stonewall-early"]),
        (READ, {"total_time": 0.049}, ["short-phase"]),
        (WRITE, {"operation": "file-create", "journal": False}, ["inodes-remembered"]),
        (WRITE, {"operation": "directory-create", "journal": False}, ["inodes-remembered"]),
        (WRITE, {"operation": "file-create", "journal": True}, []),
        (WRITE, {"operation": "file-create", "journal": None}, []),  # XFS, say
        (WRITE, {"operation": "file-remove", "journal": False}, []),
        (READ, {"clock_skew": 0.06}, []),  # one node has one clock
        (READ, {"clock_skew": 0.06, "nodes": 2, "cross_node_fraction": 1.0}, ["clock-skew"]),
        (READ, {"clock_skew": 0.04, "nodes": 2, "cross_node_fraction": 1.0}, []),
        (READ, {"nodes": 2, "cross_node_fraction": 0.5, "medium": "network"}, ["same-node"]),
        (READ, {"nodes": 2, "cross_node_fraction": 0.0}, []),  # each node's own disk: nobody else can
        (READ, {"others_cpu": 0.26}, ["loaded-machine"]),
        # What the kernel and its daemons take of a node is no limit; a job's share of a node is one.
        (READ, {"memory_bytes": 240 * GIB, "site_memory_bytes": 256 * GIB}, []),
        (READ, {"memory_bytes": 191 * GIB, "site_memory_bytes": 256 * GIB}, ["less-memory"]),
        (READ, {"memory_bytes": GIB, "site_memory_bytes": None}, []),
        # A container's limit, where the site file states nothing: 3 of 4 GiB are 75 %.
        (READ, {"memory_bytes": 3 * GIB, "node_memory_bytes": 4 * GIB}, []),
        (READ, {"memory_bytes": 3 * GIB - 1, "node_memory_bytes": 4 * GIB}, ["less-memory"]),
        (READ, {"memory_bytes": 3 * GIB, "site_memory_bytes": 3 * GIB, "node_memory_bytes": 9 * GIB}, []),
        # 656 of 658 periods throttled; and a quota that is not seen from inside: tasks wait for idle cores.
        (READ, {"throttled": 656 / 658}, ["cpu-throttled"]),
        (READ, {"throttled": 0.05}, []),
        (READ, {"psi_cpu_during": 0.57, "cores": 2, "processes_per_node": 2}, ["cpu-throttled"]),
        (READ, {"psi_cpu_during": 0.57, "cores": 2, "processes_per_node": 2, "throttled": 0.0}, []),
        (READ, {"psi_cpu_during": 0.57, "cores": 2, "processes_per_node": 4}, ["fewer-cores"]),
        (READ, {"psi_cpu_during": 0.57, "cores": 2, "processes_per_node": 2, "others_cpu": 0.5},
         ["loaded-machine"]),
        (READ, {"stolen_cpu": 0.06}, ["stolen-time"]),
        (READ, {"stolen_cpu": 0.05}, []),
        (READ, {"quota_bytes": 100 * GIB, "quota_left_bytes": 4 * GIB}, ["near-quota"]),
        (READ, {"quota_bytes": 100 * GIB, "quota_left_bytes": 5 * GIB}, []),
        (READ, {"behind_share": 0.1}, ["cache-behind"]),
        (READ, {"behind_share": 0.09}, []),
        (READ, {"behind_share": None}, []),
        # Of four blocks one had no step to leave out; without computation there is no utilisation.
        (READ, {"operation": "train", "au_short": 0.25, "computation_time": 0.3}, ["few-steps"]),
        (READ, {"operation": "train", "au_short": 0.25, "computation_time": 0.0}, []),
        (READ, {"operation": "train", "au_short": 0.0, "computation_time": 0.3}, []),
        (READ, {"cores": 44, "processes_per_node": 44}, []),
        (READ, {"cores": 40, "processes_per_node": 44}, ["fewer-cores"]),
    ],
)  # fmt: skip
def test_checks(base: dict[str, Any], change: dict[str, Any], flags: list[str]) -> None:
    assert flags_of({**base, **change}) == flags


def test_every_flag_says_what_to_do() -> None:
    for flag in FLAGS.values():
        assert flag.title and flag.advice.endswith(".")
        assert flag.severity in ("info", "caution", "invalid")


#: A cold read of which single pages came in 15 us, the first time as the second.
TOUCHED = {
    **READ, "layer": "none", "behind_alike": 1.0, "behind_hit_time": 15e-6, "behind_miss_time": None,
    "fast_medium": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({}, 1.0),  # no flash behind a virtual disk is so quick
        ({"behind_hit_time": 41e-6}, None),  # some may be: nobody can tell
        ({"fast_medium": True}, None),  # NVMe, persistent memory: no cache behind
        ({"fast_medium": None}, None),  # an overlay: whatever it lies on
        ({"fast_medium": None, "medium": "network"}, 1.0),
        ({"memory_backed": True, "medium": "memory"}, None),
        ({"layer": "fairshare"}, None),  # a layer keeps data on purpose
        ({"access": "RAR"}, None),  # nobody asked for a cold one
        # Misses were seen: there is a cache, however slow, on whatever device.
        ({"behind_miss_time": 1e-3, "behind_alike": 0.3, "behind_hit_time": 2e-4, "fast_medium": True}, 0.3),
        ({"behind_miss_time": 1e-3, "behind_alike": None}, None),
        ({"behind_hit_time": None, "behind_alike": None}, None),
    ],
)
def test_what_came_from_behind_the_client(change: dict[str, Any], share: float | None) -> None:
    assert behind_share({**TOUCHED, **change}) == share


def test_what_other_runs_saw_tells_hits_from_misses() -> None:
    slow = {**TOUCHED, "behind_hit_time": 200e-6, "medium": "network", "fast_medium": None}
    assert behind_share(slow) is None
    assert behind_share(slow, slowest_hit=150e-6) is None
    assert behind_share(slow, slowest_hit=250e-6) == 1.0
