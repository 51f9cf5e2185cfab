"""Damaged traces: for every mutation the answer is the truth, missing with a reason, or refused.

Never is it silently another one: a second way of counting (hostile.py) says what the truth of the damaged
text is, and whether any line of it is odd.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.common import IS_IO, SUMS
from tiercel.traces.analysis.tally import tally

from . import hostile
from .hostile import Counted

KINDS = {
    "dftracer": (hostile.dftracer, hostile.count_dftracer, "t.pfw"),
    "strace": (hostile.strace, hostile.count_strace, "t.strace"),
}


def answered(frame: IOFrame) -> dict[str, float | None]:
    """Return bytes, calls and seconds of reads and writes; None: missing."""
    table = tally(frame)
    low = table[table["api"] == "posix"] if len(table) else table
    sums = frame.query(f"SELECT {SUMS} FROM events WHERE {IS_IO} AND api = 'posix'").iloc[0]
    found: dict[str, float | None] = {}
    for kind, calls, moved in (("read", "reads", "bytes_read"), ("write", "writes", "bytes_written")):
        found[f"calls {kind}"] = float(low[calls].sum()) if len(low) else 0.0
        for name, value in ((f"bytes {kind}", sums[moved]), (f"seconds {kind}", sums[f"{kind}_s"])):
            found[name] = None if pd.isna(value) else float(value)
    return found


def truth(counted: Counted) -> dict[str, float | None]:
    parts = {"bytes": counted.bytes, "calls": counted.calls, "seconds": counted.seconds}
    return {f"{what} {kind}": value for what, part in parts.items() for kind, value in part.items()}


def judge(text: Sequence[bytes], count: Callable[[Sequence[bytes]], Counted], path: Path, cache: Path) -> str:
    """Return what became of a damaged trace: ``refused``, ``said``, ``same``; AssertionError where the answer
    is silently wrong."""
    counted = count(text)
    path.write_bytes(b"\n".join(text) + b"\n")
    try:
        frame = open_trace(path, cache=cache)
    except UserError:
        return "refused"
    if frame.warnings:
        return "said"
    found, expected = answered(frame), truth(counted)
    assert not counted.odd, f"{counted.odd} odd lines, and no warning"
    for name, value in found.items():
        assert value == pytest.approx(expected[name], abs=1e-9), name
    return "same"


def hunt(kind: str, mutations: int, seed: int, folder: Path) -> dict[str, int]:
    make, count, name = KINDS[kind]
    good = make(12)
    outcomes: dict[str, int] = {}
    for number in range(mutations):
        chance = random.Random(f"{kind} {seed} {number}")
        text = hostile.mutated(good, kind, chance)
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            text = hostile.mutated(text, kind, chance) if text else text
        try:
            outcome = judge(text, count, folder / name, folder / "cache" / str(number))
        except AssertionError as error:
            shown = b"\n".join(text).decode("utf-8", "backslashreplace")
            raise AssertionError(f"mutation {number} of seed {seed}: {error}\n{shown}") from None
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_trace_is_counted_as_the_second_way_does(kind: str, tmp_path: Path) -> None:
    make, count, name = KINDS[kind]
    counted = count(make(12))
    assert counted.odd == 0 and sum(counted.calls.values()) == 12
    assert judge(make(12), count, tmp_path / name, tmp_path / "cache") == "same"


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_changes_an_answer_in_silence(kind: str, tmp_path: Path) -> None:
    outcomes = hunt(kind, 40, 1, tmp_path)
    assert outcomes.keys() >= {"said", "same"}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_nor_does_any_of_ten_thousand(kind: str, tmp_path: Path) -> None:
    hunt(kind, 5000, random.SystemRandom().randrange(10**6), tmp_path)
