"""What a program is here: unmodified, with made inputs and a check that its outputs are right.

To add one, write a class under ``@programs.register("name")`` and import its file in ``__init__``.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tiercel.errors import RunFailed
from tiercel.registry import Registry

_SCRIPTS = Path(__file__).parent / "scripts"


class Program(ABC):
    """A real program that runs for a second or a few, and whose files all lie in one folder."""

    title: str
    """What it does, for the table."""
    new: bool = False
    """This benchmark did not use it before advice by trials."""
    warm: bool = False
    """Its inputs were used just before, so they are in the page cache; else they are evicted from it."""

    needs: tuple[str, ...] = ()
    """Its tools, each a name on PATH and Debian's name of the package."""
    module: str = ""
    """A Python module that it needs, and how to install it."""

    def missing(self) -> str | None:
        """Return what to install, or None when everything is there."""
        name, _, how = self.module.partition(" ")
        if name and not python_with(name):
            return f"{name} is not there ({how})"
        return lacks(*self.needs)

    @abstractmethod
    def make(self, folder: Path) -> None:
        """Put the inputs into the empty `folder`: always the same."""

    @abstractmethod
    def command(self, folder: Path) -> list[str]:
        """Return the command; it names files by absolute paths below `folder`, its working folder too."""

    def environment(self) -> Mapping[str, str]:
        return {}

    @abstractmethod
    def wrong(self, folder: Path) -> str | None:
        """Return what is wrong with the outputs in `folder`, or None when they are right."""


programs: Registry[type[Program]] = Registry("program")


def which(name: str) -> str | None:
    """Return the path of `name` on PATH, but not in this Python's environment: packages bring tools too."""
    own = str(Path(sys.executable).parent)
    places = [p for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if p and p != own]
    return shutil.which(name, path=os.pathsep.join(places))


def lacks(*needed: str) -> str | None:
    """Return what to install of `needed`, each a program's name and Debian's name of its package."""
    for one in needed:
        name, _, package = one.partition(" ")
        if not which(name):
            return f"{name} is not on PATH (Debian: apt install {package or name})"
    return None


def path_of(name: str) -> str:
    """Return the path of a program that is there."""
    found = which(name)
    if not found:
        raise RunFailed(f"{name} is not on PATH")
    return found


@cache
def python_with(module: str) -> str | None:
    """Return a Python that can import `module`: this one, or that of the system."""
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
            if done.returncode == 0:
                return python
    return None


def script(name: str, *arguments: object, module: str) -> list[str]:
    """Return the command that runs ``scripts/<name>.py`` by a Python that has `module`."""
    return [str(python_with(module)), str(_SCRIPTS / f"{name}.py"), *map(str, arguments)]


def run(*command: object, inside: Path | None = None) -> str:
    """Run a tool that makes inputs or checks outputs (in folder `inside`); return what it printed.

    RunFailed when it fails.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=inside, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise RunFailed(f"{words[0]}: exit code {done.returncode}: {' '.join(said[-3:])}")
    return done.stdout.decode(errors="replace")


def text(length: int, seed: int) -> bytes:
    """Return `length` bytes that compress as prose does, to about a third."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randint(1, 5)).hex().encode() for _ in range(4000)]
    return b" ".join(chance.choices(words, k=length // 6 + 10))[:length]


def make_tree(folder: Path, count: int, size: int, seed: int = 1) -> None:
    """Fill `folder` with `count` files of `size` bytes on average, in ten folders."""
    chance = random.Random(seed)
    whole = text(size * 20, seed)
    for number in range(count):
        place = folder / f"part{number % 10}"
        place.mkdir(parents=True, exist_ok=True)
        length = chance.randint(size // 2, size + size // 2)
        start = chance.randrange(len(whole) - length)
        (place / f"file{number}.txt").write_bytes(whole[start : start + length])


def same_tree(first: Path, second: Path) -> str | None:
    """Return how the files of two trees differ (names, sizes, bytes), or None."""
    names = [
        sorted(os.path.relpath(p, root) for p in root.rglob("*") if p.is_file()) for root in (first, second)
    ]
    if names[0] != names[1]:
        return f"{len(names[1])} files in {second}, {len(names[0])} in {first}"
    for name in names[0]:
        if (first / name).read_bytes() != (second / name).read_bytes():
            return f"{second / name} differs from {first / name}"
    return None
