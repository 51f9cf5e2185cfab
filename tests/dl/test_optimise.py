"""The search for loader settings: what is tried, what is taken, what is recommended."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiercel.dl.optimise import Answer, Gain, Real, candidates, gain_of, optimise, recommend, taken
from tiercel.dl.real_training import waited
from tiercel.dl.running import deep_learning, run_once
from tiercel.dl.upstream.environment import environment_for
from tiercel.dl.verify.programs import Setting, Training, traced
from tiercel.dl.workload import load_workload
from tiercel.errors import UserError

from ..cli.test_bad_input import asked
from .system_calls import sizes_of_reads


def test_axes_are_those_of_the_paper() -> None:
    tf = candidates(load_workload("cosmoflow-vast", {"reader.preprocess_time": 0.01}))
    assert set(tf) == {"transfer buffer", "preprocess threads", "read threads"}
    assert {"reader.transfer_size": 262144} not in tf["transfer buffer"]  # the file's own
    h5 = candidates(load_workload("cosmic-tagger"))
    assert set(h5) == {"chunk size", "compression", "read threads"}
    assert {s["dataset.compression_level"] for s in h5["compression"]} == {1, 4, 9}


def test_a_setting_is_told_whole_in_80_columns(monkeypatch: Any) -> None:
    """Chunks of 4 KiB to 4 MiB were all "dataset.…" on a narrow terminal, and in a file."""
    tried = [Gain(axis, s, 1.5, 1.25, 10.25) for axis, settings in
             {**candidates(load_workload("cosmic-tagger")),
              **candidates(load_workload("cosmoflow-vast", {"reader.preprocess_time": 0.01}))}.items()
             for s in settings]  # fmt: skip
    answer = Answer({}, None, tried, [1.0], {}, Real("pytorch 2", None, tried, [1.0]))
    monkeypatch.setattr("tiercel.dl.optimise.optimise", lambda *_: answer)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = asked(["dl", "optimise", "cosmic-tagger"])
    assert code == 0 and "…" not in out
    for words in (
        "chunk size 4 MiB",
        "compression gzip, level 9",
        "transfer buffer 64 KiB",
        "preprocess threads 4",
    ):
        (line,) = [line for line in out.splitlines() if line.startswith(f"{words} ")]
        assert line.count("1.25–10.25") == 2


def test_a_gain_is_a_ratio_of_medians() -> None:
    gain = gain_of("a", {"x": 1}, [2.0, 2.2, 2.1], [1.0, 1.1, 1.05])
    assert gain.ratio == 2.0
    assert 1.7 < gain.low <= 2 <= gain.high < 2.3
    assert gain.better


def test_noise_is_not_taken() -> None:
    assert not gain_of("a", {}, [1.0, 2.0, 1.5], [1.2, 1.9, 1.4]).better


def test_the_best_proven_setting_of_each_axis_is_taken() -> None:
    tried = [Gain("buffer", {"b": 1}, 1.2, 1.1, 1.3), Gain("buffer", {"b": 2}, 1.5, 1.2, 1.8),
             Gain("threads", {"t": 4}, 3.0, 0.9, 5.0), Gain("chunks", {"c": 1}, 1.1, 1.05, 1.2)]  # fmt: skip
    assert taken(tried) == {"b": 2, "c": 1}


def test_recommendations_name_real_arguments() -> None:
    tf = recommend(
        load_workload("cosmoflow-vast"), {"reader.transfer_size": 1048576, "reader.read_threads": 8}
    )
    assert tf["tf.data"] == "tf.data.TFRecordDataset(files, buffer_size=1048576, num_parallel_reads=8)"
    torch = recommend(load_workload("resnet50-vast"), {"reader.read_threads": 2})
    assert "num_workers=2" in torch["PyTorch"]
    h5 = recommend(
        load_workload("cosmic-tagger"), {"dataset.compression": "gzip", "dataset.compression_level": 4}
    )
    assert 'compression="gzip", compression_opts=4' in h5["h5py (rewrite the dataset)"]
    chunks = {"dataset.enable_chunking": True, "dataset.chunk_size": 16 << 20}
    large = recommend(load_workload("cosmic-tagger"), chunks)
    # A chunk that has no room in HDF5's cache is read and unpacked for each of its samples.
    assert "rdcc_nbytes=33554432" in large["h5py (read)"]
    assert "rdcc_nbytes=8388608" in h5["h5py (read)"]


def test_chunks_are_tried_up_to_batches_of_samples() -> None:
    """The paper's best are about a batch: 32 samples of 40 KiB are 1.25 MiB."""
    sizes = [s["dataset.chunk_size"] for s in candidates(load_workload("cosmic-tagger"))["chunk size"]]
    assert sizes == [n * 1024 for n in (4, 16, 64, 256, 1024, 4096)]
    alone = candidates(load_workload("cosmic-tagger", {"reader.batch_size": 1}))["chunk size"]
    assert max(s["dataset.chunk_size"] for s in alone) == 64 * 1024


