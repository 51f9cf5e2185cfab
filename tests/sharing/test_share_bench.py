"""`tiercel share bench` on a busy machine, and what `tiercel share calibrate` makes of its numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.programs import find_programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.sharing import bench
from tiercel.sharing.calibrate import read_measurements
from tiercel.sharing.contest_runs import deviations
from tiercel.sharing.jobs import Load, Place, Throughput
from tiercel.sharing.scaling import PROCESSES, TRANSFER, measure_scaling

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
built = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)

LOAD = Load(Job("solo"), 1, "read", seconds=0.125, transfer=4096)
PLACE = Place(Path("load"), Path("/fairshare"))
RATE = 40 << 20


def test_a_busy_machine_is_measured_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends in 0.125 and 0.25 s, something does in 0.5 s."""
    tried: list[float] = []

    def run_jobs(place: Place, loads: list[Load]) -> list[Throughput]:
        tried.append(loads[0].seconds)
        latency = 0.2 if len(tried) == 3 else None
        return [Throughput("solo", 0.1, np.zeros(1), np.zeros(1), latency, latency)]

    monkeypatch.setattr(bench, "run_jobs", run_jobs)
    notes: list[str] = []
    assert bench._latency(PLACE, LOAD, notes) == 0.2
    assert tried == [0.125, 0.25, 0.5]
    assert notes == ["read of 4096 bytes: the machine was busy, it took 0.5 s for one to end"]


def test_what_cannot_be_measured_is_missing_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_jobs(place: Place, loads: list[Load]) -> list[Throughput]:
        return [Throughput("solo", 0.1, np.zeros(1), np.zeros(1), None, None)]

    monkeypatch.setattr(bench, "run_jobs", run_jobs)
    notes: list[str] = []
    assert bench._latency(PLACE, LOAD, notes) is None
    assert notes == ["read of 4096 bytes: left out once: the machine was too busy, none ended in 2 s"]

    def failing(place: Place, loads: list[Load]) -> list[Throughput]:
        raise RunFailed("job solo did not end in time")

    monkeypatch.setattr(bench, "run_jobs", failing)
    assert bench._latency(PLACE, LOAD, notes) is None
    assert notes[1] == "read of 4096 bytes: left out once: job solo did not end in time"


def test_ratios_of_what_is_there() -> None:
    """Rounds in which one side is missing have no ratio: 2 of 4 is left for writes, nothing for reads."""
    found = bench._solo([
        {"limit_1m": 2.0, "write_1m": 4.0, "cached_limit_1m": 1.0, "limit_4k": 1.0, "write_4k": 3.0},
        {"limit_1m": 9.0, "cached_limit_1m": 1.0, "limit_4k": 1.0},
    ])  # fmt: skip
    assert found["throughput_ratio"] == 0.5
    assert found["throughput_ratio_range"] == [0.5, 0.5]
    assert found["read_ratio"] is None
    assert found["latency_ratio"] == 3.0
    assert found["limit_1m"] == 5.5  # the median of both rounds
    assert "read_1m" not in found
    assert deviations([]) == []


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """As `tiercel share bench --servers 1 --servers 2 --rate 40MiB --json` prints it, without contests."""
    programs = find_programs()
    if programs is None:
        pytest.skip(NOT_BUILT)
    notes: list[str] = []
    rows = measure_scaling(programs, tmp_path_factory.mktemp("scaling"), [1, 2], 1, 0.4, 1, RATE, notes)
    assert notes == []
    return {"parallel": 1, "rate": RATE, "solo": {"write_4k": 20e-6}, "scaling": rows}


def test_scaling_moves_what_it_says(measured: dict[str, Any]) -> None:
    """No server gives more than its rate, so two give twice that at most, whatever the machine does."""
    one, two = measured["scaling"]
    for count, row in ((1, one), (2, two)):
        assert (row["servers"], row["processes_per_node"]) == (count, PROCESSES * count)
        # A process moves its part of 0.4 s at 40 MiB/s among 8 of them: 2 MiB.
        assert row["data_per_process"] == 2 << 20
        moved = row["data_per_process"] * row["processes_per_node"]
        seconds = moved / row["throughput"]
        assert moved <= count * (RATE * (seconds + 0.02) + TRANSFER)


def test_calibrate_reads_what_bench_prints(measured: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(measured))
    known = read_measurements(file)
    assert (known.server.workers, known.server.duplex, known.server.overhead) == (1, False, 20e-6)
    done = CliRunner().invoke(app, ["share", "calibrate", str(file), "--predict", "16", "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["origin"] == "simulated"
    # Two processes' worth of placements decide how many pieces there are; one server decides its bandwidth.
    one = measured["scaling"][0]["throughput"]
    assert answer["server"]["bandwidth"] == pytest.approx(one, rel=0.1)
    (predicted,) = answer["predictions"]
    assert predicted["servers"] == 16
    assert 0 < predicted["simulated"] <= 16 * 1.05 * answer["server"]["bandwidth"]


def test_a_bench_of_one_server_says_what_to_run(measured: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({key: measured[key] for key in ("parallel", "solo")}))
    with pytest.raises(UserError, match=r"bench\.json: this bench measured one server only: run it with"):
        read_measurements(file)
    file.write_text(json.dumps({**measured, "scaling": [{"servers": 1, "throughput": -1}]}))
    with pytest.raises(UserError, match=r"bench\.json.*throughput"):
        read_measurements(file)


@built
@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="/dev/shm is not writable: bench needs memory")
def test_a_rate_without_servers_is_refused() -> None:
    done = CliRunner().invoke(app, ["share", "bench", "--rate", "100MiB"])
    assert isinstance(done.exception, UserError)
    assert "--servers" in str(done.exception)
