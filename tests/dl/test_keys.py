"""Every key of a workload file is carried out, of no effect (and said so), or refused by its name."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.keys import schema_keys
from tiercel.dl.files.spec import cannot
from tiercel.dl.workload import KEYS, load_workload, markdown, outcome_of, refusals, without_effect
from tiercel.errors import UserError

from .kernel import run
from .test_cli import tiercel
from .test_existing_dataset import FILE, ran, written

#: The keys that DLIO's main branch reads (June 2026), by their groups.
DLIO = {
    "checkpoint": "checkpoint_after_epoch checkpoint_folder checkpoint_mechanism_classname "
        "epochs_between_checkpoints fsync ksm mode num_checkpoints_read num_checkpoints_write "
        "randomize_tensor rank_sync recovery_rank_shift steps_between_checkpoints "
        "time_between_checkpoints type",
    "checkpoint.ksm": "await_time high_ram_trigger low_ram_exit madv_mergeable_id",
    "dataset": "chunk_size compression compression_level data_folder enable_chunking file_prefix format "
        "generation_buffer_size hdf5 keep_files num_files_eval num_files_train "
        "num_samples_per_file num_subfolders_eval num_subfolders_train record_dims "
        "record_element_bytes record_element_type record_length_bytes record_length_bytes_resize "
        "record_length_bytes_stdev",
    "dataset.hdf5": "chunk_dims max_shape num_dset_per_record",
    "evaluation": "epochs_between_evals eval_after_epoch eval_time eval_time_stdev",
    "metric": "au",
    "model": "layer_parameters model_datatype model_size_bytes name num_layers optimization_groups "
        "optimizer_datatype parallelism transformer type",
    "model.parallelism": "data pipeline tensor zero_stage",
    "model.transformer": "ffn_hidden_size hidden_size num_attention_heads num_kv_heads vocab_size",
    "output": "folder log_file metric",
    "output.metric": "exclude_end_steps exclude_start_steps",
    "profiling": "iostat_devices profiler",
    "reader": "batch_size batch_size_eval computation_threads data_loader data_loader_classname "
        "data_loader_sampler dont_use_mmap file_access file_shuffle multiprocessing_context "
        "odirect pin_memory prefetch_size preprocess_time preprocess_time_stdev read_threads "
        "read_type reader_classname sample_shuffle shuffle_size transfer_size "
        "transformed_record_dims transformed_record_element_type",
    "storage": "storage_options storage_root storage_type",
    "storage.storage_options": "access_key_id endpoint_url region s3_force_path_style s3_max_attempts "
        "secret_access_key",
    "train": "computation_time computation_time_stdev epochs seed seed_change_epoch "
        "total_training_steps",
    "workflow": "checkpoint evaluation generate_data profiling train",
}  # fmt: skip
#: Written otherwise here: groups as a whole, and times with their deviation.
_JOINED = ("_stdev", "ksm", "storage_options", "transformer", "parallelism", "metric", "hdf5")


def test_the_table_has_every_key_of_the_schema() -> None:
    assert sorted(schema_keys()) == sorted(KEYS)


def test_every_key_of_dlio_is_known(tmp_path: Path) -> None:
    for group, names in DLIO.items():
        for name in names.split():
            key = f"{group}.{name}"
            if key in KEYS or any(name.endswith(word) for word in ("ksm", *_JOINED[2:])):
                continue
            # What the schema joins to another key: it must be taken.
            value = {"checkpoint": "{}"}.get(group, "0.5" if name.endswith("_stdev") else "1")
            top, *below = [*group.split("."), name]
            text = f"{top}: " + "".join(f"{{{part}: " for part in below) + value + "}" * len(below)
            if group == "checkpoint.ksm":
                text = f"checkpoint: {{randomize_tensor: false, ksm: {{{name}: 1}}}}"
            load_workload(written(tmp_path, text=text))


def test_the_page_of_the_documentation_is_made_from_the_table(checkout: Path) -> None:
    page = (checkout / "docs" / "deep-learning-keys.md").read_text()
    assert page.endswith("\n\n" + markdown())
    assert tiercel("check").stdout == markdown()


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("storage.storage_type=aistore", "storage.storage_type"),
        ("workflow.profiling=true", "workflow.profiling"),
        ("storage.storage_type=direct_fs", "storage.storage_type"),
        ("reader.reader_classname=a.B", "reader.reader_classname"),
        ("checkpoint.checkpoint_mechanism_classname=a.B", "checkpoint.checkpoint_mechanism_classname"),
        ("reader.data_loader=custom", "reader.data_loader"),
    ],
)
def test_what_is_not_carried_out_is_refused_by_its_name(tmp_path: Path, override: str, key: str) -> None:
    file = written(tmp_path)
    answer = tiercel("run", file, "--set", override)
    assert answer.returncode == 2
    assert key in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    checked = tiercel("check", file, "--set", override, "--json")
    assert checked.returncode == 2
    assert [row["key"] for row in json.loads(checked.stdout) if row["outcome"] == "refused"] == [key]


#: Keys of MLPerf Storage 3's fork of DLIO alone (July 2026), as its workload files for objects have them.
THIRD = """
storage:
  storage_type: s3
  storage_root: mlp-s3dlio
  storage_library: %s
  post_generation_settle_seconds: 30
  storage_options: {endpoint_url: "https://172.16.1.40:9000", region: us-east-1, secure: false}
