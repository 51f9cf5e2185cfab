"""The designed sample: what it promises, counted."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from pydantic import ValidationError

from tiercel.study.sweep import Sweep, _name

LEVELS = {
    "api": ["posix", "mpiio"], "access": ["WO", "RO", "RAW"], "transfer_size": ["4KiB", "64KiB", "1MiB"],
    "accesses_per_open": [1, 16, 64], "collective": [False, True], "preallocate": [False, True],
}  # fmt: skip


def pairs(points: list[dict[str, object]]) -> set[tuple[object, ...]]:
    return {(a, p[a], b, p[b]) for p in points for a, b in combinations(sorted(p), 2)}


def points_of(sweep: Sweep) -> list[dict[str, object]]:
    chosen = set(sweep.workloads)
    return [p for p in sweep.feasible() if _name(p) in chosen]


def test_every_pair_of_levels_that_can_occur_does() -> None:
    sweep = Sweep(size=60, levels=LEVELS)
    assert len(sweep.workloads) == 60
    assert pairs(points_of(sweep)) == pairs(list(sweep.feasible()))


def test_the_whole_factorial_has_distinct_names_that_the_study_accepts() -> None:
    sweep = Sweep(size="all", levels=LEVELS)
    assert len(sweep.workloads) == len(list(sweep.feasible()))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name) for name in sweep.workloads)


def test_same_seed_same_sample_and_another_seed_another() -> None:
    one, again, other = (Sweep(size=60, levels=LEVELS, seed=s).workloads for s in (1, 1, 2))
    assert list(one) == list(again)
    assert set(one) != set(other)


def test_a_size_too_small_for_all_pairs_says_what_would_do() -> None:
    with pytest.raises(ValidationError, match=r"5 cannot hold every pair of levels once: \d+ can"):
        Sweep(size=5, levels=LEVELS)


def test_filling_spreads_better_than_the_mean_of_random_samples() -> None:
    # Maximin: the smallest distance between two chosen points is at least that of a prefix of the factorial.
    sweep = Sweep(size=60, levels=LEVELS)

    def closest(points: list[dict[str, object]]) -> int:
        return min(sum(p[k] != q[k] for k in p) for p, q in combinations(points, 2))

    assert closest(points_of(sweep)) >= closest(list(sweep.feasible())[:60])


def test_small_files_are_repeated_and_syncs_are_bounded() -> None:
    sweep = Sweep(
        size="all", levels={"access": ["WO"], "transfer_size": [512, "4MiB"], "accesses_per_open": [1, 4]}
    )
    assert sweep.workloads["wo-512b-x4-fpp-posix"].repeats == 64  # 8 MiB / 2 KiB, capped at most_repeats
    assert sweep.workloads["wo-4m-x1-fpp-posix"].repeats == 2  # 8 MiB / 4 MiB
    assert sweep.workloads["wo-512b-x4-fpp-posix-syncs"].repeats == 16  # 64 syncs / 4 a file


def test_impossible_combinations_do_not_occur() -> None:
    for p in Sweep(
        size="all", levels={**LEVELS, "pattern": ["sequential", "random"], "fsync": ["none", "write"]}
    ).feasible():
        assert not (p["access"] in ("RO", "RAW") and p["fsync"] != "none")
        assert not (p["pattern"] == "random" and p["accesses_per_open"] == 1)
        assert not (p["collective"] and (p["api"] == "posix" or p["layout"] != "shared"))


def test_hdf5_has_one_data_set_and_what_ior_has_of_it() -> None:
    sweep = Sweep(
        size="all",
        levels={**LEVELS, "api": ["hdf5"], "file_view": [False, True],
                "layout": ["file-per-process", "shared"], "pattern": ["sequential", "random"],
                "fsync": ["none", "write"]},
    )  # fmt: skip
    for p in sweep.feasible():
        assert not p["file_view"] and not p["preallocate"]
        assert not (p["collective"] and p["layout"] != "shared")
        assert not (p["fsync"] == "write" and p["layout"] == "shared" and p["pattern"] == "random")
    one = sweep.workloads["wo-64k-x16-shared-hdf5-coll"]
    assert (one.segments, one.block_size, one.transfer_size) == (1, 1024**2, 65536)
    assert one.needs_mpi and not sweep.workloads["wo-64k-x16-fpp-hdf5"].needs_mpi
