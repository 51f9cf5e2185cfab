"""Damaged traces: for every mutation the answer is the truth, missing with a reason, or refused.

Never is it silently another one: a second way of counting (hostile.py) says what the truth of the damaged
text is, and whether any line of it is odd.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.common import IS_IO, SUMS
from tiercel.traces.analysis.tally import tally
from tiercel.traces.readers.darshan import one_child

from . import hostile, hostile_recorder, hostile_tables
from .hostile import Counted
from .hostile_tables import Log
from .test_darshan import DATA, needs_darshan

KINDS = {
    "dftracer": (hostile.dftracer, hostile.count_dftracer, "t.pfw"),
    "strace": (hostile.strace, hostile.count_strace, "t.strace"),
}


def summed(frame: IOFrame) -> dict[str, float | None]:
    """Return what `answered` does of all layers' events."""
    table = frame.query("SELECT kind, size, duration FROM events WHERE kind IN ('read', 'write')")
    found: dict[str, float | None] = {}
    for kind in ("read", "write"):
        rows = table[table["kind"] == kind]
        for name, column in ((f"bytes {kind}", "size"), (f"seconds {kind}", "duration")):
            found[name] = None if rows[column].isna().any() else float(rows[column].sum())
    return found


def counters(frame: IOFrame) -> dict[str, float | None]:
    """Return what `answered` does from counters."""
    table = tally(frame)
    low = table[table["api"] == "posix"]
    found: dict[str, float | None] = {}
    for kind, columns in (("read", ("reads", "bytes_read", "read_time")),
                          ("write", ("writes", "bytes_written", "write_time"))):  # fmt: skip
        for what, column in zip(("calls", "bytes", "seconds"), columns, strict=True):
            found[f"{what} {kind}"] = None if low[column].isna().any() else float(low[column].sum())
    return found


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
    path.write_bytes(b"\n".join(text) + b"\n")
    return compare(path, cache, {answered: count(text)})


Answer = Callable[[IOFrame], dict[str, float | None]]


def compare(path: Path, cache: Path, counts: Mapping[Answer, Counted], before: Sequence[str] = ()) -> str:
    """Compare what tiercel answers with what was counted. `before`: warnings that the good trace has too."""
    try:
        frame = open_trace(path, cache=cache)
        answers = {answer: answer(frame) for answer in counts}
    except UserError:
        return "refused"
    if set(frame.warnings) - set(before):
        return "said"
    for answer, counted in counts.items():
        assert not counted.odd, f"{counted.odd} odd lines or numbers, and no warning"
        expected = truth(counted)
        for name, value in answers[answer].items():
            assert value == pytest.approx(expected[name], abs=1e-9), name
    return "same"


def hunt(kind: str, mutations: int, seed: int, folder: Path) -> dict[str, int]:
    """Return how many damaged traces came to what."""
    return _hunt(kind, mutations, seed, TABLES[kind] if kind in TABLES else _one_text(kind), folder)


One = Callable[[random.Random, Path, Path], str]


def _hunt(kind: str, mutations: int, seed: int, one: One, folder: Path) -> dict[str, int]:
    outcomes: Counter[str] = Counter()
    with one_child():
        for number in range(mutations):
            chance = random.Random(f"{kind} {seed} {number}")
            try:
                outcomes[one(chance, folder, folder / "cache" / str(number))] += 1
            except AssertionError as error:
                raise AssertionError(f"mutation {number} of seed {seed}: {error}") from None
    return outcomes


def _one_text(kind: str) -> One:
    make, count, name = KINDS[kind]
    good = make(12)

    def one(chance: random.Random, folder: Path, cache: Path) -> str:
        text = hostile.mutated(good, kind, chance)
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            text = hostile.mutated(text, kind, chance) if text else text
        try:
            return judge(text, count, folder / name, cache)
        except AssertionError as error:
            shown = b"\n".join(text).decode("utf-8", "backslashreplace")
            raise AssertionError(f"{error}\n{shown}") from None

    return one


