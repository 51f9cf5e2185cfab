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
        "40%",
        "client",
        "the gateways, 23.3 GiB/s",
        "not the topology",
    ]
    assert four[:3] == ["VAST", "read", "4"]
    # Four links of 12.5 GB/s: 46.6 GiB/s.
    assert four[5:] == ["80%", "the gateways", "client, 46.6 GiB/s", "bounded by gateway"]
    assert made.paragraphs == (
        "VAST, read, 4 nodes: 80% of what the gateways carries; more needs a wider gateway stage.",
    )
    assert made.notes[0] == "VAST: no bandwidth is given for server, fabric, media."


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
        "150%", "media", "not known", "above the ceiling: from a cache, or the topology is wrong",
    ]  # fmt: skip
    assert made.paragraphs == (
        "ssd, write, 2 nodes: 150% of what media carries, which cannot be: a cache served it, or the "
        "topology is wrong.",
    )


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
    assert [line[5] for line in cells(made)] == ["50%"]


def test_the_figure_shows_those_nearest_to_their_ceilings(tmp_path: Path) -> None:
    # Thirty rows at 1 % to 30 % of a ceiling: the upper 24 are drawn.
    marks = [Mark(f"row {n}", n * 1e7, 1e9, "the gateway") for n in range(1, 31)]
    drawn = ceilings_figure(tmp_path, marks)
    svg = (tmp_path / "ceilings.svg").read_text()
    assert [n for n in range(1, 31) if f"row {n}<" in svg] == list(range(7, 31))
    assert "6 more, further from their ceilings" in drawn.caption and "Orange" not in drawn.caption
    above = ceilings_figure(tmp_path, [*marks[:2], Mark("fast", 2e9, 1e9, "the gateway")])
    assert "Orange: above its ceiling (1)." in above.caption and "more" not in above.caption
