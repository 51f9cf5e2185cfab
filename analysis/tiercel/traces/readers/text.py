"""Lines from plain and gzipped files, however broken: what can be had, and a count of what cannot."""

from __future__ import annotations

import contextlib
import importlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

quick: Any = None  # it has no wheel for every machine; zlib does the same at a third of the speed
with contextlib.suppress(ImportError):
    quick = importlib.import_module("isal.isal_zlib")

_CHUNK = 1 << 20
#: No tracer writes longer lines; files of something else (zeros) do, and would fill the memory.
LONGEST_LINE = 16 << 20
#: Text that is inflated at once: zeros shrink to a thousandth.
_PIECE = 4 * _CHUNK
#: What is said of a file that ends in the middle, as one does that is still being written.
CUT_GZIP, CUT_LINE = "the gzip stream ends in the middle", "the last line has no end"
UNFINISHED = (CUT_GZIP, CUT_LINE, "no events in it")
_GZIP = b"\x1f\x8b"


class Lines:
    """Blocks of whole lines from one file. After the last block, `warnings` says what was lost.

    Lines beyond LONGEST_LINE are left out; `overlong` counts them.
    """

    def __init__(self, path: Path, block: int = 4 * _CHUNK) -> None:
        self.path = path
        self._block = block
        self.warnings: list[str] = []
        self.overlong = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield blocks that end with a newline; an unfinished last line comes as a block of its own."""
        held: list[bytes] = []
        size = position = skipped = 0
        for piece in self._pieces():
            position += len(piece)
            start = 0
            if skipped:  # in an overlong line
                start = piece.find(b"\n") + 1
                skipped += start or len(piece)
                if not start:
                    continue
                self._left_out(position - len(piece) + start, skipped)
                skipped = 0
            size += len(piece) - start
            held.append(piece[start:] if start else piece)
            if size < self._block:
                continue
            if b"\n" not in held[-1]:  # a long line, which whole ones may precede
                held = [b"".join(held)]
            *before, last = held
            if cut := last.rfind(b"\n") + 1:
                yield b"".join([*before, memoryview(last)[:cut]])
                held, size = [last[cut:]], len(last) - cut
            if size > LONGEST_LINE:
                held, size, skipped = [], 0, size
        if skipped:
            self._left_out(position, skipped)
        block = b"".join(held)
        if block:
            yield block

    def _left_out(self, end: int, length: int) -> None:
        self.overlong += 1
        self.warnings.append(
            f"{self.path.name}: {length} bytes from byte {end - length} of its text on are left out: one "
            f"line of more than {LONGEST_LINE >> 20} MiB"
        )

    def _pieces(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            head = file.read(_CHUNK)
            if not head.startswith(_GZIP):
                while head:
                    yield head
                    head = file.read(_CHUNK)
                return
        yield from self._inflate()

    def _inflate(self) -> Iterator[bytes]:
        """Inflate with the quick library; where that stumbles, go on with the careful one."""
        done = 0
        if quick is not None:
            try:
                for piece in self._members(quick.decompressobj(31), quick):
                    done += len(piece)
                    yield piece
                return
            except quick.error:
                self.warnings.clear()
        for piece in self._members(zlib.decompressobj(31), zlib):
            if done < len(piece):
                yield piece[done:]
            done = max(done - len(piece), 0)

    def _members(self, inflater: Any, library: Any) -> Iterator[bytes]:
        """Inflate one gzip member after the other (31: zlib's window bits for gzip)."""
        read = 0
        with self.path.open("rb") as file:
            data = file.read(_CHUNK)
            while data:
                before = inflater.copy() if library is zlib else None
                try:
                    piece = inflater.decompress(data, _PIECE)
                    while inflater.unconsumed_tail:
                        yield piece
                        before = inflater.copy() if library is zlib else None
                        data, read = (
                            inflater.unconsumed_tail,
                            read + len(data) - len(inflater.unconsumed_tail),
                        )
                        piece = inflater.decompress(data, _PIECE)
                except library.error as error:
                    if before is None:
                        raise
                    yield from _salvaged(before, data)
                    rest = self.path.stat().st_size - read
                    what = str(error).split(":")[-1].strip()
                    self.warnings.append(
                        f"{self.path.name}: about {rest} compressed bytes lost: damaged gzip ({what})"
                    )
                    return
                read += len(data) - len(inflater.unused_data)
                if piece:
                    yield piece
                if inflater.eof:
                    # Some writers pad with zeros.
                    data = inflater.unused_data.lstrip(b"\0") or file.read(_CHUNK).lstrip(b"\0")
                    if data:
                        inflater = library.decompressobj(31)
                else:
                    data = file.read(_CHUNK)
        if not inflater.eof:
            self.warnings.append(f"{self.path.name}: {CUT_GZIP}: what came after byte {read} is lost")


def _salvaged(inflater: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Inflate what comes before the damage, in ever smaller steps."""
    for step in (4096, 64, 1):
        while data:
            before = inflater.copy()
            try:
                piece = inflater.decompress(data[:step])
            except zlib.error:
                inflater, data = before, data[:step]
                break
            data = data[step:]
            if piece:
                yield piece
            if inflater.eof:
                return


def first_bytes(path: Path, size: int = 1 << 16) -> bytes:
    """Return up to `size` bytes from the (inflated) start of a file; empty when there is nothing to read."""
    try:
        with path.open("rb") as file:
            head = file.read(size)
        return zlib.decompressobj(31).decompress(head, size) if head.startswith(_GZIP) else head
    except (OSError, zlib.error):
        return b""