dataset: {format: npz, data_gen_method: dgen, skip_listing: true, listing_validation_interval: 100}
reader: {data_loader: pytorch, write_threads: 4, multiprocessing_context: spawn}
framework: pytorch
"""


@pytest.mark.parametrize("library", ["s3dlio", "minio", "s3torchconnector"])
def test_files_of_mlperf_storage_3_for_objects_are_taken(tmp_path: Path, library: str) -> None:
    found = load_workload(written(tmp_path, text=THIRD % library))
    assert cannot(found) is None
    assert found.storage.storage_options.storage_library == library
    assert sorted(without_effect(found)) == [
        "dataset.data_gen_method", "dataset.listing_validation_interval", "dataset.skip_listing",
        "reader.multiprocessing_context", "reader.write_threads", "storage.post_generation_settle_seconds",
        "storage.storage_options.secure",
    ]  # fmt: skip
    assert found.object_window == {"s3dlio": 64, "minio": 16, "s3torchconnector": 1}[library]
    with_others = load_workload(written(tmp_path, text=THIRD % library), {"dataset.format": "csv"})
    assert with_others.object_window == 0
    assert "storage.storage_options.storage_library" in without_effect(with_others)


def test_a_library_that_is_stated_twice_must_be_the_same(tmp_path: Path) -> None:
    text = "storage: {storage_library: minio, storage_options: {storage_library: %s}}"
    answer = tiercel("check", written(tmp_path, text=text % "s3dlio"))
    assert answer.returncode == 2
    assert "storage_library is stated twice" in answer.stderr
    load_workload(written(tmp_path, text=text % "minio"))


def test_what_checkpoints_of_dlio_2_0_0_say_of_the_model(tmp_path: Path) -> None:
    """As MLPerf Storage 1.0's file of 3D U-Net; DLIO's main branch has these keys under `model`."""
    text = "{framework: pytorch, %scheckpoint: {model_size: 499153191, num_layers: 2, layer_parameters: [8]}}"
    found = load_workload(written(tmp_path, text=text % ""))
    assert (found.model.model_size_bytes, found.model.num_layers) == (499153191, 2)
    assert found.model.layer_parameters == [8]
    with pytest.raises(UserError, match=r"checkpoint\.model_size and model\.model_size are the same key"):
        load_workload(written(tmp_path, text=text % "model: {model_size_bytes: 1}, "))


def test_check_lists_what_a_file_says(tmp_path: Path) -> None:
    answer = tiercel("check", written(tmp_path), "--json", "--set", "reader.pin_memory=false")
    assert answer.returncode == 0, answer.stderr
    found = {row["key"]: row for row in json.loads(answer.stdout)}
    assert found["dataset.num_files_train"]["value"] == "12"
    assert found["dataset.num_files_train"]["outcome"] == "carried out"
    assert found["reader.pin_memory"]["outcome"] == "no effect"
    assert "dataset.num_files_eval" not in found
    assert "runs as it is" in tiercel("check", written(tmp_path)).stdout


def test_what_mlpstorage_states_beside_its_file_is_taken(tmp_path: Path) -> None:
    """As in its benchmarks/dlio.py of 2026: for a training in a folder, for one in object storage, and for
    checkpoints of one node."""
    training = ["dataset.skip_listing=True", "dataset.listing_validation_interval=1",
                "dataset.data_folder=unet3d"]  # fmt: skip
    objects = ["storage.storage_type=s3", "storage.storage_root=bucket", "storage.s3_force_path_style=true",
               "storage.storage_options.storage_library=s3dlio",
               "storage.storage_options.uri_scheme=s3"]  # fmt: skip
    subset = ["checkpoint.mode=subset", "model.parallelism.data=8", "checkpoint.num_checkpoints_read=0",
              "checkpoint.num_checkpoints_write=10", "checkpoint.checkpoint_folder=/x/llama"]  # fmt: skip
    lines = (("unet3d-b200", training), ("unet3d-b200", training + objects), ("llama3-70b", subset),
             ("retinanet-b200", ["dataset.data_folder="]))  # fmt: skip
    for name, words in lines:
        options = [part for word in words for part in ("--set", f"++workload.{word}")]
        answer = tiercel("check", name, *options, "--json")
        assert answer.returncode == 0, answer.stderr
        found = {row["key"]: row for row in json.loads(answer.stdout)}
        assert found["framework"]["outcome"] == "carried out"
        if words[3:] == objects:
            assert found["storage.storage_options.s3_force_path_style"]["value"] == "True"
            assert found["dataset.skip_listing"]["outcome"] == "no effect"
    for word, told in (
        ("++workload.storage.storage_options.uri_scheme=direct", "uri_scheme: direct: reads past the cache"),
        ("++hydra.run.dir=/x", "is of DLIO's own command line: leave it out"),
    ):
        answer = tiercel("check", "unet3d-b200", "--set", word)
        assert answer.returncode == 2 and told in " ".join((answer.stdout + answer.stderr).split())


def test_check_names_every_key_that_is_wrong(tmp_path: Path) -> None:
    """As in MLPerf Storage's test_local_train.yaml: none of them one after the other."""
    text = """
dataset: {num_files_train: 10, record_length: 102400, shuffle: [1]}
reader: {storage_library: s3dlio, data_loader_root: file:///mnt, shuffle: false}
storage: {storage_type: s3dlio}
"""
    every = ["dataset.shuffle", "reader.data_loader_root", "reader.shuffle", "reader.storage_library",
             "storage.storage_type"]  # fmt: skip
    file = written(tmp_path, text=text)
    answer = tiercel("check", file, "--json")
    assert answer.returncode == 2
    rows = json.loads(answer.stdout)
    assert sorted(row["key"] for row in rows) == every
    assert {row["outcome"] for row in rows} == {"refused"}
    assert "(and 4 more: " in answer.stderr
    shown = tiercel("check", file)
    assert all(key in shown.stdout for key in every)


