"""One number for all phases of a file's life, by hand."""

import math

import pytest
from tests.statistics.rows import Rows, rows

from tiercel.statistics.lives import LIFE, lives
from tiercel.statistics.tables import comparisons, summary_table


def life(storage, create, remove, run=0, twin="a", flags=()):
    """Return the two phases of one run, as observations."""
    made = rows([math.nan], storage=storage)
    words = {
        "experiment": "metadata", "workload": "files", "storage": storage, "run": f"{storage}{run}{twin}",
        "configuration": storage, "twin": twin, "repetition": run,
    }  # fmt: skip
    for operation, rate in (("file-create", create), ("file-remove", remove)):
        made += rows([math.nan], **words, operation=operation, operation_rate=rate)
    made = made[made["operation"] != "write"].reset_index(drop=True)
    made["flags"] = [list(flags), []]
    return made


def test_a_life_takes_as_long_as_its_phases():
    # 100 creates a second and 300 removes: 1/100 + 1/300 = 4/300 s for a file, so 75 files a second.
    found = lives(life("disk", 100.0, 300.0, flags=["loaded-machine"]))
    assert list(found["operation"]) == [LIFE]
    assert found["operation_rate"].iloc[0] == 75.0
    assert found["flags"].iloc[0] == ["loaded-machine"]


def test_a_run_that_lacks_a_phase_or_a_rate_has_no_life():
    whole, part = life("disk", 100.0, 300.0), life("disk", 100.0, 300.0, run=1)
    part = part[part["operation"] == "file-create"]
    zero = life("disk", 0.0, 300.0, run=2)
    table = rows([1.0]) + whole + part + zero  # the row of a write is no phase of a file
    assert len(lives(table)) == 1
    assert lives(rows([1.0])).empty


def test_a_life_keeps_what_its_run_was_and_has_no_rate_of_bytes():
    table = life("disk", 100.0, 300.0, flags=["loaded-machine", "short-phase"])
    table["flags"] = [["loaded-machine", "short-phase"], ["short-phase", "clock-skew"]]
    table["latency_p50"] = [1.0, 2.0]
    table["bandwidth"] = [5.0, 6.0]
    (found,) = lives(table).to_dict("records")
    # Each flag once, in the order of the phases.
    assert found["flags"] == ["loaded-machine", "short-phase", "clock-skew"]
    assert math.isnan(found["latency_p50"]) and math.isnan(found["bandwidth"])
    assert (found["run"], found["storage"], found["workload"], found["repetition"]) == (
        "disk0a", "disk", "files", 0,
    )  # fmt: skip
    assert list(lives(table).columns) == list(table.columns)
    assert lives(table).dtypes.to_dict() == table.dtypes.to_dict()


def test_only_what_was_measured_of_files_is_a_phase():
    table = life("disk", 100.0, 300.0)
    setup = table.assign(role="setup", operation_rate=1.0)
    folders = table.assign(operation=["directory-create", "directory-remove"], operation_rate=1.0)
    found = lives(Rows(table) + setup + folders)
    assert found["operation_rate"].tolist() == [75.0]
    assert lives(setup).empty and lives(folders).empty


def test_one_phase_is_no_life_and_one_twice_neither():
    table = life("disk", 100.0, 300.0)
    assert lives(table[table["operation"] == "file-create"]).empty
    # A phase that was measured twice in a run: nobody can tell which of them counts.
    assert lives(Rows(table) + table.iloc[[0]]).empty
    # Nor does it count where one of the two has no rate.
    assert lives(life("disk", 100.0, math.nan)).empty


def test_each_workload_has_phases_of_its_own():
    # One workload of two phases, another of three: neither lacks one.
    table = life("disk", 100.0, 300.0)
    other = life("disk", 100.0, 300.0).assign(workload="others", run="x", configuration="x")
    third = other.iloc[[0]].assign(operation="file-stat", operation_rate=75.0)
    found = lives(Rows(table) + other + third)
    # 1/100 + 1/300 + 1/75 is 2/75.
    assert dict(zip(found["workload"], found["operation_rate"], strict=True)) == {
        "files": 75.0,
        "others": 37.5,
    }
    # A site that is not named is one all the same.
    nameless = lives(table.assign(engine=None))
    assert nameless["operation_rate"].tolist() == [75.0]


@pytest.mark.studies
def test_one_phase_cannot_be_outweighed_by_many_quick_ones():
    """A storage ten times slower in creating, and twice as fast in removing, is slower for small files."""
    table = rows([1.0])
    for i in range(5):
        for twin in "ab":
            table += life("slow", 100.0 + i, 20_000.0, i, twin)
            table += life("fast", 1000.0 + i, 10_000.0, i, twin)
    made = lives(table)
    (row,) = comparisons(made).to_dict("records")
    # 1/1002 + 1/10000 against 1/102 + 1/20000: 910.8 against 101.5 files a second.
    assert (row["storage_a"], row["verdict"]) == ("fast", "higher")
    assert math.isclose(row["ratio"], (1 / 102 + 1 / 20_000) / (1 / 1002 + 1 / 10_000), rel_tol=1e-3)
    assert len(summary_table(made)) == 2
