"""A site with other hardware: what a change makes of its ceilings."""

from __future__ import annotations

import pytest

from tiercel.ceilings import Demand, ceiling_for, ceiling_of, missing
from tiercel.errors import UserError
from tiercel.site.model import Site
from tiercel.site.supposed import supposed

LINK = {"stage": "client", "bandwidth": "10GB/s", "per_node": True}
GATEWAY = {"stage": "gateway", "label": "the gateways", "bandwidth": "5GB/s", "units": 6}
SERVERS = {"stage": "server", "label": "four servers", "units": 4}


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


def changed(of: Site, change: str) -> Site:
    return supposed(of, [change], lambda name: site())


def bound(made: Site, name: str, nodes: int) -> tuple[float, str] | None:
    found = ceiling_of(made.storages[name], "read", nodes)
    return (found.rate, found.stage.stage) if found else None


def test_more_gateways_and_then_the_links_bind() -> None:
    # Four nodes: 40 GB/s of links, 30 GB/s of gateways; sixteen gateways carry 80 GB/s.
    assert bound(site(), "vast", 4) == (30e9, "gateway")
    for change in ("gateway.units=16", "vast.gateway.units=16", "vast.gateway=none"):
        other = changed(site(), change)
        assert bound(other, "vast", 4) == (40e9, "client"), change
        assert other.storages["gpfs"] == site().storages["gpfs"]


def test_units_of_two_sizes() -> None:
    # Two gateways of 5 GB/s and one of 20: 30 GB/s, and with a fourth of the large kind 50.
    for sizes, rate in (("1,1,4", 30e9), ("1,1,4,4", 40e9)):
        fewer = changed(site(), f"vast.gateway.units={sizes.count(',') + 1}")
        assert bound(changed(fewer, f"vast.gateway.sizes={sizes}"), "vast", 4) == (
            rate, "gateway" if rate < 40e9 else "client",
        )  # fmt: skip


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
    assert writes is not None and writes.rate == 6e9
    # And back: one number for both.
    again = ceiling_of(changed(other, "vast.gateway.bandwidth=2GB/s").storages["vast"], "write", 4)
    assert again is not None and again.rate == 12e9


def test_what_is_taken_away_is_not_missing() -> None:
    other = changed(site(), "vast.gateway=none")
    assert "gateway" not in missing(other.storages["vast"], Demand("read", 1))
    again = changed(other, "vast.gateway.bandwidth=1GB/s")  # and put there anew
    assert bound(again, "vast", 4) == (1e9, "gateway")


def test_what_is_added_stands_on_its_place_of_the_way() -> None:
    other = changed(changed(site(), "vast.media.bandwidth=1GB/s"), "vast.fabric.bandwidth=3GB/s")
    assert [s.stage for s in other.storages["vast"].topology] == ["client", "gateway", "fabric", "media"]


def test_one_of_several_stages_of_a_kind() -> None:
    other = changed(site(), "twice.server#2.bandwidth=2GB/s")
    assert [s.bandwidth for s in other.storages["twice"].topology] == [None, 2e9]


def test_another_file_system_in_its_place() -> None:
    theirs = Site.model_validate(
        {
            "site": "theirs",
            "storages": {
                "flash": {"type": "nfs", "mount": "/f", "scratch": "/f/x", "medium": "network",
                          "options": "proto=rdma", "topology": [{"stage": "media", "bandwidth": "7GB/s"}]},
                "disk": {"type": "xfs", "mount": "/d", "scratch": "/d/x", "topology": [LINK]},
            },
        }
    )  # fmt: skip
    asked: list[str] = []

    def load(name: str) -> Site:
        asked.append(name)
        return theirs

    other = supposed(site(), ["vast=theirs.flash", "gpfs=theirs.disk"], load)
    assert asked == ["theirs", "theirs"]
    assert bound(other, "vast", 4) == (7e9, "media")
    assert (other.storages["vast"].mount, other.storages["vast"].options) == ("/v", "proto=rdma")
    assert not other.storages["gpfs"].shared and bound(other, "gpfs", 4) == (40e9, "client")
    with pytest.raises(UserError, match="site theirs has no storage 'flsh': did you mean flash"):
        supposed(site(), ["vast=theirs.flsh"], load)


def test_operations_in_random_order_bound_random_reads_alone() -> None:
    disks = changed(site(), "vast.media.random_operations=100").storages["vast"]
    found = [ceiling_for(disks, Demand("read", 4, 10**6, 64, 16, random=random)) for random in (True, False)]
    assert [each and each.rate for each in found] == [100e6, 30e9]


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
        ("gateway.label=new", "no key 'label'"),  # words change no ceiling
        ("gateway.units=many", "units: "),
        ("gateway.units=0", "units: "),
        ("gateway.bandwidth=12", "is not a rate"),
        ("gateway.sizes=1,0.5", "sizes: of 2 units, and units says 6"),
        ("gateway.sizes=1,-1", "sizes.1: "),
        ("gateway.cache=12GB", "cache: "),
        (
            "gateway.bandwidth=9999999TB/s",
            "bandwidth: input should be less than or equal to 1000000000000000",
        ),
        ("gateway.operations=1e300", "operations: "),
        ("gateway.latency=48h", "latency: "),
        ("vast.gateway.absent=true", "absent: true, and it has bandwidth"),
        ("media.bandwidth=1GB/s", "no storage has a stage media: name the storage (vast, gpfs, twice)"),
        ("twice.server.units=3", "twice has 2 stages server: server#1 (four servers), server#2 (others)"),
        ("twice.server#3.units=3", "twice has 2 stages server"),
        ("twice.server#x.units=3", "the number of the stage follows #"),
        ("vast=flash", "STORAGE=SITE.STORAGE"),
        (".gateway.units=3", "STORAGE=SITE.STORAGE"),
    ],
)
def test_a_change_that_cannot_be_made(change: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        changed(site(), change)
    assert said in str(caught.value) and str(caught.value).startswith("--set ")
