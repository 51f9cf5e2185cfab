"""Runs a program under strace: every system call on files, of every process, whatever made it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

#: Calls that name, open, move or change files, and those by which processes and descriptors are followed.
#: ``?``: not every architecture has it.
_CALLS = """
    ?open openat ?openat2 ?creat close read pread64 readv preadv ?preadv2 write pwrite64 writev pwritev
    ?pwritev2 lseek fsync fdatasync msync sync_file_range syncfs ?stat ?lstat fstat ?newfstatat ?statx
    ?access faccessat ?faccessat2 ?readlink readlinkat ?getdents getdents64 ?rename renameat ?renameat2
    ?link linkat ?symlink symlinkat ?unlink unlinkat ?mkdir mkdirat ?rmdir ?chmod fchmod fchmodat ?chown
    fchown ?lchown fchownat ?utime ?utimes utimensat ?futimesat truncate ftruncate fallocate dup ?dup2
    dup3 fcntl flock futex mmap ?sendfile copy_file_range splice ?fork ?vfork clone ?clone3 ?wait4
    ?waitpid waitid chdir fchdir
    memfd_create socket accept4 ?io_uring_enter ?io_submit setxattr ?lsetxattr fsetxattr getxattr
    ?lgetxattr fgetxattr listxattr ?llistxattr flistxattr
"""


def under_strace(argv: Sequence[str], log: Path, *options: str, filtered: bool = True) -> list[str]:
    """Return the command line that runs `argv` and writes its calls to `log`.

    `options`: more of strace's. `filtered`: other calls do not stop the program (where strace knows how); but
    when a program outlives its tracer, its filtered calls fail.
    """
    words = ["strace", *options, "-f", "-ttt", "-T", "-yy", "-qq", "-s", "0", "-o", str(log)]
    words += ["--seccomp-bpf"] if filtered and _has_filter() else []
    return [*words, "-e", f"trace={','.join(_CALLS.split())}", "--", *argv]


def no_strace() -> str:
    """Return why strace cannot be used here, empty where it can."""
    if shutil.which("strace") is None:
        return "not installed (Debian: strace)"
    return "" if ptrace_works() else "this system does not let programs be traced (ptrace)"


@cache
def ptrace_works() -> bool:
    """Return whether strace can trace here: containers often forbid it."""
    with tempfile.TemporaryDirectory(prefix="tiercel-strace-") as place:
        try:
            done = subprocess.run(
                ["strace", "-f", "-o", f"{place}/trial", "true"], capture_output=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0


@cache
def _has_filter() -> bool:
    return "--seccomp-bpf" in said_by(["strace", "--help"])


def said_by(argv: list[str]) -> str:
    """Return what a short command prints, empty where it cannot be run."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
