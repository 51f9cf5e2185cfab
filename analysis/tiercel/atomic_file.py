"""Write a file completely or not at all, also when two processes write it at the same time."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: A draft of this age belongs to a writer that was killed, seconds.
_FORGOTTEN_S = 86400.0


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Yield the path of a draft to write; when the block ends well, the draft becomes the content of `path`.

    A regular file is replaced by a rename, and a link keeps pointing to it. Anything else (a device, a pipe)
    stays what it is: the draft is copied through it. OSError names `path`, not the draft.
    """
    try:
        replaceable = stat.S_ISREG(path.stat().st_mode) or path.is_dir()
    except OSError:
        replaceable = True
    try:
        if replaceable:
            with _beside(Path(os.path.realpath(path))) as draft:
                yield draft
        else:
            with tempfile.TemporaryDirectory(prefix="tiercel-draft-") as folder:
                yield (draft := Path(folder) / path.name)
                with draft.open("rb") as content, path.open("wb") as through:
                    shutil.copyfileobj(content, through)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(draft)):
            error.filename = str(path)
        raise


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a draft in the folder of `path`; it takes the place of `path`, or is removed."""
    for left in path.parent.glob(f".{path.name}.*.partial"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _FORGOTTEN_S:
                left.unlink()
    # No two writers share a draft, on whatever nodes they are; a leading dot keeps it out of globs.
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str, errors: str = "strict") -> Path:
    """Write text (UTF-8) completely or not at all; return `path`."""
    with drafted(path) as draft:
        draft.write_text(text, encoding="utf-8", errors=errors)
    return path


def read_text(path: Path) -> str:
    """Return the text (UTF-8) of a file that a user names.

    OSError also for a pipe or a device: who opens a pipe that nobody writes to waits for ever, and what is
    read from one is not there for the next process of a study.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):  # of a folder reading it tells
        raise OSError(errno.EINVAL, "neither a file nor a folder", str(path))
    return path.read_text(encoding="utf-8")
