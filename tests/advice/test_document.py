"""What a plan moves, and what comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tiercel.advice.answer import Advice
from tiercel.advice.document import moves_of
from tiercel.advice.judge import results_of, verdict
from tiercel.advice.measured import Measured
from tiercel.advice.trial import Trial
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, Way
from tiercel.site.model import Site, Storage


def advice(*units: Unit) -> Advice:
    """All of `units` is faster on `fast`."""
    site = Site(
        site="test",
        storages={n: Storage(type="ext4", mount=f"/{n}", scratch=f"/{n}/s") for n in ("disk", "fast")},
    )
    names = [u.name for u in units]
    home, fast = (dict.fromkeys(names, s) for s in ("disk", "fast"))
    ways = {HOME: Way(HOME, home), AGAIN: Way(AGAIN, home), "all on fast": Way("all on fast", fast)}

    def trials(wall: float) -> list[Trial]:
        calls = np.full((len(units), 4), wall / len(units) / 8)
        return [Trial(wall + 0.001 * i, calls, calls) for i in range(5)]

    found = Measured(ways, {n: [i] for i, n in enumerate(names)})
    found.trials = {HOME: trials(2.0), AGAIN: trials(2.0), "all on fast": trials(1.0)}
    results = results_of(found, units)
    return Advice(
        site, None, Path("t"), "disk", units=units, ways=tuple(results),
        verdict=verdict(results, {"disk": False, "fast": False}, 0.5),
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
