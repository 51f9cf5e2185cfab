"""Archives are unpacked the same on a Python without tarfile's filters (before 3.11.4: Debian 12)."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tiercel.artifact.archive import unpack
from tiercel.errors import UserError


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = 3, 0o4755 if name.endswith("run") else 0o666
            opened.addfile(entry, io.BytesIO(b"abc"))
    return path


@pytest.mark.parametrize("filters", [True, False])
def test_with_and_without_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: bool) -> None:
    if not filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    (tmp_path / "good").mkdir()
    folder = unpack(archive(tmp_path / "good.tar.gz", "a/b/data", "a/run"), tmp_path / "good")
    assert (folder.name, (folder / "b" / "data").read_bytes()) == ("a", b"abc")
    # Programs stay programs; what would run with another's rights does not.
    modes = [(folder / name).stat().st_mode & 0o7777 for name in ("b/data", "run")]
    assert modes == [0o644, 0o755]
    (tmp_path / "bad").mkdir()
    with pytest.raises(UserError, match="damaged, or no archive"):
        unpack(archive(tmp_path / "bad.tar.gz", "a/x", "../outside"), tmp_path / "bad")
    assert not (tmp_path / "outside").exists()
