"""Tries a plan without its program: replays the trace with every file at home, and with the plan, in turn."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.engines.replay import check_totals
from tiercel.errors import RunFailed, UserError
from tiercel.placement.compile import compile_trace
from tiercel.placement.plan import Plan, at_system
from tiercel.placement.recipe import Recipe
from tiercel.programs import program
from tiercel.runs.execute import last_line
from tiercel.runs.lock import SiteLock
from tiercel.runs.scratch import Scratch, check_scratch, space_problem
from tiercel.site.model import Stack
from tiercel.traces import IOFrame

_TIMEOUT_S = 3600.0


def check_plan(
    plan: Plan, frame: IOFrame, results: Path, repetitions: int = 5, seed: int = 1
) -> dict[str, Any]:
    """Return measured and expected gain: seconds in I/O calls on the planned files, medians over repetitions.

    Staging is not replayed. UserError when the replay program is missing or a storage is not there.
    """
    binary = program("tiercel-replay")
    if binary is None:
        raise UserError("tiercel-replay is not installed: run `make setup` (it builds native/replay)")
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
                result = _replay(
                    binary,
                    recipe,
                    ways[way],
                    [stacks[s] for s in systems],
                    f"check-{way}-{repetition}",
                    Path(place),
                )
                seconds[way].append(sum(t["seconds"] for i in chosen for t in result["files"][i].values()))
    home, moved = (float(np.median(seconds[w])) for w in ("home", "plan"))
    at_home = plan.groups[f"seconds:{plan.home}"].sum()
    expected = at_system(plan.groups, "seconds").sum()
    return {
        "repetitions": repetitions, "seconds": seconds, "seconds_at_home": home, "seconds_by_plan": moved,
        "measured_gain": 1 - moved / home, "expected_gain": float(1 - expected / at_home),
        "left_out": recipe.left_out,
    }  # fmt: skip


def _replay(
    binary: Path, recipe: Recipe, roots: dict[str, int], stacks: list[Stack], name: str, place: Path
) -> dict[str, Any]:
    text, answer = place / f"{name}.txt", place / f"{name}.json"
    text.write_text(recipe.text(roots), encoding="ascii")
    with ExitStack() as scratches:
        head = [str(binary), str(text)]
        for stack in stacks:
            head += ["--root", str(scratches.enter_context(Scratch(stack, f"{name}-{stack.name}")).data)]
        for words in (["--prepare"], ["--summary-file", str(answer)]):
            done = subprocess.run(
                [*head, *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
            if done.returncode:
                raise RunFailed(f"tiercel-replay: {last_line(done.stderr) or f'exit code {done.returncode}'}")
    result: dict[str, Any] = json.loads(answer.read_text())
    check_totals(result, recipe.totals)
    return result
