"""The conditions of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.runs.context import journal
from tiercel.site.mounts import Mount


@pytest.mark.parametrize(
    ("options", "keeps"),
    [
        ("rw\nbsddf\njournal_checksum\nbarrier\ndata=ordered\n", True),
        ("rw\nbsddf\nnojournal_checksum\nbarrier\n", False),
    ],
)
def test_ext4_says_whether_it_keeps_a_journal(options: str, keeps: bool, tmp_path: Path) -> None:
    (tmp_path / "sdb1").mkdir()
    (tmp_path / "sdb1" / "options").write_text(options)
    mount = Mount(Path("/data"), "ext4", "/dev/sdb1", "rw,relatime", "/")
    assert journal(mount, tmp_path) is keeps


def test_a_journal_that_nobody_tells_of_is_unknown(tmp_path: Path) -> None:
    assert journal(None, tmp_path) is None
    assert journal(Mount(Path("/data"), "xfs", "/dev/sdb1", "rw", "/"), tmp_path) is None
    assert journal(Mount(Path("/data"), "ext4", "/dev/sdb2", "rw", "/"), tmp_path) is None