def test_what_has_no_effect_is_said(tmp_path: Path) -> None:
    overrides = ["--set", "reader.transformed_record_dims=[2,2]", "--set", "dataset.generation_buffer_size=9"]
    file, place = written(tmp_path), str(tmp_path / "d")
    found = ran(file, "--folder", place, *overrides)
    assert found["without_effect"] == ["dataset.generation_buffer_size", "reader.transformed_record_dims"]
    shown = tiercel("run", file, "--folder", place, *overrides)
    assert "without effect here: dataset.generation_buffer_size, reader" in shown.stdout


_NPZ, _SHUFFLED = "dataset: {format: npz}", "file_shuffle: seed, sample_shuffle: seed"


@pytest.mark.parametrize(
    ("stated", "idle"),
    [
        ("dataset: {format: hdf5}, reader: {transfer_size: 4096, shuffle_size: 9}",
         ["reader.shuffle_size", "reader.transfer_size"]),
        ("dataset: {format: npz}, reader: {transfer_size: 4096, computation_threads: 4}",
         ["reader.computation_threads"]),
        ("dataset: {format: tfrecord}, reader: {computation_threads: 4, shuffle_size: 9}",
         ["reader.computation_threads", "reader.shuffle_size"]),
        ("dataset: {format: tfrecord}, reader: {computation_threads: 4, preprocess_time: 0.1, "
         "shuffle_size: 9, sample_shuffle: seed}", []),
        ("dataset: {format: parquet}, reader: {sample_shuffle: seed, data_loader_sampler: index}",
         ["reader.data_loader_sampler", "reader.sample_shuffle"]),
        ("dataset: {format: npz}, storage: {storage_options: {prefetch_workers: 2, columns: [a]}}",
         ["storage.storage_options.columns", "storage.storage_options.prefetch_workers"]),
        ("dataset: {format: npz, compression: zip, compression_level: 9}", ["dataset.compression_level"]),
        ("dataset: {format: npz, record_dims: [3, 4], record_length_bytes: 100}",
         ["dataset.record_length_bytes"]),
        ("reader: {read_threads: 0, prefetch_size: 9}", ["reader.prefetch_size"]),
        # PyTorch's loader: DLIO's main branch shuffles nothing, DLIO 2.0.0 each process' own samples.
        (f"framework: pytorch, {_NPZ}, reader: {{{_SHUFFLED}, order: dlio-main}}",
         ["reader.file_shuffle", "reader.sample_shuffle"]),
        (f"framework: pytorch, {_NPZ}, reader: {{{_SHUFFLED}, order: dlio-2.0}}", ["reader.file_shuffle"]),
        (f"framework: pytorch, {_NPZ}, reader: {{{_SHUFFLED}, order: distributed-sampler}}", []),
        (f"framework: tensorflow, {_NPZ}, reader: {{{_SHUFFLED}, order: dlio-main}}", []),
        (f"framework: tensorflow, dataset: {{format: tfrecord}}, reader: {{{_SHUFFLED}}}",
         ["reader.file_shuffle"]),
        ("train: {seed_change_epoch: false}", ["train.seed_change_epoch"]),
        ("workflow: {checkpoint: true}, checkpoint: {num_checkpoints_write: 2, time_between_checkpoints: 1, "
         "steps_between_checkpoints: 2, epochs_between_checkpoints: 2, type: all_ranks}",
         ["checkpoint.epochs_between_checkpoints", "checkpoint.num_checkpoints_write",
          "checkpoint.time_between_checkpoints", "checkpoint.type"]),
        ("workflow: {checkpoint: true}, model: {type: transformer, model_size_bytes: 9, "
         "model_datatype: fp32}",
         ["model.model_datatype", "model.model_size_bytes"]),
        # What workflow leaves out as a whole is no news.
        ("checkpoint: {num_checkpoints_write: 2, type: all_ranks}, evaluation: {eval_time: 1}", []),
    ],
)  # fmt: skip
def test_keys_that_do_nothing_beside_others_are_told(tmp_path: Path, stated: str, idle: list[str]) -> None:
    found = load_workload(written(tmp_path, text=f"{{{stated}}}"))
    assert sorted(without_effect(found)) == idle
    for key in idle:
        told = outcome_of(found, key)
        assert told.outcome == "no effect" and told.note


