"""Findings on a trace that grows: each look is at what is complete, and says what is new."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tiercel.traces import open_trace
from tiercel.traces.findings import explain
from tiercel.traces.follow import Look, follow

from .conftest import call, write

#: 4,000 writes of 1 KiB, 1 ms each, in 4 s: all of the time goes to small transfers.
SMALL = [call("write", 1000 * n, 1000, fname="/d/f", ret=1024) for n in range(4000)]
QUIET = [call(name, at, 5000, fname=f"/d/{name}", ret=1 << 20) for name, at in (("write", 0), ("read", 4000))]


def lines(events: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def looks(path: Path, *steps: Callable[[], object]) -> list[Look]:
    """Follow `path` while one step after another happens between two looks."""
    left = list(steps)

    def sleep(_: float) -> None:
        if left:
            left.pop(0)()

    return list(follow(path, interval=1.0, idle=len(steps) + 1.0, sleep=sleep))


def test_findings_appear_and_go(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw"
    found = looks(
        tmp_path,
        lambda: write(path, QUIET),
        lambda: write(path, SMALL),
        lambda: write(path, SMALL + SMALL[:1]),
        lambda: write(path, QUIET),
    )
    assert [look.events for look in found] == [2, 4000, 4001, 2]
    assert [[f.rule for f in look.news] for look in found] == [[], ["small-transfers"], [], []]
    assert [look.gone for look in found] == [[], [], [], ["small-transfers"]]
    assert not any(look.warnings for look in found)


def test_nothing_is_said_before_there_is_something(tmp_path: Path) -> None:
    (tmp_path / "t.pfw").touch()
    assert looks(tmp_path) == []


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_not_complete_is_left_for_later(tmp_path: Path, packed: bool) -> None:
    """Two lines and a half; of the packed file the end of the second block is missing."""
    whole, half = lines(SMALL[:2]), lines(SMALL[2:3])
    if packed:
        texts = [gzip.compress(whole) + gzip.compress(half)[:-12], gzip.compress(whole) + gzip.compress(half)]
    else:
        texts = [whole + half[:40], whole + half]
    path = tmp_path / ("t.pfw.gz" if packed else "t.pfw")
    path.write_bytes(texts[0])
    first, second = looks(tmp_path, lambda: path.write_bytes(texts[1]))
    assert first.events in ((2, 3) if packed else (2,)) and second.events == 3
    assert not first.warnings and not second.warnings


def test_damage_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.pfw").write_bytes(lines(SMALL[:1]) + b"{not JSON}\n" + lines(SMALL[1:2]))
    (look,) = looks(tmp_path)
    assert look.events == 2 and "1 lines lost" in look.warnings[0]


def test_a_file_that_is_being_packed_counts_once(tmp_path: Path) -> None:
    """gzip writes t.pfw.gz while t.pfw is there, and removes it then."""
    write(tmp_path / "t.pfw", SMALL)
    write(tmp_path / "t.pfw.gz", SMALL)
    frame = open_trace(tmp_path, cache=tmp_path / "c")
    assert len(frame) == 4000 and any("t.pfw.gz" in warning for warning in frame.warnings)
    (tmp_path / "t.pfw").unlink()
    assert len(open_trace(tmp_path, cache=tmp_path / "c")) == 4000


def test_the_last_look_answers_as_explain_does(tmp_path: Path) -> None:
    write(tmp_path / "t.pfw", SMALL)
    (look,) = looks(tmp_path)
    again = explain(open_trace(tmp_path, cache=tmp_path.parent / "c"))
    assert [(f.rule, f.sentence) for f in look.findings] == [(f.rule, f.sentence) for f in again]
