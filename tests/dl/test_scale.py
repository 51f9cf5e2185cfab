"""Scaling: data and computation shrink together, and the result says by how much."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiercel.dl.files.spec import spec_of
from tiercel.dl.kernel.shards import shards
from tiercel.dl.kernel.spec import read_spec
from tiercel.dl.workload import DLWorkload, Scale, known_workloads, load_workload, scaled
from tiercel.errors import UserError


def per_step(w: DLWorkload) -> float:
    """Return bytes that one second of computation asks for."""
    return w.reader.batch_size * w.dataset.sample_bytes / w.train.computation_time.expected


@settings(max_examples=60)
@given(
    name=st.sampled_from(known_workloads()),
    factor=st.floats(min_value=1e-6, max_value=1, exclude_max=True),
    processes=st.integers(1, 16),
)
def test_what_a_second_of_computation_reads_stays(name: str, factor: float, processes: int) -> None:
    whole = load_workload(name)
    small, scale = scaled(whole, factor, processes)
    assert small.dataset.samples_train <= whole.dataset.samples_train
    assert small.dataset.sample_bytes <= whole.dataset.sample_bytes
    assert scale.asked == factor
    assert 0 < scale.compute <= 1
    if whole.workflow.train and whole.dataset.format != "synthetic":
        # Sides of samples are whole numbers, so a sample of a few kilobytes is some per cent off.
        if whole.train.computation_time.expected:  # the Cache VOL paper does not say any
            assert per_step(small) == pytest.approx(per_step(whole), rel=0.1)
            assert scale.data == pytest.approx(scale.compute, rel=0.1)
        else:  # no computation follows what the whole sides of a cube make of it
            assert scale.data == pytest.approx(scale.compute, rel=0.25)


@pytest.mark.parametrize("name", known_workloads())
def test_every_process_keeps_steps(name: str) -> None:
    whole = load_workload(name)
    small, _ = scaled(whole, 1e-6, processes=4)
    steps = small.dataset.samples_train // small.reader.batch_size // 4
    assert steps >= min(10, whole.dataset.samples_train // whole.reader.batch_size // 4)


def test_every_process_that_a_checkpoint_takes_keeps_steps(tmp_path: Path) -> None:
    """Megatron's of DLIO: 32 ranks, of which each had one step of the ten, and no checkpoint came."""
    file = tmp_path / "w.yaml"
    file.write_text("""
framework: pytorch
model: {type: megatron, num_layers: 8, layer_parameters: [1000], optimization_groups: [1000],
        parallelism: {tensor: 4, pipeline: 8, zero_stage: 1}}
workflow: {train: true, checkpoint: true}
dataset: {format: mmap_indexed_binary, num_files_train: 1, num_samples_per_file: 277203535,
          record_length_bytes: 2048}
reader: {batch_size: 16}
train: {total_training_steps: 1000}
checkpoint: {steps_between_checkpoints: 1000}
""")
    small, _ = scaled(load_workload(str(file)), 1e-6, processes=4)
    assert small.train.total_training_steps == small.checkpoint.steps_between_checkpoints == 10
    assert small.dataset.samples_train // small.reader.batch_size // 32 == 10


def test_numbers_of_one_case() -> None:
    # UNet3D, 1 %: 168 files are needed for 10 steps of 7 samples for 4 processes (280), so all stay, and
    # each sample becomes 1 % of 146,600,628 bytes; so does a step's 0.323 s.
    small, scale = scaled(load_workload("unet3d-h100"), 0.01, processes=4)
    assert small.dataset.num_files_train == 168
    assert small.dataset.record_length_bytes == 1466006
    assert small.train.computation_time.mean == pytest.approx(0.00323)
    assert scale.samples == 1
    assert "1.00 % of the data" in str(scale)


def test_full_size_is_unchanged() -> None:
    whole = load_workload("cosmoflow")
    small, scale = scaled(whole, 1.0)
    assert small == whole
    assert scale.full
    assert str(scale) == "full size"


def test_checkpoints_shrink_too() -> None:
    small, _ = scaled(load_workload("unet3d-h100"), 0.01)
    assert small.model.model_size_bytes == 4991532


def test_the_share_of_a_workload_that_only_checkpoints_is_that_of_its_checkpoints() -> None:
    whole = load_workload("llama3-8b")
    small, scale = scaled(whole, 0.01)
    files = [
        sum(n for _, n in shards(read_spec(json.dumps(spec_of(w))), 0, 1)) for w in (whole, small)
    ]  # fmt: skip
    assert scale.data == pytest.approx(files[1] / files[0], rel=0.01)
    # A hundredth of a matrix is a tenth of its sides, in whole heads: norms and embeddings shrink less.
    assert 0.008 < scale.data < 0.02
    assert "of the checkpoints" in str(scale)


@pytest.mark.parametrize("factor", [0, -1, 1.5])
def test_a_factor_out_of_range_is_refused(factor: float) -> None:
    with pytest.raises(UserError, match="scale"):
        scaled(load_workload("cosmoflow"), factor)


def test_a_tiny_share_is_told_by_its_first_digits() -> None:
    tiny, none = Scale(1e-5, data=2.83e-5, compute=0.0498), Scale(0.5, data=0.0, compute=0.5)
    assert str(tiny) == "scale 1e-05: 0.0028 % of the data, 4.98 % of the computation"
    assert str(none) == "scale 0.5: 0.00 % of the data, 50.00 % of the computation"


def test_columns_of_parquet_shrink_as_samples_do(tmp_path: Path) -> None:
    """FLUX of MLPerf Storage 3: its columns are all that a sample is."""
    columns = "[{name: a, dtype: float32, size: 524328}, {name: b, dtype: float32, size: 16880}, {name: c}]"
    file = tmp_path / "flux.yaml"
    file.write_text(
        "framework: pytorch\n"
        "dataset: {format: parquet, num_files_train: 4296, num_samples_per_file: 288,\n"
        f"  parquet: {{columns: {columns}}}}}\n"
        "reader: {data_loader: pytorch, batch_size: 48, read_threads: 8}\n"
        "train: {computation_time: 1.35}\n"
    )
    whole = load_workload(str(file))
    small, scale = scaled(whole, 0.0001, 1)
    sizes = [column.size for column in small.dataset.parquet.columns]
    assert sizes[2] == 1 and sizes[0] / 524328 == pytest.approx(sizes[1] / 16880, rel=1e-3)
    assert scale.data == pytest.approx(0.0001, rel=0.01)
    # A second of computation asks for the same bytes.
    assert scale.compute == pytest.approx(scale.data, rel=1e-6)
    assert small.train.computation_time.mean / 1.35 == pytest.approx(scale.record)
