"""Recorder's files, decoded: call signatures, a grammar over them, and two numbers of time for each call.

What a rank did is kept in three parts. The CST lists its distinct calls (function, depth, arguments). The
CFG is a Sequitur grammar: rule -1 spells the sequence of calls out, a value from 0 up is an entry of the CST,
a negative one another rule, and each comes with a number of repetitions. The timestamps are pairs of 32-bit
steps from the start of the call before. Four layouts hold the same parts:

* a file for each rank and part (``0.cst 0.cfg 0.ts``), Recorder 2.3 to 2.5;
* one file for all ranks' timestamps, one for each other part, deflated (late 2.5, and 3.0);
* the same without the file ``VERSION`` (the version then opens ``recorder.mt``);
* everything in sections of one ``recorder.dat`` (development after 3.0).

Sources: Recorder 2.3.3, 2.5.0 and its development branches (lib/recorder-logger.c, tools/reader.c). Nothing
here trusts a number from a file: sizes are held against what is there, and a grammar is never spelled out
further than there are timestamps.
"""

from __future__ import annotations

import contextlib
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tiercel.errors import UserError

Ints = npt.NDArray[np.int64]
Rules = Mapping[int, list[tuple[int, int]]]

_METADATA, _TIMESTAMPS, _CST, _CFG, _CFG_IDS, _RANK_CST, _RANK_CFG = range(7)  # sections of recorder.dat
_NAME = 64  # bytes of a function's name where names have a fixed width
_FIRST = b"creat\n"  # the list of functions starts with it in every version that lists them as lines
#: A step this near to the end of 32 bits is a step back (threads whose calls end in another order).
_BACK = 1e7
#: Ranks beyond this are taken for a damaged header.
_RANKS = 1 << 24
#: Deflated parts are not inflated beyond this.
_INFLATED = 1 << 31


@dataclass(frozen=True)
class Signature:
    """One distinct call: everything but when."""

    function: int
    thread: int
    depth: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Header:
    """What the trace says of itself."""

    version: str
    ranks: int
    start: float
    resolution: float
    functions: tuple[str, ...]
    merged: bool
    deflated_times: bool
    patterns: bool  # offsets of one rank are stored as patterns: not as the numbers that were passed


@dataclass(frozen=True)
class RankCalls:
    """One rank: `calls` are numbers of `signatures`, in the order of their starts (times in steps)."""

    rank: int
    signatures: Mapping[int, Signature]
    calls: npt.NDArray[np.int32]
    starts: Ints
    durations: Ints


@dataclass
class RecorderTrace:
    """A trace folder. After iterating, `warnings` says what was lost."""

    folder: Path
    header: Header
    warnings: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[RankCalls]:
        yield from _merged(self) if self.header.merged else _by_rank(self)

    def lost(self, sentence: str) -> None:
        self.warnings.append(sentence)

    def part(self, name: str, section: int | None = None, rank: int = -1) -> bytes | None:
        """Return a part: the file `name`, or the section of recorder.dat; None when neither is there."""
        with contextlib.suppress(OSError):
            return (self.folder / name).read_bytes()
        if section is not None and (self.folder / "recorder.dat").is_file():
            return _section(self.folder / "recorder.dat", section, rank)
        return None


class Damaged(ValueError):
    """What the bytes say cannot be."""


def is_recorder(folder: Path) -> bool:
    """Say whether `folder` holds a Recorder trace; never raises."""
    try:
        if not folder.is_dir():
            return False
        if (folder / "recorder.mt").is_file():
            return True
        with (folder / "recorder.dat").open("rb") as file:
            return file.read(8) == b"RECORDER"
    except OSError:
        return False


def open_recorder(folder: Path) -> RecorderTrace:
    """Read the header of the trace in `folder`; UserError when there is none that can be read."""
    try:
        return RecorderTrace(folder, _header(folder))
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror or error}") from None
    except (struct.error, ValueError) as error:  # Damaged is one
        raise UserError(f"{folder}: not a readable Recorder trace: {error}") from None


