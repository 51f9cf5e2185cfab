"""DFTracer: one JSON object a line, in ``.pfw`` or ``.pfw.gz``, one file for each process.

Three generations of the schema are read:

* pydftracer 1.x: ``"ph":"X"``, numbers as text, the file's name in ``args.fname``, host in ``args.hostname``;
* DFTracer 1.0: ``"ph":"X"`` and ``"ph":"M"``, numbers, hashes of files and hosts, metadata lines with ids;
* DFTracer 2.x: ``"ph":1`` and ``"ph":4``, hashes as text, metadata lines without ids.

Metadata lines (HH: host, FH: file, SH: text; PR: something of the process, its MPI rank for one) are no
events. Times are microseconds since 1970. Sources: the format as versions 1.0.8 and 2.2.0 write it. For fread
and fwrite, `ret` counts items of `size` bytes; forked processes rely on the metadata lines of their parent.

A process has the rank that its PR line tells, wherever in the file that stands; else that of the file's name
(``-3-of-8``); else the processes are numbered in order of appearance. ``metadata["ranks_from"]`` says which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tiercel.errors import UserError
from tiercel.traces import cluster, store
from tiercel.traces.arrays import to_arrow, to_words
from tiercel.traces.calls import api_of, kind_of
from tiercel.traces.readers import scan
from tiercel.traces.readers.base import EventWriter, ReadReport, readers
from tiercel.traces.readers.hashes import Hashes, replace_torn
from tiercel.traces.readers.native import new_scanner
from tiercel.traces.readers.scan import MISSING, Block, Ints, Scanner
from tiercel.traces.readers.text import CUT_LINE, Lines, first_bytes
from tiercel.traces.schema import KINDS, Kind

_APIS = {
    "posix": "posix", "stdio": "stdio", "mpiio": "mpiio", "mpi-io": "mpiio", "mpi_io": "mpiio",
    "hdf5": "hdf5", "h5": "hdf5",
}  # fmt: skip
_API_WORDS = ("app", "hdf5", "mpiio", "stdio", "posix")
_RANK_IN_NAME = re.compile(r"-(\d+)-of-(\d+)(?=\D*$)")
#: Spans that mark computation: the category of DFTracer's AI interface, and DLIO's names.
_COMPUTE = {"compute", "forward", "backward", "computation"}
_PEEK = 1 << 16
_RANK_LINE = b'"PR"'


def classify(function: str, category: str) -> tuple[str, Kind]:
    """Return (api, kind) of an event by its name and category."""
    api = _APIS.get(category.lower(), "") if category else api_of(function).replace("app", "")
    if not api and function.startswith("MPI_File_"):
        api = "mpiio"
    if api:
        return api, kind_of(function, api)
    if category.lower() == "compute" or function.rsplit(".", 1)[-1].lower() in _COMPUTE:
        return "app", "compute"
    return "app", "other"


def role(function: str, api: str, kind: Kind) -> int:
    """Return what a call does to the position in its file."""
    if api not in {"posix", "stdio"}:
        return 0
    base = function.lstrip("_").removesuffix("64").removesuffix("_unlocked")
    if kind in {"read", "write"}:
        return scan.POSITIONED if base.startswith(("pread", "pwrite")) else scan.ADVANCE
    if base in {"lseek", "llseek", "ftell", "ftello"}:
        return scan.SEEK
    exact = {
        "fseek": scan.STDIO_SEEK, "fseeko": scan.STDIO_SEEK, "rewind": scan.REWIND, "fsetpos": scan.FORGET,
        "open": scan.OPEN, "openat": scan.OPEN, "creat": scan.OPEN, "fopen": scan.OPEN,
        "close": scan.CLOSE, "fclose": scan.CLOSE,
    }  # fmt: skip
    return exact.get(base, 0)


@dataclass(frozen=True)
class _Process:
    """What the first lines of a file tell of its process."""

    pid: int | None = None
    parent: int | None = None
    command: str = ""
    host: str = ""
    began: float = float("inf")
    rank: int | None = None
    """Of the file's name."""
    forked: bool = False
    told: tuple[tuple[int, int], ...] = ()
    """(process, rank), as the trace says it."""


