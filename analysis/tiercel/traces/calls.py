"""What a traced call does, by its name: one table for every reader.

Names are those of the GNU C library, MPI-IO and HDF5, with their variants (``open64``, ``__fxstat64``,
``pwrite64v2``, ``MPI_File_iwrite_at_all``, ``H5Dwrite_async``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tiercel.traces.schema import Kind

_READ = {
    "read",
    "pread",
    "readv",
    "preadv",
    "fread",
    "fgets",
    "fgetc",
    "getc",
    "fscanf",
    "getline",
    "getdelim",
}
_WRITE = {
    "write", "pwrite", "writev", "pwritev", "fwrite", "fputs", "fputc", "putc", "puts", "fprintf",
    "vfprintf", "printf", "vprintf", "sendfile", "copy_file_range", "splice",
}  # fmt: skip
_SYNC = {"fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range", "fflush", "aio_fsync"}
_METADATA = {
    "open", "openat", "creat", "close", "fopen", "fdopen", "freopen", "fclose", "stat", "lstat", "fstat",
    "statx", "fstatat", "newfstatat", "xstat", "lxstat", "fxstat", "fxstatat", "statfs", "statvfs", "fstatfs",
    "fstatvfs", "access", "faccessat", "euidaccess", "lseek", "llseek", "fseek", "fseeko", "ftell", "ftello",
    "rewind", "fsetpos", "fgetpos", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "remove", "rename",
    "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink", "readlinkat", "opendir",
    "fdopendir", "closedir", "readdir", "readdir_r", "rewinddir", "scandir", "dirfd", "getdents", "chdir",
    "fchdir", "getcwd", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "utime",
    "utimes", "utimensat", "futimens", "truncate", "ftruncate", "fallocate", "posix_fallocate",
    "posix_fadvise", "fadvise", "flock", "lockf", "fcntl", "dup", "dup2", "dup3", "mkfifo", "mknod",
    "mkstemp", "mkostemp", "mkdtemp", "tmpfile", "umask", "feof", "ferror", "fileno", "getxattr", "setxattr",
    "listxattr", "removexattr", "ioctl", "setvbuf",
}  # fmt: skip

_SUFFIX = re.compile(r"(?:64)?(?:v2)?(?:_unlocked)?$")


@lru_cache(maxsize=65536)
def kind_of(function: str, api: str) -> Kind:
    """Return what `function` of the layer `api` does; spans of the program (``app``) are ``other``."""
    if api in {"posix", "stdio"}:
        return _libc(function)
    if api == "mpiio":
        return _mpiio(function)
    if api == "hdf5":
        return _hdf5(function)
    return "other"


def api_of(function: str) -> str:
    """Return the layer of a call from its name alone, for tracers that do not name it."""
    if function.startswith("MPI_File_"):
        return "mpiio"
    if re.match(r"H5[A-Z]+[a-z]", function):
        return "hdf5"
    base = _base(function)
    if base.startswith("f") and base[1:] in {
        "open",
        "close",
        "read",
        "write",
        "seek",
        "seeko",
        "tell",
        "tello",
        "puts",
        "gets",
        "putc",
        "getc",
        "printf",
        "scanf",
        "flush",
    }:
        return "stdio"
    return "posix" if _libc(function) != "other" else "app"


def _base(function: str) -> str:
    name = function.lstrip("_").removeprefix("libc_").removeprefix("IO_")
    return _SUFFIX.sub("", name)


def _libc(function: str) -> Kind:
    base = _base(function)
    if base in _READ:
        return "read"
    if base in _WRITE:
        return "write"
    if base in _SYNC:
        return "sync"
    return "metadata" if base in _METADATA else "other"


def _mpiio(function: str) -> Kind:
    name = function.removeprefix("P").removeprefix("MPI_File_").lower()
    if name in {"sync"}:
        return "sync"
    if re.match(r"i?read", name):
        return "read"
    if re.match(r"i?write", name):
        return "write"
    return "metadata" if function.removeprefix("P").startswith("MPI_File_") else "other"


def _hdf5(function: str) -> Kind:
    if re.match(r"H5[DA]read", function):
        return "read"
    if re.match(r"H5[DA]write", function):
        return "write"
    if re.match(r"H5[FDGO]flush", function):
        return "sync"
    return "metadata" if re.match(r"H5[A-Z]+[a-z]", function) else "other"
