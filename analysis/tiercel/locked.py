"""A lock on a file that one process at a time holds, also when the one before was killed: flock(2).

Programs that its holder starts may inherit the descriptor: then the lock is free only when the last of them
is gone.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tiercel.errors import UserError

#: What flock(2) says on a file system that has no locks.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class FileLock:
    """Context manager; `descriptor` is the locked file's.

    Where another process has it for longer than `patience` (seconds): UserError that says `held`.
    `waiting` is printed once where there is patience.
    """

    def __init__(self, path: Path, held: str, patience: float = 0.0, waiting: str = "") -> None:
        self._path = path
        self._held = held
        self._patience = patience
        self._waiting = waiting
        self.descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Whom the umask lets write: a group that shares a project shares its locks.
            self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError as error:
            raise UserError(
                f"{error.filename}: cannot be written: {error.strerror}. This project is another user's: "
                "make your own (`tiercel init FOLDER`) and start tiercel there"
            ) from None
        deadline = time.monotonic() + self._patience
        told = False
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self.descriptor)
                    raise UserError(f"{self._path}: {self._held}") from None
                if not told and self._waiting:
                    print(f"tiercel: {self._waiting}", file=sys.stderr)
                    told = True
                time.sleep(0.2)
            except OSError as error:
                if error.errno not in NO_LOCKS or self._path.parent == Path(tempfile.gettempdir()):
                    raise
                # Lustre without -o flock: a lock for this node, and jobs are kept apart by the scheduler.
                os.close(self.descriptor)
                name = hashlib.sha256(str(self._path.resolve()).encode()).hexdigest()[:16]
                own = Path(tempfile.gettempdir()) / f"tiercel-{os.getuid()}-{name}.lock"
                self.descriptor = os.open(own, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                self._path = own
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        os.close(self.descriptor)
