"""The folder of one run on the storage under test: made by us, marked as ours, removed by us.

tiercel writes nowhere else on a storage and removes nothing that it did not make.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

from tiercel.errors import RunFailed, UserError
from tiercel.site.machine import free_memory
from tiercel.site.model import Stack
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.units import format_share, format_size

#: How often, and how long apart, a folder is tried in which a dying process still writes.
_TRIES, _PAUSE_S = 10, 0.1
#: A run's folder in the scratch folder: this, and the run's name.
RUN_PREFIX = "tiercel-run-"
MARKER = ".tiercel-run"


class Scratch:
    """A run's own folder, as a context manager; `data` is the empty folder for the engine."""

    def __init__(self, stack: Stack, run_id: str) -> None:
        self._root = stack.storage.scratch_path()
        self._folder = self._root / f"{RUN_PREFIX}{run_id}"
        self.data = self._folder / "data"

    def __enter__(self) -> Scratch:
        try:
            if self._folder.exists():  # an attempt that was killed left it
                remove_run_folder(self._folder)
            self._folder.mkdir(parents=True)
            (self._folder / MARKER).touch()
            self.data.mkdir()
        except OSError as error:
            raise RunFailed(f"{self._folder}: {error.strerror}") from None
        return self

    def __exit__(self, *exc: object) -> None:
        remove_run_folder(self._folder)


def remove_run_folder(folder: Path) -> None:
    """Remove a run's folder; UserError for one without our marker."""
    if not folder.name.startswith(RUN_PREFIX) or folder.is_symlink():
        raise UserError(f"{folder}: is not the folder of a run and is not removed")
    if not (folder / MARKER).exists():
        try:  # killed between mkdir and the marker: then it is empty
            folder.rmdir()
        except OSError:
            raise UserError(
                f"{folder}: has no {MARKER} marker and is not removed: remove it yourself"
            ) from None
        return
    for _ in range(_TRIES):
        try:
            shutil.rmtree(folder / "data", ignore_errors=False)
        except FileNotFoundError:
            pass
        except OSError as error:
            # NFS keeps .nfsXXXX names while a dying process still holds a file open.
            if error.errno not in (errno.ENOTEMPTY, errno.EBUSY):
                raise UserError(f"{folder}: cannot be removed: {error.strerror}") from None
            time.sleep(_PAUSE_S)
            continue
        (folder / MARKER).unlink(missing_ok=True)
        try:
            folder.rmdir()
        except OSError:  # a dying process made something anew: it stays ours, and is tried again
            (folder / MARKER).touch()
            time.sleep(_PAUSE_S)
            continue
        return
    # Left with its marker: whoever comes next removes it.


def leftovers(stack: Stack) -> list[Path]:
    """Return run folders that killed runs left behind in a stack's scratch folder."""
    root = stack.storage.scratch_path()
    if not root.is_dir():
        return []
    return sorted(p for p in root.glob(f"{RUN_PREFIX}*") if p.is_dir() and not p.is_symlink())


def check_scratch(stack: Stack) -> None:
    """Raise UserError unless the scratch folder lies on the mount that the site names and is writable.

    Without this check a mount that is absent today means measuring the root disk under its name.
    """
    storage, root = stack.storage, stack.storage.scratch_path()
    where = f"storage {stack.name}: scratch {root}"
    existing = next(p for p in (root, *root.parents) if p.exists())
    if not existing.is_dir():
        raise UserError(f"{where}: {existing} is not a folder")
    mount = mount_of(existing, read_mounts())
    wanted = storage.mount_path()
    if mount is None or mount.point != wanted:
        found = mount.point if mount else "nothing"
        raise UserError(f"{where}: lies on {found}, not on {wanted}: is {wanted} mounted?")
    if mount.read_only:
        raise UserError(f"{where}: {storage.mount} is mounted read-only")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{where}: no permission to write in {existing}")


def space_problem(stack: Stack, footprint: int) -> str | None:
    """Return why `footprint` more bytes must not be written to a stack now, or None."""
    if stack.storage.objects:
        return None  # no bucket says how much room it has
    storage, root = stack.storage, stack.storage.scratch_path()
    existing = next(p for p in (root, *root.parents) if p.exists())
    space = os.statvfs(existing)
    free = space.f_bavail * space.f_frsize
    capacity = space.f_blocks * space.f_frsize
    used = capacity - space.f_bfree * space.f_frsize
    if footprint > free:
        return f"storage {stack.name} has {format_size(free)} free and a run needs {format_size(footprint)}"
    if used + footprint > storage.fill_limit * capacity:
        return (
            f"storage {stack.name}: {format_size(footprint)} more would fill {storage.mount} beyond "
            f"{format_share(storage.fill_limit)} (fill_limit) of {format_size(capacity)}"
        )
    if storage.medium == "memory" and footprint > (memory := free_memory() or 0) // 2:
        return (
            f"storage {stack.name} is memory: {format_size(footprint)} is more than half of the "
            f"{format_size(memory)} available"
        )
    return None
