"""Real traced runs as rows: counts that can be counted again by hand; torn and missing traces; growing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr

from tiercel.results.observations import collect as collect_observations
from tiercel.results.raw import RECORD, RawStore, read_json, write_json
from tiercel.study.plan import Run
from tiercel.traced import collect, load_trace_groups, load_traces, tables
from tiercel.traced.dataset import write_dataset
from tiercel.traced.schema import GROUPS, TRACES

CarryOut = Callable[..., list[Run]]
KIB, MIB = 1024, 1024**2


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_a_write_with_a_sync_at_its_end(carry_out: CarryOut, results: Path) -> None:
    (run,) = carry_out(fsync="phase")
    traces, groups = collect(results)
    (row,) = traces.to_dict("records")
    assert (row["run"], row["storage"], row["traced"], row["reason"]) == (run.id, "main", True, "")
    assert row["tracer"] == "DFTracer" and row["part"] == "measured phases" and row["api"] == "posix"
    # Each of two processes: open, 16 writes of 64 KiB, fsync, close. What the engine does before its
    # clock starts (statvfs of the folder...) is in the trace, and not in the counts.
    assert (row["reads"], row["writes"], row["syncs"], row["metadata_calls"]) == (0, 32, 2, 4)
    assert row["calls"] == 38 and row["events"] > 38
    assert (row["bytes_read"], row["bytes_written"]) == (0, 2 * MIB)
    assert (row["write_p10"], row["write_p50"], row["write_p90"]) == (64 * KIB,) * 3
    assert pd.isna(row["read_p50"])  # nothing was read: that has no size, not size 0
    assert (row["files"], row["files_elsewhere"], row["ranks"]) == (2, 0, 2)
    assert row["random_share"] == 0.0
    assert 0 < row["write_wall_s"] <= row["io_s"] <= row["measured_s"] < row["trace_s"]
    assert row["write_wall_s"] <= row["write_s"] + 1e-9  # the union of two processes against their sum
    # The preload library knows no computation: missing, and so is what needs it.
    assert all(pd.isna(row[name]) for name in ("compute_s", "overlapped_io_s", "app_throughput"))
    assert row["system_throughput"] == pytest.approx(2 * MIB / row["io_s"])
    (group,) = groups.to_dict("records")
    assert (group["group"], group["files"], group["ranks"], group["opens"]) == ("data.*", 2, 2, 2)
    assert (group["writes"], group["bytes_written"], group["WO"]) == (32, 2 * MIB, 2 * MIB)
    assert (group["size"], group["input_bytes"], group["output_bytes"]) == (2 * MIB, 0, 2 * MIB)
    assert (group["access"], group["random_share"]) == ("WO", 0.0)


def test_what_only_prepares_is_not_counted(carry_out: CarryOut, results: Path) -> None:
    """A cold read writes its file first; its row and its groups are of the read alone."""
    carry_out(operation="read", reorder=1)
    traces, groups = collect(results)
    (row,) = traces.to_dict("records")
    assert (row["reads"], row["writes"], row["syncs"], row["metadata_calls"]) == (32, 0, 0, 4)
    assert (row["bytes_read"], row["bytes_written"]) == (2 * MIB, 0)
    assert row["warnings"].tolist() == []  # the bytes are those that the engine counted
    (group,) = groups.to_dict("records")
    assert (group["access"], group["RO"]) == ("RO", 2 * MIB)
    assert (group["input_bytes"], group["output_bytes"]) == (2 * MIB, 0)
    # All of it in the timeline, which begins with the read: both processes read in some bin.
    lanes = json.loads(row["timeline"])["lanes"]
    assert {(lane["lane"], lane["kind"]) for lane in lanes} >= {("0", "read"), ("1", "read")}
    assert not [lane for lane in lanes if lane["kind"] == "write"]
    assert all(len(lane["busy"]) == 200 and 0 < max(lane["busy"]) <= 100 for lane in lanes)


def test_calls_that_the_tracer_does_not_see_are_said(carry_out: CarryOut, results: Path) -> None:
    """DFTracer has no wrapper for the stat that iokernel uses; 40 of them leave no event."""
    carry_out(
        operation="metadata", items_per_process=20, directories=False, phases=["create", "stat", "remove"]
    )
    traces, _ = collect(results)
    (row,) = traces.to_dict("records")
    assert row["warnings"].tolist() == [
        "no call of file-stat is in the trace: the tracer does not see such calls"
    ]
    # 40 files: open and close to create, unlink to remove.
    assert (row["metadata_calls"], row["calls"], row["files"]) == (120, 120, 40)
    assert pd.isna(row["system_throughput"]) or row["system_throughput"] == 0


def test_what_tracing_cost(carry_out: CarryOut, results: Path) -> None:
    runs = carry_out(plain=3)
    observations, _ = collect_observations(results)
    traces, _ = collect(results)
    (row,) = traces.to_dict("records")
    rates = observations.set_index("run")["bandwidth"]
    untraced = sorted(rates[r.id] for r in runs[:3])
    traced = rates[runs[3].id]
    assert row["rate_metric"] == "bandwidth" and row["untraced_runs"] == 3
    assert row["traced_rate"] == pytest.approx(traced)
    assert row["untraced_rate"] == pytest.approx(untraced[1])
    low, middle, high = (row[name] for name in ("cost_low", "cost", "cost_high"))
    assert [low, middle, high] == pytest.approx([rate / traced for rate in untraced])
    assert row["cost_coverage"] == 0.5  # one more of three lies between them in (3 - 1) of (3 + 1) cases


def test_missing_torn_and_failed(carry_out: CarryOut, results: Path) -> None:
    runs = [
        carry_out()[0],
        carry_out(data_per_process="2MiB")[0],
        carry_out(data_per_process="512KiB")[0],
    ]
    store = RawStore(results)
    missing, torn, failed = (store.path(run.id) for run in runs)
    shutil.rmtree(missing / "trace")
    logs = sorted((torn / "trace").iterdir())
    logs[0].write_bytes(logs[0].read_bytes()[:400])
    record = read_json(failed / RECORD)
    write_json(failed / RECORD, {**record, "status": "failed", "reason": "main: exit code 1"})
    traces, groups = collect(results)
    rows = traces.set_index("run")
    assert list(rows.index) == sorted(run.id for run in runs)
    nothing, part, whole = (rows.loc[run.id] for run in runs)
    assert nothing["reason"] == "the run left no trace"
    assert all(pd.isna(nothing[name]) for name in ("events", "calls", "bytes_written", "io_s", "findings"))
    # One process' log is whole: at least its 32 writes are there, and not all of 64.
    assert part["reason"].startswith("the trace is torn: run-") and 32 <= part["writes"] < 64
    assert any("of the 4,194,304 bytes of operation write" in said for said in part["warnings"])
    assert whole["reason"] == "the run failed: main: exit code 1"
    # The times of its phases are not known, so all of its trace counts: two times 8 writes of 64 KiB.
    assert (whole["part"], whole["writes"]) == ("whole trace", 16) and pd.isna(whole["measured_s"])
    assert set(groups["run"]) == {runs[1].id, runs[2].id}


def test_only_what_is_new_is_read(
    carry_out: CarryOut, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = carry_out()
    before, _ = collect(results)
    read: list[str] = []
    rows_of = tables.rows_of
    monkeypatch.setattr(tables, "rows_of", lambda raw: read.append(raw.run["run"]) or rows_of(raw))
    again, _ = collect(results)
    assert read == [] and again.equals(before)
    (second,) = carry_out(data_per_process="512KiB")
    traces, groups = collect(results)
    assert read == [second.id] and set(traces["run"]) == set(groups["run"]) == {first.id, second.id}
    # Carried out again: its record is newer.
    record = RawStore(results).path(first.id) / RECORD
    write_json(record, read_json(record))
    collect(results)
    assert read == [second.id, first.id]
    shutil.rmtree(RawStore(results).path(second.id))
    assert list(collect(results)[0]["run"]) == [first.id]
    monkeypatch.setattr(tables, "_signature", lambda: "another version")
    collect(results)
    assert read == [second.id, first.id, first.id]


def test_loading_a_study_and_the_dataset(carry_out: CarryOut, results: Path, tmp_path: Path) -> None:
    carry_out()
    collect_observations(results)
    collect(results)
    traces = load_traces(results, "t")
    assert len(traces) == len(load_trace_groups(results, "t")) == 1
    assert load_traces(results, "another").empty and load_trace_groups(results, "another").empty
    write_dataset(traces, tmp_path / "traces.nc")
    with xr.open_dataset(tmp_path / "traces.nc") as dataset:
        assert dict(dataset.sizes) == {
            "origin": 1, "storage": 1, "layer": 1, "engine": 1, "workload": 1, "nodes": 1,
            "processes_per_node": 1,
        }  # fmt: skip
        assert dataset["bytes_written"].item() == 2 * MIB and dataset["bytes_written"].attrs["units"] == "B"
        assert dataset["compute_s"].isnull().item()
        assert dataset["workload"].item() == "e/w" and dataset["title"].item() == "w"


def test_units_and_meanings_are_in_the_files(carry_out: CarryOut, results: Path) -> None:
    carry_out()
    collect(results)
    for name, columns in ((tables.TRACES, TRACES), (tables.GROUPS, GROUPS)):
        schema = pq.read_schema(results / name)
        for column in columns:
            metadata = schema.field(column.name).metadata
            assert metadata[b"unit"].decode() == column.unit and metadata[b"meaning"]
