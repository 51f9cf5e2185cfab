"""Loaders: numpy reads many arrays in random order, once, and again and again."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.advise.programs.base import Program, programs, script


class _Loader(Program):
    _count: int
    _length: int
    _epochs: int

    module = "numpy Debian: apt install python3-numpy"

    def make(self, folder: Path) -> None:
        (folder / "samples").mkdir()
        for number in range(self._count):
            head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({self._length},), }}"
            padded = head + " " * (117 - len(head)) + "\n"
            content = random.Random(number).randbytes(2 * self._length)
            # The header of NPY version 1.0, so that numpy itself is not needed to make them.
            magic = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little")
            (folder / f"samples/{number:05}.npy").write_bytes(magic + padded.encode() + content)

    def command(self, folder: Path) -> list[str]:
        return script("loader", folder / "samples", folder / "sum", self._epochs, module="numpy")

    def wrong(self, folder: Path) -> str | None:
        found, expected = (folder / "sum").read_text(), f"{self._count * self._epochs} {self._length}\n"
        return None if found == expected else f"it counted {found!r}, not {expected!r}"


@programs.register("numpy-loader")
class Cold(_Loader):
    title = "numpy, 1,000 samples of 100 KB in random order, cold"
    _count, _length, _epochs = 1000, 50_000, 1


@programs.register("numpy-warm")
class Warm(_Loader):
    title = "numpy, 400 samples of 100 KB, 20 epochs, from the page cache"
    warm = True
    _count, _length, _epochs = 400, 50_000, 20
