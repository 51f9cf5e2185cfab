"""Takes what is private out of the files that engines, layers and tracers left (tiercel.privacy).

Measured data stays: only texts are replaced, byte for byte the rest is what it was. Compressed texts (.gz)
are written anew where something was found; files that are no texts are left alone.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from tiercel.privacy import Private

#: Bytes looked at in one go, and the longest line that is kept whole.
_BLOCK, _LINE = 4 << 20, 64 << 20
_ENCODING, _ERRORS = "utf-8", "surrogateescape"


def clean_folder(folder: Path, private: Private) -> None:
    """Clean every file in `folder` and below alike; each is replaced whole or not at all."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in paths:
        with suppress(OSError, EOFError):  # as below
            private = private.decide(_blocks(path, path.suffix == ".gz"))
    for path in paths:
        _clean(path, private)


def clean_file(path: Path, private: Private) -> bool:
    """Clean one file; return whether anything was found in it."""
    with suppress(OSError, EOFError):
        private = private.decide(_blocks(path, path.suffix == ".gz"))
    return _clean(path, private)


def _clean(path: Path, private: Private) -> bool:
    packed = path.suffix == ".gz"
    try:
        found = any(private.replaced(text) != text for text in _blocks(path, packed))
    except (OSError, EOFError):  # a torn archive of a tracer that was killed: its reader says so, too
        return False
    if not found:
        return False
    draft = path.with_name(f".{path.name}.clean")
    with draft.open("wb") as out:
        for text in _blocks(path, packed):
            content = private.replaced(text).encode(_ENCODING, _ERRORS)
            # A member for each block, as tracers write them: readers take them in parallel.
            out.write(gzip.compress(content, compresslevel=6, mtime=0) if packed else content)
    shutil.copystat(path, draft)
    draft.replace(path)
    return True


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
