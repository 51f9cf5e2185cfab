"""Traces that were made elsewhere, with published answers; and iokernel's own count of what it did."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tiercel.programs import program
from tiercel.runs.tracing import preload_library
from tiercel.traces import open_trace
from tiercel.traces.analysis.overlap import evidence
from tiercel.traces.frame import IOFrame

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "dftracer"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there")


def busiest_thread_time(frame: IOFrame, width: float = 1.0) -> float:
    """Return the I/O time that dftracer-analyzer prints: in each second of the job, counted from its start,
    the summed duration of POSIX-category events of the thread with most of it; added up over the seconds.

    An event belongs to the second in which it starts. Ours divides by another time.
    """
    table = frame.query(
        "SELECT sum(busiest) AS total FROM (SELECT second, max(spent) AS busiest FROM ("
        f"SELECT floor(time / {width!r}) AS second, host, process, thread, sum(duration) AS spent "
        "FROM events WHERE category = 'POSIX' GROUP BY ALL) GROUP BY second)"
    )
    total = table["total"].iloc[0]
    return 0.0 if pd.isna(total) else float(total)


@needs_data
def test_published_summary_of_eight_ranks() -> None:
    """18,039 events, 56.695 s, 111,833.172 MiB by POSIX calls, 6,048.367 MiB/s (LLNL, dftracer-analyzer)."""
    frame = open_trace(DATA / "dftracer-dlio.tar.gz")
    numbers = evidence(frame)
    assert numbers["events"] == 18_039
    assert frame.job_time == pytest.approx(56.695, abs=5e-4)
    assert frame.overlap().loc["all", "bytes"] / 2**20 == pytest.approx(111_833.172, abs=5e-4)
    assert numbers["ranks"] == 8
    assert numbers["warnings"] == []
    # Its bandwidth divides by the busiest thread's time in each second, fork and mkdir included.
    spent = busiest_thread_time(frame)
    assert frame.overlap().loc["all", "bytes"] / 2**20 / spent == pytest.approx(6_048.367, abs=5e-4)
    # Ours divides by the time in which at least one rank does I/O, without fork: 5,765.9 MiB/s.
    assert numbers["system_throughput_bytes_s"] == pytest.approx(117_265_580_220 / 19.395719)


@needs_data
def test_published_trace_by_hand() -> None:
    # Rank 0 alone saves a checkpoint: open64, __fxstat64, lseek64, write, close and two spans, 7 events more.
    frame = open_trace(DATA / "dftracer-dlio.tar.gz")
    counts = frame.query("SELECT rank, count(*) AS n FROM events GROUP BY rank ORDER BY rank")
    assert counts["n"].tolist() == [2261, *[2254] * 7]
    assert frame.query("SELECT count(*) AS n FROM events WHERE kind = 'read'")["n"].iloc[0] == 7200
    assert frame.query("SELECT count(*) AS n FROM events WHERE kind = 'compute'")["n"].iloc[0] == 200


@needs_data
def test_oldest_schema_of_a_real_run() -> None:
    frame = open_trace(DATA / "test-trace.pfw.gz")
    numbers = evidence(frame)
    assert numbers["events"] == 93_894  # 93,895 lines, of which one is "["
    io, hidden, felt = (numbers[k] for k in ("io_s", "overlapped_io_s", "nonoverlapped_io_s"))
    assert io == pytest.approx(hidden + felt)  # type: ignore[operator]
    # NumPy seeks to where it is after nearly every read: each position can be tracked.
    assert frame.readwrite_pattern()["unplaced"].sum() == 0


@needs_data
def test_plain_file_of_one_process() -> None:
    frame = open_trace(DATA / "test.pfw")
    assert len(frame) == 1_012
    # 1,000 reads of 131,072 bytes and one write of 3,276,800.
    assert frame.overlap().loc["all", "bytes"] == 1000 * 131_072 + 3_276_800


@pytest.mark.skipif(program("iokernel") is None, reason="iokernel is not built (make setup builds it)")
@pytest.mark.skipif(preload_library() is None, reason="dftracer is not installed")
@pytest.mark.parametrize("options", [["-F"], []], ids=["file-per-process", "shared"])
def test_totals_are_those_of_iokernel(tmp_path: Path, options: list[str]) -> None:
    """Two processes write 2 x 1 MiB in calls of 64 KiB and read it back: iokernel counts the same."""
    (tmp_path / "data").mkdir()
    command = [
        str(program("iokernel")), "-n", "2", "-w", "-r", "-k", "-e", "-t", "64k", "-b", "1m", *options,
        "-o", str(tmp_path / "data" / "f"), "-O", f"summaryFile={tmp_path / 'result.json'}",
    ]  # fmt: skip
    (tmp_path / "trace").mkdir()
    environment = {
        **os.environ, "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_INC_METADATA": "1",
        "DFTRACER_LOG_FILE": str(tmp_path / "trace" / "run"), "DFTRACER_DATA_DIR": str(tmp_path / "data"),
        "LD_PRELOAD": str(preload_library()),
    }  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=120)
    results = json.loads((tmp_path / "result.json").read_text())["tests"][0]["Results"]
    counted = {phase["access"]: phase["bytesMoved"] for phase in _phases(results)}
    frame = open_trace(tmp_path / "trace")
    moved = frame.query(
        "SELECT kind, sum(size)::BIGINT AS bytes, count(*) AS calls FROM events "
        "WHERE kind IN ('read', 'write') AND file LIKE '%/data/f%' GROUP BY kind"
    ).set_index("kind")
    assert moved["bytes"].to_dict() == counted == {"read": 2 << 20, "write": 2 << 20}
    assert moved["calls"].to_dict() == {phase["access"]: phase["operations"] for phase in _phases(results)}
    pattern = frame.select(filter="file LIKE '%/data/f%'").readwrite_pattern()
    assert pattern[["WO", "RAW", "WAW", "RO", "RAR"]].sum().tolist() == [2 << 20, 2 << 20, 0, 0, 0]


def _phases(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [phase for phase in results if phase.get("access") in {"read", "write"}]
