"""Damages good traces that are tables: Parquet files and Darshan logs, one number or row at a time.

A Darshan log is taken apart and put together again here, by the layout of format 3.41 (darshan-log-format.h,
darshan-posix-log-format.h, darshan-dxt-log-format.h). What the damaged tables hold is counted here too.
"""

from __future__ import annotations

import math
import random
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.traces.store import SCHEMA

from .hostile import Counted

ODD: list[Any] = [0, -1, -(10**15), 1 << 62, None, math.nan, math.inf, 1e-9]
KINDS = ("read", "write")

# -- Parquet -------------------------------------------------------------------------------------------------

Row = dict[str, Any]


def rows(count: int) -> list[Row]:
    """Return the rows of a good trace: reads and writes of 1 to 8 KiB."""
    return [
        {"time": 0.5 * row, "duration": 0.01 * (1 + row), "rank": row % 2, "api": "posix", "process": 7,
         "kind": KINDS[row % 2], "function": KINDS[row % 2], "file": f"/d/f{row % 3}",
         "size": 1024 * (1 + row % 8)} for row in range(count)
    ]  # fmt: skip


def write_rows(table: Sequence[Row], path: Path) -> None:
    columns = {
        field.name: pa.array([row.get(field.name) for row in table], _plain(field.type)) for field in SCHEMA
    }
    pq.write_table(pa.table(columns), path)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def damage_rows(table: Sequence[Row], chance: random.Random) -> list[Row]:
    found = [dict(row) for row in table]
    at, what = chance.randrange(len(found)), chance.randrange(8)
    if what == 0:
        del found[at]
    elif what == 1:
        found.insert(chance.randrange(len(found)), dict(found[at]))
    elif what == 2:
        chance.shuffle(found)
    else:
        column = chance.choice(["time", "duration", "size", "kind", "api", "file", "rank", "function"])
        scale = chance.choice([1000, 1e-3, 1e6])
        change = chance.choice(["odd", "odd", "scale", "name"])
        for row in found if chance.random() < 0.2 else [found[at]]:
            row[column] = _changed(row[column], column, change, scale, chance)
    return found


def _changed(value: Any, column: str, change: str, scale: float, chance: random.Random) -> Any:
    if isinstance(value, str) or value is None:
        return chance.choice([None, "", "read", "grob", "/e/\xe9", "stdio", value])
    new = chance.choice(ODD) if change == "odd" else value * scale
    if column not in {"size", "rank"} or new is None:
        return None if new is None else float(new)
    most = (1 << 62) if column == "size" else (1 << 31) - 1
    return max(min(int(new), most), -(1 << 31)) if math.isfinite(new) else None


def count_rows(table: Sequence[Row]) -> Counted:
    found = Counted()
    for row in table:
        time, took, rank = row["time"], row["duration"], row["rank"]
        # A call of this name is of one layer, also where the file does not name it.
        api = "posix" if row["api"] is None and row["function"] in KINDS else row["api"]
        if time is None or not abs(time) <= 1e10 or rank is None or rank < 0:
            found.odd += 1
        if row["kind"] not in KINDS or api not in ("posix", "stdio") or row["file"] is None:
            found.odd += 1
        else:
            found.add(
                row["kind"], row["size"], None if took is None or math.isnan(took) else took, failed=False
            )
    return found


# -- Darshan -------------------------------------------------------------------------------------------------

_JOB, _MAPS, _MODULES = 1328, 32, 64
POSIX, DXT_POSIX = 1, 10
_DXT_HEAD, _SEGMENT = 104, struct.Struct("<qqdd")


class Log:
    """A Darshan log in pieces: the header, the job, names (-1) and the modules by number."""

    def __init__(self, content: bytes) -> None:
        self.header = bytearray(content[:_JOB])
        maps = {n - 1: struct.unpack_from("<QQ", content, _MAPS + 16 * n) for n in range(_MODULES + 1)}
        self.parts = {
            number: bytearray(_inflated(content[at : at + length]))
            for number, (at, length) in maps.items() if length
        }  # fmt: skip
        self.job = content[_JOB : maps[-1][0]]
        self.cut: dict[int, float] = {}
        """Which share of a part's packed bytes is there."""

    def write(self, path: Path) -> None:
        header, body, at = bytearray(self.header), [self.job], _JOB + len(self.job)
        for number, part in self.parts.items():
            packed = zlib.compress(bytes(part))
            packed = packed[: int(len(packed) * self.cut.get(number, 1.0))]
            struct.pack_into("<QQ", header, _MAPS + 16 * (number + 1), at, len(packed))
            body.append(packed)
            at += len(packed)
        path.write_bytes(bytes(header) + b"".join(body))


