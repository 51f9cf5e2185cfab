"""Damages good traces, one mutation at a time, and counts what is left of them in a second way.

The second way takes lines one by one with a regular expression or JSON's own parser, knows no reader of
tiercel, and notes every line that is not as the tracer writes it. It counts the truth of the damaged text.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Microseconds since 1970: what a sound time is (2000 to 2100), and where the good traces begin.
SINCE, UNTIL, BEGAN = 946_684_800 * 10**6, 4_102_444_800 * 10**6, 1_700_000_000 * 10**6
LARGEST = 1 << 56


@dataclass
class Counted:
    """Bytes and seconds of reads and writes; None where one of them is not told. `odd`: lines that are not as
    the tracer writes them, and numbers that are missing or cannot be."""

    bytes: dict[str, int | None] = field(default_factory=lambda: {"read": 0, "write": 0})
    seconds: dict[str, float | None] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})
    calls: dict[str, int] = field(default_factory=lambda: {"read": 0, "write": 0})
    odd: int = 0

    def add(self, kind: str, size: int | None, took: float | None, failed: bool) -> None:
        if failed:
            size = 0
        elif size is None or not 0 <= size <= LARGEST:
            self.odd, size = self.odd + 1, None
        if took is None or not 0 <= took <= 1e9:
            self.odd, took = self.odd + 1, None
        before, spent = self.bytes[kind], self.seconds[kind]
        self.bytes[kind] = None if before is None or size is None else before + size
        self.seconds[kind] = None if spent is None or took is None else spent + took
        self.calls[kind] += size is None or size > 0


# -- DFTracer ------------------------------------------------------------------------------------------------


def dftracer(rows: int) -> list[bytes]:
    """Return the lines of a good trace: reads and writes of 1 to 8 KiB of three files."""
    lines = [b"["]
    for row in range(rows):
        event = {
            "id": row, "name": ("read", "write", "pread")[row % 3], "cat": "POSIX", "pid": 7, "tid": 7,
            "ts": BEGAN + 1000 * row, "dur": 10 + row, "ph": "X",
            "args": {"fname": f"/d/f{row % 3}", "ret": 1024 * (1 + row % 8)},
        }  # fmt: skip
        lines.append(json.dumps(event, separators=(",", ":")).encode())
    return lines


def count_dftracer(lines: Sequence[bytes]) -> Counted:
    found = Counted()
    for line in lines:
        text = line.strip(b" \t\r\n,[]\0")
        if not text:
            continue
        try:
            event = json.loads(text.decode("utf-8", "replace"), strict=False)
            name, stamp, arguments = str(event["name"]), event["ts"], event.get("args", {})
            sound = isinstance(stamp, int) and SINCE <= stamp <= UNTIL and isinstance(arguments, dict)
        except (ValueError, KeyError, TypeError, AttributeError):
            sound = False
        kind = {"read": "read", "pread": "read", "write": "write"}.get(name, "") if sound else ""
        if not sound or not name or event.get("ph") != "X":
            found.odd += 1
        if not kind or event.get("cat", "POSIX") != "POSIX" or event.get("ph") != "X":
            continue  # another call, or a span of the program
        if str(arguments.get("fname", "")).startswith("/proc/"):
            continue  # no storage
        size, took = arguments.get("ret"), event.get("dur")
        whole = isinstance(size, int) and not isinstance(size, bool)
        found.odd += arguments.get("fname", "") in ("", None)
        found.add(kind, size if whole else None, took / 1e6 if isinstance(took, int) else None,
                  whole and size < 0)  # fmt: skip
    return found


def _changed(change: Callable[[dict[str, Any], random.Random], None]) -> Callable[..., bytes]:
    def mutate(line: bytes, chance: random.Random) -> bytes:
        try:
            event = json.loads(line)
            change(event, chance)
        except (ValueError, KeyError, TypeError, AttributeError):
            return line
        return json.dumps(event, separators=(",", ":")).encode()

    return mutate


def _drop(event: dict[str, Any], chance: random.Random) -> None:
    where = chance.choice([event, event["args"]])
    where.pop(chance.choice(list(where)))


def _spoil(event: dict[str, Any], chance: random.Random) -> None:
    where, key = chance.choice([(event, "ts"), (event, "dur"), (event["args"], "ret"), (event, "name"),
                                (event["args"], "fname")])  # fmt: skip
    where[key] = chance.choice([0, -1, -(10**15), 2**62, None, "", "x", [], 1.5, True, where[key]])


def _rescale(event: dict[str, Any], chance: random.Random) -> None:
    key = chance.choice(["ts", "dur"])
    event[key] = chance.choice([event[key] // 1000, event[key] * 1000, event[key] // 10**6])


def _rename(event: dict[str, Any], chance: random.Random) -> None:
    event["args"]["fname"] = chance.choice(["/e/g", "/d/\xe9", "/proc/self/maps2", "f", "/d/f0/"])


# -- strace --------------------------------------------------------------------------------------------------

_CALL = re.compile(
    rb"(\d+) (\d{9,11}\.\d{3,9}) (read|write)\((.*)\)\s*= (-?\d+)((?: E[A-Z]+ \(.*\))?) <(\d+(?:\.\d+)?)>"
)


def strace(rows: int) -> list[bytes]:
    """Return the lines of a good trace of one process, with -y."""
    return [
        f"{7} {BEGAN // 10**6}.{row:06} {('read', 'write')[row % 2]}({3 + row % 3}</d/f{row % 3}>, "
        f'"x", 4096) = {1024 * (1 + row % 4)} <0.{10 + row:06}>'.encode()
        for row in range(rows)
    ]


def count_strace(lines: Sequence[bytes]) -> Counted:
    found = Counted()
    for line in lines:
        call = _CALL.fullmatch(line)
        if call is None:
            found.odd += bool(line)
            continue
        size = int(call[5])
        found.add(call[3].decode(), size, float(call[7]), failed=size < 0)
    return found


def _number(line: bytes, chance: random.Random) -> bytes:
    """Replace one number of a line."""
    places = list(re.finditer(rb"\d+", line))
    if not places:
        return line
    at = chance.choice(places)
    new = chance.choice([b"", b"0", b"-1", b"9" * 19, b"?", b"1e3"])
    return line[: at.start()] + new + line[at.end() :]


# -- both ----------------------------------------------------------------------------------------------------


def _cut(line: bytes, chance: random.Random) -> bytes:
    return line[: chance.randrange(len(line) + 1)]


def _byte(line: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(line) + 1)
    return (
        line[:at] + bytes([chance.choice([0, 9, 34, 47, 92, 0xE9, 0xFF])]) + line[at + chance.randrange(2) :]
    )


LINES: dict[str, list[Callable[[bytes, random.Random], bytes]]] = {
    "dftracer": [_changed(_drop), _changed(_spoil), _changed(_rescale), _changed(_rename), _cut, _byte],
    "strace": [_number, _cut, _byte],
}


def rearrange(items: list[Any], at: int, what: int, chance: random.Random) -> None:
    """Remove one of the items (0), double it (1), or exchange it with another (2)."""
    if what == 0:
        del items[at]
    elif what == 1:
        items.insert(chance.randrange(len(items)), items[at])
    else:
        other = chance.randrange(len(items))
        items[at], items[other] = items[other], items[at]


def mutated(lines: Sequence[bytes], kind: str, chance: random.Random) -> list[bytes]:
    """Return the lines with one thing removed, corrupted, reordered, duplicated, renamed or rescaled; of one
    line, or of all of them alike."""
    found = list(lines)
    at = chance.randrange(len(found))
    what = chance.randrange(10)
    if what < 3:
        rearrange(found, at, what, chance)
    elif what == 3:
        change, seed = chance.choice(LINES[kind]), chance.random()
        found = [change(line, random.Random(seed)) for line in found]
    else:
        found[at] = chance.choice(LINES[kind])(found[at], chance)
    return found
