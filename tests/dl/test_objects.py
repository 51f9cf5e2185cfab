"""Datasets and checkpoints in object storage: a real server's access log and folder are the witnesses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ..objects import ENVIRONMENT, KEY, SECRET, Gateway, needs_gateway
from ..s3.wires import cut, relay, together
from .kernel import result, rows, run

pytestmark = needs_gateway

#: Formats, and how many files each data file has.
FORMATS = {"npz": 1, "npy": 1, "jpeg": 1, "png": 1, "csv": 1, "tfrecord": 1, "indexed_binary": 3}


def on(gateway: Gateway, folder: Path, name: str, processes: int = 1, **parts: Any) -> Any:
    """Run a workload with its data below ``name`` in the bucket."""
    options = ["--data", f"s3://data/{name}/dataset", "--checkpoints", f"s3://data/{name}/checkpoints"]
    env = {**gateway.environment, **parts.pop("env", {})}
    return run(folder, processes, *options, env=env, **parts)


def dataset(file_format: str) -> dict[str, Any]:
    one = file_format in ("jpeg", "png")
    return {"format": file_format, "num_files_train": 8, "num_samples_per_file": 1 if one else 3,
            "record_length_bytes": 20_000}  # fmt: skip


def tiercel(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiercel", "dl", *words], capture_output=True, text=True, timeout=120,
        check=False, env=env,
    )  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("processes", [1, 2])
def test_every_epoch_asks_for_every_object(
    gateway: Gateway, tmp_path: Path, file_format: str, processes: int
) -> None:
    name = f"epochs-{file_format}-{processes}"
    done = on(gateway, tmp_path, name, processes, dataset=dataset(file_format), train={"epochs": 3},
              reader={"batch_size": 1, "read_threads": 1, "data_loader_sampler": "iterative"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    sizes = gateway.objects(f"{name}/dataset/train")
    asked = Counter(r.key for r in gateway.requests("GetObject", f"{name}/dataset/train"))
    assert {r.status for r in gateway.requests("GetObject", f"{name}/dataset/train")} <= {200, 206}
    assert len(sizes) == 8 * FORMATS[file_format]
    # A file's samples are read by one request for all of it, those of indexed binary by one for each of the
    # three, and its indices once, by the process whose files they are.
    per_epoch = 3 if file_format == "indexed_binary" else 1
    content = {key: size for key, size in sizes.items() if not key.endswith(".idx")}
    # Before training each process looks at the headers of four files whose size tells nothing.
    looked = Counter({key: asked[key] - 3 * per_epoch for key in content})
    if file_format == "npz":  # the end of the archive, twice, its list, and the header of the array
        assert set(looked.values()) <= {0, 4}
    else:
        assert set(looked.values()) <= {0, 1}
    each = 4 if file_format == "npz" else 1
    assert looked.total() == (4 * each * processes if file_format in ("npz", "jpeg", "png", "csv") else 0)
    trained = asked - looked
    assert sum(row["reads"] for row in found) == trained.total()
    assert sum(row["requests"] for row in found) == trained.total()
    moved = sum(sizes[key] * count // (per_epoch if key in content else 1) for key, count in trained.items())
    assert sum(row["bytes"] for row in found) == moved
    assert [row["retries"] for row in found] == [0, 0, 0]
    assert all(0 < row["latency_p50"] <= row["latency_p99"] <= row["latency_max"] for row in found)
    assert all(row["resident_fraction"] is None for row in found)


def test_bytes_are_those_that_came_over_the_wire(gateway: Gateway, tmp_path: Path) -> None:
    with relay(gateway.port) as (port, carried):
        env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        made = on(gateway, tmp_path, "wire", dataset=dataset("npz"), workflow={"train": False}, env=env)
        assert made.returncode == 0, made.stderr
        before = sum(carried)
        done = on(gateway, tmp_path, "wire", dataset=dataset("npz"), train={"epochs": 4}, env=env)
    assert done.returncode == 0, done.stderr
    counted = sum(row["bytes"] for row in rows(tmp_path))
    # Samples come in any order, and each of the three in a file opens it anew, as DLIO does.
    assert counted == 4 * 3 * sum(gateway.objects("wire/dataset/train").values())
    # The rest: heads of answers, the list, the sample of four objects that is looked at and into first, and
    # all of the recorded objects (there are fewer than 64), compared with what they held.
    content = gateway.objects("wire/dataset/train").values()
    sample = 8 * max(content) + sum(content)
    assert counted < sum(carried) - before < counted + sample + 100_000


@pytest.mark.parametrize(("library", "at_once"), [("s3dlio", 5), ("s3torchconnector", 1)])
def test_whole_objects_are_on_their_way_before_the_steps_ask(
    gateway: Gateway, tmp_path: Path, library: str, at_once: int
) -> None:
    """As MLPerf Storage 3's DLIO asks for them: by s3dlio a window of them, by Amazon's client one by one."""
    name, options = f"ahead-{library}", {"storage_library": library, "prefetch_window": 5}
    with together(gateway.port, at_once, f"GET /data/{name}/dataset/train/".encode()) as (port, waited):
        done = on(gateway, tmp_path, name, env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"},
                  dataset={**dataset("npy"), "num_files_train": 12}, train={"epochs": 2},
                  reader={"batch_size": 3, "read_threads": 1},
                  storage={"storage_type": "s3", "storage_options": options})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert waited == [at_once] * at_once  # so many connections, and all of them had a request at once
    sizes = gateway.objects(f"{name}/dataset/train")
    assert [(row["requests"], row["opens"], row["bytes"], row["samples"]) for row in rows(tmp_path)] == [
        (12, 12, sum(sizes.values()), 36)
    ] * 2


def test_files_and_objects_of_a_seed_are_the_same(gateway: Gateway, tmp_path: Path) -> None:
    for file_format in ("npz", "tfrecord", "indexed_binary"):
        keys = {"dataset": dataset(file_format), "workflow": {"train": False}}
        folder = tmp_path / file_format
        folder.mkdir()
        assert run(folder, 2, **keys).returncode == 0
        assert on(gateway, folder, f"same-{file_format}", 2, **keys).returncode == 0
        files = sorted(p for p in (folder / "data" / "train").rglob("*") if p.is_file())
        assert len(files) == 8 * FORMATS[file_format]
        for file in files:
            there = gateway.folder / f"same-{file_format}" / "dataset" / file.relative_to(folder / "data")
            assert there.read_bytes() == file.read_bytes()


def test_a_dataset_that_is_there_is_used_and_goes_on(gateway: Gateway, tmp_path: Path) -> None:
    keys = {"dataset": dataset("npy")}
    assert on(gateway, tmp_path, "there", workflow={"train": False}, **keys).returncode == 0
    assert result(tmp_path)["generated"]["files"] == 8
    (gateway.folder / "there/dataset/train/img_3_of_8.npy").unlink()
    assert on(gateway, tmp_path, "there", **keys).returncode == 0
    made = result(tmp_path)["generated"]
    assert (made["files"], made["kept"]) == (1, 7)
    other = on(gateway, tmp_path, "there", dataset={**dataset("npy"), "num_samples_per_file": 4})
    assert other.returncode == 2
    assert "s3://data/there/dataset: holds another dataset" in other.stderr


def test_a_dataset_is_removed_where_it_is_not_to_stay_and_nothing_else(
    gateway: Gateway, tmp_path: Path
) -> None:
    gateway.client().put("goes/dataset2/mine", [b"not theirs"])
    gateway.client().put("goes/dataset/notes", [b"not theirs"])
    done = on(gateway, tmp_path, "goes", dataset={**dataset("npy"), "keep_files": False})
    assert done.returncode == 0, done.stderr
    assert gateway.objects("goes") == {"goes/dataset/notes": 10, "goes/dataset2/mine": 10}


def test_checkpoints_are_written_in_parts_and_read_back(gateway: Gateway, tmp_path: Path) -> None:
    done = on(
        gateway, tmp_path, "points", 2, dataset=dataset("npy"), train={"epochs": 2},
        workflow={"checkpoint": True}, checkpoint={"num_checkpoints_read": 1, "type": "all_ranks"},
        model={"model_size_bytes": 40_000_000},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written, read = rows(tmp_path, "checkpoint-write"), rows(tmp_path, "checkpoint-read")
    assert [row["bytes"] for row in written] == [80_000_000] * 2
    assert [row["bytes"] for row in read] == [80_000_000]
    lying = gateway.objects("points/checkpoints")
    assert sum(lying.values()) == 160_000_000
    # 40,000,000 bytes are three parts of at most 16 MiB: of two processes, twice.
    assert len(gateway.requests("UploadPart", "points/")) == 12
    assert len(gateway.requests("CompleteMultipartUpload", "points/")) == 4
    last = [r.key for r in gateway.requests("GetObject", "points/checkpoints")]
    assert sorted(last) == sorted(key for key in lying if "epoch2" in key)


@pytest.mark.parametrize(
    ("file_format", "place", "said"),
    [("npz", 5000, "checksum of x.npy is wrong"), ("tfrecord", 5000, "checksum of its content is wrong")],
)
def test_a_damaged_object_is_named(
    gateway: Gateway, tmp_path: Path, file_format: str, place: int, said: str
) -> None:
    name = f"damaged-{file_format}"
    assert (
        on(gateway, tmp_path, name, dataset=dataset(file_format), workflow={"train": False}).returncode == 0
    )
    file = next((gateway.folder / name / "dataset/train").glob("img_5_of_8.*"))
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    with file.open("r+b") as out:  # in place: the server keeps what it knows of the object beside it
        out.write(content)
    done = on(gateway, tmp_path, name, dataset=dataset(file_format))
    assert done.returncode == 2
    assert f"s3://data/{name}/dataset/train/img_5_of_8" in done.stderr
    assert "its content has changed since it was generated" in done.stderr
    # Without the record it is found when it is read.
    (gateway.folder / name / "dataset/dataset.json").unlink()
    done = on(gateway, tmp_path, name, dataset=dataset(file_format), workflow={"generate_data": False})
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("file_format", [*FORMATS, "parquet"])
def test_objects_of_others_are_looked_at_under_their_own_names(
    gateway: Gateway, tmp_path: Path, file_format: str
) -> None:
    """Of datasets without a record, whose sizes vary, headers tell: of indexed binary in a file beside it."""
    name, sizes = f"others-{file_format}", {**dataset(file_format), "record_length_bytes_stdev": 10}
    made = on(gateway, tmp_path, name, dataset=dataset(file_format), workflow={"train": False})
    assert made.returncode == 0, made.stderr
    (gateway.folder / name / "dataset/dataset.json").unlink()
    keys: dict[str, Any] = {"dataset": sizes, "workflow": {"generate_data": False}}
    used = on(gateway, tmp_path, name, 2, **keys)
    assert used.returncode == 0, used.stderr
    first = next(p for p in sorted((gateway.folder / name / "dataset/train").iterdir()) if p.suffix != ".idx")
    below = f"{name}/dataset/train/{first.name}" + (".sz.idx" if file_format == "indexed_binary" else "")
    gateway.client().put(below, [b"no such content at all, and no list of 64-bit numbers"])
    done = on(gateway, tmp_path, name, **keys)
    assert done.returncode == 2 and f"s3://data/{below}: " in done.stderr, done.stderr


def test_an_object_that_is_missing_or_short_is_named(gateway: Gateway, tmp_path: Path) -> None:
    keys = {"dataset": dataset("npy"), "workflow": {"generate_data": False}}
    assert on(gateway, tmp_path, "lacks", dataset=dataset("npy"), workflow={"train": False}).returncode == 0
    gateway.client().put("lacks/dataset/train/img_2_of_8.npy", [b"short"])
    done = on(gateway, tmp_path, "lacks", **keys)
    assert done.returncode == 2
    assert "img_2_of_8.npy: has 5 bytes where the workload's samples make" in done.stderr
    gone = on(gateway, tmp_path, "lacks/nothing", dataset=dataset("npy"), workflow={"generate_data": False},
              env={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"})  # fmt: skip
    assert gone.returncode == 2
    assert "no connection to http://127.0.0.1:1: Connection refused (5 times)" in gone.stderr


@pytest.mark.parametrize("file_format", ["npy", "tfrecord", "indexed_binary"])
def test_a_connection_that_breaks_ends_the_run(gateway: Gateway, tmp_path: Path, file_format: str) -> None:
    big = {**dataset(file_format), "record_length_bytes": 4_000_000, "num_files_train": 2}
    name = f"torn-{file_format}"
    assert on(gateway, tmp_path, name, dataset=big, workflow={"train": False}).returncode == 0
    before = (tmp_path / "out" / "dlkernel.json").read_bytes()
    with cut(gateway.port, after=1_000_000) as port:
        done = on(gateway, tmp_path, name, dataset=big, env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
    assert done.returncode == 2
    assert "the connection ended" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "dlkernel.json").read_bytes() == before


def test_what_a_server_refuses_is_one_line(gateway: Gateway, tmp_path: Path) -> None:
    refused = on(gateway, tmp_path, "refused", env={"AWS_SECRET_ACCESS_KEY": "wrong-secret-of-a-user"})
    assert refused.returncode == 2
    assert "403 SignatureDoesNotMatch" in refused.stderr
    assert "wrong-secret-of-a-user" not in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    unset = on(gateway, tmp_path, "refused", env={"AWS_SECRET_ACCESS_KEY": ""})
    assert unset.returncode == 2
    assert "AWS_SECRET_ACCESS_KEY not set" in unset.stderr


FILE = """
model: {{name: small, model_size: 1000000}}
framework: pytorch
workflow: {{generate_data: True, train: True, checkpoint: True}}
dataset: {{data_folder: s3://data/{name}, format: npz, num_files_train: 8, record_length_bytes: 20000}}
storage:
  storage_type: s3
  storage_root: data
  storage_options:
    access_key_id: access-key-of-the-file
    secret_access_key: secret-key-of-the-file
    endpoint_url: {url}
    region: us-east-1
    s3_force_path_style: False
    s3_max_attempts: 2
reader: {{data_loader: pytorch, batch_size: 2, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}}
train: {{epochs: 2, computation_time: 0.001}}
checkpoint: {{checkpoint_folder: {name}-checkpoints/small}}
"""


def test_a_workload_file_of_dlio_runs_where_it_says(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "small_s3.yaml"
    file.write_text(FILE.format(name="dlio", url=gateway.url))
    output = tmp_path / "out"
    done = tiercel("run", str(file), "--output", str(output), "-n", "2", "--json", env=environment())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["dataset"] == "s3://data/dlio"
    # Its storage_options are of DLIO's main branch, which reads files in sorted order in every case.
    assert set(found["without_effect"]) == {
        "storage.storage_options.access_key_id", "storage.storage_options.secret_access_key",
        "reader.file_shuffle", "reader.sample_shuffle",
    }  # fmt: skip
    # Two epochs, and before them a look at four files by each process: four ranges of each.
    assert len(gateway.requests("GetObject", "dlio/train/")) == 2 * 8 + 2 * 4 * 4
    assert gateway.objects("dlio-checkpoints/small")
    again = json.loads(tiercel("run", str(file), "--json", env=environment()).stdout)
    assert again["found_dataset"]
    # Nobody's credentials stand in what a run leaves or says: neither the file's nor the environment's.
    written = b"".join(p.read_bytes() for p in output.rglob("*") if p.is_file())
    for text in ("access-key-of-the-file", "secret-key-of-the-file", KEY, SECRET):
        assert text not in done.stdout + done.stderr
        assert text.encode() not in written


def test_a_folder_that_is_named_comes_before_the_file(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "small_s3.yaml"
    file.write_text(FILE.format(name="stated", url=gateway.url))
    for words, where in (
        (("--folder", "s3://data/named"), "s3://data/named/dataset"),
        (("--folder", str(tmp_path / "files")), str(tmp_path / "files" / "dataset")),
    ):
        done = tiercel("run", str(file), *words, "--json", env=environment())
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["dataset"] == where
    assert gateway.objects("stated") == {}


def test_a_dataset_is_generated_once_for_many_runs(gateway: Gateway, tmp_path: Path) -> None:
    env = {**environment(), "AWS_ENDPOINT_URL": gateway.url}
    made = tiercel(
        "generate", "cosmoflow-vast", "--scale", "0.005", "--folder", "s3://data/once", "--json", env=env
    )
    assert made.returncode == 0, made.stderr
    assert len(gateway.objects("once/train")) == json.loads(made.stdout)["files"]
    done = tiercel(
        "run", "cosmoflow-vast", "--scale", "0.005", "--folder", "s3://data/once", "--json", env=env
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["found_dataset"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("dataset.format=hdf5", "dataset.format: hdf5 on object storage: HDF5's own library reads it"),
        ("dataset.format=mmap_indexed_binary", "objects cannot be mapped into memory"),
        ("reader.odirect=true", "reader.odirect: object storage has no direct reads"),
        ("storage.storage_options.secret_access_key=of-a-user", "credentials come from the environment only"),
    ],
)
def test_what_objects_cannot_do_is_refused_by_name(
    gateway: Gateway, tmp_path: Path, override: str, said: str
) -> None:
    file = tmp_path / "small_s3.yaml"
    file.write_text(FILE.format(name="refusals", url=gateway.url))
    for words in (("run", str(file)), ("generate", str(file), "--folder", "s3://data/refusals")):
        done = tiercel(*words, "--set", override, env=environment())
        assert done.returncode == 2
        assert said in done.stderr
        assert "of-a-user" not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert gateway.objects("refusals") == {}


def environment() -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT}
