"""One number for all phases of a file's life, by hand."""

import math

from tests.statistics.rows import rows

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
    assert math.isclose(row["ratio"], (1 / 102 + 1 / 20_000) / (1 / 1002 + 1 / 10_000), rel_tol=1e-9)
    assert len(summary_table(made)) == 2
