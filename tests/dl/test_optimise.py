"""The search for loader settings: what is tried, what is taken, what is recommended."""

from __future__ import annotations

from pathlib import Path

from tiercel.dl.optimise import Gain, candidates, gain_of, optimise, recommend, taken
from tiercel.dl.running import deep_learning
from tiercel.dl.workload import load_workload


def test_axes_are_those_of_the_paper() -> None:
    tf = candidates(load_workload("cosmoflow-vast", {"reader.preprocess_time": 0.01}))
    assert set(tf) == {"transfer buffer", "preprocess threads", "read threads"}
    assert {"reader.transfer_size": 262144} not in tf["transfer buffer"]  # the file's own
    h5 = candidates(load_workload("cosmic-tagger"))
    assert set(h5) == {"chunk size", "compression", "read threads"}
    assert {s["dataset.compression_level"] for s in h5["compression"]} == {1, 4, 9}


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
