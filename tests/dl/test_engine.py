"""dlkernel as an engine of studies: the workload kind, the adapter, and its trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.engine import DLKernel
from tiercel.dl.running import run_once
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.engines import Task, engines
from tiercel.errors import RunFailed, UserError
from tiercel.launchers import resolve
from tiercel.results.raw import RawStore
from tiercel.results.schema import OBSERVATIONS
from tiercel.results.validity import flags_of
from tiercel.runs.execute import Equipment, execute
from tiercel.site.model import Stack
from tiercel.study.plan import Configuration, Run
from tiercel.study.workloads import DataWorkload
from tiercel.traces import IOFrame


def small(**more: Any) -> DeepLearningWorkload:
    content = {"operation": "deep-learning", "workload": "cosmoflow-vast", "scale": 0.01, **more}
    overrides = {"train.epochs": 2, **more.get("overrides", {})}
    return DeepLearningWorkload.model_validate({**content, "overrides": overrides})


def test_the_files_content_is_part_of_the_workload() -> None:
    one, other = small(), small(overrides={"reader.read_threads": 8})
    assert one.content["dataset"]["format"] == "tfrecord"
    assert one.model_dump() != other.model_dump()
    # From a stored run the file is not read again.
    again = DeepLearningWorkload.model_validate({**one.model_dump(), "workload": "gone"})
    assert again.resolved() == one.resolved()


def test_features_carry_the_scale() -> None:
    features = small().features(1, 2)
    assert features["scale"] == 0.01
    assert features["data_scale"] == pytest.approx(0.01, rel=0.1)
    assert features["transfer_size"] == 262144
    assert "train.epochs=2" in features["dl_settings"]


def test_weak_scaling_multiplies_the_dataset() -> None:
    alone, _ = small().resolved(1, 4)
    grown, _ = small(grow_with="processes").resolved(1, 4)
    nodes, _ = small(grow_with="nodes").resolved(3, 4)
    assert grown.dataset.samples_train == 4 * alone.dataset.samples_train
    assert nodes.dataset.samples_train == 3 * alone.dataset.samples_train


def test_the_footprint_covers_what_is_written(tmp_path: Path) -> None:
    for name in ("cosmoflow-vast", "candle", "unet3d-h100"):
        workload = DeepLearningWorkload.model_validate({
            "operation": "deep-learning", "workload": name, "scale": 0.002,
            "overrides": {"train.epochs": 1, "train.computation_time": 0.0001},
        })  # fmt: skip
        folder, output = tmp_path / name, tmp_path / f"{name}-out"
        folder.mkdir()
        output.mkdir()
        run_once(workload, "dlkernel", folder, output)
        used = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        assert used <= workload.footprint(1, 1)


def test_other_workloads_are_refused() -> None:
    data = DataWorkload(operation="write", data_per_process=1)
    assert "deep-learning workloads" in (DLKernel().unsupported(data, 1) or "")
    assert "dlkernel" in engines


def test_a_wrong_override_in_a_study_names_the_key() -> None:
    with pytest.raises(UserError, match=r"reader\.red_threads: unknown key"):
        small(overrides={"reader.red_threads": 1})


def run_of(stack: Stack, workload: DeepLearningWorkload, traced: bool = False) -> Run:
    installation = DLKernel().find()
    assert installation is not None
    return Run(
        Configuration(
            site="s", study="t", experiment="e", name="w", workload=workload, stack=stack, engine="dlkernel",
            engine_version=installation.version, launcher="fork", nodes=1, processes_per_node=2, seed=1,
        ),
        traced=traced,
    )  # fmt: skip


def equipment(tmp_path: Path) -> Equipment:
    installation = DLKernel().find()
    assert installation is not None
    return Equipment(DLKernel(), installation, resolve("fork"), RawStore(tmp_path / "results"), 120.0)


def test_a_run_of_a_study(stack: Stack, tmp_path: Path) -> None:
    outcome = execute(run_of(stack, small()), equipment(tmp_path))
    assert outcome.status == "ok", outcome.reason
    by_name = {m.operation: m for m in outcome.measurements}
    assert list(by_name) == ["generate", "train", "train-later"]
    train = by_name["train"]
    assert (train.role, by_name["generate"].role) == ("measured", "setup")
    assert train.metrics["epochs"] == 1
    assert 0 < train.metrics["au"] <= 1
    assert train.metrics["au_goal"] == 0.7
    assert train.metrics["io_time"] == pytest.approx(
        train.metrics["overlapped_io"] + train.metrics["nonoverlapped_io"]
    )
    assert (train.access, by_name["train-later"].access) == ("RO", "RAR")
    if not train.memory_backed:
        assert train.resident_fraction == 0


def test_a_warm_first_epoch_is_flagged(stack: Stack, tmp_path: Path) -> None:
    row: dict[str, Any] = dict.fromkeys(column.name for column in OBSERVATIONS)
    row |= {"operation": "train", "access": "RO", "role": "measured"}
    assert "cache-unknown" in flags_of(row)
    assert "cache-not-cold" in flags_of({**row, "resident_fraction": 0.5})
    assert "cache-not-cold" not in flags_of({**row, "resident_fraction": 0.5, "access": "RAR"})


def test_a_failed_run_says_why(stack: Stack, tmp_path: Path) -> None:
    wrong = small(overrides={"reader.batch_size": 900})
    outcome = execute(run_of(stack, wrong), equipment(tmp_path))
    assert outcome.status == "failed"
    assert "reader.batch_size: 900" in outcome.reason


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"rows": []}', '{"rows": [{}], "generated": null}']
)
def test_a_torn_result_is_no_number(tmp_path: Path, content: str) -> None:
    (tmp_path / "dlkernel.json").write_text(content)
    task = Task(small(), 1, 1, tmp_path, tmp_path, 1, "fork")
    with pytest.raises(RunFailed):
        DLKernel().parse(task, tmp_path)


@pytest.mark.parametrize("name", ["cosmoflow-vast", "resnet50-vast"])
def test_the_trace_gives_the_same_overlap(tmp_path: Path, name: str) -> None:
    """The engine's own sums and those of its trace: threads (TFRecord) and worker processes (JPEG)."""
    folder, output = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    output.mkdir()
    workload = DeepLearningWorkload.model_validate({
        "operation": "deep-learning", "workload": name, "scale": 0.02,
        "overrides": {"train.epochs": 1, "train.computation_time": 0.005},
    })  # fmt: skip
    ran = run_once(workload, "dlkernel", folder, output, processes=2, trace=True)
    train = ran.of("train")
    frame = IOFrame.from_dftracer(output / "trace")
    table = frame.overlap()
    job = table.loc["all"]
    assert len(table) == 3  # two ranks, whose workers count as theirs
    assert job["bytes"] == train.bytes_moved
    own = {
        "io_time": train.metrics["io_time"],
        "overlapped_io": train.metrics["overlapped_io"],
        "nonoverlapped_io": train.metrics["nonoverlapped_io"],
        "compute": train.metrics["compute_time"],
    }
    for column, value in own.items():
        # Traces have microseconds, the engine's clock finer ones.
        assert job[column] == pytest.approx(value, rel=0.02, abs=0.003)
    names = set(frame.query("SELECT DISTINCT function FROM events")["function"])
    assert {"DLIOBenchmark.run", "DLIOBenchmark._train", "loop.iter", "open64", "pread", "close"} <= names
    if name == "resnet50-vast":
        assert {"TorchFramework.compute", "TorchDataset.__getitem__", "ImageReader.read_index"} <= names
    summary = json.loads((output / "summary.json").read_text())
    assert summary["scale"]["asked"] == 0.02


def test_a_trace_is_of_one_run(tmp_path: Path) -> None:
    """A second run into the same folder, of fewer processes: what the first one left is not in its trace."""
    workload = DeepLearningWorkload.model_validate({
        "operation": "deep-learning", "workload": "cosmoflow-vast", "scale": 0.005,
        "overrides": {"train.epochs": 1, "train.computation_time": 0},
    })  # fmt: skip
    for processes in (2, 1):
        run_once(workload, "dlkernel", tmp_path, tmp_path, processes=processes, trace=True)
        ranks = IOFrame.from_dftracer(tmp_path / "trace").overlap().index.tolist()
        assert ranks[:-1] == list(range(processes))  # and "all"
