"""What is true of a program: it is really run on each single storage and as advised, in random order.

Each round runs, in random order: the program with its folder on each storage of the site, and for each home
once more there (what two makings of the same thing differ by), as advised, where the advice moves something,
and with the whole folder staged to each other storage, by the same script: what a single storage costs that
is no home. Inputs are as the program's `warm` says before every run, on whatever storage they then lie.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.advise.ask import Adviser, Question, plan_of
from benchmarks.advise.execute import Execution, execute
from benchmarks.advise.places import Place
from benchmarks.advise.programs import Program
from tiercel.errors import RunFailed
from tiercel.placement.staging import Move, staging_script
from tiercel.site.model import Site

Cell = tuple[str, str]


class Truth:
    """One program on all storages of a site; `homes` are those on which its files may lie at first."""

    def __init__(self, name: str, program: Program, site: Site, homes: Sequence[str], output: Path) -> None:
        self._name, self._program, self._site, self._homes = name, program, site, list(homes)
        self._output = output
        self._template = Path(tempfile.mkdtemp(prefix=f"tiercel-{name}-", dir=_memory()))
        self._places = {
            storage: Place(one.scratch_path() / "advise-benchmark" / name, self._template)
            for storage, one in site.storages.items()
        }
        self._single: dict[str, list[dict[str, Any]]] = {s: [] for s in self._places}
        self._again: dict[str, list[dict[str, Any]]] = {h: [] for h in homes}
        self._advised: dict[str, list[dict[str, Any]]] = {h: [] for h in homes}
        self._staged: dict[str, list[dict[str, Any]]] = {
            f"{h}>{s}": [] for h in homes for s in self._places if s != h
        }

    def measure(self, adviser: Adviser, minutes: float, repetitions: int, seed: int = 1) -> dict[str, Any]:
        """Advise and run; return everything that was measured, as plain values."""
        try:
            self._program.make(self._template)
            advice = {home: self._advise(adviser, home, minutes) for home in self._homes}
            cells: list[Cell] = [("single", s) for s in self._places]
            cells += [("again", h) for h in self._homes]
            cells += [("advised", h) for h in self._homes if advice[h].get("moves")]
            cells += [("staged", pair) for pair in self._staged]
            order = random.Random(f"{self._name}:{seed}")
            for number in range(repetitions):
                for kind, storage in order.sample(cells, len(cells)):
                    self._cell(kind, storage, number)
        finally:
            for place in self._places.values():
                place.remove()
            shutil.rmtree(self._template, ignore_errors=True)
        return {
            "program": self._name, "title": self._program.title, "warm": self._program.warm,
            "site": self._site.site, "homes": self._homes, "repetitions": repetitions, "minutes": minutes,
            "media": {name: one.medium for name, one in self._site.storages.items()}, "advice": advice,
            "single": self._single, "again": self._again, "advised": self._advised,
            "staged": self._staged,
        }  # fmt: skip

    def _advise(self, adviser: Adviser, home: str, minutes: float) -> dict[str, Any]:
        place = self._places[home]
        place.restore()
        place.settle(self._program.warm)
        command, answer = self._program.command(place.folder), self._answer(home)
        shutil.rmtree(answer, ignore_errors=True)
        question = Question(self._site.site, home, minutes, command, place.folder,
                            self._program.environment(), answer)  # fmt: skip
        return adviser(question)

    def _answer(self, home: str) -> Path:
        return self._output / self._name / f"home-{home}"

    def _cell(self, kind: str, storage: str, number: int) -> None:
        _say(f"{self._name}: round {number + 1}, {kind} {storage}")
        if kind == "staged":
            home, _, other = storage.partition(">")
            self._staged[storage].append(self._staged_run(self._places[home], self._whole(home, other)))
            return
        place = self._places[storage]
        if kind == "advised":
            stage = plan_of(self._answer(storage)) / "stage.sh"
            self._advised[storage].append(self._staged_run(place, stage))
            return
        place.restore()
        place.settle(self._program.warm)
        kept = self._again if kind == "again" else self._single
        kept[storage].append(self._run(place))

    def _whole(self, home: str, other: str) -> Path:
        """Return a script that moves the whole folder, made the first time."""
        script = self._output / self._name / f"whole-{home}-{other}.sh"
        if not script.exists():
            there = self._places[other].folder.with_name(f"{self._name}-staged-from-{home}")
            move = Move(str(self._places[home].folder), str(there), True, True, True)
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(staging_script([move]), encoding="utf-8")
        return script

    def _run(self, place: Place) -> dict[str, Any]:
        done = self._execute(place)
        return {"run": done.wall, "cpu": done.cpu, "wrong": self._wrong(done, place)}

    def _execute(self, place: Place) -> Execution:
        return execute(self._program.command(place.folder), place.folder, self._program.environment())

    def _wrong(self, done: Execution, place: Place) -> str:
        if done.failed:
            return done.failed
        try:
            return self._program.wrong(place.folder) or ""
        except (RunFailed, OSError, ValueError, LookupError) as error:  # outputs that cannot even be read
            return f"{type(error).__name__}: {error}"

    def _staged_run(self, place: Place, stage: Path) -> dict[str, Any]:
        place.restore()
        place.settle(self._program.warm)
        # From elsewhere: a folder in which a process works is not moved.
        into = execute(["sh", str(stage), "in"], Path("/"), {})
        place.settle(self._program.warm)
        done = self._execute(place)
        out = execute(["sh", str(stage), "out"], Path("/"), {})
        wrong = into.failed and f"stage.sh in: {into.failed}"
        wrong = wrong or self._wrong(done, place) or (out.failed and f"stage.sh out: {out.failed}")
        if not wrong and (left := place.links()):
            wrong = f"{len(left)} links are left after stage.sh out, {left[0].name} first"
        return {"run": done.wall, "cpu": done.cpu + into.cpu + out.cpu, "wrong": wrong,
                "in": into.wall, "out": out.wall}  # fmt: skip


def _memory() -> str | None:
    """Return the folder for what is no part of a measurement: memory where there is some."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