def _inflated(packed: bytes) -> bytes:
    """Return the text of a part: each rank writes a stream of its own."""
    text = b""
    while packed:
        stream = zlib.decompressobj()
        text += stream.decompress(packed)
        packed = stream.unused_data
    return text


def damage_log(log: Log, chance: random.Random) -> None:
    """Change one number of a record of POSIX or DXT, repeat or remove a record, or cut a module."""
    there = [number for number in (POSIX, DXT_POSIX) if number in log.parts]
    number = chance.choice(there)
    part, what = log.parts[number], chance.randrange(8)
    if what == 0:
        log.cut[number] = chance.uniform(0, 0.9)
    elif what == 1 and number == POSIX:
        log.parts[number] = part + part
    elif what == 2:
        log.header[_MAPS + 16 * (_MODULES + 1) + 4 * number] = 99  # version
    elif number == POSIX:
        _damage_number(part, 16 + 8 * chance.randrange(86), chance, whole=69 * 8 + 16)
    else:
        segment = chance.randrange((len(part) - _DXT_HEAD) // _SEGMENT.size)
        place = _DXT_HEAD + segment * _SEGMENT.size
        _damage_number(part, place + 8 * chance.randrange(1, 4), chance, whole=place + 16)


def _damage_number(part: bytearray, at: int, chance: random.Random, whole: int) -> None:
    """Replace 8 bytes: a whole number before byte `whole`, else a double."""
    if at < whole:
        before = struct.unpack_from("<q", part, at)[0]
        struct.pack_into("<q", part, at, chance.choice([0, -1, -(10**15), 1 << 62, before + 1, 2 * before]))
    else:
        before = struct.unpack_from("<d", part, at)[0]
        struct.pack_into("<d", part, at, chance.choice([0.0, -1.0, math.nan, math.inf, 1e20, before * 2]))


def count_counters(log: Log, names: Sequence[str], times: Sequence[str]) -> Counted:
    """Count what module POSIX says; `names` and `times` of its counters in the order of the log."""
    found, part, size = Counted(), bytes(log.parts[POSIX]), 16 + 8 * (len(names) + len(times))
    found.odd += POSIX in log.cut
    for at in range(0, len(part) - size + 1, size):
        whole = dict(zip(names, struct.unpack_from(f"<{len(names)}q", part, at + 16), strict=True))
        spent = dict(
            zip(times, struct.unpack_from(f"<{len(times)}d", part, at + 16 + 8 * len(names)), strict=True)
        )
        for kind, moved in (("READ", "BYTES_READ"), ("WRITE", "BYTES_WRITTEN")):
            took = spent[f"POSIX_F_{kind}_TIME"]
            found.add(kind.lower(), whole[f"POSIX_{moved}"], None if math.isnan(took) else took, failed=False)
            calls = whole[f"POSIX_{kind}S"]
            found.odd += not 0 <= calls <= 1 << 56
            found.calls[kind.lower()] += calls - (whole[f"POSIX_{moved}"] != 0)
    return found


def count_segments(log: Log) -> Counted:
    """Count what module DXT_POSIX holds of reads and writes."""
    found, part, at = Counted(), bytes(log.parts[DXT_POSIX]), 0
    while at + _DXT_HEAD <= len(part):
        writes, reads = struct.unpack_from("<qq", part, at + _DXT_HEAD - 16)
        at += _DXT_HEAD
        for number in range(writes + reads):
            if at + _SEGMENT.size > len(part):
                found.odd += 1
                break
            _, length, start, end = _SEGMENT.unpack_from(part, at)
            at += _SEGMENT.size
            found.odd += not -1 <= start <= end <= 1e4
            found.add("write" if number < writes else "read", length, end - start, failed=False)
    found.odd += DXT_POSIX in log.cut
    return found
