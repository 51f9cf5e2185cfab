"""What an application is: a real program, in variants with different I/O, that runs in a folder.

To add one, write a class under ``@applications.register("name")`` in a file of this folder, or name its
module in a subject (`tiercel.subjects`); `own` is a single command without one.
"""

from __future__ import annotations

import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tiercel.programs import program
from tiercel.registry import Registry
from tiercel.subjects import fill


@dataclass(frozen=True)
class Variant:
    """One way to run an application; `options` are its own."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    parallel: bool = False
    """A process on every core, two at least, started by the site's launcher; else one."""


class Application(ABC):
    """A real program. `tracer`: strace for programs whose I/O does not pass through the C library's
    symbols."""

    name: str
    tracer: Literal["dftracer", "strace"] = "strace"
    variants: tuple[Variant, ...]
    apart: bool = True
    """Whether it runs in a folder of the results, where what it leaves beside its files does no harm; else in
    the user's current one."""

    def missing(self) -> str | None:
        """Return what to install, or None when everything is there."""
        return None

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:  # noqa: B027 -- most need no input
        """Put the program's input into `folder` on the storage under test (not traced, then evicted)."""

    @abstractmethod
    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        """Return the command to run; all its files lie under `folder`."""

    def environment(self) -> Mapping[str, str]:
        return {}


applications: Registry[type[Application]] = Registry("application", partial(fill, "applications", __name__))


def python(script: str, *arguments: object) -> list[str]:
    """Return the command that runs ``programs/<script>.py`` by this Python; the scripts do not import
    tiercel."""
    return [sys.executable, str(Path(__file__).parent / "programs" / f"{script}.py"), *map(str, arguments)]


def lacks(name: str, how: str) -> str | None:
    return None if program(name) else f"{name} is not installed ({how})"


def make_files(folder: Path, count: int, size: int, seed: int = 1) -> None:
    """Fill `folder` with `count` files of `size` bytes on average, in ten folders, compressible like text."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randint(2, 9)).hex() for _ in range(500)]
    for number in range(count):
        place = folder / f"part{number % 10}"
        place.mkdir(parents=True, exist_ok=True)
        length = chance.randint(size // 2, size + size // 2)
        text = " ".join(chance.choices(words, k=length // 10 + 1))
        (place / f"file{number}.txt").write_text(text[:length])
