"""`python -m benchmarks.advise`: how it runs programs as advised, and how it judges what it measured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.advise.ask import Question
from benchmarks.advise.execute import execute
from benchmarks.advise.judge import Living, cases, reference, totals
from benchmarks.advise.places import Place
from benchmarks.advise.programs import Program, programs
from benchmarks.advise.table import summary, table
from benchmarks.advise.truth import Truth

from tiercel.errors import RunFailed
from tiercel.site.model import Site, Storage


def _runs(*seconds: float, **more: float) -> list[dict[str, Any]]:
    return [{"run": s, "cpu": s, "wrong": "", **more} for s in seconds]


def _measured(
    advised: list[dict[str, Any]], saved: tuple[float, float, float], moves: int = 2, living: Any = None
) -> dict[str, Any]:
    """One program with its home on disk: 10 s there, 4 s in memory and 8 s on flash; copying there and back
    costs 3 s."""
    return {
        "program": "one", "title": "", "homes": ["disk"],
        "media": {"disk": "disk", "memory": "memory", "flash": "disk"},
        "advice": {"disk": {
            "verdict": {"way": "all on memory" if moves else "home", "decided": True,
                        "saved_seconds": _span(*saved), "if_files_lived_there": living},
            "moves": moves}},
        "single": {"disk": _runs(9.9, 10, 10.1, 10, 10), "memory": _runs(4, 4, 4, 4, 4),
                   "flash": _runs(8, 8, 8, 8, 8)},
        "again": {"disk": _runs(10, 9.9, 10, 10.1, 10)},
        "advised": {"disk": advised},
        "staged": {f"disk>{s}": _runs(*[seconds] * 5, **{"in": 1.0, "out": 2.0})
                   for s, seconds in (("memory", 4), ("flash", 8))},
    }  # fmt: skip


def _span(median: float, low: float, high: float) -> dict[str, float]:
    return {"median": median, "low": low, "high": high}


def test_a_good_advice_is_inside_its_interval_and_regrets_what_it_leaves() -> None:
    advised = _runs(5, 5, 5, 5, 5, **{"in": 1.0, "out": 2.0})
    [case] = cases(_measured(advised, (5.5, 4.5, 6.5)))
    assert case.saved == 5.0  # median 10 at home (both makings together) less 5
    assert case.inside is True
    assert (case.best, case.staging) == ("memory", 3.0)
    # 5 + 3 as advised; memory 4 + 3, which is the best (flash 8 + 3, disk 10 without copying).
    assert case.lost == pytest.approx(1.0) and case.regret == pytest.approx(8 / 7 - 1)
    assert totals([case]).lost == pytest.approx(0.1)  # of 10 s at home
    assert not case.slower


def test_a_gain_outside_the_interval_is_said_and_counted() -> None:
    advised = _runs(5, 5, 5, 5, 5, **{"in": 0.5, "out": 0.5})
    judged = cases(_measured(advised, (7.0, 5.1, 9.0))) + cases(_measured(advised, (5.0, 4.0, 6.0)))
    assert [case.inside for case in judged] == [False, True]
    assert totals(judged).coverage == 0.5


def test_slower_beyond_noise_is_harm_and_copying_counts() -> None:
    [slower] = cases(_measured(_runs(12, 12, 12, 12, 12, **{"in": 0, "out": 0}), (1, 0, 2)))
    assert slower.slower
    # 9 s is less than 10; with 4 s of copying it is slower than leaving the files where they are.
    [copied] = cases(_measured(_runs(9, 9, 9, 9, 9, **{"in": 2, "out": 2}), (1, 0, 2)))
    assert copied.slower
    # Within what two makings of the same thing differ by (9.9 to 10.1) nothing is claimed.
    [noise] = cases(_measured(_runs(10.1, 10, 10.1, 9.9, 10.1, **{"in": 0, "out": 0}), (0, -1, 1)))
    assert not noise.slower


def test_an_advice_that_moves_nothing_saves_nothing_and_regrets_all() -> None:
    [case] = cases(_measured([], (0, 0, 0), moves=0))
    assert case.saved == 0 and case.inside is True and not case.slower
    assert case.as_advised == 10 and case.staging == 0
    assert case.regret == pytest.approx(10 / 7 - 1)  # memory, 4 + 3


def test_files_cannot_live_in_memory() -> None:
    advised = _runs(5, 5, 5, 5, 5, **{"in": 0.5, "out": 0.5})
    flash = {"way": "all on flash", "saved_seconds": _span(2.5, 2.1, 3)}
    [stay] = cases(_measured(advised, (5, 4, 6)))
    [move] = cases(_measured(advised, (5, 4, 6), living=flash))
    assert stay.living == Living("disk", "flash", 0.0, None, 10 / 8 - 1)
    assert move.living == Living("flash", "flash", 2.0, False, 0.0)  # 10 less 8 is below 2.1
    assert totals([stay, move]).living_over == 1
    assert totals([stay, move]).living_regret == pytest.approx(18 / 16 - 1)


def test_no_advice_is_counted_apart() -> None:
    measured = _measured([], (0, 0, 0), moves=0)
    measured["advice"]["disk"] = {"failed": "exit code 1: no tracer"}
    total = totals(cases(measured))
    assert (total.cases, total.without_answer, total.stated) == (1, 1, 0)
    assert total.coverage is None and total.regret is None
    assert "1 got no answer" in summary(total)


def test_a_program_that_fails_at_home_by_itself_says_nothing_of_the_advice() -> None:
    measured = _measured(_runs(5, 5, 5, 5, 5, **{"in": 1.0, "out": 2.0}), (5.5, 4.5, 6.5))
    measured["again"]["disk"][3]["wrong"] = "exit code 1: Corrupt temporary file"
    judged = cases(measured)
    total = totals(judged)
    assert (total.cases, total.failing, total.stated, total.wrong) == (0, 1, 0, 0)
    assert "1 more left out" in summary(total) and "fails there by itself" in table(judged)


def test_the_best_storage_of_a_round_is_chosen_by_the_other_rounds() -> None:
    # Round 0: a is 5 and 1 in the others (median 3), b 2: b is taken. Round 1: a is 1 and 1, so a, which then
    # took 5. Round 2: a is 1 and 5 (3), so b.
    assert reference({"a": [1, 5, 1], "b": [2, 2, 2]}) == [2, 5, 2]


def test_regret_of_all_is_of_run_time() -> None:
    good = cases(_measured(_runs(4, 4, 4, 4, 4, **{"in": 1, "out": 2}), (6, 5, 7)))
    bad = cases(_measured(_runs(5, 5, 5, 5, 5, **{"in": 1, "out": 2}), (5, 4, 6)))
    assert totals(good + bad).regret == pytest.approx((7 + 8) / (7 + 7) - 1)
    assert totals(good + bad).over == 1


def test_the_table_names_wrong_outputs() -> None:
    advised = _runs(4, 4, 4, 4, 4, **{"in": 0, "out": 0})
    advised[3]["wrong"] = "3 keys, not 4"
    judged = cases(_measured(advised, (6, 5, 7)))
    assert "WRONG: 3 keys, not 4" in table(judged)
    assert totals(judged).wrong == 1


def test_a_place_gets_its_inputs_back(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    (inputs / "sub").mkdir(parents=True)
    (inputs / "sub/changed").write_text("before")
    (inputs / "kept").write_text("kept")
    place = Place(tmp_path / "place", inputs)
    place.restore()
    kept = (place.folder / "kept").stat().st_ino
    (place.folder / "sub/changed").write_text("after it")
    (place.folder / "out/deep").mkdir(parents=True)
    (place.folder / "out/deep/new").touch()
    place.folder.joinpath("link").symlink_to("kept")
    place.restore()
    assert sorted(p.name for p in place.folder.rglob("*")) == ["changed", "kept", "sub"]
    assert (place.folder / "sub/changed").read_text() == "before"
    assert (place.folder / "kept").stat().st_ino == kept  # what was not touched was not copied again


def test_execution_counts_children_and_says_why_it_failed(tmp_path: Path) -> None:
    burn = f"{shlex.quote(sys.executable)} -c 'sum(range(3000000))'"
    done = execute(["sh", "-c", f"{burn}; true"], tmp_path, {})
    assert done.failed == "" and done.cpu > 0.01  # sh alone takes some 1 ms
    assert execute(["sh", "-c", "echo no room >&2; exit 3"], tmp_path, {}).failed == "exit code 3: no room"


class _Copy(Program):
    """One input to one output."""

    title = "cat"

    def make(self, folder: Path) -> None:
        (folder / "in").write_text("content")

    def command(self, folder: Path) -> list[str]:
        return ["sh", "-c", 'cat "$1/in" > "$1/out"', "sh", str(folder)]

    def wrong(self, folder: Path) -> str | None:
        return None if (folder / "out").read_text() == "content" else "the copy differs"


def _site(tmp_path: Path) -> Site:
    storages = {
        name: Storage(type="x", mount="/", scratch=str(tmp_path / name), medium="disk")
        for name in ("near", "far")
    }
    return Site(site="here", storages=storages)


def _adviser(target: Path, broken: bool = False) -> Any:
    """Return an adviser that moves the whole folder to `target`, or (broken) leaves its input out."""

    def advise(question: Question) -> dict[str, Any]:
        (question.answer / "plan").mkdir(parents=True)
        home = shlex.quote(str(question.folder))
        left = f"rm {home}/in" if broken else ":"
        (question.answer / "plan/stage.sh").write_text(
            f"set -e\ncase $1 in in) mv {home} {target}; ln -s {target} {home}; {left};;\n"
            f"*) rm {home}; mv {target} {home};; esac\n"
        )
        verdict = {"way": "all on near", "decided": True, "saved_seconds": _span(0, -9, 9)}
        return {"verdict": verdict, "moves": 1, "took": 0.0}

    return advise


def test_a_program_is_run_on_each_storage_and_as_advised(tmp_path: Path) -> None:
    truth = Truth("copy", _Copy(), _site(tmp_path), ["far"], tmp_path / "output")
    measured = truth.measure(_adviser(tmp_path / "near/placed"), minutes=1, repetitions=2)
    assert {s: len(runs) for s, runs in measured["single"].items()} == {"near": 2, "far": 2}
    assert len(measured["again"]["far"]) == len(measured["advised"]["far"]) == 2
    assert [run["wrong"] for run in measured["staged"]["far>near"]] == [""] * 2
    assert all(run["in"] > 0 and run["out"] > 0 for run in measured["staged"]["far>near"])
    wrong = [run["wrong"] for runs in measured["single"].values() for run in runs]
    assert {*wrong, *(run["wrong"] for run in measured["advised"]["far"])} == {""}
    assert not (tmp_path / "near/placed").exists()  # staged out
    assert list((tmp_path / "near").iterdir()) == list((tmp_path / "far").iterdir()) == []
    [case] = cases(measured)
    assert (case.moves, case.inside, case.wrong) == (1, True, ())


def test_a_plan_that_breaks_a_program_is_found(tmp_path: Path) -> None:
    truth = Truth("copy", _Copy(), _site(tmp_path), ["far"], tmp_path / "output")
    measured = truth.measure(_adviser(tmp_path / "near/placed", broken=True), minutes=1, repetitions=1)
    assert measured["advised"]["far"][0]["wrong"].startswith("exit code 1: cat")
    assert measured["single"]["far"][0]["wrong"] == ""


@pytest.mark.parametrize("name", ["sqlite-commits", "7z-unpack", "make-c"])
def test_a_real_program_is_right_and_a_spoilt_output_is_noticed(name: str, tmp_path: Path) -> None:
    program = programs.get(name)()
    if why := program.missing():
        pytest.skip(why)
    program.make(tmp_path)
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    assert execute(program.command(tmp_path), tmp_path, program.environment()).failed == ""
    assert program.wrong(tmp_path) is None
    for made in sorted({p for p in tmp_path.rglob("*") if p.is_file()} - before):
        made.write_bytes(made.read_bytes()[: made.stat().st_size // 2])
    try:
        said = program.wrong(tmp_path)
    except (RunFailed, OSError, ValueError) as error:  # a tool cannot read it
        said = str(error)
    assert said
