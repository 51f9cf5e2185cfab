"""One Snakemake at a time submits jobs for a site, and it begins with the jobs of one that was killed."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError
from tiercel.locked import NO_LOCKS
from tiercel.schedulers import scheduler_of
from tiercel.site.model import Site

#: Kept open, and so locked, until this process ends.
_held: list[int] = []


@dataclass(frozen=True)
class TakenOver:
    """`lock` is the descriptor that says who submits jobs, while somebody has it open; `jobs` how many
    there were of a Snakemake that was killed."""

    lock: int
    jobs: int


def take_over(site: Site, root: Path, results: Path) -> TakenOver | None:
    """Become the one that submits jobs for this site; nothing to do for a site without a scheduler.

    Jobs that a killed Snakemake left in the queue: those that wait are cancelled, for those that run this
    waits, since what they measure counts. Submitted again while they run, they would measure each other.
    UserError when another Snakemake is at work.
    """
    name = site.site
    scheduler = scheduler_of(site)
    if scheduler is None:
        return None
    held = _lock(results / ".controller", name)
    for variable, value in scheduler.environment().items():
        os.environ.setdefault(variable, value)
    jobs = scheduler.left_behind(name, root)
    waiting = [job for job in jobs if not job.running]
    if waiting:
        print(
            f"tiercel: cancelled {len(waiting)} waiting jobs of a Snakemake that was killed", file=sys.stderr
        )
        scheduler.cancel(waiting, root)
    running = [job for job in jobs if job.running]
    if running:
        print(
            f"tiercel: waiting for {len(running)} jobs of a Snakemake that was killed; to end them instead: "
            + scheduler.how_to_cancel(running),
            file=sys.stderr,
        )
    while any(job.running for job in scheduler.left_behind(name, root)):
        time.sleep(scheduler.poll_seconds)
    return TakenOver(held, len(jobs))


def _lock(path: Path, site: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise UserError(f"site {site}: another snakemake already submits jobs for it ({who})") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise UserError(f"{path}: cannot be locked: {error.strerror}") from None
        # A file system without locks: then nobody tells us, and jobs are still kept apart by resources.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
    _held.append(descriptor)
    return descriptor
