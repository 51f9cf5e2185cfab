"""Compression: fast, with much to read, and thorough, with nothing but computation."""

from __future__ import annotations

import hashlib
from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run, text


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@programs.register("zstd")
class Zstd(Program):
    title = "zstd -1, a file of 240 MB"
    needs = ("zstd",)

    def make(self, folder: Path) -> None:
        piece = text(6_000_000, 3)
        with (folder / "data").open("wb") as data:
            for number in range(40):
                data.write(piece[number:] + piece[:number])

    def command(self, folder: Path) -> list[str]:
        return [path_of("zstd"), "-1", "-q", "-f", "--single-thread", str(folder / "data"),
                "-o", str(folder / "data.zst")]  # fmt: skip

    def wrong(self, folder: Path) -> str | None:
        run(path_of("zstd"), "-q", "-t", folder / "data.zst")
        listed = run(path_of("zstd"), "-lv", folder / "data.zst")
        return None if "(240000000 B)" in listed else "the archive is not of 240,000,000 bytes"


@programs.register("xz")
class Xz(Program):
    title = "xz -9, a file of 4 MB: computes only"
    needs = ("xz xz-utils",)

    def make(self, folder: Path) -> None:
        (folder / "data").write_bytes(text(4_000_000, 4))

    def command(self, folder: Path) -> list[str]:
        return [path_of("xz"), "-9", "-k", "-f", "-T1", str(folder / "data")]

    def wrong(self, folder: Path) -> str | None:
        import lzma  # noqa: PLC0415

        back = lzma.decompress((folder / "data.xz").read_bytes())
        same = _digest(back) == _digest((folder / "data").read_bytes())
        return None if same else "what it packed is not what it was given"
