"""`python -m benchmarks.advise`: how it judges what it measured, by hand-made figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.advise.execute import execute
from benchmarks.advise.judge import cases, summary, table, totals
from benchmarks.advise.places import Place
from benchmarks.advise.programs import programs


def _measured(
    outcome: str, moves: bool, memory: float = 4.0, staged: float = 6.0, copied: str = "not decided"
) -> dict[str, Any]:
    """A program that takes 10 s on disk; stated: 2.5 times faster in memory, 2 to 3."""
    runs = {"disk": [9.9, 10.0, 10.1], "memory": [memory] * 3, "disk>memory": [staged] * 3}
    places = {"/d": "memory"}
    answer = {
        "placements": [
            {"placement": "memory", "places": places, "run_seconds": {"runs": [4.0, 4.0]},
             "faster": {"times": {"median": 2.5, "low": 2.0, "high": 3.0}, "outcome": outcome},
             "faster_with_copying": {"outcome": copied}}
        ],
        "advised": {"move": moves, "decided": True, "places": places if moves else {}},
        "home_seconds": {"median": 10.0, "runs": [11.0, 11.0]},
        "measured_seconds": 50.0, "took": 60.0, "harm": "",
    }  # fmt: skip
    return {
        "program": "one", "title": "", "new": True, "homes": ["disk"], "user": 0, "advice": {"disk": answer},
        "runs": {name: [{"run": s, "wrong": ""} for s in seconds] for name, seconds in runs.items()},
    }  # fmt: skip


def test_a_good_answer() -> None:
    [case] = cases(_measured("faster", moves=True))
    assert case.inside == 1 and case.told and case.faster_there and not case.wrong and not case.slower
    assert (case.as_advised, case.best) == (6.0, 6.0)
    total = totals([case])
    assert total.regret == 0 and total.in_time == 1  # 50 s are within ten runs of 10 s
    assert "1 of 1" in summary(total) and "one (new)" in table([case])


def test_what_differs_between_sessions() -> None:
    """Equal runs of 11 and 4 s in one session, of 10 and 4 s in the other: log(1.1) = 0.0953 between them.
    Runs of 9.9, 10 and 10.1 s vary by 1 %, with those of 4 s by a pooled variance of 5e-5: less 5e-5 * (1/3 +
    1/3)."""
    total = totals(cases(_measured("faster", moves=True)))
    assert total.session_sd == pytest.approx((0.0953**2 - 3.3e-5) ** 0.5, rel=1e-2)


def test_certain_and_wrong() -> None:
    [missed] = cases(_measured("same", moves=False))
    assert missed.wrong == ("memory",) and missed.faster_there and not missed.told
    assert missed.as_advised == 10 and totals([missed]).regret == pytest.approx(10 / 6 - 1)
    [unsure] = cases(_measured("not decided", moves=False))
    assert unsure.wrong == ()
    [false] = cases(_measured("faster", moves=True, memory=12.0, staged=14.0))
    assert false.wrong == ("memory",) and false.slower and false.inside == 0


@pytest.mark.parametrize(
    ("copied", "staged", "wrong"),
    [("faster", 12.0, True), ("faster", 9.95, False), ("slower", 6.0, True), ("slower", 8.0, False)],
)
def test_certain_and_wrong_with_copying(copied: str, staged: float, wrong: bool) -> None:
    """10 s at home, 9.9 to 10.1: 9.95 s is not surely faster or slower, 6 s is more than 1.5 times faster."""
    [case] = cases(_measured("faster", moves=False, staged=staged, copied=copied))
    assert case.wrong == (("memory with copying",) if wrong else ())


def test_regret_is_of_differences_that_every_run_shows() -> None:
    """Staged runs of 9.95 s are within those at home, 9.9 to 10.1 s; of 8 s they are not."""
    assert totals(cases(_measured("faster", moves=False, staged=9.95))).regret == 0
    assert totals(cases(_measured("faster", moves=False, staged=8.0))).regret == pytest.approx(0.25)


def test_a_program_that_fails_at_home_by_itself_is_no_case() -> None:
    measured = _measured("faster", moves=True)
    measured["runs"]["disk"][1]["wrong"] = "exit code 1"
    assert cases(measured) == []


def test_no_answer_is_counted_apart() -> None:
    measured = _measured("faster", moves=True)
    measured["advice"]["disk"] = {"failed": "exit code 2", "took": 3.0, "harm": ""}
    [case] = cases(measured)
    assert totals([case]).without_answer == 1 and not case.told


def test_a_folder_that_was_changed_is_harm(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "in").write_text("in")
    (tmp_path / "inputs" / "private").mkdir(mode=0o700)
    place = Place(tmp_path / "folder", tmp_path / "inputs")
    place.restore()
    assert place.differences() == "" and (place.folder / "private").stat().st_mode & 0o777 == 0o700
    (place.folder / "in").write_text("changed")
    assert place.differences() == "changed: in"
    (place.folder / "new").touch()
    assert place.differences() == "names differ: new"
    place.restore()
    assert place.differences() == "" and (place.folder / "in").read_text() == "in"


def test_both_halves_are_there() -> None:
    assert sum(programs.get(name).new for name in programs.names()) == 12


def test_execute(tmp_path: Path) -> None:
    assert execute(["sh", "-c", "exit 0"], tmp_path, {}).failed == ""
    assert execute(["sh", "-c", "echo why; exit 3"], tmp_path, {}).failed == "exit code 3: why"
