"""What is true of a program: it runs with its files really lying on each storage, and as the staging script
runs it.

Each round runs, in random order, the program with its folder on each storage, and for each home the staging
script
with the whole folder on each other storage. Nothing of it uses tiercel's trials.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.advise.execute import execute
from benchmarks.advise.places import Place
from benchmarks.advise.programs import Program
from tiercel.errors import RunFailed
from tiercel.placement.staging import Move, staged_command, staging_script
from tiercel.site.model import Site

Adviser = Callable[[Program, Site, Path, Path], dict[str, Any]]
#: A storage that is so many times slower than home in the first round is staged to no more.
_SLOW = 2.0


def ask(program: Program, site: Site, folder: Path, answer: Path) -> dict[str, Any]:
    """Run `tiercel advise --json`; return its document, or ``{"failed": why}``."""
    words = [sys.executable, "-m", "tiercel", "advise", "--site", site.site, "--json", "-o", str(answer)]
    words += ["--warm" if program.warm else "--cold", "--", *program.command(folder)]
    began = time.monotonic()
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **program.environment()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    took = time.monotonic() - began
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return {"failed": f"exit code {done.returncode}: {' '.join(said[-1:])}", "took": took}
    return {**json.loads(done.stdout), "took": took}


class Truth:
    """One program on all storages of a site; `homes` are those on which its files may lie at first."""

    def __init__(self, name: str, program: Program, site: Site, homes: Sequence[str], answers: Path) -> None:
        self._name, self._program, self._site, self._homes = name, program, site, list(homes)
        self._answers = answers
        self._template = Path(f"/dev/shm/tiercel-benchmark-{site.site}-{name}-{os.geteuid()}")
        shutil.rmtree(self._template, ignore_errors=True)  # a benchmark that was killed left it
        self._template.mkdir(mode=0o700)
        self._places = {
            storage: Place(one.scratch_path() / "advise-benchmark" / name, self._template)
            for storage, one in site.storages.items()
        }
        self._runs: dict[str, list[dict[str, Any]]] = {}

    def measure(self, adviser: Adviser, repetitions: int, seed: int = 1) -> dict[str, Any]:
        """Advise and run; return everything that was measured, as plain values."""
        try:
            self._program.make(self._template)
            advice = {}
            for home in self._homes:
                _say(f"{self._name}: advice at {home}")
                place, there = self._ready(home), self._copies()
                advice[home] = adviser(
                    self._program, self._site, place.folder, self._answers / self._name / home
                )
                left = self._copies() - there
                changed = place.differences()
                advice[home]["harm"] = ("copies are left behind; " if left else "") + changed
            cells = [(s, "") for s in self._places]
            cells += [(h, s) for h in self._homes for s in self._places if s != h]
            for number in range(repetitions):
                for home, other in random.Random(f"{self._name}:{seed}:{number}").sample(cells, len(cells)):
                    self._cell(home, other, number)
        finally:
            for place in self._places.values():
                with suppress(OSError):
                    place.remove()
            shutil.rmtree(self._template, ignore_errors=True)
        return {
            "program": self._name,
            "title": self._program.title,
            "new": self._program.new,
            "homes": self._homes,
            "user": os.geteuid(),
            "advice": advice,
            "runs": self._runs,
        }

    def _copies(self) -> set[Path]:
        """Return what trials that have ended keep on the storages."""
        found = {
            p for s in self._site.storages.values() for p in s.scratch_path().glob("tiercel-run-advise-*")
        }
        return {p for p in found if not Path("/proc", p.name.rpartition("-")[2]).exists()}

    def _ready(self, storage: str) -> Place:
        place = self._places[storage]
        place.restore()
        place.settle(self._program.warm)
        return place

    def _cell(self, home: str, other: str, number: int) -> None:
        first = {s: runs[0]["run"] for s, runs in self._runs.items() if runs}
        if other and number and first.get(other, 0) > _SLOW * first[home]:
            return
        _say(f"{self._name}: round {number + 1}, {home}{f' staged to {other}' if other else ''}")
        place = self._ready(home)
        command = self._program.command(place.folder)
        if other:
            there = self._places[other].folder.with_name(f"{self._name}-staged-from-{home}")
            script = self._answers / self._name / "stage.py"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(staging_script([Move(str(place.folder), str(there), True, True, True)]))
            command = staged_command(script, command)
        done = execute(command, place.folder, self._program.environment())
        wrong = done.failed
        if not wrong:
            try:
                wrong = self._program.wrong(place.folder) or ""
            except (RunFailed, OSError, ValueError, LookupError) as error:  # outputs that cannot even be read
                wrong = f"{type(error).__name__}: {error}"
        self._runs.setdefault(f"{home}>{other}" if other else home, []).append(
            {"run": done.wall, "wrong": wrong}
        )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
