"""Sites, folders and archives: the same tables give the same answer; what is broken gives a sentence."""

import io
import os
import tarfile
import zipfile

import pytest

from tests.compare.sides import compared, later, pair, read, write
from tiercel.compare import places
from tiercel.errors import UserError


@pytest.fixture
def one(tmp_path):
    return write(tmp_path / "results" / "one", pair())


def pack(folder, target, prefix="results/one"):
    """Pack a folder's tables, and a file of another kind."""
    files = {f"{prefix}/{p.name}": p.read_bytes() for p in folder.glob("*.parquet")} | {"notes.txt": b"hello"}
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w") as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return target
    with tarfile.open(target, "w:gz" if target.name.endswith("gz") else "w") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return target


def _made(folder):
    folder.mkdir(parents=True)
    return folder


def _several(root):
    write(root / "many" / "a", pair())
    write(root / "many" / "b", pair())
    return root / "many"


def _pipe(path):
    os.mkfifo(path)
    return path


def _file(path, content):
    path.write_bytes(content)
    return path


def _cut(root):
    whole = pack(root / "results" / "one", root / "whole.tar.gz").read_bytes()
    return _file(root / "cut.tar.gz", whole[: len(whole) // 2])


@pytest.mark.parametrize("name", ["two.tar", "two.tar.gz", "two.tgz", "two.zip"])
def test_an_archive_is_as_good_as_its_folder(tmp_path, one, name):
    two = write(tmp_path / "elsewhere", later(factor=0.5))
    archive = pack(two, tmp_path / name)
    answers = [compared("one", path, root=tmp_path).rows for path in (two, archive)]
    assert [[r.comparison.ratio for r in rows] for rows in answers] == [[pytest.approx(0.5)]] * 2


def test_an_archive_writes_nowhere_but_to_its_own_folder(tmp_path, one):
    archive = pack(one, tmp_path / "evil.tar", prefix="../../escaped")
    (side,) = read(archive, root=tmp_path)
    assert not (tmp_path.parent / "escaped").exists()
    assert not (tmp_path / "escaped").exists()
    assert side.place.folder.parent == tmp_path / "scratch"
    assert sorted(p.name for p in side.place.folder.iterdir()) == ["observations.parquet", "runs.parquet"]


def test_links_in_an_archive_are_no_tables(tmp_path):
    with tarfile.open(tmp_path / "links.tar", "w") as packed:
        member = tarfile.TarInfo("observations.parquet")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(member)
    with pytest.raises(UserError, match=r"holds no observations\.parquet"):
        read(tmp_path / "links.tar", root=tmp_path)


def test_more_than_is_allowed_is_not_unpacked(tmp_path, one, monkeypatch):
    monkeypatch.setattr(places, "LARGEST", 1000)
    with pytest.raises(UserError, match="cannot be unpacked"):
        read(pack(one, tmp_path / "large.tar.gz"), root=tmp_path)


def test_a_folder_with_one_result_below_is_that_result(tmp_path, one):
    (side,) = read(tmp_path / "results", root=tmp_path)
    assert side.place.folder == one


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda root: "nowhere", "no such site, folder or archive: .*one"),
        (lambda root: "on", r"did you mean one\?"),
        (lambda root: "lassen", "nothing measured yet: run `tiercel evaluate --site lassen`"),
        (lambda root: "a\0b", "no such site"),
        (lambda root: "x" * 5000, "no such site"),
        (lambda root: _made(root / "empty"), "no results"),
        (lambda root: _made(root / "raw-only" / "raw").parent, "run `tiercel collect`"),
        (_several, "holds several results"),
        (lambda root: _file(root / "some.txt", b"x"), "neither a folder nor an archive"),
        (lambda root: _pipe(root / "some.zip"), "neither a folder nor an archive"),
        (lambda root: _pipe(root / "some.tar.gz"), "neither a folder nor an archive"),
        (lambda root: _file(root / "some.tar.gz", b"x" * 600), "damaged, or no archive"),
        (lambda root: _file(root / "some.zip", b"PK\3\4" + b"x" * 600), "damaged, or no archive"),
        (_cut, "damaged"),
    ],
)
def test_what_is_no_place_is_said(tmp_path, one, make, said):
    with pytest.raises(UserError, match=said):
        read(make(tmp_path), root=tmp_path)
