"""What a cache of a stage serves or takes, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.ceilings import ceiling_for, missing
from tiercel.ceilings.study import demand_of
from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.site.model import Storage
from tiercel.study.workloads import DataWorkload

GB = 10**9
MEMORY = {"stage": "client", "label": "memory", "bandwidth": "20GB/s", "per_node": True, "cache": 8 * GB}
LINK = {"stage": "client", "label": "link", "bandwidth": "10GB/s", "per_node": True}
SERVERS = {"stage": "server", "bandwidth": "5GB/s", "units": 2, "read_cache": 10 * GB, "write_cache": 2 * GB}
DISKS = {"stage": "media", "bandwidth": "1GB/s"}
WAY = [
    MEMORY,
    LINK,
    {"stage": "gateway", "absent": True},
    SERVERS,
    {"stage": "fabric", "absent": True},
    DISKS,
]


def storage(stages: list[dict[str, Any]]) -> Storage:
    return parse(
        Storage,
        {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network", "topology": stages},
        "here",
    )


def rate(nodes: int, each: int, operation: str = "read", **keys: Any) -> tuple[float, str]:
    """Return the ceiling of one process on each node with `each` bytes."""
    given = {"operation": operation, "transfer_size": 10**6, "data_per_process": each, **keys}
    demand = demand_of(DataWorkload.model_validate(given), nodes, 1)
    assert demand is not None
    found = ceiling_for(storage(WAY), demand)
    assert found is not None and found.unknown == ()
    return found.rate, found.stage.name


def test_cold_reads_of_what_fits_the_servers_never_reach_the_disks() -> None:
    # Two servers keep 20 GB. Eight nodes of 2 GB fit, nine of 3 GB do not, and in order nothing is
    # left of what comes first.
    assert rate(8, 2 * GB) == (10e9, "server")
    assert rate(9, 3 * GB) == (1e9, "media")


def test_in_random_order_the_part_that_is_there_is_served() -> None:
    # 20 of 40 GB lie in the servers: half of the bytes pass disks of 1 GB/s.
    assert rate(8, 5 * GB, pattern="random") == (pytest.approx(2e9), "media")


def test_the_nodes_memory_serves_what_the_same_node_read_or_wrote() -> None:
    assert rate(2, 8 * GB, access="RAW", reorder="none") == (40e9, "memory")
    assert rate(2, 8 * GB, access="RAR", reorder=0) == (40e9, "memory")
    # Another node's, evicted before, or past the page cache: the link, and what fits the servers.
    assert rate(2, 8 * GB, access="RAW") == (10e9, "server")
    assert rate(1, 8 * GB) == (10e9, "link")
    assert rate(1, 8 * GB, access="RAW", direct=True) == (10e9, "link")


def test_writes_fill_one_cache_after_the_other() -> None:
    # Two nodes of 10 GB: 16 GB stay in the nodes, 4 GB go on, and the servers take 4 GB before the disks.
    assert rate(2, 10 * GB, "write") == (40e9, "memory")
    # 20 GB each: 24 of 40 GB pass the links and the servers, 20 of 40 the disks.
    assert rate(2, 20 * GB, "write") == (pytest.approx(2e9), "media")


def test_what_is_synced_does_not_stay_in_the_nodes() -> None:
    # 20 GB reach the servers, which answer for 4 GB: 16 of 20 GB pass the disks.
    for keys in ({"fsync": "phase"}, {"fsync": "write"}, {"direct": True}):
        assert rate(2, 10 * GB, "write", **keys) == (pytest.approx(1.25e9), "media"), keys


def test_what_nothing_reaches_is_not_missing() -> None:
    short = storage([MEMORY, {"stage": "server"}])
    workload = DataWorkload(operation="read", data_per_process=GB, access="RAW", reorder="none")
    demand = demand_of(workload, 1, 1)
    assert demand is not None and missing(short, demand) == ()
    cold = demand_of(workload.model_copy(update={"access": "RO"}), 1, 1)
    assert cold is not None and missing(short, cold) == ("server", "gateway", "fabric", "media")


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([{"stage": "client", "cache": 0}], "cache: "),
        ([{"stage": "client", "cache": 8 * GB, "read_cache": 8 * GB}], "give cache, or read_cache"),
        ([{"stage": "client", "absent": True, "cache": 8 * GB}], "absent: true, and it has cache"),
        ([LINK, {**DISKS, "label": "link"}], "two stages are called link: give each a label of its own"),
        ([DISKS, LINK], "client stands behind media"),
        ([LINK, DISKS, SERVERS], "server stands behind media"),
    ],
)
def test_a_way_that_is_none(stages: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        storage(stages)
