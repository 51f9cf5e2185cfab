"""The comparison of programs: what it says, and small real ones where the environments are."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.dl.files.dataset import Format
from tiercel.dl.running import deep_learning
from tiercel.dl.verify import programs
from tiercel.dl.verify.cases import CASES, known
from tiercel.dl.verify.compare import explain, typical, verify
from tiercel.dl.verify.metrics import METRICS
from tiercel.dl.verify.programs import tracer_for
from tiercel.errors import UserError

from ..upstream.runs import environment


def _metrics(**values: float) -> dict[str, float | None]:
    return {name: values.get(name) for name in METRICS}


def test_typical_is_the_median_of_what_is_known() -> None:
    runs = [_metrics(io_time=3.0), _metrics(io_time=1.0, bytes_read=5.0), _metrics(io_time=2.0)]
    found = typical(runs)
    assert (found["io_time"], found["bytes_read"], found["write_bandwidth"]) == (2.0, 5.0, None)


def test_the_sentence_keeps_requests_and_speed_apart() -> None:
    compared: dict[str, dict[str, Any]] = {
        "io_time": {"ratio": 2.0}, "bytes_read": {"ratio": 1.02}, "transfer_mean": {"ratio": 0.5},
    }  # fmt: skip
    assert explain(compared) == (
        "They ask for different things: transfer_mean (0.50 times). "
        "Calls were answered at different speeds: io_time (2.00 times)."
    )
    assert explain({"bytes_read": {"ratio": 1.02}}) == "They ask the storage for the same within 5 %."


def test_nothing_to_compare_with_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIERCEL_DLIO_PYTHON", raising=False)
    monkeypatch.setattr("tiercel.dl.upstream.environment.project_root", lambda: tmp_path)
    monkeypatch.setattr("tiercel.dl.upstream.environment.program", lambda _name: None)
    heard: list[str] = []
    with pytest.raises(UserError, match="nothing to compare dlkernel with"):
        verify(tmp_path / "v", quick=True, say=heard.append)
    assert any("left out: dlio" in line for line in heard)
    assert any("left out: training" in line for line in heard)


def test_a_training_keeps_a_file_open_that_all_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As dlkernel and the applications do; of many files it opens one for each sample."""
    there = SimpleNamespace(python=Path("/python"))
    monkeypatch.setattr("tiercel.dl.verify.programs.environment_for", lambda _: there)
    for access, kept in (("shared", True), ("multi", False)):
        workload = deep_learning("cosmic-tagger", {"reader.file_access": access})
        setting = programs.Setting(workload, workload.resolved(1, 1)[0], tmp_path, 1)
        assert ("--keep-open" in programs.Training().command(setting, tmp_path)[0]) is kept


def test_unknown_workload_and_used_folder(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["dl", "verify", "resnet50"])
    assert isinstance(answer.exception, UserError) and "did you mean resnet50-vast" in str(answer.exception)
    (tmp_path / "kept").touch()
    answer = CliRunner().invoke(app, ["dl", "verify", "--folder", str(tmp_path)])
    assert isinstance(answer.exception, UserError) and "not empty" in str(answer.exception)


def _rows(arguments: list[str]) -> list[dict[str, Any]]:
    answer = CliRunner().invoke(app, ["dl", "verify", "--quick", "--json", *arguments])
    assert answer.exit_code == 0, answer.output
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


@pytest.mark.mpi
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("framework", "workload"),
    [("tensorflow" if name == "cosmoflow-vast" else "pytorch", name) for name in known()],
)
def test_the_engines_ask_for_what_a_real_training_asks_for(
    tmp_path: Path, framework: str, workload: str
) -> None:
    """Requests, not times: a loaded machine must not fail this."""
    environment(framework)
    rows = _rows([workload, "--repetitions", "1", "--folder", str(tmp_path / "v")])
    pairs = [("dlkernel", "dlio"), ("dlkernel", "training"), ("dlio", "training")]
    # Of samples made in memory DLIO makes files, of mapped ones it never touches the samples' pages, and of
    # Parquet DLIO 2.0.0 has no reader.
    alone = workload in ("format-synthetic", "format-parquet")
    expected = [p for p in pairs if not alone or "dlio" not in p]
    assert [(r["engine"], r["reference"]) for r in rows] == expected
    for row in rows:
        if workload != "format-mmap_indexed_binary" or "dlio" not in (row["engine"], row["reference"]):
            assert row["similarity_of_requests"] > 0.95, row["explanation"]


def test_every_format_is_compared() -> None:
    settings = [deep_learning(c.workload, c.settings(quick=True)).resolved(1, 1)[0] for c in CASES]
    found = {one.dataset.format for one in settings}
    # hdf5_opt is HDF5 by another name.
    assert found == set(get_args(Format)) - {"hdf5_opt"}


def test_strace_is_for_what_the_other_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "preload_library", lambda: Path("/lib"))
    monkeypatch.setattr(programs, "no_strace", lambda: "")
    assert tracer_for("npz") == ("dftracer", "")
    assert tracer_for("hdf5") == ("strace", "")
    assert tracer_for("npz", "strace") == ("strace", "")
    assert tracer_for("hdf5", "dftracer")[0] == ""
    monkeypatch.setattr(programs, "no_strace", lambda: "not installed")
    assert tracer_for("mmap_indexed_binary") == (
        "", "DFTracer: does not show mmap_indexed_binary; strace: not installed"
    )  # fmt: skip
    with pytest.raises(UserError, match="allowed are auto, dftracer, strace"):
        tracer_for("npz", "perf")
