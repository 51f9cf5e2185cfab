"""File systems on loop devices whose cache behind them is known: trials of what cold reads say (root).

A buffered loop device keeps what goes through it in the page cache of this machine, as a part of its backing
file: to a program that reads from the file system on it, that is a server's memory. With ``direct-io=on``
there is no such cache. `forget` empties it, whole or in part.
"""

from __future__ import annotations

import mmap
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Pages of a large folio go together or not at all.
_CHUNK = 2 << 20
_PAGE = 4096


def missing() -> str:
    """Return why there can be no loop devices here; empty where there can."""
    if os.geteuid() != 0:
        return "loop devices need root"
    if not Path("/dev/loop-control").exists():
        return "loop devices need /dev/loop-control"
    lacking = [tool for tool in ("losetup", "mkfs.ext4", "mount") if shutil.which(tool) is None]
    return f"loop devices need {lacking[0]}" if lacking else ""


@contextmanager
def loop_mounted(image: Path, mount: Path, size: int, *, direct: bool) -> Iterator[Path]:
    """Make an ext4 of `size` bytes in `image` and mount it on `mount`, through a loop device."""
    mount.mkdir()
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    made = subprocess.run(
        ["losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", image],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    device = made.stdout.strip()
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        subprocess.run(["mount", device, mount], check=True)
        try:
            yield mount
        finally:
            subprocess.run(["umount", mount], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def forget(image: Path, part: int = 1) -> None:
    """Drop every `part`-th 2 MiB of what the page cache holds of a backing file."""
    descriptor = os.open(image, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        for at in range(0, os.fstat(descriptor).st_size, part * _CHUNK):
            os.posix_fadvise(descriptor, at, _CHUNK, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def remember(image: Path, part: int = 0) -> None:
    """Bring a backing file into the page cache, but for every `part`-th 2 MiB."""
    with image.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # nothing read ahead
        for number in range(-(-os.fstat(file.fileno()).st_size // _CHUNK)):
            if not part or number % part:
                os.pread(file.fileno(), _CHUNK, number * _CHUNK)


def page_time(path: Path) -> float:
    """Return the seconds that a page of a file takes past the page cache (a tenth of the reads took less)."""
    page = mmap.mmap(-1, _PAGE)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        pages = os.fstat(file).st_size // _PAGE
        took = []
        for _ in range(256):
            offset = random.randrange(pages) * _PAGE
            began = time.perf_counter()
            os.preadv(file, [page], offset)
            took.append(time.perf_counter() - began)
    finally:
        os.close(file)
    return sorted(took)[len(took) // 10]
