"""The order of files and samples, as each program has it: by hand, and by DLIO's own statements in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tiercel.dl.files.load import load_workload
from tiercel.dl.kernel.dataset import Split
from tiercel.dl.kernel.draw import NumpyRandom
from tiercel.dl.kernel.order import ORDERS, Order, order_of

from .kernel import spec

FILES, SEED = 12, 123


@dataclass(frozen=True)
class Rank:
    """As much of a communicator as an order looks at."""

    rank: int
    size: int


def orders(name: str, size: int = 2, files: int = FILES, per_file: int = 1, split: str = "train",
           framework: str = "pytorch", nonce: int = 0, **reader: Any) -> list[Order]:  # fmt: skip
    """Return the order of each process; `reader`: keys of the workload file."""
    chosen = spec(
        framework=framework,
        dataset={"num_files_train": files, "num_samples_per_file": per_file},
        reader={"order": name, "file_shuffle": "seed", "sample_shuffle": "seed", **reader},
        train={"seed": SEED, "epochs": 4},
    )
    paths = Split(split, tuple(f"f{n}" for n in range(files)), per_file)
    return [order_of(chosen, paths, Rank(rank, size), nonce) for rank in range(size)]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 1, 123, 2**31, 2**32 - 1])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 17, 1000])
def test_shuffles_are_numpys(seed: int, length: int) -> None:
    ours, theirs = list(range(length)), np.arange(length)
    draw = NumpyRandom(seed)
    np.random.seed(seed)
    for _ in range(3):  # the generator goes on where it was
        draw.shuffle(ours)
        np.random.shuffle(theirs)
        assert ours == theirs.tolist()


def test_dlio_2_keeps_the_files_of_each_process_and_shuffles_them_in_place() -> None:
    """dlio_sampler of DLIO 2.0.0: ``np.random.seed(seed); np.random.shuffle(self.indices)`` in each epoch."""
    for order in orders("dlio-2.0"):
        rank = order._comm.rank
        indices = list(range(rank * 6, rank * 6 + 6))
        for epoch in (1, 2, 3):
            np.random.seed(SEED)
            np.random.shuffle(indices)
            assert list(order.samples(epoch)) == indices
        assert list(order.samples(1)) != list(order.samples(2))


@pytest.mark.parametrize("name", ["dlio-main", "mlperf-3.0"])
def test_an_index_sampler_of_today_ignores_both_shuffles(name: str) -> None:
    first, second = orders(name)
    for epoch in (1, 2, 3):
        assert list(first.samples(epoch)) == [0, 1, 2, 3, 4, 5]
        assert list(second.samples(epoch)) == [6, 7, 8, 9, 10, 11]


def test_an_iterative_sampler_shuffles_the_list_of_files_in_place() -> None:
    """``reconfigure``: the list that the last epoch left is shuffled with seed + epoch."""
    (order,) = orders("dlio-main", size=1, framework="tensorflow", sample_shuffle="off")
    files = list(range(FILES))
    for epoch in (1, 2, 3):
        np.random.seed(SEED + epoch)
        np.random.shuffle(files)
        assert list(order.samples(epoch)) == files


def test_the_list_for_evaluation_is_shuffled_after_the_one_for_training() -> None:
    (order,) = orders("dlio-2.0", size=1, split="valid", framework="tensorflow", sample_shuffle="off")
    train, valid = list(range(FILES)), list(range(FILES))
    np.random.seed(SEED + 1)
    np.random.shuffle(train)
    np.random.shuffle(valid)
    assert list(order.samples(1)) == valid


def test_dlios_iterative_sampler_gives_all_processes_the_same_files() -> None:
    """``file_index = (sample_index // num_samples_per_file) % num_files`` after the first sample."""
    off = {"framework": "tensorflow", "file_shuffle": "off", "sample_shuffle": "off"}
    first, second = orders("dlio-2.0", **off)
    assert list(first.samples(1)) == [0, 1, 2, 3, 4, 5]
    assert list(second.samples(1)) == [6, 1, 2, 3, 4, 5]  # its first file, then rank 0's
    first, second = orders("mlperf-3.0", **off)
    assert list(first.samples(1)) == [0, 1, 2, 3, 4, 5]
    assert list(second.samples(1)) == [6, 7, 8, 9, 10, 11]


def test_samples_of_a_file_are_numbered_as_each_program_numbers_them() -> None:
    """Three files of two samples on two processes: rank 1 has samples 3, 4, 5 and begins with file 1."""
    off = {
        "framework": "tensorflow",
        "file_shuffle": "off",
        "sample_shuffle": "off",
        "files": 3,
        "per_file": 2,
    }
    # DLIO 2.0.0: files 1, 0, 1 (of the samples 3, 4, 5), samples 3 % 2, 4 % 2, 5 % 2.
    assert list(orders("dlio-2.0", **off)[1].samples(1)) == [1 * 2 + 1, 0 * 2 + 0, 1 * 2 + 1]
    # DLIO's main branch: samples 0 % 2, 1 % 2, 2 % 2.
    assert list(orders("dlio-main", **off)[1].samples(1)) == [1 * 2 + 0, 0 * 2 + 1, 1 * 2 + 0]


@pytest.mark.parametrize("name", ["dlio-2.0", "dlio-main", "mlperf-3.0"])
def test_streamed_files_are_sorted_and_dealt_out_once(name: str) -> None:
    """tf.data's ``list_files(shuffle=False)`` and ``shard``, in every epoch."""
    first, second = orders(name)
    for epoch in (1, 2):
        assert list(first.files(epoch)) == [0, 2, 4, 6, 8, 10]
        assert list(second.files(epoch)) == [1, 3, 5, 7, 9, 11]


def test_resharding_deals_all_files_out_before_each_epoch() -> None:
    """``_reshard_files``, once more with NumPy; three processes, so that remainders wander."""
    size, files = 3, 14
    shares = [list(range(rank, files, size)) for rank in range(size)]
    every = orders("mlperf-3.0-resharding", size=size, files=files)
    for epoch in (1, 2, 3):
        sent: list[list[list[int]]] = []
        for rank in range(size):
            np.random.seed(SEED + epoch)
            np.random.shuffle(shares[rank])
            buckets: list[list[int]] = [[] for _ in range(size)]
            for number, file in enumerate(shares[rank]):
                buckets[(number + rank) % size].append(file)
            sent.append(buckets)
        shares = [[file for buckets in sent for file in buckets[rank]] for rank in range(size)]
        for rank in range(size):
            np.random.seed(SEED + epoch + rank * 31)
            np.random.shuffle(shares[rank])
        assert [list(order.files(epoch)) for order in every] == shares
        assert sorted(chain.from_iterable(shares)) == list(range(files))
        least = min(map(len, shares))
        assert [list(order.samples(epoch)) for order in every] == [share[:least] for share in shares]


def test_a_distributed_sampler_draws_from_all_files_in_each_epoch() -> None:
    """PyTorch's: a permutation of all samples, every second one from this rank on, padded with the first."""
    first, second = orders("distributed-sampler", files=11)
    epochs = [(list(first.samples(epoch)), list(second.samples(epoch))) for epoch in (1, 2)]
    for one, two in epochs:
        assert len(one) == len(two) == 6
        assert set(one) | set(two) == set(range(11))
        assert two[-1] == one[0]  # the twelfth is the first once more
    assert epochs[0] != epochs[1]
    assert set(epochs[0][0]) != set(epochs[1][0])


def test_a_random_shuffle_differs_between_runs_and_a_seeded_one_does_not() -> None:
    for name in ("distributed-sampler", "dlio-2.0"):
        for kind, same in (("seed", True), ("random", False)):
            one, two = (orders(name, size=1, nonce=nonce, sample_shuffle=kind)[0] for nonce in (1, 2))
            assert (list(one.samples(1)) == list(two.samples(1))) is same


@pytest.mark.parametrize("name", sorted(ORDERS))
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_every_order_has_as_many_samples_on_each_process_and_repeats_itself(
    name: str, framework: str
) -> None:
    every = orders(name, size=3, per_file=4, framework=framework)
    for epoch in (2, 1, 2):  # whatever was asked before
        found = [list(order.samples(epoch)) for order in every]
        assert {len(samples) for samples in found} == {16}
        assert all(0 <= sample < 48 for samples in found for sample in samples)
        # The iterative sampler of every DLIO picks some samples of a shuffled file twice (number % per file).
        if framework == "pytorch" or name == "distributed-sampler":
            assert sorted(chain.from_iterable(found)) == list(range(48))


ORIGINS = [
    ("a file that says so", {"reader": {"order": "distributed-sampler"}}, "distributed-sampler"),
    ("a key of MLPerf Storage's DLIO", {"reader": {"write_threads": 4}}, "mlperf-3.0"),
    ("an old name of DLIO 2.0.0", {"data_reader": {"batch_size": 2}}, "dlio-2.0"),
    ("a model that is only a name", {"model": "unet3d"}, "dlio-2.0"),
    ("nothing", {}, "dlio-main"),
]


@pytest.mark.parametrize(("content", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ORIGINS])
def test_the_origin_of_a_file_chooses_its_order(
    tmp_path: Any, content: dict[str, Any], expected: str
) -> None:
    import yaml  # noqa: PLC0415

    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({"framework": "pytorch", **content}))
    assert load_workload(str(path)).reader.order == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("unet3d-b200", "mlperf-3.0"), ("unet3d-h100", "dlio-2.0"), ("alexnet-cachevol", "distributed-sampler")],
)
def test_files_that_come_with_tiercel_name_the_program_that_they_were_run_with(
    name: str, expected: str
) -> None:
    assert load_workload(name).reader.order == expected
