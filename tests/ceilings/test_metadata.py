"""Ceilings of metadata, in operations per second, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.ceilings import Demand, missing
from tiercel.ceilings.metadata import metadata_ceiling, phases_of, unknown_servers
from tiercel.ceilings.study import rows_of
from tiercel.site.model import Site, Stack, Storage
from tiercel.study.plan import Configuration
from tiercel.study.workloads import MetadataWorkload

LINK = {"stage": "client", "bandwidth": "1GB/s", "per_node": True, "metadata_latency": "1ms"}
DATA = {"stage": "server", "label": "data servers", "bandwidth": "5GB/s", "units": 4}
META = {"stage": "server", "label": "metadata servers", "carries": "metadata", "units": 2,
        "metadata": {"create": 1000, "stat": 9000}}  # fmt: skip


def storage(*stages: dict[str, Any]) -> Storage:
    return Storage.model_validate(
        {"type": "lustre", "mount": "/v", "scratch": "/v/x", "medium": "network", "topology": list(stages)}
    )


def workload(**keys: Any) -> MetadataWorkload:
    return MetadataWorkload.model_validate({"operation": "metadata", **keys})


def rate(action: Any, nodes: int, processes: int, **keys: Any) -> tuple[float, str, str] | None:
    of = storage(LINK, DATA, META)
    found = metadata_ceiling(workload(**keys), "file", action, of, nodes, processes)
    return (found.rate, found.stage.name, found.limits[0].figure) if found else None


def test_the_servers_and_what_each_process_waits() -> None:
    # One process does one create in 1 ms; eight would do 8,000, and the two servers do 2,000.
    assert rate("create", 1, 1) == (1000, "client", "latency")
    assert rate("create", 2, 4) == (2000, "metadata servers", "metadata")
    assert rate("stat", 2, 4) == (8000, "client", "latency")
    assert rate("remove", 2, 4) is None


def test_what_files_hold_goes_over_the_links() -> None:
    # Two links of 1 GB/s carry 200 files of 10 MB.
    assert rate("create", 2, 400, write_bytes=10**7) == (200, "client", "bandwidth")


def test_servers_of_metadata_lie_beside_the_way_of_the_data() -> None:
    of = storage(LINK, DATA, META)
    assert missing(of, Demand("read", 1)) == ("gateway", "fabric", "media")
    assert (unknown_servers(of, "stat"), unknown_servers(of, "remove")) == (
        (),
        ("server (metadata servers)",),
    )
    assert unknown_servers(storage(LINK, DATA), "stat") == ("server (data servers)",)


@pytest.mark.parametrize(
    ("medium", "stages", "lacking"),
    [
        ("network", [LINK], ("server",)),
        ("disk", [], ("media",)),
        ("disk", [{"stage": "media", "label": "SSD", "bandwidth": "1GB/s"}], ("media (SSD)",)),
        ("disk", [{"stage": "media", "metadata": 1000}], ()),
        ("memory", [{"stage": "client", "metadata": 1000}], ()),
    ],
)
def test_whose_figure_is_missing_is_named_for_every_storage(
    medium: str, stages: list[dict[str, Any]], lacking: tuple[str, ...]
) -> None:
    of = Storage.model_validate(
        {"type": "xfs", "mount": "/s", "scratch": "/s/x", "medium": medium, "topology": stages}
    )
    assert unknown_servers(of, "create") == lacking


def test_a_row_for_each_thing_that_is_done() -> None:
    of = storage(LINK, META)
    site = Site.model_validate({"site": "s", "nodes": 4, "storages": {"lustre": of}})
    asked = workload(phases=["create", "read", "stat"], directories=True)
    c = Configuration("s", "x", "e", "items", asked, Stack("lustre", of), "any", "", "srun", 2, 4, 1)
    rows = [row.plain() for row in rows_of([c], site)]
    assert [(r["operation"], r["ceiling"], r["unit"]) for r in rows] == [
        ("directory-create", 2000, "1/s"), ("file-create", 2000, "1/s"), ("file-read", None, "1/s"),
        ("directory-stat", 8000, "1/s"), ("file-stat", 8000, "1/s"),
    ]  # fmt: skip
    assert rows[2]["missing"] == ["server (metadata servers)"]


def test_folders_are_not_read() -> None:
    assert list(phases_of(workload(phases=["create", "read"]))) == [
        ("directory", "create"), ("file", "create"), ("file", "read"),
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["create", "stat"])
def test_a_link_alone_bounds_no_metadata(action: Any) -> None:
    assert metadata_ceiling(workload(), "file", action, storage(LINK), 1, 1) is None
