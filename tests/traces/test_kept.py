"""Answers and events in the cache: they are used again for the same trace alone, and not when damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.traces import open_trace
from tiercel.traces.kept import ANSWER, answered

from .conftest import call, write


class Question:
    """Counts how often it is asked; answers with the bytes of the trace."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path, self.cache, self.asked = path, cache, 0

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return {"bytes": self.path.stat().st_size, "first": self.path.read_text()[:1]}

    def ask(self) -> dict[str, Any]:
        return answered("size", self.path, self.cache, self)


@pytest.fixture
def question(tmp_path: Path) -> Question:
    (tmp_path / "t.pfw").write_text("abc")
    return Question(tmp_path / "t.pfw", tmp_path / "cache")


def test_an_answer_is_kept_for_as_long_as_the_trace_is_the_same(question: Question) -> None:
    assert question.ask() == question.ask() == {"bytes": 3, "first": "a"}
    assert question.asked == 1
    question.path.write_text("abcd")
    assert question.ask()["bytes"] == 4


def test_content_of_the_same_size_and_time_is_another_trace(question: Question) -> None:
    before = question.path.stat()
    question.ask()
    question.path.write_text("xyz")
    os.utime(question.path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as rsync --inplace --times does
    assert question.ask()["first"] == "x"


@pytest.mark.parametrize("damaged", ["", "{}", '{"bytes": 4}', "\n{}", "half"])
def test_a_damaged_answer_is_asked_again(question: Question, damaged: str) -> None:
    question.ask()
    (kept,) = question.cache.glob(f"*{ANSWER}")
    kept.write_text(kept.read_text()[:20] if damaged == "half" else damaged)
    assert question.ask() == {"bytes": 3, "first": "a"}
    assert question.asked == 2


def _cut(entry: Path) -> None:
    with (entry / "events.parquet").open("r+b") as file:
        file.truncate(100)


def _altered(entry: Path) -> None:
    report = json.loads((entry / "report.json").read_text())
    report["end"] += 5.0
    (entry / "report.json").write_text(json.dumps(report))


def _other(entry: Path) -> None:
    (entry / "report.json").write_text("[]")


@pytest.mark.parametrize("damage", [_cut, _altered, _other])
def test_damaged_events_are_read_again(tmp_path: Path, damage: Any) -> None:
    path = write(tmp_path / "x.pfw", [call("read", 0, 1, ret=7)])
    job_time = open_trace(path, cache=tmp_path / "c").job_time
    (entry,) = (tmp_path / "c").iterdir()
    damage(entry)
    frame = open_trace(path, cache=tmp_path / "c")
    assert frame.job_time == job_time
    assert frame.query("SELECT sum(size) AS n FROM events")["n"].iloc[0] == 7


def test_a_filter_is_one_condition(tmp_path: Path) -> None:
    """DuckDB runs statement after statement; a second one could write a file."""
    frame = open_trace(write(tmp_path / "x.pfw", [call("read", 0, 1, ret=7)]), cache=tmp_path / "c")
    with pytest.raises(UserError, match="more than one condition"):
        frame.select(filter=f"1=1); COPY (SELECT 1) TO '{tmp_path}/written'; SELECT (1")
    assert not (tmp_path / "written").exists()


def test_sizes_that_no_64_bits_hold_are_refused(tmp_path: Path) -> None:
    """Each of 128 writes may have moved 64 PiB; all of them, 8 EiB, are one byte more than 63 bits hold."""
    calls = [call("write", n, 1, ret=1 << 56) for n in range(128)]
    with pytest.raises(UserError, match="9,223,372,036,854,775,808 bytes"):
        open_trace(write(tmp_path / "x.pfw", calls), cache=tmp_path / "c")
    assert len(open_trace(write(tmp_path / "y.pfw", calls[1:]), cache=tmp_path / "c")) == 127