@dataclass
class _Words:
    """Codes of the scanner to Arrow dictionaries, grown block after block."""

    scanner: Scanner
    names: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def grow(self) -> None:
        for table, words in zip(
            scan.TABLES, (self.names, self.categories, self.hosts, self.files), strict=True
        ):
            words.extend(self.scanner.words(table, len(words)))


@readers.register("dftracer")
class DFTracer:
    """Reads all files of a trace in one pass, in bounded memory."""

    title = "DFTracer (.pfw, .pfw.gz)"
    alone = False

    def recognises(self, path: Path) -> bool:
        if not path.is_file():
            return False
        if path.name.endswith((".pfw", ".pfw.gz")):
            return True
        head = first_bytes(path, 4096).lstrip(b"[ \r\n\t").split(b"\n", 1)[0]
        return head.startswith(b"{") and b'"ph":' in head.replace(b" ", b"") and b'"cat"' in head

    def read(self, sources: Sequence[Path], writer: EventWriter) -> ReadReport:
        return _Reading(_heads(sources), sources, writer).run()

    def read_parts(
        self, sources: Sequence[Path], folder: Path, client: Any
    ) -> tuple[list[store.Extent], list[str], dict[str, Any]] | None:
        """Read on the workers of a Dask client, some files each; None where that cannot be done."""
        count = min(2 * cluster.workers(client), len(sources))
        shares = [list(sources[number::count]) for number in range(count)]
        paths = [folder / f"events-{number}.parquet" for number in range(count)]
        heads = _heads(sources)
        calls = [(heads, share, path) for share, path in zip(shares, paths, strict=True)]
        parts = cluster.run(client, _read_part, calls)
        if any(part.strangers for part in parts) or not any(part.extent.rows for part in parts):
            for path in paths:
                path.unlink(missing_ok=True)
            return None
        known = {table: {k: w for part in parts for k, w in part.hashes[table].items()} for table in _HASHED}
        for part, path in zip(parts, paths, strict=True):
            renames = {
                table: {w: known[table][w] for w in words if w in known[table]}
                for table, words in part.open.items()
            }
            if any(renames.values()):
                store.rename(path, renames)
        warnings = [sentence for part in parts for sentence in part.report.warnings]
        commands = sorted({c for part in parts for c in part.report.metadata["commands"]})
        return (
            [part.extent for part in parts],
            warnings,
            {**parts[0].report.metadata, "files": len(sources), "commands": commands},
        )


@dataclass(frozen=True)
class _Part:
    """What a worker tells of the files that it read."""

    report: ReadReport
    extent: store.Extent
    hashes: dict[str, dict[str, str]]
    open: dict[str, set[str]]  # words by column that may be hashes which another part explains
    strangers: bool  # processes that no file's head tells of: their ranks were numbered without the others


def _read_part(heads: dict[Path, _Process], share: list[Path], path: Path) -> _Part:
    writer = store.ParquetWriter(path)
    reading = _Reading(heads, share, writer)
    report = reading.run(alone=False)
    writer.close(report.renames)
    hashes = {table: reading.hashes[name].words for table, name in _HASHED.items()}
    report = replace(report, warnings=[*report.warnings, *writer.unbelieved()])
    return _Part(report, writer.extent(), hashes, reading.placeholders, reading.strangers)