def _one_table(chance: random.Random, folder: Path, cache: Path) -> str:
    table = hostile_tables.damage_rows(hostile_tables.rows(12), chance)
    hostile_tables.write_rows(table, folder / "t.parquet")
    try:
        return compare(folder / "t.parquet", cache, {summed: hostile_tables.count_rows(table)})
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(map(str, table))) from None


def _one_log(chance: random.Random, folder: Path, cache: Path) -> str:
    from darshan.backend.cffi_backend import counter_names, fcounter_names  # noqa: PLC0415

    good = DATA / f"{chance.choice(['posix-counters', 'posix-dxt'])}.darshan"
    log = Log(good.read_bytes())
    hostile_tables.damage_log(log, chance)
    log.write(folder / "t.darshan")
    names, times = counter_names("POSIX"), fcounter_names("POSIX")
    counts: dict[Answer, Counted] = {counters: hostile_tables.count_counters(log, names, times)}
    if hostile_tables.DXT_POSIX in log.parts:
        counts[summed] = hostile_tables.count_segments(log)
    return compare(folder / "t.darshan", cache, counts, open_trace(good, cache=folder / "good").warnings)


def _one_recorder(chance: random.Random, folder: Path, cache: Path) -> str:
    ranks, place, good = hostile_recorder.good(), folder / "recorder", folder / "good"
    if not good.exists():
        hostile_recorder.write(good, ranks)
    before = open_trace(good, cache=folder / "kept").warnings
    for _ in range(chance.choice([0, 1, 1, 2])):
        hostile_recorder.damage_calls(ranks, chance)
    hostile_recorder.write(place, ranks)
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        hostile_recorder.damage_files(place, chance)
    return compare(place, cache, {answered: hostile_recorder.count(place)}, before)


#: Formats that are more than lines.
TABLES: dict[str, One] = {"parquet": _one_table, "recorder": _one_recorder, "darshan": _one_log}
ALL = [*KINDS, "parquet", "recorder", pytest.param("darshan", marks=needs_darshan)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_trace_is_counted_as_the_second_way_does(kind: str, tmp_path: Path) -> None:
    make, count, name = KINDS[kind]
    counted = count(make(12))
    assert counted.odd == 0 and sum(counted.calls.values()) == 12
    assert judge(make(12), count, tmp_path / name, tmp_path / "cache") == "same"


def test_a_good_recorder_trace_is_counted_as_the_second_way_does(tmp_path: Path) -> None:
    """Two ranks, each 4 writes of 4 KiB and 2 reads of 1 KiB."""
    hostile_recorder.write(tmp_path / "r", hostile_recorder.good())
    counted = hostile_recorder.count(tmp_path / "r")
    assert counted.odd == 0 and counted.bytes == {"write": 8 * 4096, "read": 4 * 1024}
    assert answered(open_trace(tmp_path / "r", cache=tmp_path / "c")) == pytest.approx(truth(counted))


@needs_darshan
@pytest.mark.parametrize("name", ["posix-counters", "posix-dxt"])
def test_a_log_that_is_put_together_again_is_the_same(name: str, tmp_path: Path) -> None:
    """Its segments are counted as dxt-parser prints them (test_darshan): 32 of each kind, of 4 KiB."""
    log = Log((DATA / f"{name}.darshan").read_bytes())
    log.write(tmp_path / "t.darshan")
    first, second = (open_trace(path, cache=tmp_path / "c") for path in
                     (DATA / f"{name}.darshan", tmp_path / "t.darshan"))  # fmt: skip
    assert counters(first) == counters(second) and first.warnings == second.warnings
    if name == "posix-dxt":
        assert hostile_tables.count_segments(log).calls == {"read": 32, "write": 32}


@pytest.mark.parametrize("kind", ALL)
def test_no_damage_changes_an_answer_in_silence(kind: str, tmp_path: Path) -> None:
    outcomes = hunt(kind, 40, 1, tmp_path)
    assert outcomes.keys() >= {"said", "same"}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ALL)
def test_nor_does_any_of_ten_thousand(kind: str, tmp_path: Path) -> None:
    hunt(kind, 2500, random.SystemRandom().randrange(10**6), tmp_path)
