"""What a plan moves, and what comes back."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from tiercel.advice.answer import Advice, IoCost
from tiercel.advice.document import document, moves_of
from tiercel.advice.judge import results_of, verdict
from tiercel.advice.measured import Measured
from tiercel.advice.trial import Trial
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, Way
from tiercel.report.advice.terminal import print_advice
from tiercel.site.model import Site, Storage


def advice(*units: Unit, copy_in: float = 0.0) -> Advice:
    """All of `units` is faster on `fast`, where `copy_in` seconds bring it."""
    site = Site(
        site="test",
        storages={n: Storage(type="ext4", mount=f"/{n}", scratch=f"/{n}/s") for n in ("disk", "fast")},
    )
    names = [u.name for u in units]
    home, fast = (dict.fromkeys(names, s) for s in ("disk", "fast"))
    ways = {HOME: Way(HOME, home), AGAIN: Way(AGAIN, home), "all on fast": Way("all on fast", fast)}

    def trials(wall: float, copied: float = 0.0) -> list[Trial]:
        calls = np.full((len(units), 4), wall / len(units) / 8)
        return [Trial(wall + 0.001 * i, calls, calls, copied, 0.0) for i in range(5)]

    found = Measured(ways, {n: [i] for i, n in enumerate(names)})
    found.trials = {HOME: trials(2.0), AGAIN: trials(2.0), "all on fast": trials(1.0, copy_in)}
    results = results_of(found, units)
    return Advice(
        site, None, Path("t"), "disk", units=units, ways=tuple(results),
        verdict=verdict(results, {"disk": False, "fast": False}, 0.5), io=IoCost(2.0, 1.0, 1.0, {}, 9, 0, 9),
    )  # fmt: skip


def test_results_inside_an_outer_folder_come_back_with_it() -> None:
    """The outer folder holds temporary files only; the folder for results in it was there before."""
    outer = Unit("/w", Path("/w"), True, ("/w/tmp",), "disk", size=9, takes=("/w/out",), changed=True)
    inner = Unit("/w/out", Path("/w/out"), True, ("/w/out/r",), "disk", results=("/w/out/r",), size=9,
                 changed=True)  # fmt: skip
    [(unit, move)] = moves_of(advice(outer, inner))
    assert unit.name == "/w" and (move.home, move.place) == ("/w", "/fast/s/placed/w")
    assert move.folder and move.brings_in and move.brings_out


def test_a_folder_that_is_only_read_is_not_copied_back() -> None:
    files = tuple(f"/in/{n}" for n in range(9))
    folder = Unit("/in", Path("/in"), True, files, "disk", inputs=files, size=9)
    [(_, move)] = moves_of(advice(folder))
    assert move.folder and move.brings_in and not move.brings_out


def test_a_gain_that_copying_eats_is_told_with_the_runs_that_it_takes() -> None:
    """Without this the answer spoke of noise, where the run was surely shorter and the copy was the cost."""
    found = document(advice(Unit("/in", Path("/in"), True, ("/in/f",), "disk", size=9), copy_in=4.0))
    assert found["verdict"]["way"] == HOME
    told = found["verdict"]["but_for_copying"]
    assert (told["way"], told["pays_from_runs"]) == ("all on fast", 5)  # 4 s for 0.9 s or more of each run
    said = " ".join(found["answer"])
    assert (
        "But for copying, all on fast makes a run 1 s" in said
        and "for 5 runs it pays: ask again with --runs 5" in said
    )
    # Where it is advised, or lives there at no cost, there is nothing to add.
    advised = document(advice(Unit("/in", Path("/in"), True, ("/in/f",), "disk", size=9)))
    assert advised["verdict"]["but_for_copying"] is None and "copying, " not in " ".join(advised["answer"])


def test_the_plan_s_commands_are_words_of_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """A project's folder may have a space in its name; the line is there to be pasted."""
    print_advice(
        advice(Unit("/w", Path("/w"), True, ("/w/f",), "disk", size=9)), Path("p"), Path("/my own/a.json")
    )
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Plan: ")]
    first, last = line.removeprefix("Plan: ").split(", run the program, ")
    assert shlex.split(first) == ["sh", "/my own/plan/stage.sh", "in"]
    assert shlex.split(last) == ["sh", "/my own/plan/stage.sh", "out"]