class _Reading:
    def __init__(self, heads: dict[Path, _Process], sources: Sequence[Path], writer: EventWriter) -> None:
        """Read `sources`, some or all of those in `heads`: ranks and time 0 depend on all files."""
        self._heads = heads
        # Forked processes last: they name files by hashes that only their parent explains.
        self._sources = sorted(sources, key=lambda s: (self._heads[s].forked, self._order(s)))
        self._writer = writer
        self._scanner = new_scanner()
        self._words = _Words(self._scanner)
        self._classes: dict[tuple[int, int], tuple[int, int]] = {}
        parents = {h.pid: h.parent for h in heads.values() if h.pid is not None and h.parent is not None}
        self.hashes = {name: Hashes(parents) for name in ("HH", "FH", "SH")}
        self.placeholders: dict[str, set[str]] = {"host": set(), "file": set()}
        self._warnings: list[str] = []
        starts = [head.began for head in self._heads.values()]
        began = min([each for each in starts if _is_dated(each)] or starts, default=float("inf"))
        self._origin: int | None = int(began) if began < 2**62 else None
        self._dated = _is_dated(began)
        self._ranks = _ranks(sorted(self._heads.items(), key=lambda item: self._order(item[0])))
        self._other = 0
        self._nameless = 0
        self._events = 0

    def _order(self, source: Path) -> tuple[float, float, str]:
        head = self._heads[source]
        rank = head.told[0][1] if head.told else head.rank
        return (rank if rank is not None else float("inf"), head.began, str(source))

    @property
    def strangers(self) -> bool:
        """Say whether there were processes that no file's head tells of."""
        return self._ranks.added > 0

    def run(self, alone: bool = True) -> ReadReport:
        silent: list[str] = []
        for source in self._sources:
            before = self._events
            understood = self._read(source)
            if self._events == before:
                if source.stat().st_size and not understood:
                    silent.append(source.name)
                else:
                    self._warnings.append(f"{source.name}: no events in it")
        if alone and silent and self._events == 0:
            why = "".join(f"; {sentence}" for sentence in self._warnings[:1])
            raise UserError(
                f"{self._sources[0].parent / silent[0]}: not a DFTracer trace: no line can be read{why}"
            )
        self._warnings += [f"{name}: nothing in it can be read as DFTracer events" for name in silent]
        if self._other:
            self._warnings.append(f"{self._other} lines are left out: neither events nor metadata (counters)")
        if self._nameless:
            self._warnings.append(f"{self._nameless} events have no name: what they did is not known")
        if unsure := self.hashes["FH"].unsure:
            self._warnings.append(
                f"{unsure} events may name a wrong file: their hash stands for several, and their process "
                "does not say which"
            )
        if not self._dated and (unit := _other_unit(self._origin)):
            self._warnings.append(
                f"times seem to be in {unit} since 1970, where DFTracer writes microseconds: no number that "
                "depends on time holds"
            )
        return ReadReport(self._warnings, self._metadata(), self._renames())

    def _read(self, source: Path) -> bool:
        """Read one file; False when it is not empty and not one line, event or not, can be understood."""
        lines = Lines(source)
        for hashes in self.hashes.values():
            hashes.new_file()
        lost_lines = lost_bytes = 0
        unfinished = understood = False
        for text in lines:
            block = self._scanner.scan(text)
            self._words.grow()
            for name, hashes in self.hashes.items():
                hashes.learn(block.notes.get(name))
            lost_lines += block.lost_lines
            lost_bytes += block.lost_bytes
            unfinished = block.unfinished
            self._other += block.other_lines
            rows = len(block.columns["ts"])
            understood = understood or bool(rows or block.metadata or block.other_lines)
            self._events += rows
            if rows:
                self._writer.write(self._columns(block, self._heads[source]))
        self._warnings += lines.warnings
        understood = understood or not (lost_lines or lines.overlong or lines.warnings)
        if understood:
            garbled = lost_lines - unfinished
            if garbled:
                self._warnings.append(
                    f"{source.name}: {garbled} lines lost ({lost_bytes} bytes): not JSON, or without times "
                    "that can be"
                )
            if unfinished:
                self._warnings.append(f"{source.name}: {CUT_LINE}: 1 event lost")
        return understood

    def _columns(self, block: Block, head: _Process) -> dict[str, Any]:
        columns = block.columns
        self._nameless += int((columns["name"] < 0).sum())
        apis, kinds, roles = self._classify(columns)
        sizes = self._sizes(columns, kinds)
        offsets = self._scanner.track(columns, roles, sizes)
        host, file = columns["host"].astype(np.int32), columns["file"].astype(np.int32)
        return {
            "time": self._times(columns["ts"]),
            "duration": np.where(columns["dur"] == MISSING, np.nan, columns["dur"] / 1e6),
            # Copies: the writer keeps them, and the scanner uses its memory again.
            "process": _nullable(columns["pid"].copy()),
            "thread": _nullable(columns["tid"].copy()),
            "rank": self._rank_column(columns, head),
            "host": self._dictionary("host", host, self._words.hosts, columns["pid"]),
            "function": to_words(columns["name"].astype(np.int32), self._words.names),
            "category": to_words(columns["cat"].astype(np.int32), self._words.categories),
            "api": to_words(apis, _API_WORDS),
            "kind": to_words(kinds, KINDS),
            "file": self._dictionary("file", file, self._words.files, columns["pid"]),
            "offset": _nullable(offsets),
            "size": _nullable(sizes),
            "failed": _failed(columns["ret"], kinds),
            "epoch": _small(columns["epoch"]),
            "step": _small(columns["step"]),
        }

    def _times(self, stamps: Ints) -> Any:
        """Return seconds from time 0; NaN for what is no time since 1970 in a trace whose times are."""
        dated = (stamps >= _SINCE_1970[0]) & (stamps <= _SINCE_1970[1])
        if self._origin is None:  # nothing in the heads of the files
            self._dated = bool(dated.any())
            self._origin = int(stamps[dated][0] if self._dated else stamps[0])
        times = (stamps - self._origin) / 1e6
        return np.where(dated, times, np.nan) if self._dated else times

    def _classify(self, columns: dict[str, Ints]) -> tuple[Any, Any, Ints]:
        """Return codes of api and of kind for each row, and the role of each function."""
        width = len(self._words.categories) + 1
        pairs = columns["name"] * width + (columns["cat"] + 1)
        unique, inverse = _unique(pairs)
        apis = np.empty(len(unique), dtype=np.int32)
        kinds = np.empty(len(unique), dtype=np.int32)
        roles = np.zeros(len(self._words.names), dtype=np.int64)
        for place, pair in enumerate(unique.tolist()):
            name, category = divmod(pair, width)
            word = self._words.categories[category - 1] if category else ""
            function = self._words.names[name] if name >= 0 else ""
            api, kind = classify(function, word)
            apis[place], kinds[place] = _API_WORDS.index(api), KINDS.index(kind)
            if name >= 0:
                roles[name] = max(roles[name], role(function, api, kind))
        return apis[inverse], kinds[inverse], roles

    def _sizes(self, columns: dict[str, Ints], kinds: Any) -> Ints:
        """Return bytes moved: what reads and writes returned; items times their size for fread and fwrite.
        A call that failed moved nothing, and is no transfer of 0 bytes."""
        moves = _moves(kinds)
        returned, items = columns["ret"], columns["item_size"]
        sizes = np.where(moves & (returned >= 0), returned, MISSING)
        in_items = moves & (items > 0) & (returned > 0)
        sizes[in_items] = returned[in_items] * items[in_items]
        return sizes

    def _rank_column(self, columns: dict[str, Ints], head: _Process) -> Any:
        """Return the rank of each row: told, of the file's name, or numbered."""
        processes = columns["pid"]
        if head.rank is not None and not head.told and (processes == processes[0]).all():
            return np.full(len(processes), head.rank, dtype=np.int32)
        unique, inverse = _unique(processes)
        numbers = [self._ranks.of(head.host, pid) for pid in unique.tolist()]
        return np.array(numbers, dtype=np.int32)[inverse]

    def _dictionary(self, table: str, codes: Any, words: list[str], processes: Ints) -> Any:
        """Return words for codes; hashes not explained yet stay as placeholders, to be renamed at the end."""
        hashes = self.hashes[_HASHED[table]]
        used, inverse = _unique(codes)
        start = 1 if used[0] < 0 else 0  # -1: no word
        places = (inverse - start).astype(np.int32)
        hashed = list(map(words.__getitem__, used[start:].tolist()))
        known = hashes.words
        found = list(map(known.get, hashed, hashed))
        unknown = set(hashed).difference(known)
        self.placeholders[table].update(w for w in unknown if not w.startswith("/"))
        torn = {}
        for place, word in enumerate(hashed if hashes.torn else ()):
            if word in hashes.torn:
                rows = np.flatnonzero(places == place)
                torn[place] = rows, hashes.by_row(word, rows, processes[rows])
        if torn:
            places, found = replace_torn(places, torn, found)
        return to_words(places, found)

    def _renames(self) -> dict[str, dict[str, str]]:
        later = {}
        for table, words in self.placeholders.items():
            known = self.hashes[_HASHED[table]].words
            later[table] = {word: known[word] for word in words if word in known}
        return {table: names for table, names in later.items() if names}

    def _metadata(self) -> dict[str, Any]:
        texts = self.hashes["SH"].words
        commands = sorted({texts.get(h.command, "") for h in self._heads.values()} - {""})
        return {
            "format": "dftracer",
            "files": len(self._sources),
            "commands": [c.replace(";", " ") for c in commands],
            "epoch": (self._origin or 0) / 1e6,
            "ranks_from": _how_told(self._heads.values(), self._ranks.added),
        }


