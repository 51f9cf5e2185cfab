"""The section on ceilings, from hand-made numbers: shares, verdicts, what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tiercel.report.sections.base import Context, Section
from tiercel.report.sections.ceilings import ceilings
from tiercel.report.sections.ceilings_figure import Mark, ceilings_figure
from tiercel.site.model import Site

GB = 1e9

#: Each node's link carries 12.5 GB/s, two gateways of 100 Gb/s together 25 GB/s; nobody knows the media.
SITE = Site.model_validate(
    {
        "site": "made-up",
        "storages": {
            "vast": {
                "type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network", "label": "VAST",
                "topology": [
                    {"stage": "client", "bandwidth": "100Gb/s", "per_node": True, "source": "test"},
                    {"stage": "gateway", "label": "the gateways", "bandwidth": "100Gb/s", "units": 2,
                     "source": "test"},
                ],
            },
            "ssd": {
                "type": "xfs", "mount": "/s", "scratch": "/s/x",
                "topology": [
                    {"stage": "media", "write_bandwidth": "2GB/s", "per_node": True, "source": "test"}
                ],
            },
            "plain": {"type": "xfs", "mount": "/p", "scratch": "/p/x"},
            "far": {
                "type": "xfs", "mount": "/f", "scratch": "/f/x",
                "topology": [
                    {"stage": "server", "latency": "3ms", "source": "test"},
                    {"stage": "media", "bandwidth": "2GB/s", "latency": "1ms", "source": "test"},
                ],
            },
            "many": {
                "type": "lustre", "mount": "/m", "scratch": "/m/x", "medium": "network",
                "topology": [
                    {"stage": "server", "label": "mds", "carries": "metadata", "units": 2, "source": "test",
                     "metadata": {"create": 1000}, "metadata_latency": "1ms"},
                ],
            },
            "here": {
                "type": "xfs", "mount": "/h", "scratch": "/h/x",
                "topology": [
                    {"stage": "media", "bandwidth": "1GB/s", "whole": True,
                     "source": "measured here, 2026-01-01 (tiercel site calibrate)"}
                ],
            },
        },
    }
)  # fmt: skip


def row(storage: str, operation: str, nodes: int, bandwidth: float, **more: Any) -> dict[str, Any]:
    return {
        "storage": storage, "operation": operation, "nodes": nodes, "bandwidth": bandwidth,
        "configuration": f"{storage}{operation}{nodes}", "role": "measured", "origin": "measured",
        "layer": "none", "traced": False, **more,
    }  # fmt: skip


@pytest.fixture
def section(tmp_path: Path) -> Callable[..., Section | None]:
    def made(*rows: dict[str, Any]) -> Section | None:
        results: Any = SimpleNamespace(observations=pd.DataFrame(list(rows)))
        return ceilings(Context(tmp_path, tmp_path, SITE, results))

    return made


def cells(made: Section) -> list[list[str]]:
    return [[cell.text for cell in row] for _, row in made.tables[0].rows]


def test_the_gateway_bounds_four_nodes_and_the_link_one(section: Callable[..., Section | None]) -> None:
    made = section(
        row("vast", "read", 1, 5.0 * GB),
        # The median of three repetitions, 20 GB/s: 80 % of 25 GB/s.
        *(row("vast", "read", 4, n * GB) for n in (10, 20, 24)),
    )
    assert made is not None
    one, four = cells(made)
    assert one[:3] == ["VAST", "read", "1"] and one[5:] == [
        "40 %",
        "client",
        "the gateways, 23.3 GiB/s",
        "not limited by the topology",
    ]
    assert four[:3] == ["VAST", "read", "4"]
    # Four links of 12.5 GB/s: 46.6 GiB/s.
    assert four[5:] == ["80 %", "the gateways", "client, 46.6 GiB/s", "limited by gateway"]
    assert made.paragraphs == (
        "VAST, read, 4 nodes: 80 % of the limit of the gateways. For more speed: a wider gateway stage.",
    )
    assert made.notes[0] == "VAST: no bandwidth is given for server, fabric, media."


def test_metadata_has_its_ceilings_and_a_figure_of_its_own(
    section: Callable[..., Section | None],
) -> None:
    def of(operation: str, nodes: int, rate: float, processes: int = 8) -> dict[str, Any]:
        counted = {"operation_rate": rate, "items_per_process": 100, "processes_per_node": processes}
        return row("many", operation, nodes, float("nan"), **counted)

    # Two servers of 1,000 creates a second; one process alone does no more than 1,000. Nobody knows of stats.
    made = section(of("file-create", 2, 1500), of("file-create", 1, 900, processes=1), of("file-stat", 2, 9))
    assert made is not None
    assert [line[1:5] + line[6:] for line in cells(made)] == [
        ["file-create", "1", "900 op/s", "1 kop/s", "mds (latency)", "not known",
         "limited by server (latency)"],
        ["file-create", "2", "1.5 kop/s", "2 kop/s", "mds (metadata)", "not known",
         "limited by server (metadata)"],
    ]  # fmt: skip
    assert made.paragraphs[1].startswith(
        "many, file-create, 2 nodes: 75 % of the metadata operations limit of mds"
    )
    assert [picture.name for picture in made.pictures] == ["ceilings-metadata"]


def test_the_best_workload_counts_and_what_is_above_comes_from_a_cache(
    section: Callable[..., Section | None],
) -> None:
    made = section(
        row("ssd", "write", 2, 1.0 * GB, configuration="small"),
        row("ssd", "write", 2, 6.0 * GB, configuration="large"),
    )
    assert made is not None
    # Two nodes with 2 GB/s each: 6 of 4 GB/s.
    (only,) = cells(made)
    assert only[5:] == [
        "150 %", "media", "not known", "above the ceiling: cache, or wrong topology",
    ]  # fmt: skip
    assert made.paragraphs == (
        "ssd, write, 2 nodes: 150 % of the limit of media, which is impossible. Either a cache served it, "
        "or the "
        "topology is wrong.",
    )


def test_what_waits_for_each_operation_has_a_ceiling_of_its_own(
    section: Callable[..., Section | None],
) -> None:
    waits = {
        "processes_per_node": 4,
        "transfer_size": 4096,
        "queue_depth": 1,
        "fsync": "write",
        "direct": False,
    }
    made = section(
        row("far", "write", 1, 1.5e9, configuration="large"),
        # Four processes with 4 KiB in 4 ms each: 4.096 MB/s, though the media carry 2 GB/s.
        row("far", "write", 1, 3.6864e6, configuration="small", **waits),
        row("far", "write", 1, 2.0e6, configuration="smaller", **{**waits, "transfer_size": 2048}),
        row("far", "read", 1, 5e6, configuration="direct", **{**waits, "fsync": "none", "direct": True}),
    )
    assert made is not None
    read, large, small = cells(made)
    assert small[1] == "write, each waited for" and small[5:] == [
        # Of the small ones 90 %, of the smaller ones 98 %: the nearest counts. Without servers 1 ms is left.
        "98 %", "server (latency)", "media (latency), 7.81 MiB/s", "limited by server (latency)",
    ]  # fmt: skip
    assert large[1] == "write" and large[5:7] == ["75 %", "media"]
    assert read[5] == "122 %"
    assert made.paragraphs == (
        "far, read, each waited for, 1 node: 122 % of the latency limit of server, which is impossible. "
        "Either a "
        "cache served it, or the topology is wrong.",
        "far, write, 1 node: 75 % of the limit of media. For more speed: a wider media stage.",
        "far, write, each waited for, 1 node: 98 % of the latency limit of server. For more speed: a "
        "shorter latency, more processes or larger transfers.",
    )


def test_what_calibration_found_is_no_limit_of_the_hardware(section: Callable[..., Section | None]) -> None:
    made = section(row("here", "write", 1, 1.2e9), row("here", "read", 1, 0.8e9))
    assert made is not None
    assert made.paragraphs == (
        "here, read, 1 node: 80 % of the calibrated limit. For more speed, use a faster storage.",
        "here, write, 1 node: 120 % of the calibrated limit. Either a cache served it, or the calibration "
        "was "
        "too low: run `tiercel site calibrate`.",
    )
    assert cells(made)[1][-1] == "above the calibration: cache, or calibration too low"


def test_what_has_no_ceiling_is_left_out(section: Callable[..., Section | None]) -> None:
    kept = row("ssd", "write", 1, 1.0 * GB)
    left_out = [
        row("plain", "write", 1, GB),  # no topology
        row("ssd", "read", 1, GB),  # its topology speaks of writes
        row("gone", "write", 1, GB),  # no longer in the site file
        row("ssd", "write", 1, 9 * GB, layer="cachevol"),
        row("ssd", "write", 1, 9 * GB, origin="imported"),
        row("ssd", "write", 1, 9 * GB, traced=True),
        row("ssd", "write", 1, 9 * GB, role="setup"),
        row("ssd", "file-create", 1, 9 * GB),
    ]
    assert section(*left_out) is None
    made = section(kept, *left_out)
    assert made is not None
    assert [line[5] for line in cells(made)] == ["50 %"]


def test_the_figure_shows_those_nearest_to_their_ceilings(tmp_path: Path) -> None:
    # Thirty rows at 1 % to 30 % of a ceiling: the upper 24 are drawn.
    marks = [Mark(f"row {n}", n * 1e7, 1e9, "the gateway") for n in range(1, 31)]
    drawn = ceilings_figure(tmp_path, marks)
    svg = (tmp_path / "ceilings.svg").read_text()
    assert [n for n in range(1, 31) if f"row {n}<" in svg] == list(range(7, 31))
    assert "6 more, further from their ceilings" in drawn.caption and "Orange" not in drawn.caption
    above = ceilings_figure(tmp_path, [*marks[:2], Mark("fast", 2e9, 1e9, "the gateway")])
    assert "Orange: above its ceiling (1)." in above.caption and "more" not in above.caption


def test_what_the_nodes_memory_served_is_held_against_that(tmp_path: Path) -> None:
    memory = {"stage": "client", "label": "memory", "bandwidth": "20GB/s", "cache": 8 * 10**9}
    stages = [memory, {"stage": "media", "bandwidth": "1GB/s"}]
    site = Site.model_validate(
        {
            "site": "s",
            "storages": {"x": {"type": "xfs", "mount": "/s", "scratch": "/s/x", "topology": stages}},
        }
    )
    asked = {"processes_per_node": 2, "bytes_per_process": 10**9, "fsync": "none", "pattern": "sequential"}
    results: Any = SimpleNamespace(
        observations=pd.DataFrame(
            [
                # 2 GB, written by the same node a moment ago: 15 of 20 GB/s. Evicted before: 0.9 of 1 GB/s.
                row(
                    "x",
                    "read",
                    1,
                    15 * GB,
                    configuration="warm",
                    access="RAW",
                    resident_fraction=1.0,
                    **asked,
                ),
                row("x", "write", 1, 0.9 * GB, configuration="cold", **{**asked, "fsync": "phase"}),
            ]
        )
    )
    made = ceilings(Context(tmp_path, tmp_path, site, results))
    assert made is not None
    warm, synced = cells(made)
    assert (warm[5:7], synced[5:7]) == (["75 %", "memory"], ["90 %", "media"])


def test_what_lies_above_a_calibration_is_said_once_for_a_storage(
    section: Callable[..., Section | None],
) -> None:
    rows = [
        row("here", operation, 1, bandwidth)
        for operation, bandwidth in (("read", 2 * GB), ("write", 1.5 * GB))
    ]
    made = section(*rows)
    assert made is not None
    assert made.paragraphs == (
        "here: 2 medians are above the calibrated limit (150 % to 200 %). Either a cache served them, or the "
        "calibration was too low: run `tiercel site calibrate`.",
    )
