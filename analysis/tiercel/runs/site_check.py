"""What of a site's folder does not fit the machine it is looked at from: ``tiercel site check``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tiercel.errors import UserError
from tiercel.launchers import resolve
from tiercel.runs.objects import check_storage
from tiercel.schedulers import scheduler_of
from tiercel.schedulers.base import account
from tiercel.site.model import Site, Stack
from tiercel.site.mounts import read_mounts
from tiercel.site.profile import check_profile


def problems(site: Site, root: Path, storages: bool = True) -> list[str]:
    """Return one sentence for each thing that would keep a study from running; empty for none.

    Without `storages` only for what would keep a job from being submitted: a job sees them better.
    """
    found: list[str] = []

    def attempt(check: Callable[[], str | None]) -> None:
        try:
            problem = check()
        except UserError as error:
            problem = str(error)
        if problem:
            found.append(problem)

    attempt(lambda: check_profile(site.site, root))
    launcher = resolve(site.launcher, site.launcher_options)
    scheduler, settings = scheduler_of(site), site.scheduler
    if scheduler is None or settings is None:
        attempt(lambda: (m := launcher.missing()) and f"launcher {launcher.name}: {m}")
    else:
        attempt(lambda: (m := scheduler.missing()) and f"scheduler {scheduler.name}: {m}")
        attempt(lambda: account(settings) and None)
        if not found:
            found += [job.words for job in scheduler.left_behind(site.site, root) if job.stuck]
    for name, storage in site.storages.items() if storages else ():
        if not site.node_local(storage):  # those are looked at in the job
            attempt(lambda name=name, storage=storage: _mounted(Stack(name, storage), scheduler is not None))  # type: ignore[misc]
    return found


def _mounted(stack: Stack, elsewhere: bool) -> str | None:
    if stack.storage.objects:
        check_storage(stack)
        return None
    if elsewhere and stack.storage.mount_path() not in {mount.point for mount in read_mounts()}:
        return f"storage {stack.name}: {stack.storage.mount_path()} is not mounted here"
    check_storage(stack)
    return None
