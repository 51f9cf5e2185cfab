"""Ceilings by bandwidth, operations and latency, from hand-made topologies; what a change does to them."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.ceilings import Demand, ceiling_for, ceiling_of, missing
from tiercel.ceilings.study import demand_of
from tiercel.ceilings.whatif import changed
from tiercel.errors import UserError
from tiercel.site.model import Site, Storage
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
    assert (found.bandwidth, found.stage.stage) == (20e9, "client")
    assert (found.next.bandwidth, found.next.stage.stage) == (30e9, "gateway")
    assert found.unknown == ("server (four servers)", "fabric", "media")


def test_a_stage_without_figures_gives_no_ceiling_and_is_named() -> None:
    only = storage(SERVERS)
    assert ceiling_of(only, "write", 1) is None
    assert missing(only, "write") == ("server (four servers)", "client", "gateway", "fabric", "media")


def test_a_way_inside_a_node_lacks_no_gateway() -> None:
    disk = Storage(type="xfs", mount="/s", scratch="/s/x")
    assert missing(disk, "read") == ("media",)


def test_operations_per_second_bound_small_transfers_only() -> None:
    served = storage(LINK, {**SERVERS, "operations": 50_000})
    # Four servers of 50,000: 200,000 operations of 4 KiB are 819.2 MB/s; of 1 MiB, far more than the link.
    small = ceiling_for(served, Demand("read", 1, transfer_size=4096))
    large = ceiling_for(served, Demand("read", 1, transfer_size=MIB))
    assert small is not None and large is not None
    assert (small.bandwidth, small.stage.stage, small.limits[0].figure) == (819.2e6, "server", "operations")
    assert (large.bandwidth, large.stage.stage) == (10e9, "client")


def test_latency_bounds_what_waits_for_each_operation() -> None:
    far = storage({**LINK, "latency": "1ms"}, {**SERVERS, "latency": "3ms"})
    # Eight processes, each one operation of 1 MiB in 4 ms: 2000 MiB/s. The servers' part is the larger.
    waits = ceiling_for(far, Demand("write", 2, transfer_size=MIB, outstanding=8))
    assert waits is not None
    assert waits.bandwidth == pytest.approx(2000 * MIB)
    assert (waits.stage.stage, waits.limits[0].figure) == ("server", "latency")
    cached = ceiling_for(far, Demand("write", 2, transfer_size=MIB))
    assert cached is not None and cached.bandwidth == 20e9


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


# -- what if -------------------------------------------------------------------------------------------------


def site() -> Site:
    both = {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network"}
    return Site.model_validate(
        {
            "site": "made-up",
            "storages": {
                "vast": {**both, "topology": [LINK, GATEWAY]},
                "gpfs": {**both, "topology": [LINK]},
                "twice": {**both, "topology": [SERVERS, {**SERVERS, "label": "others"}]},
            },
        }
    )


def bound(made: Site, name: str, nodes: int) -> tuple[float, str] | None:
    found = ceiling_of(made.storages[name], "read", nodes)
    return (found.bandwidth, found.stage.stage) if found else None


def test_more_gateways_and_then_the_links_bind() -> None:
    # Four nodes: 40 GB/s of links, 30 GB/s of gateways; sixteen gateways carry 80 GB/s.
    assert bound(site(), "vast", 4) == (30e9, "gateway")
    for change in ("gateway.units=16", "vast.gateway.units=16", "vast.gateway=none"):
        other = changed(site(), change)
        assert bound(other, "vast", 4) == (40e9, "client"), change
        assert other.storages["gpfs"] == site().storages["gpfs"]


def test_without_a_storage_all_that_have_the_stage_change() -> None:
    other = changed(site(), "client.bandwidth=100Gb/s")
    assert (bound(other, "vast", 1), bound(other, "gpfs", 1)) == ((12.5e9, "client"), (12.5e9, "client"))


def test_a_figure_that_the_site_file_lacks_can_be_supposed() -> None:
    other = changed(site(), "gpfs.media.bandwidth=1GB/s")
    assert bound(other, "gpfs", 4) == (1e9, "media")
    assert other.storages["gpfs"].topology[-1].source == "what if"


def test_one_direction_alone_leaves_the_other() -> None:
    other = changed(site(), "vast.gateway.write_bandwidth=1GB/s")
    assert bound(other, "vast", 4) == (30e9, "gateway")
    writes = ceiling_of(other.storages["vast"], "write", 4)
    assert writes is not None and writes.bandwidth == 6e9
    # And back: one number for both.
    again = ceiling_of(changed(other, "vast.gateway.bandwidth=2GB/s").storages["vast"], "write", 4)
    assert again is not None and again.bandwidth == 12e9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("", "write [STORAGE.]STAGE.KEY=VALUE"),
        ("gateway", "write [STORAGE.]STAGE.KEY=VALUE"),
        ("gateway=16", "write [STORAGE.]STAGE.KEY=VALUE"),
        ("gateway.units=", "write [STORAGE.]STAGE.KEY=VALUE"),
        ("vats.gateway.units=1", "did you mean vast?"),
        ("gatway.units=1", "did you mean gateway?"),
        ("gateway.unit=1", "did you mean units?"),
        ("gateway.source=me", "no key 'source'"),
        ("gateway.units=many", "units: "),
        ("gateway.units=0", "units: "),
        ("gateway.bandwidth=12", "is not a rate"),
        ("media.bandwidth=1GB/s", "no storage has a stage media: name the storage (vast, gpfs, twice)"),
        ("gpfs.gateway=none", "gpfs has no stage gateway"),
        ("twice.server.units=3", "twice has 2 stages server"),
    ],
)
def test_a_change_that_cannot_be_made(change: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        changed(site(), change)
    assert said in str(caught.value) and str(caught.value).startswith("--set ")