def test_a_real_training_goes_through_the_same_settings(monkeypatch: Any, tmp_path: Path) -> None:
    """dlkernel takes 8 s, and 2 s with two readers; the real training waits 3 s, and 1 s with them."""

    def ran(workload: Any, folder: Path, processes: int) -> Any:
        fast = workload.overrides.get("reader.read_threads") == 2
        return SimpleNamespace(of=lambda _: SimpleNamespace(total_time=2.0 if fast else 8.0), dataset=folder)

    def trained(workload: Any, dataset: Path, output: Path, processes: int) -> float:
        return 1.0 if workload.overrides.get("reader.read_threads") == 2 else 3.0

    monkeypatch.setattr("tiercel.dl.optimise._run", ran)
    monkeypatch.setattr("tiercel.dl.optimise.waited", trained)
    monkeypatch.setattr("tiercel.dl.optimise.framework_of", lambda _: "torch 1")
    answer = optimise(deep_learning("resnet50-vast"), tmp_path, 1, repetitions=3, real=True)
    assert answer.settings == {"reader.read_threads": 2} and answer.gain and answer.gain.ratio == 4.0
    assert answer.real and answer.real.gain and answer.real.gain.ratio == 3.0
    assert [g.settings for g in answer.real.tried] == [g.settings for g in answer.tried]
    assert [g.ratio for g in answer.real.tried if g.settings == answer.settings] == [3.0]
    assert answer.as_dict()["real"]["framework"] == "torch 1"


def test_what_no_real_training_reads_is_refused_before_the_search(tmp_path: Path) -> None:
    keys = {"framework": "tensorflow", "reader.data_loader": "tensorflow"}
    workload = deep_learning("resnet50-vast", keys)
    with pytest.raises(UserError, match="--real: no real training reads jpeg with tensorflow"):
        optimise(workload, tmp_path, 1, repetitions=3, real=True)


@pytest.mark.nightly
def test_a_real_training_waits_for_its_files(tmp_path: Path) -> None:
    if environment_for("pytorch") is None:
        pytest.skip("no environment with PyTorch: run `make dlio-torch`")
    keys = {"train.computation_time": 0, "train.total_training_steps": -1, "reader.batch_size": 4}
    ran = run_once(deep_learning("cosmic-tagger", keys, 0.001), "dlkernel", tmp_path, tmp_path, 1)
    assert isinstance(ran.dataset, Path)
    assert waited(ran.workload, ran.dataset, tmp_path / "real", 1) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("readers", [0, 2])
def test_a_real_training_opens_a_file_that_all_share_once(tmp_path: Path, readers: int) -> None:
    """Opened for each sample, a chunk of 1 MiB was read again for each of its 25 samples of 40 KiB."""
    if environment_for("pytorch") is None or shutil.which("strace") is None:
        pytest.skip("needs strace and an environment with PyTorch (`make dlio-torch`)")
    keys = {"train.computation_time": 0, "train.total_training_steps": -1, "reader.batch_size": 4,
            "reader.read_threads": readers, "dataset.chunk_size": 1 << 20}  # fmt: skip
    ran = run_once(deep_learning("cosmic-tagger", keys, 0.003), "dlkernel", tmp_path, tmp_path, 1)
    assert isinstance(ran.dataset, Path)
    (file,) = (ran.dataset / "train").iterdir()
    found, _ = ran.workload.resolved(1, 1)
    setting = Setting(ran.workload, found, ran.dataset.parent, 1, tracer="strace", made=ran.dataset)
    log = traced(Training(), setting, tmp_path / "real").read_text()
    opens = [line for line in log.splitlines() if "openat(" in line and str(file) in line.partition(")")[0]]
    processes = max(1, readers)  # each worker opens the file itself, and chunks that two share come twice
    assert 0 < len(opens) <= 2 * processes  # HDF5 looks first, then opens
    untimed = re.sub(r"(?m)^(\d+) +\d+\.\d+ ", r"\1 ", log)
    size, read = file.stat().st_size, sum(sizes_of_reads(untimed, str(file)))
    least = 0.0 if readers else 0.9 * size  # of calls of several processes strace breaks some lines in two
    assert least < read < 1.2 * size * processes


def test_a_search_finds_parallel_preprocessing(tmp_path: Path) -> None:
    """With 10 ms to prepare a sample one thread is the bottleneck on any storage: more must be taken."""
    overrides = {"train.epochs": 1, "train.computation_time": 0, "reader.preprocess_time": 0.01,
                 "reader.computation_threads": 1, "reader.read_threads": 2}  # fmt: skip
    workload = deep_learning("cosmoflow-vast", overrides, 0.02)
    answer = optimise(workload, tmp_path, 1, repetitions=3)
    assert answer.settings.get("reader.computation_threads") in (2, 4, 8)
    assert answer.gain is not None
    assert answer.gain.low > 1
    assert "num_parallel_calls" in answer.recommendation["tf.data map"]
    assert list(tmp_path.iterdir()) == []
