"""How programs of this machine see a server's files: in a mount (FUSE), made in the way that this user may.

Root mounts in a namespace of its own, or for all. Another user makes a user namespace, or asks fusermount3.
"""

from __future__ import annotations

import os
import shutil
from enum import Enum
from pathlib import Path

from tiercel.errors import UserError
from tiercel.layers.fairshare import namespace


class Way(Enum):
    """Who sees the mount, and how it is made."""

    OWN = "only this command sees it: root mounts it in a namespace of mounts"
    APART = "only this command sees it: it is mounted in a user namespace"
    OPEN = "you see it in all your programs as long as the command runs: fusermount3 mounts it"


def choose(prefix: str, alone: bool = True) -> Way:
    """Return how to mount at `prefix`; UserError says in a sentence what is missing where that cannot be.

    `alone`: programs are started by us, and can be let into a namespace.
    """
    reason = _missing(alone)
    if reason:
        raise UserError(f"--prefix {prefix}: the files cannot be mounted: {reason}")
    folder = Path(prefix).parent
    if not Path(prefix).is_dir() and not os.access(folder, os.W_OK):
        raise UserError(
            f"--prefix {prefix}: you cannot make this folder in {folder}: name another path (--prefix)"
        )
    if os.geteuid() == 0:
        return Way.OWN if alone else Way.OPEN
    return Way.APART if alone and namespace.may_have_users() else Way.OPEN


def _missing(alone: bool) -> str | None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this machine has no /dev/fuse that you may open"
    if os.geteuid() == 0:
        if _may_administer():
            return None
        return "root may not mount here (no CAP_SYS_ADMIN, as in a container)"
    if shutil.which("fusermount3") or (alone and namespace.may_have_users()):
        return None
    return "you may not make user namespaces, and fusermount3 (package fuse3) is not installed"


def _may_administer() -> bool:
    """Whether this process may mount, and have a namespace of mounts (CAP_SYS_ADMIN, 21)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> 21 & 1)
    return True
