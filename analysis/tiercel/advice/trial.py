"""Replays one way once: makes the files in scratch folders of the storages, does what the program did there.

Nothing of the program's own is read or written. As a plan leaves links where files were, what moves is
reached through links here, too: a server is asked for these. What a way costs in copying is measured, by
copying the replay's files between the scratch folders as the plan's script would copy the program's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tiercel.advice.schedule import run_seconds
from tiercel.advice.units import Unit
from tiercel.advice.ways import Way
from tiercel.errors import RunFailed
from tiercel.pagecache import evict
from tiercel.placement.recipe import Recipe
from tiercel.placement.replaying import Replay, carry_out
from tiercel.placement.staging import Move, staging_script
from tiercel.runs.scratch import Scratch, space_problem
from tiercel.site.model import Site, Stack

#: Of what else lies in a folder, so many bytes tell how fast it is copied.
_SAMPLE = 16 << 20
#: So many more moves tell what each costs.
_MOVES = 4
GROUPS = ("read", "write", "metadata", "sync")
#: Beside a replay's files: its inputs as they lie at home while it runs, and what comes back.
_COPIED, _BACK = "tiercel-copied", "tiercel-back"


@dataclass(frozen=True)
class Trial:
    """What one replay of a way took, in seconds. `files`: seconds in calls by file and group; `calls`: their
    number."""

    wall: float
    files: npt.NDArray[np.float64]
    calls: npt.NDArray[np.float64]
    copy_in: float = 0.0
    copy_out: float = 0.0
    elapsed: float = 0.0
    """All that the trial took: making the files, too."""

    @property
    def io(self) -> float:
        return float(self.files.sum())


@dataclass
class Bench:
    """What all trials of one recipe share."""

    site: Site
    recipe: Recipe
    units: Sequence[Unit]
    program: Path
    folder: Path
    """For recipes and answers; never on a storage under test by intention."""
    think: bool = True
    warm: bool = False
    inherit: tuple[int, ...] = ()
    _number: int = field(default=0, init=False)

    def try_(self, way: Way, timeout: float, copies: bool = False) -> Trial:
        """Replay a way. RunFailed, with the reason, where that cannot be done; nothing is left behind.

        `copies`: measure what staging in and out costs as well.
        """
        self._number += 1
        began = time.monotonic()
        systems = sorted({s for s in [*way.systems.values(), *(u.storage for u in self.units)] if s})
        number = {s: i for i, s in enumerate(systems)}
        roots = {f: number[way.systems[u.name]] for u in self.units if way.systems[u.name] for f in u.files}
        self._check_room(way)
        with ExitStack() as scratches:
            data = {
                s: Path(
                    scratches.enter_context(
                        Scratch(self._stack(s), f"advise-{os.getpid()}-{self._number}-{s}")
                    ).data
                )
                for s in systems
            }
            places = [data[s] for s in systems]
            roots |= {f: number[u.storage] for u in self._link(way, data) if u.storage for f in u.files}
            replay = Replay(self.program, self.recipe, roots, places, self.folder, self.inherit)
            replay.prepare(self.warm, timeout)
            copy_in = self._copy_in(way, data) if copies else 0.0
            result = replay.run(self.think, timeout)
            copy_out = self._copy_out(way, data) if copies else 0.0
        return replace(self._trial(result, copy_in, copy_out), elapsed=time.monotonic() - began)

    def _link(self, way: Way, data: Mapping[str, Path]) -> list[Unit]:
        """Leave links where the units that move were, the outer ones first; return these units."""
        moved = sorted(way.moved(self.units), key=lambda unit: len(unit.folder.parts))
        linked: list[Unit] = []
        for unit in moved:
            target = way.systems[unit.name]
            above = [u for u in linked if u.whole and u.folder in unit.folder.parents]
            around = [u for u in above if way.systems[u.name] == target]
            names = [str(unit.folder)] if unit.whole else list(unit.inputs)
            for name in [] if around or unit.storage is None else names:
                here, there = (data[s] / self.recipe.place(name) for s in (unit.storage or "", target))
                here.parent.mkdir(parents=True, exist_ok=True)
                (there if unit.whole else there.parent).mkdir(parents=True, exist_ok=True)
                here.symlink_to(there)
            linked.append(unit)
        return linked

    def _trial(self, result: dict[str, Any], copy_in: float, copy_out: float) -> Trial:
        seconds = np.array([[f[g]["seconds"] for g in GROUPS] for f in result["files"]], dtype=np.float64)
        calls = np.array([[f[g]["operations"] for g in GROUPS] for f in result["files"]], dtype=np.float64)
        wall = float(result["wallSeconds"]) if self.think else run_seconds(self.recipe, seconds, calls)
        return Trial(wall, seconds, calls, copy_in, copy_out)

    def _stack(self, storage: str) -> Stack:
        return Stack(storage, self.site.storages[storage])

    def _check_room(self, way: Way) -> None:
        need: dict[str, int] = {}
        for unit in self.units:
            if storage := way.systems[unit.name]:
                need[storage] = need.get(storage, 0) + unit.size
            if unit.storage and way.systems[unit.name] != unit.storage:
                need[unit.storage] = need.get(unit.storage, 0) + unit.size
        for storage, size in need.items():
            if problem := space_problem(self._stack(storage), size):
                raise RunFailed(problem)

    def script_seconds(self, home: str, other: str) -> tuple[float, float]:
        """Return what the script of a plan takes beside its copying, in and out: (at least, each move).

        The script itself is run, on small files of ours: once for one, once for some.
        """
        took = []
        with ExitStack() as scratches:
            here, there = (
                scratches.enter_context(Scratch(self._stack(s), f"advise-{os.getpid()}-script-{s}")).data
                for s in (home, other)
            )
            for count in (1, 1 + _MOVES):
                moves = []
                for i in range(count):
                    (here / f"{count}-{i}").mkdir()
                    (here / f"{count}-{i}" / "file").write_bytes(b"x")
                    moves.append(
                        Move(str(here / f"{count}-{i}"), str(there / f"{count}-{i}"), True, True, True)
                    )
                script = self.folder / "stage.sh"
                script.write_text(staging_script(moves), encoding="utf-8", errors="surrogateescape")
                began = time.monotonic()
                for word in ("in", "out"):
                    carry_out(["sh", str(script), word], 60.0, self.inherit)
                took.append(time.monotonic() - began)
        each = max(0.0, took[1] - took[0]) / _MOVES
        return max(0.0, took[0] - each), each

    # -- what copying costs ----------------------------------------------------------------------------------

    def _copy_in(self, way: Way, data: Mapping[str, Path]) -> float:
        """Copy inputs from where they live to where the way has them, as found; return seconds."""
        taken = 0.0
        for unit in way.moved(self.units):
            home, there = data[unit.storage or ""], data[way.systems[unit.name]]
            names = [self.recipe.place(n) for n in unit.inputs]
            _copy_files(names, there, home / _COPIED)
            if not self.warm:
                evict(home / _COPIED / n for n in names if (home / _COPIED / n).is_file())
            began = time.monotonic()
            _copy_files(names, home / _COPIED, there / _COPIED)
            taken += time.monotonic() - began
            taken += self._copy_other(unit.bytes_before - _sizes(home / _COPIED, names), home, there)
        return taken

    def _copy_other(self, size: int, home: Path, there: Path) -> float:
        """Return what copying `size` more bytes takes, by a file of a part of them."""
        if size <= 0:
            return 0.0
        part, name = min(size, _SAMPLE), "tiercel-sample"
        (home / name).write_bytes(os.urandom(part))
        if not self.warm:
            evict([home / name])
        began = time.monotonic()
        shutil.copyfile(home / name, there / name)
        taken = time.monotonic() - began
        for folder in (home, there):
            (folder / name).unlink()
        return taken * size / part

    def _copy_out(self, way: Way, data: Mapping[str, Path]) -> float:
        """Copy back what the script would, and remove the originals that lay aside; return seconds."""
        taken = 0.0
        for unit in way.moved(self.units):
            home, there = data[unit.storage or ""], data[way.systems[unit.name]]
            # A folder that was changed comes back whole; of inputs those that were written.
            back = unit.files if unit.changed else unit.results
            began = time.monotonic()
            _copy_files([self.recipe.place(n) for n in back], there, home / _BACK)
            for name in unit.inputs if unit.changed else ():
                (home / _COPIED / self.recipe.place(name)).unlink(missing_ok=True)
            taken += time.monotonic() - began
        return taken


def _copy_files(names: Iterable[str], source: Path, target: Path) -> None:
    for name in names:
        path = source / name
        if path.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / name)  # as cp -a: with mode and times


def _sizes(folder: Path, names: Sequence[str]) -> int:
    """Return the bytes of those files that are there."""
    return sum((folder / n).stat().st_size for n in names if (folder / n).is_file())


def scratch_place() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for recipes and answers."""
    return tempfile.TemporaryDirectory(prefix="tiercel-advise-")
