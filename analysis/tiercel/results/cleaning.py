"""Takes what is private out of the files that engines, layers and tracers left (tiercel.privacy).

Measured data stays: only texts are replaced, byte for byte the rest is what it was. Compressed texts (.gz)
are written anew where something was found; of torn ones, which a tracer leaves that was killed, what can be
read, and torn they stay. Files that are no texts are left alone.
"""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from tiercel.privacy import Private
from tiercel.results.torn import TRAILER, inflated

#: Bytes looked at in one go, and the longest line that is kept whole.
_BLOCK, _LINE = 4 << 20, 64 << 20
_ENCODING, _ERRORS = "utf-8", "surrogateescape"
_TORN = (OSError, EOFError, zlib.error)


def clean_folder(folder: Path, private: Private) -> None:
    """Clean every file in `folder` and below alike; each is replaced whole or not at all."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in paths:
        private = _decided(path, private)
    for path in paths:
        _clean(path, private)


def _decided(path: Path, private: Private) -> Private:
    packed = path.suffix == ".gz"
    try:
        return private.decide(_blocks(path, packed))
    except _TORN:
        return private.decide(_readable(path)) if packed else private


def _clean(path: Path, private: Private) -> None:
    packed = path.suffix == ".gz"
    try:
        found = any(private.replaced(text) != text for text in _blocks(path, packed))
    except _TORN:
        if packed:
            _clean_torn(path, private)
        return
    if not found:
        return
    draft = path.with_name(f".{path.name}.clean")
    with draft.open("wb") as out:
        for text in _blocks(path, packed):
            content = private.replaced(text).encode(_ENCODING, _ERRORS)
            # A member for each block, as tracers write them: readers take them in parallel.
            out.write(gzip.compress(content, compresslevel=6, mtime=0) if packed else content)
    shutil.copystat(path, draft)
    draft.replace(path)


def _clean_torn(path: Path, private: Private) -> None:
    """Clean what can be read of a torn archive. It stays torn: its reader is to say so."""
    texts = list(_readable(path))
    cleaned = [private.replaced(text) for text in texts]
    if cleaned == texts:
        return
    draft = path.with_name(f".{path.name}.clean")
    members = [gzip.compress(text.encode(_ENCODING, _ERRORS), compresslevel=6, mtime=0) for text in cleaned]
    members[-1] = members[-1][:-TRAILER]
    draft.write_bytes(b"".join(members))
    shutil.copystat(path, draft)
    draft.replace(path)


def _readable(path: Path) -> Iterator[str]:
    """Yield what can be read of a torn archive, in blocks that end with a line's end; nothing for no text."""
    left = b""
    with suppress(OSError):
        for block in inflated(path):
            if b"\0" in block:
                return
            whole, end, rest = (left + block).rpartition(b"\n")
            if end:
                yield (whole + end).decode(_ENCODING, _ERRORS)
            left = rest
        if left:
            yield left.decode(_ENCODING, _ERRORS)


def _blocks(path: Path, packed: bool) -> Iterator[str]:
    """Yield a text file in blocks that end with a line's end; nothing for a file that is no text."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        yield from _whole_lines(file)


def _whole_lines(file: gzip.GzipFile | BufferedReader) -> Iterator[str]:
    while block := file.read(_BLOCK):
        block += file.readline(_LINE)
        if b"\0" in block:
            return
        yield block.decode(_ENCODING, _ERRORS)
