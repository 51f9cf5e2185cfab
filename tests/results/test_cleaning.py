"""What is private leaves a run's files: texts, compressed texts, unfinished attempts; nothing else does."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tiercel.privacy import Private
from tiercel.results import cleaning
from tiercel.results.cleaning import clean_folder
from tiercel.results.raw import RawStore, read_json, write_json
from tiercel.results.torn import inflated

ALICE = Private(users=("alice",), homes=("/home/alice",))


def cleaned(path: Path) -> bool:
    """Clean the folder of a file, and return whether the file was written again."""
    before = path.stat().st_ino
    clean_folder(path.parent, ALICE)
    return path.stat().st_ino != before


def test_texts_keep_every_other_byte(tmp_path: Path) -> None:
    path = tmp_path / "main.json"
    # Numbers as the engine wrote them, a byte that is no UTF-8, no line end at the end.
    path.write_bytes(b'{"bw": 1.50000, "f": "/home/alice/\xff"}\r\n\r\n 0.0000')
    os.utime(path, (1e9, 1e9))
    assert cleaned(path)
    assert path.read_bytes() == b'{"bw": 1.50000, "f": "$HOME/\xff"}\r\n\r\n 0.0000'
    assert path.stat().st_mtime == 1e9
    assert not cleaned(path)


def test_compressed_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks, as tracers write them: a name that lies across two blocks is found all the same."""
    monkeypatch.setattr(cleaning, "_BLOCK", 50)
    lines = [json.dumps({"id": n, "name": f"/p/alice/{n}"}) for n in range(100)]
    path = tmp_path / "run.pfw.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert cleaned(path)
    found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    assert found == [{"id": n, "name": f"/p/$USER/{n}"} for n in range(100)]


def test_what_is_no_text_is_left_alone(tmp_path: Path) -> None:
    binary = b"\x89HDF\0\0/home/alice/x"
    (tmp_path / "data.h5").write_bytes(binary)
    (tmp_path / "none.pfw.gz").write_bytes(b"/home/alice\n")
    (tmp_path / "link").symlink_to("/home/alice")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.txt").write_text("/home/alice\n")
    clean_folder(tmp_path, ALICE)
    assert (tmp_path / "data.h5").read_bytes() == binary
    assert (tmp_path / "none.pfw.gz").read_bytes() == b"/home/alice\n"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "sub" / "deep.txt").read_text() == "$HOME\n"
    assert len(list(tmp_path.iterdir())) == 4  # no draft stays


def flipped(packed: bytes) -> bytes:
    half = len(packed) // 2
    return packed[:half] + b"\xff" * 20 + packed[half + 20 :]


@pytest.mark.parametrize(
    "tear",
    [lambda p: p[:-20], lambda p: p[:-4], flipped, lambda p: p + b"junk", lambda p: p + p[: len(p) // 2]],
)
def test_a_torn_trace_tells_nobodys_name(tear: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """As a tracer leaves it that was killed with its run. It stays torn: whoever reads it must say so."""
    lines = [f"/home/alice/{random.Random(n).random()}\n" for n in range(5000)]
    path = tmp_path / "run.pfw.gz"
    path.write_bytes(tear(gzip.compress("".join(lines).encode())))
    assert cleaned(path)
    left = b"".join(inflated(path)).decode()
    assert left.startswith("".join(lines[:2000]).replace("/home/alice", "$HOME"))
    assert "/home/alice/" not in left
    with pytest.raises(EOFError), gzip.open(path) as file:
        file.read()
    assert not cleaned(path)


def test_an_attempt_that_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zelda")
    store = RawStore(tmp_path)
    folder, _ = store.begin("run-1", {"source": "sshfs zelda@castle:/"})
    assert read_json(folder / "run.json") == {"source": "sshfs $USER@castle:/"}
    (folder / "main.stderr").write_text("cannot open /p/zelda/x\n")
    store.begin("run-1", {})
    (kept,) = (tmp_path / "raw" / "interrupted").iterdir()
    assert (kept / "main.stderr").read_text() == "cannot open /p/$USER/x\n"


def test_records_keep_numbers_and_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/zelda")
    write_json(
        tmp_path / "record.json", {"n": 1, "x": 0.1, "argv": ["/home/zelda/ior", "-t", "1m"], "e": None}
    )
    assert read_json(tmp_path / "record.json") == {
        "n": 1, "x": 0.1, "argv": ["$HOME/ior", "-t", "1m"], "e": None,
    }  # fmt: skip
