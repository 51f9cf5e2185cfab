"""What calls are in a recipe (native/replay): a letter for each, and what its flags say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiercel.placement.recipe import DIRECT, NO_CREATE, READ_ONLY, SYNCED, TRUNCATES

#: Calls that are replayed beside reads and writes; others (seek, mmap...) are counted and left out.
CALLS: Mapping[str, str] = {
    **dict.fromkeys(("open", "open64", "openat", "openat64", "openat2", "creat", "creat64", "fopen",
    "fopen64", "opendir"), "O"),
    **dict.fromkeys(("close", "fclose", "closedir"), "C"),
    **dict.fromkeys(("fsync", "msync", "sync_file_range"), "S"),
    "fdatasync": "D",
    "fflush": "L",
    **dict.fromkeys(
        ("stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat", "fstatat64", "newfstatat",
         "statx", "access", "faccessat", "faccessat2", "xstat", "xstat64", "lxstat", "lxstat64", "fxstat",
         "fxstat64", "readlink", "readlinkat", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
         "llistxattr", "flistxattr"), "T"),
    **dict.fromkeys(("unlink", "unlinkat", "remove"), "U"),
    "rmdir": "X",
    **dict.fromkeys(("rename", "renameat", "renameat2"), "N"),
    **dict.fromkeys(("link", "linkat"), "Y"),
    **dict.fromkeys(("mkdir", "mkdirat"), "M"),
    **dict.fromkeys(("getdents", "getdents64", "readdir", "readdir64", "scandir"), "G"),
    **dict.fromkeys(
        ("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
         "utimensat", "futimens", "futimesat", "setxattr", "lsetxattr", "fsetxattr"), "A"),
    **dict.fromkeys(("truncate", "truncate64", "ftruncate", "ftruncate64"), "K"),
    **dict.fromkeys(("fcntl", "fcntl64", "flock"), "E"),
    "fallocate": "P",
}  # fmt: skip
#: Calls on a file by its descriptor alone; of others (newfstatat, statx) an empty name says so.
_BY_DESCRIPTOR = frozenset((
    "fstat", "fstat64", "fxstat", "fxstat64", "fgetxattr", "flistxattr", "fchmod", "fchown", "futimens",
    "fsetxattr", "ftruncate", "ftruncate64",
))  # fmt: skip
#: fallocate, by its mode; what takes bytes out of a file is left out.
_ALLOCATES = {"0": "P", "FALLOC_FL_KEEP_SIZE": "Q"}
#: fcntl and flock, by what they do to a lock; what they do beside that is left out.
_LOCKS = {"F_RDLCK": "H", "LOCK_SH": "H", "F_WRLCK": "E", "LOCK_EX": "E", "F_UNLCK": "V", "LOCK_UN": "V"}


def lock_letter(flags: Any) -> str | None:
    """Return what fcntl or flock did, by its flags in a trace; None where it did not lock."""
    if not isinstance(flags, str):
        return None
    return next((_LOCKS[word] for word in flags.split("|") if word in _LOCKS), None)


def allocation_letter(flags: Any) -> str | None:
    """Return what fallocate did, by its flags in a trace (mode|bytes)."""
    return _ALLOCATES.get(flags.rpartition("|")[0]) if isinstance(flags, str) else None


def creates(flags: str) -> bool:
    return "O_CREAT" in flags or "O_TRUNC" in flags


def how(flags: str) -> int:
    words = set(flags.split("|"))
    how = 0 if words & {"O_WRONLY", "O_RDWR"} else READ_ONLY
    how |= TRUNCATES if "O_TRUNC" in words else 0
    how |= 0 if "O_CREAT" in words else NO_CREATE
    how |= SYNCED if words & {"O_SYNC", "O_DSYNC"} else 0
    return how | (DIRECT if "O_DIRECT" in words else 0)


def allocated(flags: str | None) -> int:
    """Return the bytes of a fallocate."""
    return int((flags or "0").rpartition("|")[2])


def held(function: str, flags: str | None) -> bool:
    """Say whether a call was on an open file, not on a name."""
    return function.lstrip("_") in _BY_DESCRIPTOR or (flags is not None and "AT_EMPTY_PATH" in flags)
