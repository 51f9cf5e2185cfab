"""Lines of DFTracer to columns of numbers: the plain Python scanner, and the interface of both scanners.

`native.py` does the same with a small C library, many times faster; the two are tested against each other.
Words become codes (numbers in order of appearance); MISSING stands for a number that the line does not have.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

MISSING = np.iinfo(np.int64).min
#: Columns of a scanned block. whence..fd and item_size serve the offset tracking only.
COLUMNS = (
    "ts", "dur", "pid", "tid", "name", "cat", "host", "file", "ret", "offset", "count", "item_size", "whence",
    "flags", "fd", "epoch", "step", "textual",
)  # fmt: skip
#: Words with codes of their own: function names, categories, hosts (name or hash), files (name or hash).
TABLES = ("name", "cat", "host", "file")

Ints = npt.NDArray[np.int64]

#: What the offset tracking must know of a function; 0 is everything else.
ADVANCE, POSITIONED, SEEK, STDIO_SEEK, OPEN, CLOSE, REWIND, FORGET = range(1, 9)
_O_APPEND = 0o2000
#: Halves of pairs; of these, those that do not stand for a byte (PEP 383).
_SURROGATE, _LONE = re.compile("[\ud800-\udfff]"), re.compile("[\ud800-\udc7f\udd00-\udfff]")
_WHOLE = re.compile(r"-?[0-9]{1,4300}")


#: Metadata lines that say what a hash stands for: of a host, a file, a text.
NOTES = ("HH", "FH", "SH")


class Notes(NamedTuple):
    """Metadata lines of one kind, in columns: in a process, from a row of the block on, a hash (of `keys`)
    stands for a name (of `values`)."""

    keys: list[str]
    values: list[str]
    processes: list[int]
    rows: list[int]


@dataclass
class Block:
    """Events of one block of lines, and what its other lines said."""

    columns: dict[str, Ints]
    notes: dict[str, Notes] = field(default_factory=dict)
    metadata: int = 0  # metadata lines, those of `notes` among them
    lost_lines: int = 0
    lost_bytes: int = 0
    other_lines: int = 0  # whole lines that are neither events nor metadata (counters)
    unfinished: bool = False  # the last line has no end and could not be read


class Scanner(Protocol):
    """Keeps codes and file positions over all blocks of one trace."""

    def scan(self, block: bytes) -> Block:
        """Read the lines of `block`."""

    def words(self, table: str, start: int) -> list[str]:
        """Return the words of `table` with codes from `start` on."""

    def track(self, columns: dict[str, Ints], roles: Ints, sizes: Ints) -> Ints:
        """Return first bytes accessed; `roles` (by function code) and bytes moved are given."""


class PythonScanner:
    """The scanner in plain Python."""

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {table: {} for table in TABLES}
        self._positions: dict[tuple[int, int, int, int], int] = {}

    def words(self, table: str, start: int) -> list[str]:
        return list(self._codes[table])[start:]

    def scan(self, block: bytes) -> Block:
        rows: list[list[int]] = []
        found = Block({})
        pieces = block.split(b"\n")
        for number, piece in enumerate(pieces):
            line = piece.lstrip(b" \t\r\0,[").rstrip(b" \t\r\0,]")
            if not line:
                continue
            row = self._line(line, found, len(rows))
            if row is None:
                found.lost_lines += 1
                found.lost_bytes += len(piece) + (number + 1 < len(pieces))
                found.unfinished = number + 1 == len(pieces)
            elif row:
                rows.append(row)
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(COLUMNS))
        found.columns = {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(COLUMNS)}
        return found

    def _line(self, line: bytes, found: Block, rows: int) -> list[int] | None:
        """Return the row of an event, an empty one for other lines, None for a line that cannot be read."""
        try:
            event = json.loads(line.decode("utf-8", "surrogateescape"), parse_constant=_refuse, strict=False)
            phase = str(event["ph"])
            arguments = event.get("args")
            arguments = arguments if isinstance(arguments, dict) else {}
            name = _word(event["name"])
            if phase in {"M", "4"}:
                key, value = _word(arguments.get("value", "")), _word(arguments.get("name", ""))
                found.metadata += 1
                if name in NOTES:
                    notes = found.notes.setdefault(name, Notes([], [], [], []))
                    notes.keys.append(key)
                    notes.values.append(value)
                    notes.processes.append(_number(event.get("pid")))
                    notes.rows.append(rows)
                return []
            if phase not in {"X", "1"}:
                found.other_lines += 1
                return []
            return self._event(event, name, arguments)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _event(self, event: dict[str, Any], name: str, arguments: dict[str, Any]) -> list[int]:
        ts, dur = _number(event["ts"]), _number(event.get("dur"))
        if ts < 0:  # MISSING is negative too
            raise ValueError
        dur = dur if dur >= 0 else MISSING
        argument = arguments.get
        # All words before the first code: a line that is lost leaves nothing behind.
        category = _word(event.get("cat", ""))
        host = _word(argument("hhash", argument("hostname", "")))
        file = _word(argument("fhash", argument("fname", "")))
        return [
            ts, dur, _number(event.get("pid")), _number(event.get("tid")),
            self._code("name", name), self._code("cat", category),
            self._code("host", host), self._code("file", file),
            *(_number(argument(key)) for key in ("ret", "offset", "count", "size", "whence", "flags", "fd",
                                                 "epoch", "step")),
            int(isinstance(event["ts"], str)),
        ]  # fmt: skip

    def _code(self, table: str, word: str) -> int:
        if not word:
            return -1
        codes = self._codes[table]
        return codes.setdefault(word, len(codes))

    def track(self, columns: dict[str, Ints], roles: Ints, sizes: Ints) -> Ints:
        offsets = np.full(len(sizes), MISSING, dtype=np.int64)
        names = columns["name"]  # -1: an event without a name
        by_role = np.append(roles, 0)[np.where(names < len(roles), names, -1)]
        for row in np.flatnonzero(by_role):
            value = {name: int(columns[name][row]) for name in
                     ("pid", "tid", "file", "fd", "ret", "offset", "whence", "flags", "textual")}  # fmt: skip
            offsets[row] = self._step(int(by_role[row]), value, int(sizes[row]))
        return offsets

    def _step(self, role: int, value: dict[str, int], size: int) -> int:
        # The oldest schema gives forked workers their parent's pid: only the thread tells them apart.
        owner = (value["pid"], value["tid"] if value["textual"] else MISSING)
        key = (*owner, 0, value["file"]) if value["fd"] == MISSING else (*owner, 1, value["fd"])
        positions = self._positions
        if role == POSITIONED:
            return value["offset"]
        if role == ADVANCE:
            position = positions.get(key, MISSING)
            if position != MISSING and size > 0:
                positions[key] = position + size
            return position
        if role == OPEN:
            start = MISSING if value["flags"] != MISSING and value["flags"] & _O_APPEND else 0
            positions[(*owner, 0, value["file"])] = start
            if value["ret"] >= 0:
                positions[(*owner, 1, value["ret"])] = start
        elif role in {SEEK, STDIO_SEEK}:
            positions[key] = _sought(role, value, positions.get(key, MISSING))
        elif role == REWIND:
            positions[key] = 0
        elif role in {CLOSE, FORGET}:
            positions.pop(key, None)
        return MISSING


def _sought(role: int, value: dict[str, int], position: int) -> int:
    """Return where a seek leads: what lseek returned, else what its arguments say."""
    if role == SEEK and value["ret"] != MISSING:
        return value["ret"] if value["ret"] >= 0 else position
    if value["offset"] == MISSING:
        return MISSING
    if value["whence"] == 0:
        return value["offset"]
    if value["whence"] == 1 and position != MISSING:
        return position + value["offset"]
    return MISSING


def _number(value: object) -> int:
    """Return an integer from a number or its text; MISSING where there is none of 63 bits."""
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return MISSING
    return value if -(2**63) < value < 2**63 else MISSING


def _word(value: object) -> str:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("a word")


def clean(word: str) -> str:
    """Return `word` as UTF-8 can hold it: other bytes, which names may have, as ``\\xe9``, so that two names
    stay two; lone halves of surrogate pairs as ``?``."""
    if not _SURROGATE.search(word):
        return word
    raw = _LONE.sub("?", word).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def _refuse(_: str) -> NoReturn:
    raise ValueError("no JSON number")
