"""Further looks: what `tiercel evaluate --decide` adds to a plan, found again by whoever makes the plan."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.study.test_plan import plan, site, study
from tiercel.errors import UserError
from tiercel.runs.execute import Outcome
from tiercel.runs.history import History
from tiercel.study.expand import Capabilities, expand
from tiercel.study.looks import first_after, path_of, read_looks, write_look
from tiercel.study.plan import RunPlan, order_runs


def planned(results: Path) -> RunPlan:
    s, at = study(trace=True), site()
    found = expand(s, at, Capabilities("mpiexec", {"iokernel": "1"}))[0]
    return order_runs(at, s, found, 1000, read_looks(results, "x"))


def test_a_look_adds_rounds_of_its_own_after_all_others(tmp_path: Path) -> None:
    before = planned(tmp_path)
    one, other = (c.key for c in before.configurations[:2])
    write_look(tmp_path, "x", first_after(4, ()), {one: 3, other: 1})
    after = planned(tmp_path)
    more = after.runs[len(before.runs) :]
    assert [r.id for r in after.runs[: len(before.runs)]] == [r.id for r in before.runs]
    # Both in the first round, numbered on from the study's four; then one of them alone.
    assert [(r.repetition, r.look) for r in more] == [(4, 1), (4, 1), (5, 1), (6, 1)]
    assert {r.configuration.key for r in more[:2]} == {one, other}
    assert {r.configuration.key for r in more[2:]} == {one}
    assert more[0].row()["look"] == 1 and before.runs[0].row()["look"] == 0
    rounds = [batch.round for batch in after.batches]
    assert all(b - a in (0, 1) for a, b in pairwise(rounds)), "a round waits for the one before it"


def test_a_second_look_numbers_on_from_the_first(tmp_path: Path) -> None:
    key = plan(study()).configurations[0].key
    write_look(tmp_path, "x", 4, {key: 3})
    write_look(tmp_path, "x", first_after(4, read_looks(tmp_path, "x")), {key: 2})
    ids = [r.id for r in planned(tmp_path).runs]
    assert len(ids) == len(set(ids))
    assert [(r.repetition, r.look) for r in planned(tmp_path).runs[-5:]] == [
        (4, 1), (5, 1), (6, 1), (7, 2), (8, 2),
    ]  # fmt: skip


def test_a_configuration_that_the_study_no_longer_has_is_left_out(tmp_path: Path) -> None:
    write_look(tmp_path, "x", 4, {"0123456789ab": 5})
    assert [r.look for r in planned(tmp_path).runs if r.look] == []


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"first": 4}', '{"first": -1, "repetitions": {}}',
                                     '{"first": 4, "repetitions": {"a": -2}}',
                                     '{"first": 4, "repetitions": {"a": "many"}}'])  # fmt: skip
def test_a_damaged_look_is_named(tmp_path: Path, content: str) -> None:
    path = path_of(tmp_path, "x", 1)
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(UserError, match=r"looks/x\.1\.json: not readable"):
        read_looks(tmp_path, "x")


def test_looks_that_overlap_and_boundless_ones_are_refused(tmp_path: Path) -> None:
    key = plan(study()).configurations[0].key
    write_look(tmp_path, "x", 4, {key: 3})
    write_look(tmp_path, "x", 6, {key: 2})  # 4, 5 and 6 are the first one's
    with pytest.raises(UserError, match=r"looks/x\.2\.json: begins with round 6, within the look before it"):
        read_looks(tmp_path, "x")
    path_of(tmp_path, "x", 2).write_text('{"first": 7, "repetitions": {"a": 1e30}}')
    with pytest.raises(UserError, match="more than 100,000 repetitions"):
        read_looks(tmp_path, "x")


def test_a_study_that_was_given_more_rounds_ends_where_its_look_began(tmp_path: Path) -> None:
    """Its own four, then a look's three: what a study of eight would plan from there is not its own."""
    key = plan(study()).configurations[0].key
    at = site()
    four, eight = ({"minimum": 2, "maximum": n, "target": 0.1} for n in (4, 8))
    write_look(tmp_path, "x", 4, {key: 3})

    def runs(repetitions: object) -> list[tuple[str, int]]:
        s = study(repetitions=repetitions)
        found = expand(s, at, Capabilities("mpiexec", {"iokernel": "1"}))[0]
        made = order_runs(at, s, found, 1000, read_looks(tmp_path, "x")).runs
        assert len({run.id for run in made}) == len(made)
        return [(run.id, run.look) for run in made]

    assert runs(eight) == runs(four)
    with pytest.raises(UserError, match="needs at least 5 repetitions, but its follow-up rounds began"):
        runs({"minimum": 5, "maximum": 8, "target": 0.1})


def test_a_look_ends_when_its_time_is_used(tmp_path: Path) -> None:
    """Three runs of 4 s in 10 s: the third is begun, a fourth not; the study's own go on."""
    key = plan(study()).configurations[0].key
    write_look(tmp_path, "x", 4, {key: 5}, seconds=10.0)
    made = planned(tmp_path)
    history = History(made.study, made.calibrations, made.looks)
    more = [run for run in made.runs if run.look]
    for run in more[:3]:
        assert history.wanted(run)
        history.add(Outcome(run, "ok", "", 4.0, 4.0, []))
    assert not history.wanted(more[3]) and history.wanted(made.runs[0])


def test_a_budget_does_not_cut_the_minimum(tmp_path: Path) -> None:
    """A second of engine time is used a hundred times over: the minimum goes on, no repetition beyond it."""
    made = planned(tmp_path)
    history = History(made.study.model_copy(update={"budget": 1.0}), made.calibrations)
    history.engine_time = 100.0
    least = made.study.repetitions.minimum
    assert all(history.wanted(run) == (run.repetition < least) for run in made.runs if run.twin == "a")
