"""The mount table: parsing, kinds, and which mount holds a path."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tiercel.site.mounts import mount_of, parse_mountinfo, read_mounts

TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 26 0:27 / /dev/shm rw,relatime - tmpfs old rw,size=1k
31 26 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684096k
40 27 0:50 / /mnt/with\040blank\134and\012more rw shared:7 master:2 - nfs4 a:/export rw,vers=4.2,proto=rdma
41 27 0:51 / /p/lustre1 rw,flock - lustre 10.0.0.1@o2ib:/l1 rw,checksum
42 27 0:52 / /mnt/g rw - fuse.glusterfs a:/v rw
43 27 254:0 /etc/hosts /etc/hosts rw - ext4 /dev/vda rw
44 27 0:53 / /ro ro,relatime - xfs /dev/sdb rw
not a mount line
"""


def test_parsing() -> None:
    mounts = {str(m.point): m for m in parse_mountinfo(TABLE)}
    assert len(mounts) == 8  # nine lines of which two are on /dev/shm
    assert mounts["/dev/shm"].source == "tmpfs"  # the topmost hides the one below
    assert mounts["/dev/shm"].medium == "memory"
    odd = mounts["/mnt/with blank\\and\nmore"]
    assert (odd.type, odd.medium, odd.options) == ("nfs4", "network", "rw,vers=4.2,proto=rdma")
    assert mounts["/mnt/g"].type == "glusterfs"
    assert mounts["/proc"].medium is None
    assert mounts["/etc/hosts"].system
    assert mounts["/ro"].read_only
    assert not mounts["/p/lustre1"].read_only


def test_the_mount_of_a_path_is_the_deepest() -> None:
    mounts = parse_mountinfo(TABLE)
    assert str(mount_of(Path("/p/lustre1/user/x"), mounts).point) == "/p/lustre1"  # type: ignore[union-attr]
    assert str(mount_of(Path("/p/lustre10"), mounts).point) == "/"  # type: ignore[union-attr]


@given(st.text(max_size=400))
def test_any_text_is_a_table(text: str) -> None:
    parse_mountinfo(text)


def test_this_machine_has_a_root() -> None:
    assert any(str(m.point) == "/" for m in read_mounts())
