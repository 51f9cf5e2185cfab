"""Files that cannot be cleaned, and name who packs: refused by name, or told where it may be a word."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tiercel.artifact.binaries import check_binaries
from tiercel.errors import UserError

HOME = b"/home/zelda"


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.h5", lambda home: b"\0" + home),
        ("x.h5", lambda home: b"\0" * ((4 << 20) - 4) + home),  # across two blocks
        ("x.pfw.gz", lambda home: gzip.compress(b"\0" + home)),
        ("x.pfw.gz", lambda home: gzip.compress(b"\0" + home * 99)[:-8]),
        ("x.pfw.gz", lambda home: home),  # no archive at all
        ("x.txt", lambda home: home.decode().encode("utf-16")),
        ("x.txt", lambda home: home.decode().encode("utf-32")),
    ],
)
def test_refused(
    name: str, content: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", HOME.decode())
    (tmp_path / name).write_bytes(content(b"/home/another"))
    check_binaries(tmp_path)
    (tmp_path / name).write_bytes(content(HOME))
    with pytest.raises(UserError, match=name):
        check_binaries(tmp_path)


@pytest.mark.parametrize(
    "path, content",
    [
        ("raw/a.r0/zelda-notes.log", b"text"),
        ("raw/a.r0/logs/job.zelda", b""),
        ("placement/zelda/model.json", b"{}"),
        ("raw/a.r0/x.h5", b"\0/p/lustre/zelda/x"),
        ("raw/a.r0/x.h5", b"/p/lustre/zelda\0"),
    ],
)
def test_a_name_that_may_be_a_word_is_told(
    path: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "zelda")
    for word in ("zelda", "links"):  # another's name is nobody's business here
        file = tmp_path / word / path.replace("zelda", word)
        file.parent.mkdir(parents=True)
        file.write_bytes(content.replace(b"zelda", word.encode()))
    assert check_binaries(tmp_path / "zelda") == [path]
    assert check_binaries(tmp_path / "links") == []


def test_what_tiercel_named_is_no_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "metadata")
    (tmp_path / "raw" / "metadata.r0").mkdir(parents=True)
    (tmp_path / "raw" / "metadata.r0" / "run.json").write_text("{}")
    (tmp_path / "raw" / "metadata.r0" / "metadatas.h5").write_bytes(b"\0/x/metadatas/y")
    assert check_binaries(tmp_path) == []


def test_a_secret_in_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "xyz123abc")
    (tmp_path / "log-xyz123abc.txt").touch()
    with pytest.raises(UserError, match="or a secret"):
        check_binaries(tmp_path)
