"""Replays a recipe with tiercel-replay (native/replay): makes the files, does the I/O, checks the counts.

replay = Replay(replay_program(), recipe, {file: 0 for file in recipe.files}, [scratch], place)
replay.prepare(); answer = replay.run()
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiercel.children import killed_with_parent
from tiercel.errors import RunFailed, UserError
from tiercel.placement.engine import check_totals
from tiercel.placement.recipe import Recipe
from tiercel.programs import program
from tiercel.runs.execute import last_line

#: A replay that takes longer is given up.
PATIENCE_S = 3600.0


def replay_program() -> Path:
    """Return the path of tiercel-replay; UserError where it is not installed."""
    path = program("tiercel-replay")
    if path is None:
        raise UserError("tiercel-replay is not installed: run `make setup` (it builds native/replay)")
    return path


class Replay:
    """One replay. `systems`: the place in `roots` of each file that is not on the first; `folder`: for the
    recipe and the answer, never on a storage under test by intention; `inherit`: descriptors to keep."""

    def __init__(
        self, binary: Path, recipe: Recipe, systems: Mapping[str, int], roots: Sequence[Path], folder: Path,
        inherit: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self._recipe, self._inherit = recipe, inherit
        self._answer = folder / "answer.json"
        text = folder / "recipe.txt"
        text.write_text(recipe.text(dict(systems)), encoding="ascii")
        self._head = [str(binary), str(text)]
        for root in roots:
            self._head += ["--root", str(root)]

    def prepare(self) -> None:
        """Make what the program found; inputs are evicted from the page cache then."""
        carry_out([*self._head, "--prepare"], PATIENCE_S, self._inherit)

    def run(self) -> dict[str, Any]:
        """Do the I/O; return what tiercel-replay measured. RunFailed where it did not do all of it."""
        carry_out([*self._head, "--summary-file", str(self._answer)], PATIENCE_S, self._inherit)
        result: dict[str, Any] = json.loads(self._answer.read_text())
        check_totals(result, self._recipe.totals)
        return result


def carry_out(argv: Sequence[str], timeout: float, inherit: tuple[int, ...] = ()) -> None:
    """Run a command to its end, silently; RunFailed, with its last line, where it fails or takes too long."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
            stdin=subprocess.DEVNULL, pass_fds=inherit, preexec_fn=killed_with_parent,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RunFailed(f"not done after {timeout:.0f} s") from None
    if done.returncode:
        said = last_line(done.stderr) or f"exit code {done.returncode}"
        raise RunFailed(said.removeprefix("tiercel-replay: "))