def test_check_says_why_a_key_does_nothing_here(tmp_path: Path) -> None:
    more = ("--set", "reader.shuffle_size=5", "--set", "checkpoint.fsync=true")
    rows = json.loads(tiercel("check", written(tmp_path), "--json", *more).stdout)
    found = {row["key"]: (row["outcome"], row["note"]) for row in rows}
    assert found["reader.shuffle_size"] == ("no effect", "of format: tfrecord (here: npz)")
    assert found["checkpoint.fsync"] == ("no effect", "workflow.checkpoint is false")
    assert found["reader.batch_size"][0] == "carried out"


def test_the_seed_of_a_file_decides_the_order(tmp_path: Path) -> None:
    def order(seed: int, run: str) -> list[int]:
        output = tmp_path / run
        ran(written(tmp_path), "--folder", str(tmp_path / "d"), "--output", str(output), "--trace",
            "--set", "reader.sample_shuffle=seed", "--set", "reader.read_threads=0",
            "--set", "reader.order=dlio-2.0",
            "--set", f"train.seed={seed}")  # fmt: skip
        (log,) = (output / "trace").iterdir()
        with gzip.open(log) as lines:
            events = [json.loads(line) for line in lines if b"read_index" in line]
        return [event["args"]["image_idx"] for event in events]

    first = order(1, "a")
    assert sorted(first[:12]) == list(range(12))
    assert order(1, "b") == first
    assert order(2, "c") != first


