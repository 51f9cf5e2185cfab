"""Checksums over everything: what was changed, lost or added is named."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tiercel.artifact.archive import unpack, write_archive
from tiercel.artifact.checksums import Damage, damage, read_checksums, write_checksums
from tiercel.artifact.layout import PACKED
from tiercel.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "packed"
    (made / "results" / "raw").mkdir(parents=True)
    (made / "README.md").write_text("read me\n")
    (made / "results" / "raw" / "a b.json").write_text("1\n")
    (made / "results" / "raw" / "c.json").write_text("2\n")
    write_checksums(made)
    return made


def test_the_list_is_what_sha256sum_reads(folder: Path) -> None:
    assert read_checksums(folder)["results/raw/a b.json"] == hashlib.sha256(b"1\n").hexdigest()
    assert not damage(folder, PACKED)
    if tool := shutil.which("sha256sum"):
        subprocess.run(
            [tool, "-c", "--strict", "manifest-sha256.txt"], cwd=folder, check=True, capture_output=True
        )


def test_what_is_not_as_it_was(folder: Path) -> None:
    (folder / "README.md").write_text("read you\n")
    (folder / "results" / "raw" / "c.json").unlink()
    (folder / "results" / "raw" / "d.json").write_text("3\n")
    (folder / "work").mkdir()  # what the commands make beside the results is none of it
    (folder / "work" / "x").touch()
    assert damage(folder, PACKED) == Damage(
        changed=("README.md",), missing=("results/raw/c.json",), added=("results/raw/d.json",)
    )


@pytest.mark.parametrize("name", ["software/tiercel.tar.gz", "work.sh", "site.yaml", "study/s.yaml"])
def test_a_file_whose_line_is_gone_is_named(folder: Path, name: str) -> None:
    """Scripts build the software and measure again: nobody may put others in their place."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("another\n")
    (folder / "notes.txt").write_text("a reader's own file, beside what was packed\n")
    assert damage(folder, PACKED) == Damage((), (), (name,))


def test_a_link_is_not_the_file(folder: Path, tmp_path: Path) -> None:
    path = folder / "README.md"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert damage(folder, PACKED).missing == ("README.md",)


def test_a_linked_folder_holds_no_file_of_ours(folder: Path, tmp_path: Path) -> None:
    """Its files have the right bytes, and can be changed by whoever owns where it leads."""
    (folder / "results").rename(tmp_path / "elsewhere")
    (folder / "results").symlink_to(tmp_path / "elsewhere")
    found = damage(folder, PACKED)
    assert found.missing == ("results/raw/a b.json", "results/raw/c.json") and found.added == ("results",)


def test_links_within_are_named_and_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.json").touch()
    (folder / "results" / "raw" / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "results" / "raw" / "none").symlink_to(tmp_path / "nowhere")
    assert damage(folder, PACKED) == Damage((), (), ("results/raw/more", "results/raw/none"))


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a\rb", "a\x85b", "a\u2028b", "a\udcffb"])
def test_a_name_that_would_be_two_lines_is_refused(folder: Path, name: str) -> None:
    (folder / name).touch()
    with pytest.raises(UserError, match="a name that a list of checksums cannot hold"):
        write_checksums(folder)


@pytest.mark.parametrize("line", ["no checksum", f"{'0' * 64}  ../../etc/passwd", f"{'0' * 64}  /etc/passwd"])
def test_a_list_that_is_none(folder: Path, line: str) -> None:
    (folder / "manifest-sha256.txt").write_text(f"{line}\n")
    with pytest.raises(UserError, match=r"manifest-sha256.txt:1: not a line of checksums"):
        damage(folder, PACKED)


def test_archives_are_the_same_bytes_and_unpack(folder: Path, tmp_path: Path) -> None:
    files = {f"x/{p.relative_to(folder)}": p for p in folder.rglob("*") if p.is_file()}
    write_archive(files, tmp_path / "one.tar.gz")
    for path in files.values():
        path.touch()
    (folder / "linked").hardlink_to(folder / "README.md")  # one file under two names: written as two
    write_archive(dict(reversed(files.items())), tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    (tmp_path / "out").mkdir()
    assert not damage(unpack(tmp_path / "two.tar.gz", tmp_path / "out"), PACKED)


def test_an_archive_does_not_write_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", "../../escaped")
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(UserError, match="damaged, or no archive"):
        unpack(tmp_path / "bad.tar.gz", tmp_path / "a" / "b")
    assert not (tmp_path / "escaped").exists()
