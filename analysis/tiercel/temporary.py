"""Temporary folders: what a killed tiercel leaves behind, the next one that makes such a folder removes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiercel.errors import UserError
from tiercel.locked import NO_LOCKS


@contextmanager
def temporary_folder(prefix: str, parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent`, removed on leaving; those of `prefix` whose makers are gone go first.

    Its maker holds a lock on it: nobody else's is touched, nor one of somebody at work. UserError where none
    can be made.
    """
    _remove_abandoned(prefix, parent)
    folder, held = _make(prefix, parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _make(prefix: str, parent: Path) -> tuple[Path, int]:
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        except OSError as error:
            raise UserError(f"{parent}: no folder can be made: {error.strerror}") from None
        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return folder, held  # a file system without locks: there nobody removes what is left behind
        if folder.exists():  # else another one took it for abandoned before it was locked
            return folder, held
        os.close(held)


def _remove_abandoned(prefix: str, parent: Path) -> None:
    for folder in parent.glob(f"{prefix}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:  # gone meanwhile, or nothing of ours
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # somebody is at work there, or there are no locks
            pass
        finally:
            os.close(held)
