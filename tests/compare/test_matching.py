"""Which numbers stand beside each other; for each that has no partner, the reason."""

import math

import pandas as pd
import pytest

from tests.compare.sides import compared, failed, later, of_two, pair, runs_of, together, write
from tiercel.compare import matching
from tiercel.compare.answer import reasons
from tiercel.errors import UserError


def lonely(answer):
    """Return (side, reason, detail) of every number without a partner."""
    return [(a.side, a.reason, a.detail) for a in answer.pairs[0].alone]


def partners(answer):
    return {(r.match.base["storage"], r.match.other["storage"]) for r in answer.rows}


def test_every_scale_and_operation_finds_its_own(tmp_path):
    def side(make):
        return together(make(operation=o, processes_per_node=p) for o in ("write", "read") for p in (1, 2))

    answer = of_two(tmp_path, side(pair), side(later))
    assert [(r.match.base["operation"], r.match.scales) for r in answer.rows] == [
        ("read", ((1, 1), (1, 2))),
        ("write", ((1, 1), (1, 2))),
    ]
    assert len(answer.pairs[0].judged.details) == 4
    assert answer.pairs[0].alone == []


def test_a_renamed_study_or_workload_is_still_the_same_work(tmp_path):
    answer = of_two(tmp_path, pair(pattern="random"), later(pattern="random", study="s", workload="w"))
    assert [(r.match.base["workload"], r.match.other["workload"]) for r in answer.rows] == [("write", "w")]


def test_among_equal_work_the_same_name_is_the_partner(tmp_path):
    both = [make(workload="a") + make(workload="b", factor=2.0) for make in (pair, later)]
    answer = of_two(tmp_path, *both)
    assert [(r.match.base["workload"], r.match.other["workload"]) for r in answer.rows] == [
        ("a", "a"),
        ("b", "b"),
    ]


@pytest.mark.parametrize(
    ("words", "reason", "detail"),
    [
        ({"storage": "other"}, matching.NO_STORAGE, "there: other"),
        ({"layer": "cachevol"}, matching.NO_LAYER, "there: cachevol"),
        ({"engine": "ior"}, matching.OTHER_ENGINE, "iokernel here, ior there"),
        ({"engine": "simulation", "origin": "simulated"}, matching.SIMULATED, ""),
        ({"transfer_size": 65536}, matching.OTHER_WORKLOAD, "transfer_size: 1 MiB here, 64 KiB there"),
        ({"nodes": 2}, matching.NO_SCALE, "there: 2 × 1"),
        (
            {"bytes_per_process": 2**29},
            matching.OTHER_AMOUNT,
            "1 GiB of each process here, 512 MiB there",
        ),
        ({"operation": "read"}, matching.NOT_THERE, ""),
    ],
)
def test_a_number_without_a_partner_says_why(tmp_path, words, reason, detail):
    work = {"transfer_size": 2**20, "bytes_per_process": 2**30}
    answer = of_two(tmp_path, pair(**work), later(**work | words))
    assert answer.rows == []
    assert lonely(answer)[0] == ("one", reason, detail)
    assert lonely(answer)[1][:2] == ("two", reason)
    assert reasons(answer.pairs[0].alone) == [(reason, 2)]


def test_rows_that_a_check_excludes_are_no_partners(tmp_path):
    bad = later()
    bad["flags"] = [["cache-not-cold"]] * len(bad)
    answer = of_two(tmp_path, pair(), bad)
    assert lonely(answer) == [
        ("one", matching.INVALID_THERE, ""),
        ("two", matching.INVALID, "cache-not-cold"),
    ]


def test_a_failed_partner_is_named_with_its_reason(tmp_path):
    write(tmp_path / "results" / "one", pair() + pair(workload="b", fsync="write"))
    good, bad = later(), later(workload="b", fsync="write")
    write(tmp_path / "results" / "two", good, pd.concat([runs_of(good), failed(bad)]))
    answer = compared("one", "two", root=tmp_path)
    assert lonely(answer) == [("one", matching.FAILED_THERE, "no space left")]
    assert len(answer.rows) == 1


def test_storages_are_paired_by_map_name_label_and_type(tmp_path):
    def side(make, *storages):
        return together(make(storage=s, storage_label=n, storage_type=t) for s, n, t in storages)

    one = side(pair, ("same", "x", "a"), ("left", "Scratch", "b"), ("gpfs", "", "gpfs"), ("odd", "", "c"))
    two = side(later, ("same", "y", "d"), ("right", "Scratch", "e"), ("gpfs2", "", "gpfs"), ("even", "", "f"))
    answer = of_two(tmp_path, one, two)
    assert partners(answer) == {("same", "same"), ("left", "right"), ("gpfs", "gpfs2")}
    assert answer.pairs[0].stacks.why["gpfs"] == "same type"
    assert partners(of_two(tmp_path, one, two, mapped={"odd": "even", "same": "right"})) == {
        ("odd", "even"), ("same", "right"), ("gpfs", "gpfs2"),
    }  # fmt: skip


def test_two_storages_of_one_type_are_not_guessed(tmp_path):
    one = pair(storage="a", storage_type="nfs") + pair(storage="b", storage_type="nfs")
    answer = of_two(tmp_path, one, later(storage="c", storage_type="nfs"))
    assert {reason for _, reason, _ in lonely(answer)} == {matching.NO_STORAGE}


def test_a_map_to_nothing_is_said(tmp_path):
    with pytest.raises(UserError, match=r"--storage-map fats=fast: one has no 'fats': did you mean fast\?"):
        of_two(tmp_path, pair(), later(), mapped={"fats": "fast"})
    with pytest.raises(UserError, match="no other side has 'lustre'"):
        of_two(tmp_path, pair(), later(), mapped={"fast": "lustre"})


def test_origins_stand_beside_their_own_first(tmp_path):
    """Numbers of two origins are compared only where one has none of its own, and are called both."""
    one = pair() + pair(origin="simulated", factor=3.0)
    answer = of_two(tmp_path, one, later(origin="simulated"))
    assert [(r.origin, r.alike) for r in answer.rows] == [("simulated", True)]
    answer = of_two(tmp_path, pair(), later(origin="imported"))
    assert [(r.origin, r.alike) for r in answer.rows] == [("imported against measured", False)]


def test_a_baseline_without_numbers_says_so(tmp_path):
    """Not `another amount of data`: both moved as much, and one gave no number."""
    base = together([pair().assign(bandwidth=math.nan), pair(operation="read")])
    (part,) = of_two(tmp_path, base, together([later(), later(operation="read")])).pairs
    assert {(a.side, a.reason) for a in part.alone} == {
        ("one", matching.NO_NUMBER),
        ("two", matching.NO_NUMBER_THERE),
    }
