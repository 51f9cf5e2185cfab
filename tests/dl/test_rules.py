"""How a plan stands to MLPerf Storage's rules; numbers worked out by the formulas of its Rules.md (3.1.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tiercel.dl.official import nearest
from tiercel.dl.rules import Plan, Standing, least_files, standings
from tiercel.dl.workload import load_workload

from .test_cli import tiercel

GIB = 1024**3


def plan(**more: Any) -> Plan:
    return Plan(**{"processes": 8, "hosts": 1, "memory": 64 * GIB, **more})


def short(name: str, given: Plan, **overrides: Any) -> dict[str, Standing]:
    changed = {key.replace("__", "."): value for key, value in overrides.items()}
    found = standings(load_workload(name, changed), given)
    return {one.rule: one for one in found if one.verdict == "short"}


def test_the_least_dataset_is_of_500_steps_or_of_five_times_the_memory() -> None:
    unet = load_workload("unet3d-b200")
    # 500 steps of 8 processes with batch 7; 5 * 64 GiB / 146,600,628 bytes would be 2,343 files.
    assert least_files(unet, plan()) == 28_000
    # 5 * 4 * 1 TiB / 146,600,628 bytes are 150,000.7; a file less is less than five times the memory.
    assert least_files(unet, plan(hosts=4, memory=1024 * GIB)) == 150_001
    # 5 * 64 GiB / (1,251 * 114,660 bytes) are 2,395.4; 500 steps of 8 processes with batch 400: 1,279 files.
    assert least_files(load_workload("resnet50-h100"), plan()) == 2_396


def test_samples_of_parquet_are_as_long_as_their_columns(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "{model: {name: own}, framework: pytorch, dataset: {format: parquet, num_files_train: 9, "
        "num_samples_per_file: 1000, parquet: {columns: [{name: a, dtype: float32, size: 100}]}}}"
    )
    own = load_workload(str(tmp_path / "own.yaml"))
    # 5 GiB / (1,000 * 400 bytes) are 13,421.8; the default length of a record would make it 82.
    assert least_files(own, plan(processes=1, memory=GIB)) == 13_422


#: Keys that `mlpstorage run` states beside its file (mlpstorage_py/benchmarks/dlio.py, 2026).
INJECTED = {
    "dataset.skip_listing": True, "dataset.listing_validation_interval": 100,
    "dataset.data_folder": "/mnt/sut/unet3d", "storage.storage_type": "s3", "storage.storage_root": "bucket",
    "storage.storage_options.storage_library": "s3dlio", "storage.storage_options.uri_scheme": "s3",
    "storage.s3_force_path_style": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("of", "changes", "verdict", "told"),
    [
        ("unet3d-b200", {"model.name": "unet3d"}, "holds", "as there"),
        ("unet3d-b200", {**INJECTED, "reader.read_threads": 9}, "holds", "dataset.data_folder, reader.read"),
        ("unet3d-b200", {"reader.batch_size": 8}, "short", "reader.batch_size: 8 for 7"),
        ("unet3d-b200", {"train.computation_time": 0.2}, "short", "train.computation_time: 0.2 for 0.162"),
        ("unet3d-b200", {"dataset.format": "npy"}, "short", "dataset.format: npy for npz (OPEN may)"),
        # Nothing is written where checkpoints are off: what is said of them is no change.
        ("unet3d-b200", {"checkpoint.fsync": True}, "holds", "as there"),
        # Of two official files the nearer one.
        ("retinanet-mi355", {"reader.read_threads": 9}, "holds", "as there but for reader.read_threads"),
        ("llama3-70b", {"model.name": "llama_70b"}, "holds", "as there"),
        ("llama3-70b", {"model.transformer.vocab_size": 32000}, "short", "transformer.vocab_size: 32000"),
        ("llama3-8b", {"checkpoint.randomize_tensor": False}, "short", "randomize_tensor: False for True"),
    ],
)  # fmt: skip
def test_a_file_of_ones_own_is_compared_with_the_official_one(
    tmp_path: Path, of: str, changes: dict[str, Any], verdict: str, told: str
) -> None:
    content: dict[str, Any] = yaml.safe_load(Path(f"workflows/dl-workloads/{of}.yaml").read_text())
    for key, value in changes.items():
        *groups, last = key.split(".")
        part = content
        for group in groups:
            part = part.setdefault(group, {})
        part[last] = value
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(content))
    answer = tiercel("rules", str(tmp_path / "own.yaml"), "-n", "8", "--memory", "1GiB", "--json")
    assert answer.stderr == ""
    (row,) = [one for one in json.loads(answer.stdout) if f"(compared with {of})" in one["asks"]]
    assert row["verdict"] == verdict and told in row["here"], row


def test_a_model_of_ones_own_is_like_none() -> None:
    own = load_workload("cosmoflow-h100")
    assert nearest(own) is None
    found = standings(own, plan(own_file=True))
    assert [one.verdict for one in found if one.asks == "the official file of the workload"] == ["yours"]


def test_batches_read_ahead_are_two_at_most() -> None:
    given = plan(memory=GIB, overridden=frozenset({"reader.prefetch_size"}))
    for size, short_ones in ((0, 0), (2, 0), (3, 1)):
        found = standings(load_workload("unet3d-b200", {"reader.prefetch_size": size}), given)
        asked = [one.asks for one in found if one.verdict == "short" and one.rule == "3.6.2"]
        assert asked == ["reader.prefetch_size: 0, 1 or 2"] * short_ones


def test_every_number_of_a_models_shape_counts() -> None:
    for key in ("hidden_size", "ffn_hidden_size", "num_attention_heads", "num_kv_heads"):
        changed = {f"model.transformer.{key}": 16}
        found = standings(load_workload("llama3-8b", changed), plan())
        wrong = [one.asks for one in found if one.verdict == "short"]
        assert wrong == ["layers 32, hidden 4096, FFN 14336, heads 32, of keys and values 8"], key


def test_caches_are_the_submitters_to_drop_where_memory_holds_what_was_written() -> None:
    # 10 * 104.7 GiB written by one host: 3 * 348 GiB are less, 3 * 350 GiB more.
    for memory, verdict in ((348, "holds"), (350, "yours")):
        found = standings(load_workload("llama3-8b"), plan(memory=memory * GIB))
        assert [one.verdict for one in found if one.rule == "4.3.1"] == [verdict]


@pytest.mark.parametrize(
    ("processes", "verdict", "fitting"),
    [(8, "holds", "b200 or mi355"), (4, "yours", "mi355"), (2, "short", "none")],
)
def test_a_checkpoint_fits_into_the_memory_of_the_accelerators(
    processes: int, verdict: str, fitting: str
) -> None:
    """911 GiB: 8 * 180 and 4 * 288 are more, 4 * 180 and 2 * 288 less."""
    found = standings(
        load_workload("llama3-70b", {"model.parallelism.tensor": processes}), plan(processes=processes)
    )
    (one,) = [one for one in found if one.rule == "4.3.4"]
    assert (one.verdict, one.here.rpartition(": ")[2]) == (verdict, fitting), one


def test_processes_that_no_model_has_are_no_work() -> None:
    """Their shards were summed up one by one."""
    assert set(short("llama3-8b", plan(processes=10**9, hosts=10**8))) == {"4.6.1"}


def test_a_plan_that_meets_them_all() -> None:
    assert not short("unet3d-b200", plan(overridden=frozenset({"dataset.num_files_train"})),
                     dataset__num_files_train=28_000)  # fmt: skip
    assert not short("retinanet-b200", plan())
    assert not short("llama3-8b", plan())
    assert not short("llama3-405b", plan(processes=512, hosts=64))


@pytest.mark.parametrize(
    ("name", "given", "overrides", "rules"),
    [
        ("unet3d-b200", plan(), {}, {"3.1.2"}),  # 7,200 files
        ("retinanet-b200", plan(scale=0.1), {}, {"3.3.1"}),
        ("retinanet-b200", plan(processes=9, hosts=2, memory=32 * GIB), {}, {"3.3.6"}),
        ("cosmoflow-h100", plan(processes=1), {}, {"2.1.11"}),
        ("llama3-70b", plan(), {}, {"4.6.1"}),
        ("llama3-8b", plan(hosts=2), {}, {"4.6.2"}),  # 4 are not more than 4
        ("llama3-8b", plan(), {"checkpoint__fsync": False}, {"4.3.2"}),
        ("llama3-8b", plan(), {"checkpoint__num_checkpoints_read": 5}, {"4.7.1"}),
        ("llama3-8b", plan(), {"model__num_layers": 31}, {"4.3.3"}),
        ("llama3-70b", plan(), {"checkpoint__mode": "subset", "model__parallelism__data": 8},
         {"4.6.1", "4.3.5"}),
    ],
)  # fmt: skip
def test_what_falls_short_is_told_by_its_rule(
    name: str, given: Plan, overrides: dict[str, Any], rules: set[str]
) -> None:
    assert set(short(name, given, **overrides)) == rules


def test_keys_that_no_closed_submission_may_change_are_named() -> None:
    changed = frozenset({"reader.read_threads", "train.computation_time", "reader.batch_size", "train.seed"})
    assert short("retinanet-b200", plan(overridden=changed))["3.6.2"].here == (
        "reader.batch_size, train.computation_time"
    )
    assert short("llama3-8b", plan(overridden=changed))["4.6.3"].here.startswith("reader.batch_size, reader.")


def test_the_command_says_it_and_ends_with_2_where_it_falls_short() -> None:
    options = ("-n", "8", "--memory", "64GiB")
    answer = tiercel("rules", "retinanet-b200", *options, "--set", "reader.read_threads=16", "--json")
    assert answer.returncode == 0, answer.stderr
    rows = {row["rule"]: row for row in json.loads(answer.stdout)}
    # 500 * 8 * 24 samples are less than 5 * 64 GiB / 322,957 bytes.
    assert "dataset.num_files_train: 1063911 (" in rows["3.1.2"]["asks"]
    assert rows["2.1.17"]["verdict"] == "yours"
    shown = tiercel("rules", "retinanet-b200", *options, "--set", "train.epochs=1")
    assert shown.returncode == 2
    assert "train.epochs" in shown.stdout and "edition 3.0" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        (("unet3d-b200", "--memory", "much"), "--memory much"),
        (("unet3d-b200", "--memory", "0"), "--memory 0: a host has some"),
        (("unet3d-b200", "-n", "9" * 400), "less than or equal to 2147483647"),
        (("unet3d-b200", "--hosts", "9" * 400), "less than or equal to 2147483647"),
        (("unet3d-b200", "--set", f"dataset.num_files_train={'9' * 400}"), "dataset.num_files_train"),
        (("unet3d-b200", "--scale", "2"), "--scale 2: must be above 0 and at most 1"),
        (("unet3d-b200", "--set", "workflow.train=false", "--set", "workflow.generate_data=true"),
         "no rules are about it"),
    ],
)  # fmt: skip
def test_mistakes_are_a_line(arguments: tuple[str, ...], telling: str) -> None:
    answer = tiercel("rules", *arguments)
    assert answer.returncode == 2
    assert telling in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
