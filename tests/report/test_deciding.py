"""What it would take to decide what is undecided, and what fits into some minutes. Synthetic numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.report.classes import classes
from tiercel.report.data import Results
from tiercel.report.deciding import Open, further, open_answers, sentence
from tiercel.results.schema import OBSERVATIONS, RUNS
from tiercel.results.validity import FLAGS


@pytest.fixture
def results() -> Results:
    """Two storages that differ by a tenth, with scatter as large; five repetitions and an A/A pair each. A
    run takes 2 s on one, 3 s on the other."""
    data = Synthetic(processes=(1,))
    for storage, base, swing in (("nvme", 110, 8), ("nfs-project", 100, 8)):
        for repetition, by in enumerate((-1.0, 0.5, 1.0, -0.5, 0.0)):
            for twin in "ab":
                data.add("scaling", "scientific", "Write", storage, 1, repetition, twin, [],
                         operation="write", bandwidth=(base + swing * by) * MIB)  # fmt: skip
    for row in data.runs:
        row["duration"] = 2.0 if row["storage"] == "nvme" else 3.0
    tables = [pd.DataFrame(rows, columns=[c.name for c in columns])
              for rows, columns in ((data.observations, OBSERVATIONS), (data.runs, RUNS))]  # fmt: skip
    return Results(study(), *tables, FLAGS)


def test_the_undecided_answer_says_what_decides_it(results: Results) -> None:
    (answer,) = open_answers(results, classes(results))
    assert {answer.stack, answer.against} == {"nvme", "nfs-project"}
    assert answer.repetitions is not None and 1 <= answer.repetitions <= 15
    assert len(answer.configurations) == 2
    assert answer.seconds == pytest.approx(answer.repetitions * (2 + 3))
    assert sentence([answer], results) == (
        f"about {round(answer.seconds)} s more would decide it (tiercel evaluate --decide)"
    )


def test_what_fits_is_chosen_the_quickest_first_and_shared_runs_count_once(results: Results) -> None:
    (answer,) = open_answers(results, classes(results))
    one, other = answer.configurations
    quick = replace(answer, repetitions=2, seconds=10.0)
    slow = replace(answer, repetitions=6, seconds=30.0)
    never = replace(answer, repetitions=None, seconds=math.inf)
    chosen = further([slow, never, quick], results, 29.0)
    assert (chosen.answers, chosen.repetitions, chosen.seconds) == ((quick,), {one: 2, other: 2}, 10.0)
    # With both, the runs of the slow one hold those of the quick one.
    assert further([slow, never, quick], results, 30.0).repetitions == {one: 6, other: 6}
    assert further([slow, never, quick], results, 9.0).answers == ()
    assert "would decide 2 of 3" in sentence([slow, never, quick], results)
    assert sentence([never], results) == "more repetitions would not decide it: placements differ as much"
    assert sentence([], results) == ""


def test_decided_and_equal_ones_are_not_asked_for(results: Results) -> None:
    rows = results.observations
    far = rows.assign(bandwidth=rows["bandwidth"].where(rows["storage"] == "nvme", rows["bandwidth"] / 5))
    same = rows.assign(bandwidth=100.0 * MIB + rows["repetition"].astype(float))
    for changed in (far, same):
        again = Results(study(), changed, results.runs, FLAGS)
        assert open_answers(again, classes(again)) == []
    assert isinstance(open_answers(results, classes(results))[0], Open)
