"""DLIO's results: what is in them, and that a half-written one never becomes a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiercel.dl.upstream.engine import DLIO
from tiercel.dl.upstream.results import read_results
from tiercel.errors import RunFailed

from .runs import RECORDED, recorded, resnet, task

RUN = RECORDED / "resnet50-n2"


def test_epochs_steps_and_spans() -> None:
    found = read_results(RUN, ranks=2)
    assert (found.accelerators, found.hosts, found.epochs) == (2, 1, 2)
    # 24 files over 2 ranks at batch 1: 12 steps of each rank, cut by checkpoints into 5 + 5 + 2.
    first = [s for s in found.steps_of(1) if s.rank == 0]
    assert [(s.block, len(s.process)) for s in first] == [("block1", 5), ("block2", 5), ("block3", 2)]
    # DLIO forgets the first wait of a block after a checkpoint.
    assert [len(s.load) for s in first] == [5, 4, 1]
    # 8 evaluation files over 2 ranks after each of 2 epochs.
    assert [len(s.process) for s in found.steps if s.block == "eval"] == [4, 4, 4, 4]
    assert sorted({s.name for s in found.spans}) == [
        "block1", "block2", "block3", "ckpt1", "ckpt2", "epoch", "eval",
    ]  # fmt: skip
    epoch = found.span(1, "epoch")
    # 08:10:54.219683 to 08:10:56.205680
    assert epoch is not None and epoch.seconds == pytest.approx(1.985997, abs=1e-5)


def test_measurements_are_those_of_the_adapter_of_dlkernel(tmp_path: Path) -> None:
    rows = DLIO().parse(task(resnet(), tmp_path), recorded(tmp_path))
    assert [(r.operation, r.phase) for r in rows] == [
        ("train", 0), ("train-later", 1), ("evaluate", 2), ("checkpoint-write", 3),
    ]  # fmt: skip
    train, later, evaluation, checkpoints = rows
    assert (train.metrics["samples"], train.metrics["epochs"], later.metrics["samples"]) == (24, 1, 24)
    assert (train.access, later.access, train.resident_fraction) == ("RO", "RAR", 0.0)
    assert train.bytes_expected == 226136  # the 24 files, by evict.json
    assert train.bytes_moved is None  # DLIO does not count bytes
    assert train.bandwidth == pytest.approx(226136 / 1.985997, rel=1e-5)
    metric = json.loads((RUN / "summary.json").read_text())["metric"]
    assert train.metrics["au"] == pytest.approx(metric["train_au_percentage"][0] / 100)
    assert train.metrics["samples_per_second"] == pytest.approx(
        metric["train_throughput_samples_per_second"][0]
    )
    assert evaluation.metrics["samples"] == 16  # 8 files after each epoch
    # Two checkpoints in each of two epochs; each has the model (100,000) and two layers of 1,000 + 2,000.
    assert (checkpoints.operations, checkpoints.bytes_expected) == (4, 4 * (100000 + 2 * 3000))


def test_other_peoples_results_need_only_a_summary(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text((RUN / "summary.json").read_text())
    found = read_results(tmp_path)
    assert found.epochs == 2 and not found.spans and not found.steps
    with pytest.raises(RunFailed, match=r"per_epoch_stats\.json is missing"):
        read_results(tmp_path, ranks=2)


@pytest.mark.parametrize("name", ["summary.json", "per_epoch_stats.json", "0_output.json", "1_output.json"])
def test_a_missing_file_is_a_failed_run(tmp_path: Path, name: str) -> None:
    folder = recorded(tmp_path)
    (folder / "dlio" / name).unlink()
    with pytest.raises(RunFailed, match=name):
        DLIO().parse(task(resnet(), folder), folder)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["summary.json", "per_epoch_stats.json", "0_output.json"]),
    part=st.floats(0, 0.999),
)
def test_a_torn_file_is_a_failed_run(tmp_path_factory: Any, name: str, part: float) -> None:
    folder = recorded(tmp_path_factory.mktemp("torn"))
    path = folder / "dlio" / name
    whole = path.read_bytes().rstrip()
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(RunFailed):
        DLIO().parse(task(resnet(), folder), folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["metric"].pop("train_au_percentage"), "the training did not end"),
        (lambda s: s.update(num_accelerators=3), "3 processes where 2"),
        (lambda s: s["metric"]["train_au_percentage"].pop(), "epochs"),
        (lambda s: s["metric"].update(train_au_percentage=[1.0, "x"]), "no valid metric"),
        (lambda s: s["metric"].update(train_au_percentage=[1.0, float("nan")]), "no valid metric"),
        (lambda s: s.update(start="yesterday"), "not a time"),
    ],
)
def test_a_contradictory_summary_is_a_failed_run(tmp_path: Path, change: Any, said: str) -> None:
    folder = recorded(tmp_path)
    path = folder / "dlio" / "summary.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(RunFailed, match=said):
        DLIO().parse(task(resnet(), folder), folder)


def test_fewer_epochs_than_asked_for_is_a_failed_run(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    workload = resnet().model_copy(update={"content": {**resnet().content, "train": {"epochs": 3}}})
    with pytest.raises(RunFailed, match="2 epochs of 3"):
        DLIO().parse(task(workload, folder), folder)
