"""Discovery: what is a storage system, what is left out and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.site import load_site
from tiercel.site.discover import discover, holding, storage_name
from tiercel.site.model import Storage
from tiercel.site.mounts import Mount


def mount(point: Path | str, kind: str = "ext4", options: str = "rw", root: str = "/") -> Mount:
    return Mount(Path(point), kind, "source", options, root)


def test_this_machine() -> None:
    found = discover()
    assert found.storages
    for name, storage in found.storages.items():
        assert name.startswith(storage.type.replace("_", "-")[:5])
        assert os.access(storage.scratch_path().parent, os.W_OK)
    assert sum(s.medium == "memory" for s in found.storages.values()) <= 1


def test_reasons_for_leaving_out(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "a").mkdir()
    mounts = [
        mount(tmp_path, "xfs"),
        mount(tmp_path / "a", "xfs"),  # another view of the same file system, by its device number
        mount(tmp_path / "gone", "nfs4"),
        mount(file, "ext4"),
        mount("/ro", "xfs", "ro,relatime"),
        mount("/excluded", "xfs"),
        mount("/proc", "proc"),
        mount("/boot", "ext4"),
    ]
    found = discover(["/excluded"], mounts)
    assert list(found.storages) == [storage_name(mounts[0])]
    assert found.storages[storage_name(mounts[0])].scratch_path().parent == tmp_path
    assert found.skipped[str(tmp_path / "a")] == f"the same file system as {tmp_path}"
    assert found.skipped[str(tmp_path / "gone")].startswith("cannot be looked at")
    assert found.skipped[str(file)] == "mounts a single file"
    assert found.skipped["/ro"] == "mounted read-only"
    assert found.skipped["/excluded"] == "excluded by the site file"
    assert "/proc" not in found.skipped  # no place for data: not worth a word
    assert "/boot" not in found.skipped


def test_a_mount_that_appears_during_an_evaluation_is_none_of_it(tmp_path: Path) -> None:
    """Also not one that would take the place of a storage: the whole of what it had a part of mounted."""
    (tmp_path / "part").mkdir()
    part, whole = mount(tmp_path / "part", "xfs", root="/part"), mount(tmp_path, "ext4")
    began = discover(mounts=[part]).storages
    with holding(began):
        later = discover(mounts=[whole, part])
        assert later.storages == began
        assert later.skipped[str(tmp_path)] == "mounted since the evaluation began"
        with holding(["another"]):  # what an evaluation starts holds what it began with
            assert discover(mounts=[whole, part]).storages == began
        assert discover(mounts=[whole, part]).storages == began
    assert list(discover(mounts=[whole, part]).storages) == [storage_name(whole)]


def test_names_are_stable_and_valid() -> None:
    assert storage_name(mount("/")) == "ext4-root"
    assert storage_name(mount("/dev/shm", "tmpfs")) == "tmpfs-dev-shm"
    assert storage_name(mount("/mnt/My Disk/ü", "xfs")) == "xfs-mnt-my-disk"


def test_variables_in_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHO", "me")
    monkeypatch.delenv("NOBODY", raising=False)

    def scratch(text: str) -> Path:
        return Storage(type="xfs", mount="/", scratch=text).scratch_path()

    assert scratch("/s/$WHO/${WHO}x") == Path("/s/me/mex")
    assert scratch("/s/a$$b") == Path("/s/a$b")  # a dollar sign of the path's own
    with pytest.raises(UserError, match="NOBODY is not set"):
        scratch("/s/$NOBODY")
    with pytest.raises(UserError, match="absolute"):
        scratch("s")


def test_unknown_site_names_the_known_ones(checkout: Path) -> None:
    with pytest.raises(UserError, match=r"no site named 'locl'.*did you mean local\?"):
        load_site("locl", checkout)


def test_site_file_of_another_name(tmp_path: Path) -> None:
    folder = tmp_path / "site-configs" / "a"
    folder.mkdir(parents=True)
    (folder / "site.yaml").write_text("site: b\ndiscover: true\n")
    with pytest.raises(UserError, match="must be 'a', the name of its folder"):
        load_site("a", tmp_path)
    (folder / "site.yaml").write_text("site: a\n")
    with pytest.raises(UserError, match="storages: at least one is required"):
        load_site("a", tmp_path)
