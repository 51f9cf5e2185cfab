"""Damages Recorder traces (2.3: three files for each rank), and counts what is left of them in a second way.

The second way follows the layout byte by byte in plain loops and notes all that is not as Recorder writes it.
"""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

from .hostile import Counted, rearrange

FUNCTIONS = ("creat", "open", "close", "read", "write", "pread")
RESOLUTION = 1e-6
#: Steps of time from here on are steps back.
BACK = (1 << 32) - 10**7
#: Function, its arguments, and when it starts and ends, in steps from the start of the call before.
Call = tuple[int, tuple[str, ...], int, int]


def good() -> list[list[Call]]:
    """Return the calls of two ranks: each opens a file, writes 4 times 4 KiB to it and reads twice 1 KiB."""
    ranks = []
    for rank in (0, 1):
        path = f"/d/f{rank}"
        calls: list[Call] = [(1, (path, "66"), 5, 9)]
        calls += [(4, (path, "%p", "4096"), 20, 30 + n) for n in range(4)]
        calls += [(5, (path, "%p", "1024", str(1024 * n)), 20, 40 + n) for n in range(2)]
        ranks.append([*calls, (2, (path,), 60, 61)])
    return ranks


def write(folder: Path, ranks: list[list[Call]]) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "VERSION").write_text("2.3.3")
    header = struct.pack("<iiddii", len(ranks), 0, 1.7e9, RESOLUTION, 1 << 18, 0)
    (folder / "recorder.mt").write_bytes(header + "".join(f"{name}\n" for name in FUNCTIONS).encode())
    for rank, calls in enumerate(ranks):
        distinct = list(dict.fromkeys(call[:2] for call in calls))
        keys = [_key(function, arguments) for function, arguments in distinct]
        cst = struct.pack("<i", len(keys))
        cst += b"".join(struct.pack("<ii", n, len(key)) + key for n, key in enumerate(keys))
        body = [distinct.index(call[:2]) for call in calls]
        # Where it begins with a call four times over, a rule of its own spells that once.
        four = len(body) > 5 and len(set(body[1:5])) == 1
        rules = {-1: [(body[0], 1), (-2, 2), *((n, 1) for n in body[5:])], -2: [(body[1], 2)]} if four else {
            -1: [(n, 1) for n in body]
        }  # fmt: skip
        cfg = struct.pack("<i", len(rules))
        for rule, symbols in rules.items():
            cfg += struct.pack("<ii", rule, len(symbols))
            cfg += b"".join(struct.pack("<ii", *symbol) for symbol in symbols)
        stamps = b"".join(struct.pack("<II", start % (1 << 32), end % (1 << 32)) for *_, start, end in calls)
        for ending, data in (("cst", cst), ("cfg", cfg), ("ts", stamps)):
            (folder / f"{rank}.{ending}").write_bytes(data)


def _key(function: int, arguments: tuple[str, ...]) -> bytes:
    words = "".join(f"{word} " for word in arguments).encode()
    return struct.pack("<qBBBi", 7, function, 0, len(arguments), len(words)) + words


# -- damage --------------------------------------------------------------------------------------------------


def damage_calls(ranks: list[list[Call]], chance: random.Random) -> None:
    """Remove, double, move, rename, rescale or spoil one call, or the times of all."""
    calls = chance.choice(ranks)
    at = chance.randrange(len(calls))
    function, arguments, start, end = calls[at]
    what = chance.randrange(7)
    if what < 3:
        rearrange(calls, at, what, chance)
    elif what == 3:
        calls[at] = (
            function,
            (chance.choice(["/e/g", "f", "/d/\xe9", "/proc/x", ""]), *arguments[1:]),
            start,
            end,
        )
    elif what == 4:
        scale = chance.choice([10, 1000])
        calls[:] = [(f, a, start * scale, end * scale) for f, a, start, end in calls]
    elif what == 5 and len(arguments) > 2:
        new = chance.choice(["-1", "0", "x", "", "9" * 17, "9" * 19, "1.5", "4*r+1"])
        calls[at] = (function, (*arguments[:2], new, *arguments[3:]), start, end)
    else:
        calls[at] = (
            chance.choice([function, 77, 255]),
            arguments,
            start,
            chance.choice([0, start - 1, 1 << 31]),
        )