class _Ranks:
    """Ranks by process: those known from the files' heads, and new numbers for the others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int] = {}
        self._next = 0
        self.added = 0  # numbers given while events are read

    def put(self, host: str, pid: int, rank: int) -> None:
        self._known[host, pid] = rank
        self._next = max(self._next, rank + 1)

    def get(self, host: str, pid: int) -> int | None:
        return self._known.get((host, pid))

    def of(self, host: str, pid: int) -> int:
        known = self.get(host, pid)
        if known is None:
            known = self._next
            self.added += 1
            self.put(host, pid, known)
        return known


def _ranks(heads: list[tuple[Path, _Process]]) -> _Ranks:
    """Number the processes in order of appearance; a forked worker has the rank of its parent.

    A worker is a child of a traced process that runs the same command: a loader's worker, not a new program.
    """
    ranks = _Ranks()
    by_pid: dict[tuple[str, int | None], _Process] = {
        (head.host, head.pid): head for _, head in heads if head.pid is not None
    }
    for _, head in heads:
        for pid, rank in head.told:
            ranks.put(head.host, pid, rank)
        if head.pid is not None and head.rank is not None and not head.told:
            ranks.put(head.host, head.pid, head.rank)
    for _, head in heads:
        if head.pid is None or ranks.get(head.host, head.pid) is not None:
            continue
        top, seen = head, {head.pid, None}
        while (parent := by_pid.get((top.host, top.parent))) is not None and parent.pid not in seen:
            if parent.command != top.command:
                break
            top = parent
            seen.add(parent.pid)
        ranks.put(head.host, head.pid, ranks.of(top.host, top.pid or 0))
    ranks.added = 0
    return ranks


#: Words that are hashes, by column; and the metadata lines that explain them.
_HASHED = {"host": "HH", "file": "FH"}


def _heads(sources: Sequence[Path]) -> dict[Path, _Process]:
    heads = {source: _peek(source) for source in sources}
    # A name that says the rank saves the search for the line that does, which means inflating the file.
    return {
        source: head if head.rank is not None else replace(head, told=_told_ranks(source))
        for source, head in heads.items()
    }


def _how_told(heads: Iterable[_Process], added: int) -> str:
    """Return where the ranks of the processes that run something of their own come from; `added`: of how many
    more processes there are than files."""
    own = [head for head in heads if head.pid is not None and not head.forked]
    if not any(head.told or head.rank is not None for head in own):
        return "order of appearance"
    if added or not all(head.told or head.rank is not None for head in own):
        return "some are told"
    return "trace" if all(head.told for head in own) else "file names"


def _told_ranks(source: Path) -> tuple[tuple[int, int], ...]:
    """Return (process, rank) of all lines that tell it: they may stand anywhere, thousands of events late."""
    found: dict[int, int] = {}
    for block in Lines(source):
        at = block.find(_RANK_LINE)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            if pair := _told_rank(block[block.rfind(b"\n", 0, at) + 1 : end]):
                found[pair[0]] = pair[1]
            at = block.find(_RANK_LINE, end)
    return tuple(found.items())


def _told_rank(line: bytes) -> tuple[int, int] | None:
    try:
        event = json.loads(line.strip(b" \t\r,"))
        arguments = event["args"]
        if event["name"] == "PR" and arguments["name"] == "rank":
            pid, rank = int(event["pid"]), int(arguments["value"])
            return (pid, rank) if 0 <= rank < 2**31 else None
    except (ValueError, TypeError, KeyError):
        return None
    return None


def _peek(source: Path) -> _Process:
    """Read the head of a file, without changing anything."""
    named = _RANK_IN_NAME.search(source.name)
    rank = int(named[1]) if named else None
    pid = parent = None
    command = host = ""
    times = []
    for line in first_bytes(source, _PEEK).split(b"\n")[:64]:
        try:
            event = json.loads(line.strip(b" \t\r,"))
            arguments = event.get("args") or {}
            pid = int(event["pid"]) if pid is None else pid
            host = host or str(arguments.get("hhash", arguments.get("hostname", "")))
            if "ts" in event:
                times.append(float(event["ts"]))
            if event.get("name") == "start" and "ppid" in arguments:
                parent, command = int(arguments["ppid"]), str(arguments.get("cmd_hash", ""))
                break
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    began = min([each for each in times if _is_dated(each)] or times, default=float("inf"))
    return _Process(
        pid, parent, command, host, began, rank, source.name.endswith(("-fork.pfw", "-fork.pfw.gz"))
    )


#: Microseconds since 1970 of the years 2000 and 2100: what DFTracer writes lies between them.
_SINCE_1970 = (946_684_800 * 10**6, 4_102_444_800 * 10**6)


def _is_dated(stamp: float) -> bool:
    return _SINCE_1970[0] <= stamp <= _SINCE_1970[1]


def _other_unit(stamp: int | None) -> str:
    """Return the unit in which a time would be one of our days; empty where none is known."""
    units = {"nanoseconds": 1e-3, "milliseconds": 1e3, "seconds": 1e6}
    found = next((name for name, scale in units.items() if stamp and _is_dated(stamp * scale)), "")
    return found or ("an unknown unit" if stamp and stamp > _SINCE_1970[0] else "")


def _unique(values: Any) -> tuple[Any, Any]:
    """Like numpy's unique with inverse, without its sort where numbers (from -1 up) are small."""
    if (values == values[0]).all():
        return values[:1], np.zeros(len(values), dtype=np.int64)
    low, high = int(values.min()), int(values.max())
    if low < -1 or high > 8 * len(values) + 1024:
        return np.unique(values, return_inverse=True)
    used = np.flatnonzero(np.bincount(values + 1))
    places = np.zeros(high + 2, dtype=np.int64)
    places[used] = np.arange(len(used))
    return used - 1, places[values + 1]


def _moves(kinds: Any) -> Any:
    return (kinds == KINDS.index("read")) | (kinds == KINDS.index("write"))


def _failed(returned: Ints, kinds: Any) -> pa.Array:
    """Return whether reads and writes failed; of other calls it is not told (some return no number)."""
    told = _moves(kinds) & (returned != MISSING)
    return to_arrow(returned < 0, ~told)


def _nullable(values: Ints) -> pa.Array:
    return to_arrow(values, values == MISSING)


def _small(values: Ints) -> pa.Array:
    """Return `values`, missing where they do not fit into 32 bits."""
    return to_arrow(values.astype(np.int32), (values >= 2**31) | (values <= -(2**31)))
