"""Every epoch reads its data from the storage: loaders and formats, counted by strace."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.kernel.comm import Single
from tiercel.dl.kernel.epoch import Runner
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.io import IO

from .kernel import rows, run, spec
from .system_calls import traced

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

FORMATS = ("npz", "npy", "hdf5", "csv", "jpeg", "png", "indexed_binary", "mmap_indexed_binary", "tfrecord")
LOADERS: dict[str, dict[str, Any]] = {
    "tensorflow": {"framework": "tensorflow", "reader": {"data_loader": "tensorflow"}},
    "pytorch": {"framework": "pytorch", "reader": {"data_loader": "pytorch"}},
    "dali": {"framework": "pytorch", "reader": {"data_loader": "dali"}},
    "native_dali": {"framework": "pytorch", "reader": {"data_loader": "native_dali"}},
    "none": {"framework": "tensorflow", "reader": {"read_threads": 0}},
    "pytorch-none": {"framework": "pytorch", "reader": {"read_threads": 0}},
}
COMBINATIONS = [
    (loader, kind) for loader in LOADERS for kind in FORMATS
    if not (loader.startswith("pytorch") and kind == "tfrecord")  # as in DLIO
]  # fmt: skip
#: Samples that a file holds: images hold one.
PER_FILE = 2
FILES, SAMPLE, EPOCHS = 12, 10_000, 3


def per_file(kind: str) -> int:
    return 1 if kind in ("jpeg", "png") else PER_FILE


@needs_strace
@pytest.mark.parametrize(("loader", "kind"), COMBINATIONS)
def test_every_epoch_opens_and_reads_all(tmp_path: Path, loader: str, kind: str) -> None:
    dataset = {"format": kind, "num_files_train": FILES, "num_samples_per_file": per_file(kind),
               "record_length_bytes": SAMPLE}  # fmt: skip
    more = {k: v for k, v in LOADERS[loader].items() if k != "framework"}
    seen = traced(
        tmp_path, 2, dataset=dataset, train={"epochs": EPOCHS, "computation_time": 0.001},
        framework=LOADERS[loader]["framework"], **more,
    )  # fmt: skip
    assert sorted(seen) == [1, 2, 3]
    data = {str(p.resolve()): p.stat().st_size for p in (tmp_path / "data" / "train").iterdir()}
    content = {path for path in data if not path.endswith(".idx")}
    for row in rows(tmp_path):
        mine = seen[row["epoch"]]
        assert sorted(mine) == [0, 1]
        # Each process has half of the files, and no file is read by both.
        assert [len(content & set(mine[rank].opens)) for rank in (0, 1)] == [FILES // 2] * 2
        opens = sum(n for rank in mine.values() for path, n in rank.opens.items() if path in content)
        index = (
            LOADERS[loader]["reader"].get("data_loader") in ("pytorch", "dali") or loader == "pytorch-none"
        )
        # An index sampler opens a file for each sample. Otherwise a file is opened once, and once more where
        # two threads share it (a batch of two samples is one file of two: nobody shares).
        # Mapped files stay open: each batch, and so each reader, has whole ones.
        each = index and kind not in ("tfrecord", "mmap_indexed_binary")
        assert opens == FILES * (per_file(kind) if each else 1)
        moved = sum(n for rank in mine.values() for path, n in rank.bytes.items() if path in content)
        if kind == "mmap_indexed_binary":
            mapped = sum(n for rank in mine.values() for path, n in rank.mapped.items() if path in content)
            assert mapped == opens
        elif kind in ("jpeg", "png"):
            assert moved >= sum(data[path] for path in content)
        else:
            assert moved >= FILES * per_file(kind) * SAMPLE
        # What the run says of itself is what the system saw; HDF5 counts samples and not its metadata.
        every = sum(n for rank in mine.values() for n in rank.bytes.values())
        assert row["samples"] == FILES * per_file(kind)
        if kind == "hdf5":
            assert row["bytes"] == FILES * per_file(kind) * SAMPLE
        elif kind != "mmap_indexed_binary":
            assert row["bytes"] == every
            assert row["opens"] == sum(n for rank in mine.values() for n in rank.opens.values())
    assert seen[1].keys() == seen[2].keys() == seen[3].keys()


@pytest.mark.parametrize("access", ["multi", "shared"])
@pytest.mark.parametrize("kind", ["npz", "npy", "csv", "hdf5"])
def test_a_file_that_stays_open_is_read_anew_in_every_epoch(tmp_path: Path, kind: str, access: str) -> None:
    """The readers keep a file open within an epoch; its content must not serve the next one."""
    answer = run(
        tmp_path, 2, framework="tensorflow",
        dataset={"format": kind, "num_files_train": 1, "num_samples_per_file": 12},
        reader={"file_access": access, "batch_size": 1}, train={"epochs": 3},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found = rows(tmp_path)
    assert len(found) == 3
    assert min(row["bytes"] for row in found) >= 12 * 10_000
    assert len({row["opens"] for row in found}) == 1


def test_samples_of_a_file_stay_together_for_an_iterative_loader(tmp_path: Path) -> None:
    """More files than a reader could keep open, shuffled: each is still opened once."""
    answer = run(
        tmp_path, 1, framework="tensorflow",
        dataset={"num_files_train": 100, "num_samples_per_file": 4, "record_length_bytes": 400},
        reader={"sample_shuffle": "seed", "file_shuffle": "seed", "read_threads": 1, "batch_size": 4},
        train={"epochs": 2},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert [row["opens"] for row in rows(tmp_path)] == [100, 100]


def test_a_reader_reads_the_index_of_a_file_once(tmp_path: Path) -> None:
    """As DLIO: an index of millions of samples is not read for each of them."""
    answer = run(
        tmp_path, 1, dataset={"format": "indexed_binary", "num_samples_per_file": 5},
        reader={"read_threads": 1, "batch_size": 5}, train={"epochs": 2},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    first, second = rows(tmp_path)
    assert (first["opens"], second["opens"]) == (12 * 5 + 2 * 12, 12 * 5)
    assert first["bytes"] == second["bytes"] + 12 * 5 * 16  # two numbers of 64 bits for each sample


def test_memory_is_read_once_and_that_is_no_fault(tmp_path: Path) -> None:
    answer = run(tmp_path, 1, reader={"read_type": "memory"}, train={"epochs": 2})
    assert answer.returncode == 0, answer.stderr
    assert [row["opens"] for row in rows(tmp_path)] == [12, 0]


def test_a_stream_reads_little_ahead_of_its_steps(tmp_path: Path) -> None:
    """As tf.data: two reads wait in a slot, however many small samples each of them brings."""
    batch, size, piece, steps, prefetch, shuffled = 40, 250, 16_384, 2, 1, 100
    answer = run(
        tmp_path, 1,
        dataset={"format": "tfrecord", "num_files_train": 1, "num_samples_per_file": 8000,
                 "record_length_bytes": size},
        reader={"batch_size": batch, "read_threads": 1, "transfer_size": piece, "prefetch_size": prefetch,
                "sample_shuffle": "seed", "shuffle_size": shuffled},
        train={"total_training_steps": steps, "computation_time": 0.2},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    (row,) = rows(tmp_path)
    assert row["samples"] == batch * steps
    # Those trained on, batches that wait or are being made, the shuffle buffer; of reads the one in hand, two
    # that wait and one that found no room. A record is some bytes more than its sample.
    taken = batch * (steps + prefetch + 2) + shuffled
    assert row["bytes"] <= 1.5 * taken * size + 4 * piece < 8000 * size / 4


class _Silent:
    """A loader that gives batches and has read less than they hold."""

    def __init__(self, given: Any) -> None:
        self.work = given

    def epoch(self, number: int, steps: int) -> Any:
        yield from [(2, 20_000)] * steps

    def usage(self) -> Any:
        from tiercel.dl.kernel.loaders import Usage  # noqa: PLC0415

        return Usage(bytes=79_999)


def test_an_epoch_that_read_too_little_fails() -> None:
    from tiercel.dl.kernel.loaders import Work  # noqa: PLC0415

    one = spec()
    work = Work(one, None, None, Single(), IO(), 0)  # type: ignore[arg-type]
    with pytest.raises(Failure, match="read 79999 bytes, and its 8 samples have at least 80000"):
        Runner(one, Single(), IO()).run("train", 2, 4, _Silent(work), lambda: 0.0)  # type: ignore[arg-type]


def test_what_is_counted_is_what_was_read(tmp_path: Path) -> None:
    """26 files on 4 processes with batches of 3: two whole batches each, none counted that is short."""
    answer = run(tmp_path, 4, dataset={"num_files_train": 26}, reader={"batch_size": 3})
    assert answer.returncode == 0, answer.stderr
    (row,) = rows(tmp_path)
    assert (row["steps"], row["samples"], row["opens"]) == (2, 24, 24)