def damage_files(folder: Path, chance: random.Random) -> None:
    """Remove, cut, lengthen, exchange or change one file."""
    path = chance.choice(sorted(folder.iterdir()))
    data = path.read_bytes()
    what = chance.randrange(6)
    if what == 0:
        path.unlink()
    elif what == 1:
        path.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif what == 2:
        path.write_bytes(data + chance.randbytes(chance.randrange(1, 20)))
    elif what == 3:
        path.write_bytes(chance.choice(sorted(folder.iterdir())).read_bytes())
    else:
        place = chance.randrange(len(data) or 1)
        path.write_bytes(data[:place] + chance.randbytes(1) + data[place + 1 :])


# -- the second way ------------------------------------------------------------------------------------------


def count(folder: Path) -> Counted:
    """Count what the files say. What cannot be followed is `odd`, and ends the counting of its rank."""
    found = Counted()
    try:
        version = re.match(rb"\s*2\.3\b", (folder / "VERSION").read_bytes())
        header = (folder / "recorder.mt").read_bytes()
        ranks, _, _, resolution = struct.unpack_from("<iidd", header)
        names = header[header.index(b"creat\n") :].decode("ascii", "replace").split("\n")[:-1]
        if not version or not 0 < ranks < 100 or header[32:38] != b"creat\n" or not 0 < resolution <= 1:
            raise ValueError
    except (OSError, ValueError, struct.error):
        found.odd += 1
        return found
    for rank in range(ranks):
        try:
            _count_rank(folder, rank, names, resolution, found)
        except (OSError, ValueError, KeyError, IndexError, struct.error, RecursionError):
            found.odd += 1
    return found


def _count_rank(folder: Path, rank: int, names: list[str], resolution: float, found: Counted) -> None:
    cst, cfg, stamps = ((folder / f"{rank}.{ending}").read_bytes() for ending in ("cst", "cfg", "ts"))
    calls, at = {}, 4
    for _ in range(struct.unpack_from("<i", cst)[0]):
        terminal, length = struct.unpack_from("<ii", cst, at)
        key = cst[at + 8 : at + 8 + length]
        _, function, _, _, words = struct.unpack_from("<qBBBi", key)
        if terminal in calls or len(key) != length or words != length - 15:
            raise ValueError
        calls[terminal] = function, key[15:].decode("utf-8", "replace").split(" ")[:-1]
        at += 8 + length
    rules: dict[int, list[tuple[int, int]]] = {}
    at = 4
    for _ in range(struct.unpack_from("<i", cfg)[0]):
        rule, symbols = struct.unpack_from("<ii", cfg, at)
        if rule in rules or rule >= 0 or symbols < 0:
            raise ValueError
        rules[rule] = [struct.unpack_from("<ii", cfg, at + 8 + 8 * n) for n in range(symbols)]
        at += 8 + 8 * symbols
    spelled = _spell(rules, -1, len(stamps) // 8 + 1)
    if len(spelled) != len(stamps) // 8:
        raise ValueError
    for number, terminal in enumerate(spelled):
        start, end = (each - (1 << 32) if each >= BACK else each
                      for each in struct.unpack_from("<II", stamps, 8 * number))  # fmt: skip
        function, arguments = calls[terminal]
        kind = {"read": "read", "pread": "read", "write": "write"}.get(
            names[function] if function < len(names) else ""
        )
        if kind is None or any(a.startswith("/proc/") for a in arguments[:1]):
            found.odd += end < start
            continue
        wanted = 4 if names[function] == "pread" else 3
        size = arguments[2] if len(arguments) == wanted else ""
        found.add(kind, int(size) if re.fullmatch(r"-?\d{1,18}", size) else None,
                  (end - start) * resolution, failed=False)  # fmt: skip


def _spell(rules: dict[int, list[tuple[int, int]]], rule: int, limit: int, depth: int = 0) -> list[int]:
    if depth > 50:
        raise ValueError
    out: list[int] = []
    for value, times in rules[rule]:
        if times < 0:
            raise ValueError
        piece = [value] if value >= 0 else _spell(rules, value, limit, depth + 1) if times else []
        out += piece * min(times, limit + 1)
        if len(out) > limit:
            raise ValueError
    return out
