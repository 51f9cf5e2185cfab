"""One measuring process on a site at a time, also when the one before was killed.

The lock is on ``results/<site>/.lock``. The engines inherit its descriptor: a harness that
is killed gives the lock back only when the last process it started is gone, so that nobody measures
beside orphans.
"""

from __future__ import annotations

from pathlib import Path

from tiercel.locked import FileLock


class SiteLock(FileLock):
    """Context manager; `descriptor` is to be passed on to engines."""

    name = ".lock"
    held = "another tiercel still measures on this site"

    def __init__(self, results: Path, patience: float = 120.0) -> None:
        waiting = "waiting for another tiercel that measures on this site"
        super().__init__(results / self.name, self.held, patience, waiting)


class EvaluationLock(SiteLock):
    """Held by a whole `tiercel evaluate`: two on one site would break each other's workflow and tables."""

    name = ".evaluate.lock"
    held = (
        "another `tiercel evaluate` runs on this site: wait until it has ended (this one goes on from there)"
    )

    def __init__(self, results: Path) -> None:
        super().__init__(results, patience=0.0)
