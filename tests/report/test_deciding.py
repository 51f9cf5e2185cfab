"""What it would take to decide what is undecided, and what fits into some minutes. Synthetic numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.report.classes import classes
from tiercel.report.data import Results
from tiercel.report.deciding import Open, further, open_answers, sentence
from tiercel.results.schema import OBSERVATIONS, RUNS
from tiercel.results.validity import FLAGS
from tiercel.statistics.decide import MOST
from tiercel.units import format_duration


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
    assert answer.repetitions is not None and 1 <= answer.repetitions <= MOST
    assert len(answer.configurations) == 2
    assert answer.seconds == pytest.approx(answer.repetitions * (2 + 3))
    assert sentence([answer], results) == (
        f"about {format_duration(answer.seconds)} more would decide it (tiercel evaluate --decide)"
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
    assert sentence([never], results) == f"more repetitions would not decide it: {answer.cause}"
    assert sentence([], results) == ""
    load = replace(never, cause="storages changed as much from round to round")
    assert sentence([load], results).endswith("decide it: storages changed as much from round to round")
    assert sentence([never, load, never], results).endswith(
        f"decide them: {never.cause}, or storages changed as much from round to round"
    )


def test_load_that_repetitions_do_not_average_out_is_named() -> None:
    """One of two equal storages was slower by a third in the last rounds, all that ran on it."""
    data = Synthetic(processes=(1,))
    by = np.random.default_rng(3).normal(1.0, 0.02, (4, 2, 2, 5))
    for number in range(4):
        for side, storage in enumerate(("nvme", "nfs-project")):
            for half, twin in enumerate("ab"):
                for repetition in range(5):
                    slowed = 0.67 if storage == "nvme" and repetition >= 3 else 1.0
                    data.add("scaling", f"write-{number}", "Write", storage, 1, repetition, twin, [],
                             operation="write",
                             bandwidth=100 * slowed * by[number, side, half, repetition] * MIB)  # fmt: skip
    tables = [pd.DataFrame(rows, columns=[c.name for c in columns])
              for rows, columns in ((data.observations, OBSERVATIONS), (data.runs, RUNS))]  # fmt: skip
    found = Results(study(), *tables, FLAGS)
    answers = open_answers(found, classes(found))
    assert len(answers) == 4 and all(each.repetitions is None for each in answers)
    assert sentence(answers, found) == (
        "more repetitions would not decide them: round drift (repeat the study at another time: "
        "more repetitions do not help)"
    )


def test_decided_and_equal_ones_are_not_asked_for(results: Results) -> None:
    rows = results.observations
    far = rows.assign(bandwidth=rows["bandwidth"].where(rows["storage"] == "nvme", rows["bandwidth"] / 5))
    same = rows.assign(bandwidth=100.0 * MIB + rows["repetition"].astype(float))
    for changed in (far, same):
        again = Results(study(), changed, results.runs, FLAGS)
        assert open_answers(again, classes(again)) == []
    assert isinstance(open_answers(results, classes(results))[0], Open)


def test_a_study_without_twins_is_told_that_they_are_missing(results: Results) -> None:
    alone = results.observations[results.observations["twin"] == "a"]
    found = Results(study(), alone, results.runs, FLAGS)
    answers = open_answers(found, classes(found))
    assert [answer.repetitions for answer in answers] == [None]
    said = sentence(answers, found)
    assert "twins: true" in said and "copies of one configuration" not in said
