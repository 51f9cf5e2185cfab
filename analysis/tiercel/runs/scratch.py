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
from tiercel.runs.quota import quota_of
from tiercel.site.filesystem import FileSystem, file_system_of
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
    """A run's own folder, as a context manager; `data` is the empty folder for the engine.

    It lies on the file system that the site names, until the end: RunFailed where that is unmounted, replaced
    or mounted read-only meanwhile. `recorded`: what it was when the evaluation began.
    """

    def __init__(self, stack: Stack, run_id: str, recorded: FileSystem | None = None) -> None:
        self._stack, self._recorded = stack, recorded
        self._folder = stack.storage.scratch_path() / f"{RUN_PREFIX}{run_id}"
        self.data = self._folder / "data"
        self.file_system: FileSystem | None = None

    def __enter__(self) -> Scratch:
        try:
            self.file_system = check_scratch(self._stack, self._recorded)
        except UserError as error:
            raise RunFailed(str(error)) from None
        try:
            if self._folder.exists():  # an attempt that was killed left it
                remove_run_folder(self._folder)
            _make(self._folder, self.file_system)
            (self._folder / MARKER).touch()
            self.data.mkdir()
        except OSError as error:
            raise RunFailed(f"{self._folder}: {error.strerror}") from None
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *exc: object) -> None:
        assert self.file_system is not None
        try:
            moved = self.file_system.moved_to(check_scratch(self._stack, self._recorded))
            problem = f"storage {self._stack.name}: {moved}" if moved else ""
        except UserError as error:
            problem = str(error)
        try:
            if self._folder.exists():
                remove_run_folder(self._folder)
        except UserError:
            if not problem:
                raise
        if problem and (kind is None or issubclass(kind, RunFailed)):
            raise RunFailed(f"the file system changed during the run: {problem}")


def _make(folder: Path, file_system: FileSystem) -> None:
    """Make a folder and those above it that are missing, on this file system and on no other.

    Each is made in the one above it, which stays open: a mount that vanishes in between does not make it a
    folder of the parent file system. OSError as making them; RunFailed where what exists is elsewhere.
    """
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    above = os.open(missing[-1].parent if missing else folder, flags)
    try:
        if os.fstat(above).st_dev != file_system.device:
            raise RunFailed(f"{folder}: is no longer on {file_system.point}")
        for each in reversed(missing):
            os.mkdir(each.name, dir_fd=above)
            outer, above = above, os.open(each.name, flags | os.O_NOFOLLOW, dir_fd=above)
            os.close(outer)
    finally:
        os.close(above)


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


def check_scratch(stack: Stack, recorded: FileSystem | None = None) -> FileSystem:
    """Return the file system of the scratch folder; UserError unless it is the one that the site names.

    Without this check an absent mount means measuring the root disk under its name. It must be writable.
    If one was `recorded` when the evaluation began, it must be that one.
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
    try:
        found_now = file_system_of(existing, mount)
    except OSError as error:
        raise UserError(f"{where}: {existing}: {error.strerror}") from None
    if recorded is not None and (differs := found_now.differs_from(recorded)):
        raise UserError(
            f"storage {stack.name}: {wanted} is not the file system that it was when the evaluation began: "
            f"{differs}. Mount that one again, or start another evaluation."
        )
    return found_now


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
    _quota, left = quota_of(existing)
    if left is not None and footprint > left:
        return (
            f"storage {stack.name}: {format_size(left)} of your disk quota is left and a run needs "
            f"{format_size(footprint)}"
        )
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
