"""Workload files in DLIO's schema: what they say, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.workload import known_workloads, load_workload, overrides_of
from tiercel.errors import UserError


def test_every_file_is_valid_and_there_are_those_of_the_papers() -> None:
    eight = {"cosmic-tagger", "flood-filling-network", "cosmoflow", "candle", "frnn", "imagenet",
             "climate-segmentation", "l2hmc"}  # fmt: skip
    assert eight | {
        "resnet50-vast",
        "cosmoflow-vast",
        "unet3d-h100",
        "resnet50-h100",
        "cosmoflow-h100",
    } <= set(known_workloads())
    for name in known_workloads():
        load_workload(name)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("cosmoflow", 2048),  # 1,024 files of 256 samples of 8 MiB: "2 TB"
        ("imagenet", 256),  # 1,024 x 1,024 x 256 KiB
        ("flood-filling-network", 2.28),  # 18,678 samples of 32 x 32 x 32 of four bytes: "2.28 GB"
        ("frnn", 5.47),  # 2,800 x 2 MiB: "6 GB" (sides are whole, so a little less)
        ("unet3d-h100", 22.9),  # 168 x 146,600,628 bytes
    ],
)
def test_datasets_have_the_stated_size(name: str, gib: float) -> None:
    data = load_workload(name).dataset
    assert data.samples_train * data.sample_bytes / 2**30 == pytest.approx(gib, rel=0.02)


def test_mlperf_storage_parameters() -> None:
    unet, resnet, cosmo = (load_workload(f"{n}-h100") for n in ("unet3d", "resnet50", "cosmoflow"))
    assert (unet.reader.batch_size, unet.train.computation_time.mean, unet.reader.read_threads) == (
        7,
        0.323,
        4,
    )
    assert (resnet.dataset.num_samples_per_file, resnet.reader.batch_size) == (1251, 400)
    assert resnet.dataset.record_length_bytes == 114660  # 114,660.07 in the rules
    assert (cosmo.train.computation_time.mean, cosmo.metric.au) == (0.0035, 0.7)


def write(folder: Path, text: str) -> str:
    path = folder / "w.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("reader: {red_threads: 2}", "reader.red_threads: unknown key: did you mean read_threads?"),
        ("datset: {}", "datset: unknown key: did you mean dataset?"),
        ("framework: pytorch\nreader: {data_loader: tensorflow}", "contradicts framework: pytorch"),
        (
            "framework: pytorch\nreader: {data_loader: pytorch}\ndataset: {format: tfrecord}",
            "tfrecord needs reader.data_loader",
        ),
        ("dataset: {format: jpeg, num_samples_per_file: 4}", "one sample a file"),
        ("dataset: {format: npz, compression: gzip}", "compression: gzip does not go with format: npz"),
        ("dataset: {format: npz, enable_chunking: true, chunk_size: 64}", "chunks need format: hdf5"),
        ("dataset: {record_length: 5, record_length_bytes: 5}", "are the same key"),
        ("dataset: {record_length: 5, record_length_stdev: 6}", "record_length_bytes_stdev: 6 is more than"),
        (
            "dataset: {format: hdf5, record_dims: [4, 8], hdf5: {num_dset_per_record: 5}}",
            "num_dset_per_record: 5 is more than the 4 rows",
        ),
        (
            "dataset: {format: hdf5, record_length: 100, hdf5: {chunk_dims: [9]}}",
            "as a sample (10x10), or one",
        ),
        (
            "dataset: {format: hdf5, record_length: 100, hdf5: {max_shape: [1099511627777, 10]}}",
            "hdf5.max_shape: HDF5 keeps an index",
        ),
        ("reader: {file_access: shared}", "num_files_train must be 1"),
        ("workflow: {evaluation: true}", "needs dataset.num_files_eval"),
        ("workflow: {train: false}", "nothing to do"),
        ("train: {total_training_steps: 99}", "more than the 8 of the dataset"),
        ("train: {epochs: 0}", "train.epochs"),
        ("train: {computation_time: {type: uniform, min: 1}}", "uniform needs max"),
        ("checkpoint: {num_checkpoints_write: 1, num_checkpoints_read: 2}", "is more than"),
        ("metric: {au: 90}", "metric.au"),
        ("reader: {read_threads: 4097}", "reader.read_threads: input should be less than or equal to 4096"),
        ("reader: {read_threads: -1}", "reader.read_threads: input should be greater than"),
        ("dataset: {record_length: 1.0e+300}", "dataset.record_length_bytes: input should be less than"),
        ("reader: {transfer_size: 2147483648}", "reader.transfer_size: input should be less than"),
        ("reader: {read_threads: yes}", "reader.read_threads: must be a number (given: True)"),
        ("train: {epochs: true}", "train.epochs: must be a number (given: True)"),
        ("metric: {au: on}", "metric.au: must be a number (given: True)"),
        ("train: {computation_time: .inf}", "train.computation_time.mean: input should be less than"),
        ("train: {computation_time: {type: gamma, shape: .inf, scale: 1}}", "computation_time.shape"),
        ("[1]", "must be a mapping"),
        ("train: {seed: 1, seed: 2}", "written twice"),
    ],
)
def test_a_wrong_file_names_file_and_key(tmp_path: Path, text: str, telling: str) -> None:
    with pytest.raises(UserError) as caught:
        load_workload(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "w.yaml"))
    assert telling in str(caught.value)


def test_old_names_of_dlio_are_taken(tmp_path: Path) -> None:
    text = "model: unet\ndataset: {record_length: 4096}\ndata_reader: {batch_size: 3}\n" \
           "train: {computation_time: 0.5, computation_time_stdev: 0.1}"  # fmt: skip
    found = load_workload(write(tmp_path, text))
    assert (found.model.name, found.dataset.record_length_bytes, found.reader.batch_size) == ("unet", 4096, 3)
    assert (found.train.computation_time.mean, found.train.computation_time.stdev) == (0.5, 0.1)


def test_a_file_for_dlios_command_line_is_unwrapped(tmp_path: Path) -> None:
    assert load_workload(write(tmp_path, "workload: {train: {epochs: 7}}")).train.epochs == 7


def test_overrides_are_values_of_yaml() -> None:
    given = overrides_of(["reader.read_threads=8", "++workload.train.epochs=2", "reader.file_shuffle=off"])
    assert given == {"reader.read_threads": 8, "train.epochs": 2, "reader.file_shuffle": False}
    found = load_workload("unet3d-h100", given)
    assert (found.reader.read_threads, found.train.epochs, found.reader.file_shuffle) == (8, 2, "off")


@pytest.mark.parametrize("word", ["reader.read_threads", "=3", "a={"])
def test_an_override_without_key_or_value_is_refused(word: str) -> None:
    with pytest.raises(UserError, match="override"):
        overrides_of([word])


def test_an_override_below_a_value_is_refused() -> None:
    with pytest.raises(UserError, match="framework is a value"):
        load_workload("unet3d-h100", {"framework.x": 1})


def test_an_unknown_workload_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="did you mean cosmoflow"):
        load_workload("cosmoflows")


def test_a_time_may_be_a_distribution(tmp_path: Path) -> None:
    cases: dict[str, Any] = {"{type: uniform, min: 1, max: 3}": 2, "{type: gamma, shape: 2, scale: 3}": 6,
                             "{type: exponential, scale: 4}": 4, "{mean: 5, stdev: 1}": 5}  # fmt: skip
    for text, mean in cases.items():
        found = load_workload(write(tmp_path, f"train: {{computation_time: {text}}}"))
        assert found.train.computation_time.expected == mean
