"""`tiercel dl`: commands, their JSON, and one line for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def tiercel(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiercel", "dl", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_list() -> None:
    rows = json.loads(tiercel("list", "--json").stdout)
    unet = next(r for r in rows if r["workload"] == "unet3d-h100")
    assert unet["computation_time"] == 0.323
    assert "cosmic-tagger" in tiercel("list").stdout


def test_run_tells_scale_and_utilisation(tmp_path: Path) -> None:
    answer = tiercel("run", "cosmoflow-vast", "--engine", "dlkernel", "--scale", "0.01", "-n", "2", "--json",
                     "--folder", str(tmp_path / "d"), "--set", "train.epochs=1")  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["scale"]["asked"] == 0.01
    assert {m["operation"] for m in found["measurements"]} == {"generate", "train"}
    assert found["summary"]["metric"]["train_au_meet_expectation"] in ("success", "fail")
    # The file's data_folder, below the folder that was named.
    assert found["dataset"] == str(tmp_path / "d" / "data" / "cosmoflow-vast")
    assert (tmp_path / "d" / "data" / "cosmoflow-vast" / "dataset.json").exists()


def test_a_utilisation_with_its_first_step_is_told(tmp_path: Path) -> None:
    # Checkpoints after every second of 5 steps: blocks of 2, 2 and 1 step. One step is left out of each.
    file = tmp_path / "w.yaml"
    file.write_text("""
framework: pytorch
model: {name: w, model_size_bytes: 1000}
workflow: {train: true, checkpoint: true}
dataset: {format: npz, num_files_train: 10, record_length_bytes: 4096}
reader: {batch_size: 2}
train: {computation_time: 0.001}
checkpoint: {steps_between_checkpoints: 2}
""")
    answer = tiercel("run", str(file), "--folder", str(tmp_path / "d"))
    assert answer.returncode == 0, answer.stderr
    assert "AU: 1 of 3 runs of steps are too short to leave out any" in answer.stdout
    answer = tiercel("run", str(file), "--folder", str(tmp_path / "d"), "--set", "workflow.checkpoint=false")
    assert "too short" not in answer.stdout


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("checkpoint.steps_between_checkpoints=6", "steps_between_checkpoints: 6, and an epoch has 5"),
        ("checkpoint.checkpoint_after_epoch=2", "checkpoint.checkpoint_after_epoch: 2, of 1 epochs"),
    ],
)
def test_what_a_run_does_not_reach_is_told(tmp_path: Path, stated: str, told: str) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("""
framework: pytorch
model: {name: w, model_size_bytes: 1000}
workflow: {train: true, checkpoint: true, evaluation: true}
dataset: {format: npz, num_files_train: 20, num_files_eval: 2, record_length_bytes: 4096}
reader: {batch_size: 2}
train: {computation_time: 0.001, total_training_steps: 10}
evaluation: {eval_after_epoch: 3}
""")
    answer = tiercel("run", str(file), "-n", "2", "--folder", str(tmp_path / "d"), "--set", stated)
    assert answer.returncode == 0, answer.stderr
    assert f"no checkpoint was written: checkpoint.{told.removeprefix('checkpoint.')}" in answer.stdout
    assert "no evaluation: evaluation.eval_after_epoch: 3, of 1 epochs" in answer.stdout
    assert "total_training_steps: 10, of which each process has samples for 5" in answer.stdout


def test_generate_goes_on(tmp_path: Path) -> None:
    arguments = ("generate", "resnet50-vast", "--scale", "0.02", "--folder", str(tmp_path / "d"), "--json")
    first, second = (json.loads(tiercel(*arguments).stdout) for _ in range(2))
    assert (first["files"], first["kept"]) == (second["kept"], second["files"])
    assert first["bytes"] > 0
    assert second["bytes"] == 0


def test_mistakes_are_one_line() -> None:
    cases = {
        ("run", "cosmoflw"): "did you mean cosmoflow",
        ("run", "cosmoflow", "--scale", "2"): "must be above 0 and at most 1",
        ("run", "cosmoflow", "--engine", "nope"): "no engine named",
        ("run", "unet3d-h100", "--scale", "0.01", "--set", "reader.batchsize=1"): "did you mean batch_size",
        ("run", "cosmoflow", "--trace"): "--trace needs --output",
        ("generate", "l2hmc", "--folder", "/tmp/none"): "made in memory",
    }
    for arguments, telling in cases.items():
        answer = tiercel(*arguments)
        assert answer.returncode == 2, arguments
        assert telling in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "full", ["0_output.json.part", "dlkernel.json.part", "trace/dlkernel-main-0-of-1.pfw.gz"]
)
def test_a_full_folder_of_results_is_named(tmp_path: Path, full: str) -> None:
    """/dev/full answers each write with "No space left on device": the engine's words have no room, too."""
    output = tmp_path / "out"
    for name in (full, "train.stderr"):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).symlink_to("/dev/full")
    answer = tiercel("run", "cosmoflow-vast", "--scale", "0.005", "--folder", str(tmp_path / "d"), "--trace",
                     "--output", str(output), "--set", "train.epochs=1")  # fmt: skip
    assert answer.returncode == 2 and answer.stderr.count("\n") == 1, answer.stderr
    assert str(output / full.removesuffix(".part")) in answer.stderr
    assert "cannot be written: No space left on device" in answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("optimise", "cosmoflow-vast", "--folder"),
        ("bench", "--folder"),
        ("verify", "--folder"),
        ("run", "cosmoflow-vast", "--output"),
    ],
)
def test_a_folder_of_files_is_no_prefix_of_objects(tmp_path: Path, command: tuple[str, ...]) -> None:
    """It was made in the current folder, under the name s3:."""
    answer = subprocess.run(
        [sys.executable, "-m", "tiercel", "dl", *command, "s3://bucket/x"],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert answer.returncode == 2 and "object-storage prefix does not work" in answer.stderr, answer.stderr
    assert list(tmp_path.iterdir()) == []
