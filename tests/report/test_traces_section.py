"""The section on traced runs, from hand-made tables: figures, sentences, pictures that stay small."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.report.sections.trace_figure import _seen, pixels
from tiercel.report.sections.traces import _with_pauses
from tiercel.results.table import write_table
from tiercel.study.model import Study
from tiercel.traced import tables
from tiercel.traced.schema import GROUPS, TRACES

Build = Callable[[Any], Any]
STORAGES = {"nfs-project": "Project space (NFS)", "shm": "/dev/shm"}
TIMELINE = {
    "start": 0.0, "width": 0.01, "phases": [],
    "lanes": [
        {"lane": "0", "kind": "read", "busy": [100] * 100 + [0] * 100},
        {"lane": "0", "kind": "compute", "busy": [0] * 100 + [50] * 100},
    ],
}  # fmt: skip
FINDING = {
    "rule": "small-transfers", "severity": "problem", "sentence": "All 64 reads are small.",
    "advice": "Gather them.", "evidence": [{"file": "train/a.npz", "calls": 64, "time": 0.5, "bytes": 2**20}],
}  # fmt: skip


@dataclass
class Traced(Synthetic):
    """Synthetic results with two traced runs of one workload, and the tables that `trace collect` makes."""

    collected: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)

    def trace(self, storage: str, **numbers: Any) -> None:
        self.add("training", "resnet50", "ResNet-50", storage, 8, 0, "a", [], operation="train")
        for row in (self.observations[-1], self.runs[-1]):
            row.update(traced=True, run=f"{row['run']}t")
        row = dict.fromkeys((c.name for c in TRACES), None) | {
            c.name: self.runs[-1][c.name] for c in TRACES if c.name in self.runs[-1]
        }
        self.rows.append({**row, "reason": "", "warnings": [], "tracer": "dlkernel", **numbers})

    def write(self, folder: Path) -> Path:
        super().write(folder)
        if self.collected:
            write_table(folder / tables.TRACES, self.rows, TRACES, "test")
            write_table(folder / tables.GROUPS, self.groups, GROUPS, "test")
        return folder


#: 64 reads of 1 MiB in 2 s of I/O, of which 0.5 s behind 1 s of computation; in calls 3 s, 0.6 s in opens.
NUMBERS = {
    "calls": 80, "reads": 64, "writes": 0, "metadata_calls": 16, "syncs": 0, "bytes_read": 64 * MIB,
    "bytes_written": 0, "read_s": 2.4, "write_s": 0.0, "metadata_s": 0.6, "sync_s": 0.0, "read_wall_s": 1.7,
    "write_wall_s": 0.0, "metadata_wall_s": 0.5, "sync_wall_s": 0.0, "read_p10": MIB, "read_p50": MIB,
    "read_p90": MIB, "measured_s": 2.5, "io_s": 2.0, "overlapped_io_s": 0.5, "nonoverlapped_io_s": 1.5,
    "compute_s": 1.0, "app_throughput": 64 * MIB / 1.5, "system_throughput": 32 * MIB, "events": 100,
    "untraced_runs": 3, "cost": 1.2, "cost_low": 1.1, "cost_high": 1.3, "cost_coverage": 0.5,
    "findings": json.dumps([FINDING]), "timeline": json.dumps(TIMELINE),
}  # fmt: skip


def traced() -> Traced:
    data = Traced(storages=tuple(STORAGES))
    data.training()
    data.trace("nfs-project", **NUMBERS)
    data.trace("shm", **NUMBERS | {"cost_low": 0.9, "warnings": ["no call of stat is in the trace"]})
    return data


@pytest.fixture(scope="module")
def built(build_page: Build) -> Any:
    data = traced()
    known = NUMBERS | {c.name: data.rows[0][c.name] for c in TRACES if data.rows[0][c.name] is not None}
    # A group's counts are never missing.
    group = {c.name: known.get(c.name, 0) for c in GROUPS}
    own = {"group": "train/*.npz", "files": 16, "access": "RO", "random_share": 0.25, "size": 64 * MIB}
    data.groups = [group | own]
    return build_page(data)


def test_the_table_has_each_storage_with_its_numbers(built: Any) -> None:
    first, second = built.page.rows("Workload", "Storage", "Calls", "Tracing")
    assert (first["Storage"], second["Storage"]) == ("Project space (NFS)", "/dev/shm")
    assert (first["Workload"], first["Calls"], first["Read"]) == ("ResNet-50", "80", "64 MiB")
    # 0.6 s of 3 s in metadata; 32 MiB/s from the storage, and 0.5 s of 2 s of I/O are hidden.
    assert (first["Metadata"], first["I/O"], first["Throughput"]) == ("20 %", "2 s", "32 MiB/s")
    assert (first["Overlapped"], first["Application"]) == ("25 %", "42.7 MiB/s")
    assert first["Tracing"] == "1.20× (1.10–1.30)"
    assert "Written" not in first and "Syncs" not in first  # nothing was, anywhere


def test_it_says_what_tracing_cost_and_what_computation_hides(built: Any) -> None:
    text = built.page.text
    assert (
        "The cost of tracing is within the noise in 1 of 2 runs. Largest cost: 1.20× the time (1.10–1.30), "
        "ResNet-50 on Project space (NFS)."
    ) in text
    assert (
        "ResNet-50: I/O time overlapped by computation: 25 % on Project space (NFS) and 25 % on /dev/shm."
        in text
    )
    assert (
        "Project space (NFS): 2.5 s, 80 % in I/O calls: 80 % reads and 20 % metadata calls. "
        "Application throughput: 42.7 MiB/s, system throughput: 32 MiB/s." in text
    )
    assert "/dev/shm: no call of stat is in the trace." in text


def test_pauses_between_phases_are_told_where_the_picture_has_them() -> None:
    """Phases of 0.5 and 2 s, and 1.5 s between them: the axis is 4 s long, the phases together 2.5 s."""
    phases = [{"operation": "a", "start": 10.0, "end": 10.5}, {"operation": "b", "start": 12, "end": 14}]
    row = {"timeline": json.dumps({**TIMELINE, "phases": phases}), "measured_s": 2.5}
    assert _with_pauses(row) == " in 2 phases (4 s with pauses)"
    assert _with_pauses({**row, "timeline": json.dumps(TIMELINE)}) == ""  # one phase
    assert _with_pauses({**row, "measured_s": 3.95}) == ""


def test_findings_stand_once_with_advice_and_evidence(built: Any) -> None:
    text = built.page.text
    assert (
        "Project space (NFS): All 64 reads are small. /dev/shm: All 64 reads are small. Gather them." in text
    )
    assert text.count("Gather them.") == 1
    evidence = built.page.rows("storage", "file", "calls")
    assert [(r["storage"], r["time"], r["bytes"]) for r in evidence] == [
        ("Project space (NFS)", "500 ms", "1 MiB"), ("/dev/shm", "500 ms", "1 MiB"),
    ]  # fmt: skip
    (files,) = built.page.rows("Files", "Access", "Random")
    assert (files["Files"], files["Number"], files["Access"], files["Random"]) == (
        "train/*.npz", "16", "read once", "25 %",
    )  # fmt: skip


def test_the_picture_is_small_and_in_the_page(built: Any) -> None:
    name = "trace-training-resnet50-iokernel"
    picture = built.folder / "report" / "figures" / f"{name}.svg"
    assert picture.stat().st_size < 16_000
    assert name in built.page.ids and "data:image/png;base64" in built.html


def test_pixels_are_as_strong_as_the_time_in_calls() -> None:
    image = pixels(TIMELINE)
    # One process: six pixels of calls, two of computation.
    assert image.shape == (8, 200, 4)
    assert (image[0, :100, 3] == 1.0).all() and (image[0, 100:, 3] == 0.0).all()
    assert (image[7, :100, 3] == 0.0).all() and np.allclose(image[7, 100:, 3], 0.5)


def test_traced_runs_are_in_no_other_number(built: Any) -> None:
    text = built.page.text
    # Two storages, four scales, five repetitions, and five twins at the largest scale: 50 runs.
    assert "50 runs" in text and "2 traced" in text
    assert "traced runs (see traced runs )" in text
    assert ("a", "href", "#traces") in built.page.attributes
    assert all(row["n"] == "5" for row in built.page.rows("Operation", "n", "Median"))


def test_a_lost_trace_is_said_and_has_no_numbers(build_page: Build) -> None:
    data = traced()
    missing = {**data.rows[1], **dict.fromkeys(NUMBERS), "reason": "the run left no trace", "warnings": []}
    data.rows[1] = missing
    page = build_page(data).page
    _, second = page.rows("Workload", "Storage", "Calls", "Tracing")
    assert {second[name] for name in ("Calls", "Read", "Metadata", "I/O", "Overlapped", "Tracing")} == {"–"}
    assert "/dev/shm: the run left no trace." in page.text


def test_the_points_of_a_sample_are_counted_not_listed(build_page: Build) -> None:
    definition = study().model_dump()
    definition["experiments"]["training"]["sweep"] = {"size": 60}
    sampled = Study.model_validate(definition)
    point = next(iter(sampled.experiments["training"].sweep.workloads))
    data = traced()
    data.rows[1] = {**data.rows[1], "workload": point}
    page = build_page(data, of_study=sampled).page
    (row,) = page.rows("Workload", "Storage", "Calls", "Tracing")
    assert row["Workload"] == "ResNet-50"
    assert "Of designed samples: 1 traced run, in traces.parquet only." in page.text


def test_without_tables_it_says_how_to_make_them(build_page: Build) -> None:
    data = traced()
    data.collected = False
    text = build_page(data).page.text
    assert "2 traced runs of this study are not aggregated yet: run tiercel trace collect" in text


def test_a_study_without_traced_runs_has_no_section(whole: Any) -> None:
    assert "traces" not in whole.page.ids and "section of their own" not in whole.page.text


def test_the_legend_has_what_is_seen_however_short() -> None:
    """Short calls are drawn faint, and then nothing said what their colours were."""
    lanes = [
        {"lane": "0", "kind": "read", "busy": [2, 0]},
        {"lane": "0", "kind": "metadata", "busy": [1, 0]},
        {"lane": "0", "kind": "sync", "busy": [0, 0]},
        {"lane": "1", "kind": "write", "busy": [100, 100]},
        {"lane": "1", "kind": "read", "busy": [1, 0]},
    ]
    assert _seen({"lanes": lanes}) == {"read", "metadata", "write"}
    assert _seen({"lanes": lanes[3:]}) == {"write"}
