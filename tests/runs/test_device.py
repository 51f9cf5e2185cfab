"""Which devices may be as fast as memory: told from a sysfs that is made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.runs.device import fast_by_itself
from tiercel.site.mounts import Mount


def mounted(source: str, kind: str = "ext4", point: str = "/p") -> Mount:
    return Mount(Path(point), kind, source, "rw", "/")


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    blocks = tmp_path / "class/block"
    for name in ("vda", "sda", "nvme0n1", "pmem0", "zram0", "loop1", "loop2", "loop3", "loop4", "md0", "md1"):
        (blocks / name).mkdir(parents=True)
    for disk, part in (("nvme0n1", "nvme0n1p2"), ("vda", "vda1")):
        there = tmp_path / f"devices/{disk}/{part}"
        there.mkdir(parents=True)
        (there / "partition").write_text("1\n")
        (blocks / part).symlink_to(there)
    for loop, backing, dio in (("loop1", "/vda/x.img", 0), ("loop2", "/vda/x.img", 1),
                               ("loop3", "/shm/x.img", 0), ("loop4", "/nvme/x.img", 1)):  # fmt: skip
        (blocks / loop / "loop").mkdir()
        (blocks / loop / "loop/backing_file").write_text(backing + "\n")
        (blocks / loop / "loop/dio").write_text(f"{dio}\n")
    for array, parts in (("md0", ("nvme0n1", "pmem0")), ("md1", ("nvme0n1", "sda"))):
        for part in parts:
            (blocks / array / "slaves" / part).mkdir(parents=True)
    return tmp_path


def find(path: Path) -> Mount:
    return {
        "vda": mounted("/dev/vda1"), "shm": mounted("tmpfs", "tmpfs"), "nvme": mounted("/dev/nvme0n1p2")
    }[path.parts[1]]  # fmt: skip


@pytest.mark.parametrize(
    ("mount", "fast"),
    [
        (mounted("/dev/vda1"), False),
        (mounted("/dev/sda", "xfs"), False),
        (mounted("/dev/nvme0n1"), True),
        (mounted("/dev/nvme0n1p2"), True),
        (mounted("/dev/pmem0", "xfs"), True),
        (mounted("tmpfs", "tmpfs"), True),
        (mounted("/dev/loop1"), False),  # the page cache of its file lies behind it
        (mounted("/dev/loop2"), False),  # a virtual disk: a hypervisor may
        (mounted("/dev/loop3"), True),  # memory is its medium
        (mounted("/dev/loop4"), True),  # a drive without a cache in between
        (mounted("/dev/md0"), True),
        (mounted("/dev/md1"), None),  # one of each
        (mounted("pool/data", "zfs"), False),
        (mounted("server:/export", "nfs4"), None),
        (mounted("overlay", "overlay"), None),
        (None, None),
    ],
)
def test_devices(sys: Path, mount: Mount | None, fast: bool | None) -> None:
    assert fast_by_itself(mount, sys, find) is fast
