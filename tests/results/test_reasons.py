"""Failed runs by cause: what is another in each run is set aside, what tells errors apart is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.results.reasons import by_reason


def grouped(*reasons):
    return [list(f.runs) for f in by_reason((f"run{n}", r) for n, r in enumerate(reasons))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "iokernel: rank 3: open /scratch/tiercel-run-run0/data/file.3: No space left on device",
            "iokernel: rank 11: open /scratch/tiercel-run-run1/data/file.11: No space left on device",
        ),
        ("fio moved 1048576 of 4194304 bytes in the read", "fio moved 4096 of 4194304 bytes in the read"),
        (
            "write: stopped after 61 s (the study's timeout)",
            "write: stopped after 63 s (the study's timeout)",
        ),
        ("run0: a node of the job is gone", "run1: a node of the job is gone"),
        ("node n12 is gone", "node n13.cluster is gone"),
    ],
)
def test_one_cause_in_other_words(one, other):
    assert grouped(one, other) == [["run0", "run1"]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ended with code 1", "ended with code 2"),
        ("ended by signal 9", "ended by signal 15"),
        ("open /a/b: No space left on device", "open /a/b: Permission denied"),
        ("open /a/b: error 28", "write /a/b: error 28"),
        ("write: stopped after 61 s", "read: stopped after 61 s"),
        ("", "ended with code 1"),
    ],
)
def test_other_causes_stay_apart(one, other):
    assert grouped(one, other) == [["run0"], ["run1"]]


def test_the_commonest_comes_first_and_none_is_lost_in_order():
    found = by_reason([("a", "x"), ("b", "y rank 1"), ("c", ""), ("d", "y rank 2"), ("e", "z")])
    assert [(f.reason, f.runs) for f in found] == [
        ("y rank 1", ("b", "d")),
        ("x", ("a",)),
        ("no reason recorded", ("c",)),
        ("z", ("e",)),
    ]


@given(st.lists(st.text(max_size=40), max_size=20))
def test_every_run_is_in_one_group(reasons):
    runs = [f"run-{n}-of-this-study" for n in range(len(reasons))]
    found = by_reason(zip(runs, reasons, strict=True))
    assert sorted(run for f in found for run in f.runs) == sorted(runs)
    assert [len(f.runs) for f in found] == sorted((len(f.runs) for f in found), reverse=True)