def _header(folder: Path) -> Header:
    if (folder / "recorder.dat").is_file():
        data = _section(folder / "recorder.dat", _METADATA, -1)
        if data is None:
            raise Damaged("recorder.dat has no section of metadata")
        return _numbered_header(data)
    data = (folder / "recorder.mt").read_bytes()
    version = _version(folder)
    if version is None:
        if _FIRST not in data[:2048]:
            return _numbered_header(data)
        raise Damaged("the file VERSION is missing or says nothing")
    major, minor = version[:2]
    if (major, minor) < (2, 3):
        raise Damaged(f"it is of Recorder {major}.{minor}: versions before 2.3 are not read")
    if major > 3:
        raise Damaged(f"it is of Recorder {major}.{minor}: versions 2.3 to 3.x are read")
    return _lined_header(folder, data, version)


def _version(folder: Path) -> tuple[int, ...] | None:
    try:
        text = (folder / "VERSION").read_bytes()[:64].decode("ascii", "replace")
    except OSError:
        return None
    found = re.match(r"\s*(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def _lined_header(folder: Path, data: bytes, version: tuple[int, ...]) -> Header:
    """The header with function names as lines: right after the numbers, or from byte 1024 on."""
    names = data.find(_FIRST, 0, 2048)
    if names < 0:
        raise Damaged("recorder.mt does not list the functions")
    ranks = struct.unpack_from("<i", data)[0]
    if (folder / "recorder.ts").is_file() or (folder / "recorder.cst").is_file():
        # total_ranks, six or eight flags, start, resolution, elements, four flags
        start, resolution = struct.unpack_from("<dd", data, 16)
        deflated, merged, _, patterns = struct.unpack_from("<4B", data, 36)
        return _checked(version, ranks, start, resolution, _lines(data[names:]), bool(merged), bool(deflated),
                        bool(patterns))  # fmt: skip
    # total_ranks, start, resolution, elements, compression of times (never used), merged (from 2.4 on)
    start, resolution = struct.unpack_from("<dd", data, 8)
    merged = struct.unpack_from("<i", data, 32)[0] if version >= (2, 4) and names >= 40 else 0
    return _checked(version, ranks, start, resolution, _lines(data[names:]), bool(merged), False, False)


def _numbered_header(data: bytes) -> Header:
    """The header that opens with the version, its function names in fields of 64 bytes."""
    *version, ranks, functions = struct.unpack_from("<5i", data)
    if not (version[0] in {2, 3, 4} and 0 <= version[1] < 100):
        raise Damaged("recorder.mt starts neither with a version nor is there a file VERSION")
    start, resolution = struct.unpack_from("<dd", data, 32)
    deflated, merged, _, patterns = struct.unpack_from("<4B", data, 52)
    fields = [data[at : at + _NAME] for at in range(56, min(len(data), 56 + functions * _NAME), _NAME)]
    names = tuple(name.split(b"\0", 1)[0].decode("ascii", "replace") for name in fields)
    return _checked(
        tuple(version), ranks, start, resolution, names, bool(merged), bool(deflated), bool(patterns)
    )


def _checked(
    version: tuple[int, ...],
    ranks: int,
    start: float,
    resolution: float,
    functions: tuple[str, ...],
    merged: bool,
    deflated: bool,
    patterns: bool,
) -> Header:
    if not 0 < ranks <= _RANKS:
        raise Damaged(f"its header claims {ranks} ranks")
    if not 0 < resolution <= 1:
        raise Damaged(f"its header claims a resolution of {resolution} s")
    start = start if 0 <= start < 1e11 else 0.0
    return Header(
        ".".join(map(str, version)), ranks, start, resolution, functions, merged, deflated, patterns
    )


def _lines(data: bytes) -> tuple[str, ...]:
    return tuple(line.decode("ascii", "replace") for line in data.split(b"\n")[:-1])


def _section(path: Path, kind: int, rank: int) -> bytes | None:
    """Return a section of ``recorder.dat``: magic, format, count, then (kind, rank, offset, size) of each."""
    with path.open("rb") as file:
        whole = file.seek(0, 2)
        file.seek(0)
        head = file.read(16)
        if len(head) < 16 or head[:8] != b"RECORDER":
            raise Damaged("recorder.dat does not start as one")
        number = struct.unpack_from("<I", head, 12)[0]
        table = file.read(min(number * 24, whole))
        for at in range(0, len(table) - 23, 24):
            found, of, offset, size = struct.unpack_from("<IiQQ", table, at)
            if found == kind and of == rank:
                if offset > whole:
                    return None
                file.seek(offset)
                return file.read(min(size, whole - offset))
    return None


# -- the layouts ---------------------------------------------------------------------------------------------


def _by_rank(trace: RecorderTrace) -> Iterator[RankCalls]:
    """One grammar and one list of calls for each rank."""
    header = trace.header
    deflated = (trace.folder / "recorder.ts").is_file() or (trace.folder / "recorder.dat").is_file()
    times = _all_times(trace) if deflated else None
    for rank in _present(trace):
        cst = trace.part(f"{rank}.cst", _RANK_CST, rank)
        cfg = trace.part(f"{rank}.cfg", _RANK_CFG, rank)
        stamps = times.get(rank) if times is not None else _pairs(trace.part(f"{rank}.ts"))
        if cst is None or cfg is None or stamps is None:
            missing = [n for n, p in (("calls", cst), ("grammar", cfg), ("timestamps", stamps)) if p is None]
            trace.lost(f"rank {rank} lost: its {' and '.join(missing)} cannot be read")
            continue
        if deflated:
            cst, cfg = _inflate(cst)[0], _inflate(cfg)[0]
        yield _rank(
            trace, rank, _signatures(trace, rank, cst), _rules(trace, f"rank {rank}", cfg), stamps, header
        )


def _merged(trace: RecorderTrace) -> Iterator[RankCalls]:
    """One list of calls for all ranks, and grammars that ranks share."""
    header = trace.header
    if (trace.folder / "recorder.ts").is_file() or (trace.folder / "recorder.dat").is_file():
        times: Mapping[int, Ints] = _all_times(trace)
        cst = _inflate(trace.part("recorder.cst", _CST) or b"")[0]
        grammars: dict[int, bytes] = {}
        packed = trace.part("ug.cfg", _CFG) or b""
        while packed and len(grammars) < header.ranks:
            grammar, packed = _inflate(packed)
            grammars[len(grammars)] = grammar
    else:
        times = {rank: pairs for rank in _present(trace)
                 if (pairs := _pairs(trace.part(f"{rank}.ts"))) is not None}  # fmt: skip
        cst = trace.part("0.cst") or b""
        grammars = {int(p.stem): p.read_bytes() for p in trace.folder.glob("*.cfg") if p.stem.isdecimal()}
    if not cst:
        raise UserError(f"{trace.folder}: the list of calls (0.cst or recorder.cst) is missing or empty")
    ids = trace.part("ug.mt", _CFG_IDS) or b""
    signatures = _signatures(trace, None, cst)
    rules = {number: _rules(trace, f"grammar {number}", data) for number, data in grammars.items()}
    for rank in range(header.ranks):
        number = struct.unpack_from("<i", ids, 4 * rank)[0] if len(ids) >= 4 * rank + 4 else None
        if number not in rules or rank not in times:
            what = "timestamps" if number in rules else "grammar"
            trace.lost(f"rank {rank} lost: its {what} cannot be read")
            if rank > max([*times, len(ids) // 4]):
                trace.lost(f"ranks {rank} to {header.ranks - 1} lost: nothing of them is there")
                return
            continue
        yield _rank(trace, rank, signatures, rules[number], times[rank], header)


def _present(trace: RecorderTrace) -> list[int]:
    """Return the ranks of which there is anything; the others are warned of."""
    names = {p.stem for ending in ("cst", "cfg", "ts") for p in trace.folder.glob(f"*.{ending}")}
    there = sorted(int(name) for name in names if name.isdecimal() and len(name) < 9)
    if (trace.folder / "recorder.dat").is_file():
        there = list(range(min(trace.header.ranks, 1 << 20)))
    if gone := trace.header.ranks - len([rank for rank in there if rank < trace.header.ranks]):
        trace.lost(f"{gone} of {trace.header.ranks} ranks lost: they have no files")
    return [rank for rank in there if rank < trace.header.ranks]


def _all_times(trace: RecorderTrace) -> dict[int, Ints]:
    """Return the ranks' timestamps from the file that holds them all: sizes first, then each rank's own."""
    data = trace.part("recorder.ts", _TIMESTAMPS) or b""
    ranks = trace.header.ranks
    if len(data) < 8 * ranks:
        trace.lost(f"the timestamps are cut in their table of contents: {ranks} ranks lost")
        return {}
    at, times = 8 * ranks, {}
    for rank, size in enumerate(struct.unpack_from(f"<{ranks}Q", data)):
        piece = data[at : at + size]
        if len(piece) < size:
            trace.lost(
                f"rank {rank}: {size - len(piece)} of {size} bytes of timestamps lost: the file ends before"
            )
        if piece or size == 0:
            found = _pairs(_inflate(piece)[0] if trace.header.deflated_times and piece else piece)
            if found is not None:
                times[rank] = found
        at = min(at + size, len(data))
    return times


def _inflate(data: bytes) -> tuple[bytes, bytes]:
    """Return one deflated part (two sizes come before it) and what follows; what is damaged is left out."""
    if len(data) < 16:
        return b"", b""
    packed, size = struct.unpack_from("<QQ", data)
    inflater = zlib.decompressobj()
    out = b""
    with contextlib.suppress(zlib.error):
        out = inflater.decompress(data[16 : 16 + packed], min(size, _INFLATED) + 1)
    return out[:size], data[16 + packed :]


# -- the parts -----------------------------------------------------------------------------------------------


def _pairs(data: bytes | None) -> Ints | None:
    """Return timestamps as rows of (start, end), in steps from the start before; wrapped ones step back."""
    if data is None:
        return None
    pairs = np.frombuffer(data, dtype="<u4", count=len(data) // 8 * 2).astype(np.int64).reshape(-1, 2)
    pairs[pairs >= (1 << 32) - _BACK] -= 1 << 32
    return pairs


def _signatures(trace: RecorderTrace, rank: int | None, data: bytes) -> dict[int, Signature]:
    """Return the calls by their numbers. 2.3 keeps number and length of each, later versions more."""
    best: dict[int, Signature] = {}
    claimed = struct.unpack_from("<i", data)[0] if len(data) >= 4 else 0
    for numbers, name in ((4, 1), (4, 4), (4, 2), (2, 1)):
        found = _keys(data, claimed, numbers, name)
        if len(found) > len(best):
            best = found
        if len(best) == claimed:
            break
    if len(best) < claimed or not claimed:
        whose = "" if rank is None else f"rank {rank}: "
        trace.lost(
            f"{whose}{max(claimed, 0) - len(best)} of {max(claimed, 0)} distinct calls lost: damaged or cut"
        )
    return best


def _keys(data: bytes, claimed: int, numbers: int, name: int) -> dict[int, Signature]:
    """Read calls with `numbers` numbers before a key and `name` bytes for its function; stops where wrong."""
    found: dict[int, Signature] = {}
    at, head = 4, 4 * numbers
    fixed = 8 + name + 2 + 4
    while len(found) < claimed and at + head + fixed <= len(data):
        fields = struct.unpack_from(f"<{numbers}i", data, at)
        terminal, length = fields[0], fields[1] if numbers == 2 else fields[2]
        at += head
        key = data[at : at + max(length, 0)]
        if length < fixed or len(key) < length or not 0 <= terminal < claimed:
            break
        words = struct.unpack_from("<i", key, fixed - 4)[0]
        if words != length - fixed:
            break
        thread = struct.unpack_from("<q", key)[0]
        function = int.from_bytes(key[8 : 8 + name], "little")
        arguments = key[fixed:].decode("utf-8", "replace").split(" ")[:-1]
        found[terminal] = Signature(function, thread, key[8 + name], tuple(arguments))
        at += length
    return found


def _rules(trace: RecorderTrace, whose: str, data: bytes) -> Rules:
    """Return the grammar: rule number to its (symbol, repetitions)."""
    numbers = np.frombuffer(data, dtype="<i4", count=len(data) // 4)
    claimed = int(numbers[0]) if len(numbers) else 0
    rules: dict[int, list[tuple[int, int]]] = {}
    at = 1
    while len(rules) < claimed and at + 2 <= len(numbers):
        number, symbols = int(numbers[at]), int(numbers[at + 1])
        body = numbers[at + 2 : at + 2 + 2 * max(symbols, 0)]
        if symbols < 0 or number >= 0 or number in rules:
            break
        rules[number] = [(int(v), int(e)) for v, e in body[: len(body) // 2 * 2].reshape(-1, 2)]
        at += 2 + 2 * symbols
    if len(rules) < claimed or at > len(numbers) or not claimed:
        trace.lost(f"{whose}: {max(claimed - len(rules), 0)} of {max(claimed, 0)} rules lost: damaged or cut")
    return rules


def expand(rules: Rules, limit: int) -> tuple[npt.NDArray[np.int32], str]:
    """Spell rule -1 out to at most `limit` calls. Returns them and what stopped it ('' for the end).

    A rule is spelled once; wherever it occurs again, its piece of the answer is copied. So the work is in the
    size of the grammar and of the answer, whatever the file claims.
    """
    out = np.empty(limit, dtype=np.int32)
    used = 0
    spelled: dict[int, tuple[int, int]] = {}
    if -1 not in rules:
        return out[:0], "the first rule is missing"
    stack: list[list[int]] = [
        [-1, 0, 0, 0]
    ]  # rule, place in it, where its piece starts, was its symbol just spelled
    stop = ""
    while stack and not stop:
        rule, place, begin, fresh = stack.pop()
        body = rules[rule]
        while place < len(body):
            value, times = body[place]
            if times < 0:
                stop = f"rule {rule} repeats a symbol {times} times"
                break
            if value < 0 and value not in spelled and times:
                if value not in rules or any(value == frame[0] for frame in stack) or value == rule:
                    stop = (
                        f"rule {rule} uses rule {value}, which is {'open' if value in rules else 'missing'}"
                    )
                    break
                stack += [[rule, place, begin, 1], [value, 0, used, 0]]
                break
            piece = (
                out[slice(*spelled.get(value, (0, 0)))] if value < 0 else np.array([value], dtype=np.int32)
            )
            more = min((times - fresh) * len(piece), limit - used)
            if more:
                out[used : used + more] = np.resize(piece, more)
            if more < (times - fresh) * len(piece):
                stop = "it names more calls than there are timestamps"
                used += more
                break
            used, place, fresh = used + more, place + 1, 0
        else:
            spelled[rule] = (begin, used)
    return out[:used], stop


def _rank(trace: RecorderTrace, rank: int, signatures: Mapping[int, Signature], rules: Rules, stamps: Ints,
          header: Header) -> RankCalls:  # fmt: skip
    calls, stopped = expand(rules, len(stamps))
    if stopped:
        trace.lost(f"rank {rank}: the grammar cannot be followed to its end ({stopped})")
    if len(stamps) > len(calls):
        trace.lost(f"rank {rank}: {len(stamps) - len(calls)} timestamps belong to no call that can be read")
    known = np.fromiter(sorted(signatures), dtype=np.int32, count=len(signatures))
    there = np.isin(calls, known)
    if lost := int((~there).sum()):
        trace.lost(f"rank {rank}: {lost} calls lost: what they were cannot be read")
    stamps = stamps[: len(calls)]
    starts = np.cumsum(stamps[:, 0])
    durations = stamps[:, 1] - stamps[:, 0]  # a negative one is missing: the writer says so
    return RankCalls(rank, signatures, calls[there], starts[there], durations[there])
