"""Discovery: what is a storage system, what is left out and why."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.private_mounts import require_mount, run_script
from tiercel.errors import UserError
from tiercel.site import load_site
from tiercel.site.discover import discover, holding, storage_names
from tiercel.site.model import Storage, check_name
from tiercel.site.mounts import Mount


def mount(point: Path | str, kind: str = "ext4", options: str = "rw", root: str = "/") -> Mount:
    return Mount(Path(point), kind, "source", options, root)


def name_of(mount: Mount) -> str:
    return storage_names([mount])[mount.point]


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
    assert list(found.storages) == [name_of(mounts[0])]
    assert found.storages[name_of(mounts[0])].scratch_path().parent == tmp_path
    assert found.skipped[str(tmp_path / "a")] == f"the same file system as {tmp_path}"
    assert found.skipped[str(tmp_path / "gone")].startswith("cannot be looked at")
    assert found.skipped[str(file)] == "mounts a single file"
    assert found.skipped["/ro"] == "mounted read-only"
    assert found.skipped["/excluded"] == "excluded by the site file"
    assert "/proc" not in found.skipped  # no place for data: not worth a word
    assert "/boot" not in found.skipped


def test_a_temporary_mount_of_another_user_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "disk").mkdir(parents=True)
    if os.getuid() == 0:
        os.chown(theirs, 12345, -1)
    else:  # all here is this user's: let another one look
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr("tiercel.site.discover._TEMPORARY", (tmp_path,))
    found = discover((), [mount(theirs / "disk", "xfs")])
    assert not found.storages
    assert found.skipped[str(theirs / "disk")] == "a temporary mount of another user"
    # What lies elsewhere is the machine's.
    monkeypatch.setattr("tiercel.site.discover._TEMPORARY", (tmp_path / "other",))
    assert list(discover((), [mount(theirs / "disk", "xfs")]).storages)


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
    assert list(discover(mounts=[whole, part]).storages) == [name_of(whole)]


def test_names_are_stable_and_valid() -> None:
    assert name_of(mount("/")) == "ext4-root"
    assert name_of(mount("/dev/shm", "tmpfs")) == "tmpfs-dev-shm"
    assert name_of(mount("/mnt/My Disk/ü", "xfs")) == "xfs-mnt-my-disk-u"
    assert name_of(mount("/データ")) == "ext4-deta"
    assert name_of(mount("/Ωμ")) == "ext4-omegamu"
    assert name_of(mount("/世")) == "ext4-4e16"  # CJK UNIFIED IDEOGRAPH-4E16
    assert name_of(mount("/-")) == "ext4-root"


def test_every_storage_has_a_name_of_its_own_that_a_later_mount_does_not_take() -> None:
    points = [
        "/mnt/data_1",
        "/mnt/data-1",
        "/mnt/data/1",
        "/" + 40 * "long-",
        "/" + 40 * "long-" + "x",
        "/",
        "/~",
    ]
    mounts = [mount(point) for point in points]
    names = storage_names(mounts)
    assert len(set(names.values())) == len(points)
    assert names[Path("/mnt/data_1")] == "ext4-mnt-data-1" and names[Path("/")] == "ext4-root"
    assert re.fullmatch("ext4-mnt-data-1-[0-9a-f]{4}", names[Path("/mnt/data-1")])
    for name in names.values():
        assert check_name(name) == name  # valid in site files and folder names
    for end in range(1, len(mounts)):
        assert storage_names(mounts[:end]).items() <= names.items()


def test_an_odd_mount_is_left_out_with_its_own_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails for one mount is no reason for another, and none is that it does not answer."""
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    bytes_point = Path(os.fsdecode(bytes(tmp_path / "good") + b"/\xb1\xbd"))
    odd_source = Mount(
        tmp_path / "good", "ext4", os.fsdecode(b"\xb1\xbd"), os.fsdecode(b"rw,upperdir=/\xff"), "/"
    )

    def look(point: Path) -> Path:
        raise ValueError(f"{point}\nis odd")

    found = discover(mounts=[odd_source, mount(bytes_point)])
    (storage,) = found.storages.values()
    assert (storage.source, storage.options) == (r"\udcb1\udcbd", r"rw,upperdir=/\udcff")
    assert "not UTF-8" in found.skipped[str(bytes_point)]
    monkeypatch.setattr("tiercel.site.discover._writable_folder", lambda mount, table: look(mount.point))
    reason = discover(mounts=[mount(tmp_path / "bad")]).skipped[str(tmp_path / "bad")]
    assert reason == rf"cannot be examined: ValueError: {tmp_path}/bad\nis odd"


#: Mount points that differ only in what a name leaves out, or hold what other programs take for a line's end.
ODD_MOUNTS = r"""
i=0
for point in data_1 data-1 "データ" $'line\u2028separator' $'form\ffeed' "blank and \\ backslash"; do
    mkdir "$point"
    truncate -s $((300 + i))M $i.img
    mkfs.ext4 -q -F $i.img
    mount -o loop $i.img "$point"
    i=$((i + 1))
done
mkdir source
mount -t tmpfs "$(printf '\261\275')" source
"$PYTHON" -c '
import json
from tiercel.site.discover import discover
found = discover()
print(json.dumps({s.mount: n for n, s in found.storages.items()}))
print(json.dumps(found.skipped))
'
for point in data_1 data-1 "データ" $'line\u2028separator' $'form\ffeed' "blank and \\ backslash"; do
    umount "$point"
done
"""


def test_odd_mounts_beside_ordinary_ones(tmp_path: Path) -> None:
    require_mount("ext4")
    storages, skipped = map(json.loads, run_script(ODD_MOUNTS, tmp_path, PYTHON=sys.executable).splitlines())
    odd = [p for p in storages if Path(p).is_relative_to(tmp_path)]
    names = {"data_1", "data-1", "データ", "line\u2028separator", "form\ffeed", "blank and \\ backslash"}
    assert {Path(p).name for p in odd} == names
    assert len(set(storages.values())) == len(storages)
    assert not any("does not answer" in reason for reason in skipped.values())
    assert skipped[str(tmp_path / "source")] == "memory, as the tmpfs already chosen"


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
