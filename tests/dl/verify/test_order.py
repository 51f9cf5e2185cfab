"""The order of files that programs really read, by strace: dlkernel against upstream DLIO."""

from __future__ import annotations

import re
import shutil
from itertools import groupby
from pathlib import Path

import pytest

from tiercel.dl.verify.order import CASES, reuse, sequences_of, verify_order

from ..upstream.runs import environment

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def test_reads_in_a_row_are_one_visit_and_processes_stand_by_their_first_file() -> None:
    reads = [(7, "/d/c"), (3, "/d/a"), (7, "/d/c"), (3, "/d/b"), (7, "/d/a"), (3, "/d/a")]
    assert sequences_of(reads) == [[0, 1, 0], [2, 0]]


def test_reuse_is_counted_between_neighbouring_epochs_of_one_process() -> None:
    # Epochs {0, 1}, {1, 2}, {1, 2}: one of two again, then two of two.
    assert reuse([[0, 1, 1, 2, 2, 1]]) == 3 / 4
    assert reuse([[0, 1, 2]], epochs=3) == 0
    assert reuse([[0, 1, 2, 3]], epochs=3) is None  # not as many visits in each epoch


def read_in_order(log: Path) -> list[list[str]]:
    """Return the data files of each process in the order of its reads: a second count, from strace's text."""
    reads: dict[str, list[str]] = {}
    for line in log.read_text(errors="replace").splitlines():
        if found := re.match(
            r"(\d+) +[\d.]+ (?:read|pread64|readv|preadv)\(\d+<(/[^>]*/dataset/train/[^>]+)>", line
        ):
            reads.setdefault(found[1], []).append(found[2].rpartition("/")[2])
    return sorted([name for name, _ in groupby(paths)] for paths in reads.values())


@needs_strace
@pytest.mark.parametrize(
    "name", ["order-pytorch", "order-pytorch-workers", "order-tensorflow", "order-tfrecord"]
)
def test_dlkernel_reads_files_in_dlios_order(tmp_path: Path, name: str) -> None:
    environment("tensorflow" if name in ("order-tensorflow", "order-tfrecord") else "pytorch")
    (row,) = verify_order(tmp_path, [name])
    assert row["equal"] is True
    assert len(row["sequences"]["dlkernel"]) == (4 if name == "order-pytorch-workers" else 2)
    if row["compared"] == "sequences":
        # 24 files of one sample, half of them for each of two processes, three times.
        assert sum(map(len, row["sequences"]["dlkernel"])) == 2 * 12 * 3
    if name == "order-pytorch":
        # DLIO 2.0.0 gives a process the same files in every epoch.
        assert row["reuse"] == {"dlkernel": 1.0, "dlio": 1.0}
        counted = read_in_order(tmp_path / name / "dlio" / "run.strace")
        assert [len(set(files)) for files in counted] == [12, 12]


@needs_strace
def test_a_distributed_sampler_meets_about_half_of_its_files_again(tmp_path: Path) -> None:
    """Each of two processes draws half of all files in each epoch: half of those were its own before."""
    environment("pytorch")
    (row,) = verify_order(tmp_path, ["order-distributed-sampler"])
    for share in row["reuse"].values():
        # 12 of 24 drawn without repetition, twice: hypergeometric, standard deviation 0.072; 4 of them.
        assert 0.5 - 0.29 < share < 0.5 + 0.29


def test_every_case_names_an_order_of_its_own_kind() -> None:
    assert {case.order for case in CASES} == {"dlio-2.0", "distributed-sampler"}
