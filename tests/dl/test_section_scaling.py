"""Training over scale: figures 4 to 6 of the VAST study, from hand-made rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tiercel.dl.section import deep_learning
from tiercel.dl.section_scaling import Scale, scale_words, scales_of
from tiercel.report.sections.base import Context, Section


def trained(storage: str, nodes: int, processes: int, hidden: float, felt: float, **more: Any) -> Any:
    return {
        "operation": "train", "twin": "a", "traced": False, "storage": storage, "layer": "none",
        "engine": "dlkernel", "experiment": "resnet", "workload": "resnet50", "nodes": nodes,
        "processes": processes, "origin": "measured", "dl_settings": "",
        "run": f"{storage}{nodes}.{processes}", "total_time": 10.0,
        "bandwidth": 1.0, "computation_time": 2.0, "compute_alone": 1.0, "overlapped_io": hidden,
        "nonoverlapped_io": felt, "au": 0.5, "au_goal": 0.9, "samples_per_second": 1.0, "data_scale": 1.0,
        "app_throughput": 8e6 / felt, "system_throughput": 8e6 / (felt + hidden), **more,
    }  # fmt: skip


def section(rows: list[Any], folder: Any) -> Section:
    stacks = {"vast": "VAST", "gpfs": "GPFS"}
    results: Any = SimpleNamespace(
        observations=pd.DataFrame(rows), stacks=stacks, name=stacks.__getitem__,
        title=lambda experiment, workload: workload, experiment_title=lambda experiment: "ResNet-50",
        place=lambda experiment, workload: (0, 0),
        study=SimpleNamespace(engines=[], engines_where_found=[], experiments={}),
    )  # fmt: skip
    found = deep_learning(Context(folder, folder / "figures", SimpleNamespace(), results))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_both_parts_of_io_and_both_throughputs_over_nodes(tmp_path: Any) -> None:
    rows = [
        trained("vast", nodes, 4 * nodes, hidden, felt)
        for nodes in (1, 2, 4) for hidden, felt in ((3.0, 1.0), (5.0, 2.0), (4.0, 4.0))
    ] + [trained("gpfs", 1, 4, 1.0, 1.0)]  # fmt: skip
    found = section(rows, tmp_path)
    named = {picture.name: picture for picture in found.pictures}
    times, speeds = named["dl-io-resnet-resnet50"], named["dl-throughput-resnet-resnet50"]
    rows_of = {(r["storage"], r["nodes"]): r for r in times.data}
    # Three repetitions each: of 1, 2 and 4 s felt the median is 2, of 3, 5 and 4 s hidden 4.
    four = rows_of["VAST", 4]
    assert (four["I/O, not hidden, time"], four["I/O behind computation, time"]) == (2.0, 4.0)
    assert rows_of["GPFS", 1]["repetitions"] == 1 and ("GPFS", 2) not in rows_of
    assert "over nodes" in times.title and ">nodes<" in times.svg and ">GPFS<" in times.svg
    (two,) = [r for r in speeds.data if (r["storage"], r["nodes"]) == ("VAST", 2)]
    # 8 MB in 2 s.
    assert (two["repetitions"], two["application throughput"]) == (3, 4e6)
    # Where the time goes is drawn at the largest scale alone.
    bars = named["dl-time-resnet-resnet50"]
    assert {row["processes"] for row in bars.data} == {16}


@pytest.mark.parametrize(("felt", "bare"), [(1.0, 2), (0.001, 0)])
def test_the_two_throughputs_have_the_same_kind_of_axis(felt: float, bare: int, tmp_path: Any) -> None:
    """An axis of powers has units at its ticks, another one beside them. 8 MB in 1 ms and in 2 s are far
    apart as the program sees it, and alike with the 3 s hidden."""
    rows = [
        trained("vast", 1, 4, 3.0, 2.0),
        trained("gpfs", 1, 4, 3.0, felt),
        trained("vast", 2, 8, 3.0, 2.0),
    ]
    (picture,) = [p for p in section(rows, tmp_path).pictures if p.name == "dl-throughput-resnet-resnet50"]
    assert picture.svg.count(">MiB/s<") == bare  # the tables' unit


def test_the_same_processes_on_more_nodes_are_another_row(tmp_path: Any) -> None:
    rows = [trained("vast", 1, 4, 3.0, 1.0), trained("vast", 2, 4, 3.0, 8.0)]
    (table,) = section(rows, tmp_path).tables
    assert len(table.rows) == 2 and "Nodes" in table.columns


def test_without_computation_the_time_of_an_epoch_is_drawn_over_processes(tmp_path: Any) -> None:
    """Figures 14 and 15 of DLIO: 12, 7 and 5 s of 1, 2 and 4 processes. All I/O is felt, so that the two
    throughputs, which were drawn, were the same twice."""
    rows = [
        trained("vast", 1, processes, 0.0, seconds, computation_time=0.0, total_time=seconds,
                bandwidth=8e6 / seconds)
        for processes, seconds in ((1, 12.0), (2, 7.0), (4, 5.0))
    ]  # fmt: skip
    pictures = section(rows, tmp_path).pictures
    (epoch,) = [p for p in pictures if p.name.startswith("dl-epoch")]
    assert [(r["processes"], r["time of the epoch"]) for r in epoch.data] == [(1, 12.0), (2, 7.0), (4, 5.0)]
    assert "first epoch over processes" in epoch.title and "Figures 14 and 15" in epoch.caption
    assert ">seconds<" in epoch.svg and ">throughput<" in epoch.svg
    assert not [p for p in pictures if p.name.startswith(("dl-throughput", "dl-io"))]


def test_one_scale_has_no_such_figure(tmp_path: Any) -> None:
    found = section([trained("vast", 1, 4, 3.0, 1.0), trained("gpfs", 1, 4, 3.0, 1.0)], tmp_path)
    assert not [p for p in found.pictures if p.name.startswith(("dl-io", "dl-throughput", "dl-epoch"))]


@pytest.mark.parametrize(
    ("scales", "over", "words"),
    [
        ([(1, 4), (2, 8)], "nodes", ["1", "2"]),
        ([(1, 1), (1, 2)], "processes", ["1", "2"]),
        ([(1, 4), (2, 4)], "processes (nodes)", ["4 (1)", "4 (2)"]),
    ],
)
def test_what_the_axis_counts(scales: Any, over: str, words: list[str]) -> None:
    frame = pd.DataFrame(scales, columns=["nodes", "processes"])
    assert scale_words(scales_of(frame)) == (over, words)
    assert scales_of(frame)[0] == Scale(*scales[0])
