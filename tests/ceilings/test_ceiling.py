"""Ceilings by bandwidth, operations and latency, from hand-made topologies."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.ceilings import Demand, ceiling_for, ceiling_of, missing
from tiercel.ceilings.study import demand_of
from tiercel.site.model import Storage
from tiercel.study.workloads.data import DataWorkload
from tiercel.study.workloads.metadata import MetadataWorkload

MIB = 1024**2


def storage(*stages: dict[str, Any]) -> Storage:
    return Storage.model_validate(
        {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network", "topology": list(stages)}
    )


LINK = {"stage": "client", "bandwidth": "10GB/s", "per_node": True}
GATEWAY = {"stage": "gateway", "label": "the gateways", "bandwidth": "5GB/s", "units": 6}
SERVERS = {"stage": "server", "label": "four servers", "units": 4}


def test_the_next_stage_is_what_binds_once_the_narrowest_is_wider() -> None:
    found = ceiling_of(storage(LINK, GATEWAY, SERVERS), "read", 2)
    assert found is not None and found.next is not None
    # Two links of 10 GB/s; six gateways of 5 GB/s.
    assert (found.rate, found.stage.stage) == (20e9, "client")
    assert (found.next.rate, found.next.stage.stage) == (30e9, "gateway")
    assert found.unknown == ("server (four servers)", "fabric", "media")


def test_without_the_widest_wait_what_the_others_add_binds_next() -> None:
    far = storage(LINK, {"stage": "server", "latency": "3ms"}, {"stage": "media", "latency": "1ms"})
    found = ceiling_for(far, Demand("read", 1, transfer_size=MIB, outstanding=2))
    assert found is not None and found.next is not None
    # Two operations of 1 MiB in 4 ms, of which 1 ms is left.
    assert (found.rate, found.stage.stage) == (500 * MIB, "server")
    assert (found.next.rate, found.next.stage.stage, found.next.figure) == (
        2000 * MIB,
        "media",
        "latency",
    )
    # A narrow link that adds more than the media: without it, their 1 ms are what is left.
    near = storage({**LINK, "bandwidth": "100MB/s", "latency": "3ms"}, {"stage": "media", "latency": "1ms"})
    found = ceiling_for(near, Demand("read", 1, transfer_size=MIB, outstanding=2))
    assert found is not None and found.next is not None
    assert (found.rate, found.next.rate, found.next.figure) == (100e6, 2000 * MIB, "latency")


@pytest.mark.parametrize(
    ("per_node", "nodes", "processes", "units"),
    [
        (False, 1, 1, 1), (False, 2, 1, 2), (False, 2, 3, 4), (True, 2, 1, 2), (True, 2, 8, 8),
        (False, 1, None, 4), (True, 2, None, 8),
    ],
)  # fmt: skip
def test_processes_use_no_more_units_than_there_are_of_them(
    per_node: bool, nodes: int, processes: int | None, units: int
) -> None:
    one_each = {
        "stage": "server",
        "units": 4,
        "bandwidth": "1GB/s",
        "spread": "processes",
        "per_node": per_node,
    }
    found = ceiling_for(storage(one_each), Demand("write", nodes, processes=processes))
    assert found is not None and found.rate == units * 1e9


@pytest.mark.parametrize(
    ("spread", "nodes", "units"),
    [("stripes", 1, 1.4), ("nodes", 1, 1), ("nodes", 2, 1.4), ("processes", 1, 1.4)],
)
def test_units_that_are_not_alike(spread: str, nodes: int, units: float) -> None:
    two = {"stage": "gateway", "sizes": [1, 0.4], "bandwidth": "1GB/s", "spread": spread}
    found = ceiling_for(storage(two), Demand("write", nodes, processes=2))
    assert found is not None and found.rate == pytest.approx(units * 1e9)


def test_a_stage_without_figures_gives_no_ceiling_and_is_named() -> None:
    only = storage(SERVERS)
    assert ceiling_of(only, "write", 1) is None
    assert missing(only, Demand("write", 1)) == (
        "server (four servers)",
        "client",
        "gateway",
        "fabric",
        "media",
    )


def test_a_way_inside_a_node_lacks_no_gateway() -> None:
    disk = Storage(type="xfs", mount="/s", scratch="/s/x")
    assert missing(disk, Demand("read", 1)) == ("media",)


def test_operations_per_second_bound_small_transfers_only() -> None:
    served = storage(LINK, {**SERVERS, "operations": 50_000})
    # Four servers of 50,000: 200,000 operations of 4 KiB are 819.2 MB/s; of 1 MiB, far more than the link.
    small = ceiling_for(served, Demand("read", 1, transfer_size=4096))
    large = ceiling_for(served, Demand("read", 1, transfer_size=MIB))
    assert small is not None and large is not None
    assert (small.rate, small.stage.stage, small.limits[0].figure) == (819.2e6, "server", "operations")
    assert (large.rate, large.stage.stage) == (10e9, "client")


def test_latency_bounds_what_waits_for_each_operation() -> None:
    far = storage({**LINK, "latency": "1ms"}, {**SERVERS, "latency": "3ms"})
    # Eight processes, each one operation of 1 MiB in 4 ms: 2000 MiB/s. The servers' part is the larger.
    waits = ceiling_for(far, Demand("write", 2, transfer_size=MIB, outstanding=8))
    assert waits is not None
    assert waits.rate == pytest.approx(2000 * MIB)
    assert (waits.stage.stage, waits.limits[0].figure) == ("server", "latency")
    cached = ceiling_for(far, Demand("write", 2, transfer_size=MIB))
    assert cached is not None and cached.rate == 20e9


@pytest.mark.parametrize(
    ("more", "outstanding"),
    [
        ({"operation": "write"}, None),
        ({"operation": "write", "fsync": "phase"}, None),
        ({"operation": "write", "fsync": "write"}, 8),
        ({"operation": "read", "fsync": "write"}, None),
        ({"operation": "read", "direct": True, "queue_depth": 4}, 32),
    ],
)
def test_who_waits_for_each_operation(more: dict[str, Any], outstanding: int | None) -> None:
    demand = demand_of(DataWorkload.model_validate({"segments": 1, **more}), nodes=2, processes=4)
    assert demand is not None
    # What nobody waits for the page cache puts together: its transfers are no operations of the storage.
    assert (demand.outstanding, demand.transfer_size) == (outstanding, MIB if outstanding else None)


def test_metadata_has_no_ceiling_in_bytes() -> None:
    workload = MetadataWorkload.model_validate({"operation": "metadata"})
    assert demand_of(workload, 1, 1) is None