@pytest.mark.parametrize("stated", ["record_dims: [40, 50]", "parquet: {columns: [{name: a, size: 500}]}"])
def test_megabytes_a_second_are_of_what_a_sample_is(tmp_path: Path, stated: str) -> None:
    form = "parquet" if "parquet" in stated else "npz"
    text = FILE.replace("record_length_bytes: 10000", stated).replace("npz", form) % "data/small"
    metric = ran(written(tmp_path, text=text), "--folder", str(tmp_path / "d"))["summary"]["metric"]
    # 40 * 50 bytes; 500 numbers of four bytes. (The default of record_length_bytes, 64 KiB, is nobody's.)
    samples = metric["train_throughput_mean_samples_per_second"]
    assert metric["train_io_mean_MB_per_second"] == pytest.approx(samples * 2000 / 1024**2)


def test_workloads_of_the_project_are_not_refused() -> None:
    for path in sorted(Path("workflows/dl-workloads").glob("*.yaml")):
        found = load_workload(path.stem)
        assert cannot(found) is None, path
        assert not refusals(found)
        assert all(outcome_of(found, key).note for key in without_effect(found))


def test_results_go_where_the_file_wants_them(tmp_path: Path) -> None:
    text = FILE + "output: {folder: results/small}\n"
    ran(written(tmp_path, text=text % "data/small"), "--folder", str(tmp_path / "d"))
    assert (tmp_path / "d" / "results" / "small" / "summary.json").exists()


def test_datasets_may_grow_to_a_largest_shape(tmp_path: Path) -> None:
    import h5py  # noqa: PLC0415

    shape: dict[str, Any] = {"format": "hdf5", "record_dims": [20, 30], "hdf5": {"max_shape": [40, 60]}}
    answer = run(tmp_path, 1, dataset=shape)
    assert answer.returncode == 0, answer.stderr
    with h5py.File(next(iter((tmp_path / "data" / "train").iterdir()))) as file:
        assert file["records_0"].shape == (1, 20, 30)
        assert file["records_0"].maxshape == (1, 40, 60)


@pytest.mark.parametrize("largest", ["[10, 60]", "[40]"])
def test_a_largest_shape_that_is_none_is_refused(tmp_path: Path, largest: str) -> None:
    text = f"dataset: {{format: hdf5, record_dims: [20, 30], hdf5: {{max_shape: {largest}}}}}"
    answer = tiercel("check", written(tmp_path, text=text))
    assert answer.returncode == 2
    assert "hdf5.max_shape must hold a sample of 20x30 elements" in answer.stderr


def test_a_launcher_around_it_is_refused_in_a_sentence(tmp_path: Path) -> None:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no MPI launcher in this environment")
    command = [
        sys.executable,
        "-m",
        "tiercel",
        "dl",
        "run",
        written(tmp_path),
        "--folder",
        str(tmp_path / "d"),
    ]
    answer = subprocess.run(
        [str(mpiexec), "-n", "2", *command], capture_output=True, text=True, check=False, timeout=60
    )
    assert answer.returncode != 0
    assert "a launcher started this command 2 times: start it once, with -n 2" in answer.stderr
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_the_engine_itself_refuses_a_launcher_without_mpi(tmp_path: Path, variable: str) -> None:
    answer = run(tmp_path, 2, env={variable: "4"})
    assert answer.returncode == 2
    assert "a launcher started 4 processes that know nothing of each other: add --mpi" in answer.stderr
    assert not (tmp_path / "data").exists()
    assert run(tmp_path, 2, env={**os.environ, variable: "1"}).returncode == 0
