"""One measuring process on a site at a time, also when the one before was killed.

The lock is a flock(2) on ``results/<site>/.lock``. The engines inherit its descriptor: a harness that
is killed gives the lock back only when the last process it started is gone, so that nobody measures
beside orphans.
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

from tiercel.errors import UserError

#: What flock(2) says on a file system that has no locks.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class SiteLock:
    """Context manager; `descriptor` is to be passed on to engines."""

    name = ".lock"
    held = "another tiercel still measures on this site"

    def __init__(self, results: Path, patience: float = 120.0) -> None:
        self._path = results / self.name
        self._patience = patience
        self.descriptor = -1

    def __enter__(self) -> SiteLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + self._patience
        told = False
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self.descriptor)
                    raise UserError(f"{self._path}: {self.held}") from None
                if not told:
                    print("tiercel: waiting for another tiercel that measures on this site", file=sys.stderr)
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


class EvaluationLock(SiteLock):
    """Held by a whole `tiercel evaluate`: two on one site would break each other's workflow and tables."""

    name = ".evaluate.lock"
    held = (
        "another `tiercel evaluate` runs on this site: wait until it has ended (this one goes on from there)"
    )

    def __init__(self, results: Path) -> None:
        super().__init__(results, patience=0.0)
