"""Tries a plan without its program: replays the trace with every file at home, and with the plan, in turn."""

from __future__ import annotations

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.errors import UserError
from tiercel.placement.compile import compile_trace
from tiercel.placement.plan import PlacementPlan, at_system
from tiercel.placement.replaying import Replay, replay_program
from tiercel.runs.lock import SiteLock
from tiercel.runs.scratch import Scratch, check_scratch, space_problem
from tiercel.site.model import Stack
from tiercel.traces import IOFrame


def check_plan(
    plan: PlacementPlan, frame: IOFrame, results: Path, repetitions: int = 5, seed: int = 1
) -> dict[str, Any]:
    """Return measured and expected gain: seconds in I/O calls on the planned files, medians over repetitions.

    Staging is not replayed. UserError when the replay program is missing or a storage is not there.
    """
    binary = replay_program()
    systems = sorted({plan.home, *plan.files["system"]})
    recipe = compile_trace(frame)
    stacks = {s: Stack(s, plan.site.storages[s]) for s in systems if s in plan.site.storages}
    if lacking := [s for s in systems if s not in stacks]:
        raise UserError(f"{lacking[0]} is a storage with layers: replay it in a study (engines: [replay])")
    for stack in stacks.values():
        check_scratch(stack)
        if problem := space_problem(stack, recipe.footprint):
            raise UserError(problem)
    number = {s: i for i, s in enumerate(systems)}
    planned = {f: number[s] for f, s in plan.files["system"].items()}
    ways = {"home": dict.fromkeys(recipe.files, number[plan.home]),
            "plan": {f: planned.get(f, number[plan.home]) for f in recipe.files}}  # fmt: skip
    seconds: dict[str, list[float]] = {"home": [], "plan": []}
    chosen = [i for i, f in enumerate(recipe.files) if f in planned]
    with SiteLock(results), tempfile.TemporaryDirectory(prefix="tiercel-check-") as place:
        for repetition in range(repetitions):
            order = list(ways)
            random.Random(f"check:{seed}:{repetition}").shuffle(order)
            for way in order:
                with ExitStack() as scratches:
                    name = f"check-{way}-{repetition}"
                    roots = [scratches.enter_context(Scratch(stacks[s], f"{name}-{s}")).data for s in systems]
                    replay = Replay(binary, recipe, ways[way], roots, Path(place))
                    replay.prepare()
                    result = replay.run()
                seconds[way].append(sum(t["seconds"] for i in chosen for t in result["files"][i].values()))
    home, moved = (float(np.median(seconds[w])) for w in ("home", "plan"))
    at_home = plan.groups[f"seconds:{plan.home}"].sum()
    expected = at_system(plan.groups, "seconds").sum()
    return {
        "repetitions": repetitions, "seconds": seconds, "seconds_at_home": home, "seconds_by_plan": moved,
        "measured_gain": 1 - moved / home, "expected_gain": float(1 - expected / at_home),
        "left_out": recipe.left_out,
    }  # fmt: skip
