"""Ends the checklist's jobs when it is killed: ``python -m tiercel.checklist.guard SITE ROOT``.

A process of its own session that waits for its standard input to end. Told ``done`` before, it has nothing to
do; else whoever started it was killed, and with it the Snakemake that would have cancelled its jobs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiercel.errors import UserError
from tiercel.schedulers import Scheduler, scheduler_of
from tiercel.site import load_site

_DONE = b"done"
#: How often, and how long apart, it looks without finding a job: a submission may be under way.
_LOOKS, _PAUSE_S = 4, 1.5


def end_jobs(scheduler: Scheduler, site: str, root: Path, looks: int = 1) -> int:
    """Cancel the jobs of `site` submitted from `root` until none is seen in so many looks; return how many.

    A scheduler that does not answer is asked again each time.
    """
    ended: set[str] = set()
    quiet = 0
    for _ in range(20 * looks):
        try:
            jobs = scheduler.left_behind(site, root)
        except UserError:
            jobs = []
        quiet = 0 if jobs else quiet + 1
        if quiet >= looks:
            break
        new = [job for job in jobs if job.id not in ended]
        if new:
            scheduler.cancel(new, root)
            ended |= {job.id for job in new}
        time.sleep(_PAUSE_S)
    return len(ended)


@contextmanager
def guarded(site: str, root: Path, lock: int) -> Iterator[None]:
    """Have a guard for as long as the context lasts; it keeps `lock` until the jobs are gone."""
    with subprocess.Popen(
        [sys.executable, "-m", "tiercel.checklist.guard", site, str(root)],
        stdin=subprocess.PIPE, cwd=root, start_new_session=True, pass_fds=(lock,),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                process.stdin.write(_DONE)
                process.stdin.flush()


def main(arguments: list[str]) -> int:
    """Wait, and cancel what is left."""
    site, root = arguments[0], Path(arguments[1])
    scheduler = scheduler_of(load_site(site, root))
    if sys.stdin.buffer.read() != _DONE and scheduler is not None:
        end_jobs(scheduler, site, root, _LOOKS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
