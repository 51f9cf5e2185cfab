"""From a trace to a recipe for ``tiercel-replay`` (native/replay): who does what to which file,
in which order.

A *stream* is one thread of the program. Order is kept where it matters, and nowhere else:

* on one file, what changes it keeps its place among all calls of other streams that ended before or began
  after it; reads keep theirs among the changes only;
* a stream begins after what the thread that started it had done; where the trace does not show that one,
  after the streams that had ended, and after the call that had ended last;
* a process that waited for the end of another comes after that one; where the trace shows no such waiting,
  and among the threads of one process, so does a call before which a stream ended while its own was idle;
* a stream that slept until another woke it, or read what another wrote into a pipe, waited for that one
  (`handover`);
* what is done in a folder comes after the folder was made or renamed, and before it goes.

Between its calls a stream thinks: the gap since its last call, or since what it waited for. With
``--think`` the replay keeps the gaps.

Offsets that the trace does not tell go on where the stream's last access to the file ended. What is read
before it was written was there before the program, so it is made beforehand. Names are kept below each root.

    python -m tiercel.placement.compile TRACE RECIPE [--limit BYTES]
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.errors import UserError
from tiercel.placement.handover import Handovers
from tiercel.placement.letters import allocated, creates, held, how
from tiercel.placement.order import End, Ends, Mark
from tiercel.placement.recipe import (
    HELD,
    READ_ONLY,
    FileRecord,
    Operation,
    Recipe,
)
from tiercel.placement.replayed import events_of, failed_opens, handovers_of, lives
from tiercel.traces import IOFrame, open_trace

_CHANGES = frozenset("WUNMXKYAVPQ")
_STREAMS = 4096
_GROUPS = {"R": "read", "W": "write", "S": "sync", "D": "sync"}


class NothingToReplay(UserError):
    """The trace shows no I/O on files that could be replayed."""


def compile_trace(frame: IOFrame, data: str = "/", only: Collection[str] | None = None) -> Recipe:
    """Return the recipe of a trace's I/O on files below the folder `data`. UserError when there is none.

    `only`: of these files.
    """
    events = events_of(frame, data, only)
    if events.empty:
        raise NothingToReplay(
            f"{frame.metadata.get('path', 'the trace')}: no reads or writes that name a file below {data}: "
            "nothing to replay"
        )
    return _Compiler(events, handovers_of(frame)).recipe


@dataclass
class _File:
    """A file while the trace is gone through."""

    record: FileRecord
    number: int
    known: bool = False
    """Whether it was there before the program is settled."""
    written: int = 0
    """Bytes that it holds by what the trace shows."""
    fresh: bool = False
    """Made or emptied in the trace: nothing of it was there before."""
    changes: Ends = field(default_factory=Ends)
    reads: Ends = field(default_factory=Ends)


@dataclass
class _Stream:
    """One thread. `clock`: what it waited for already, as operations of each other stream."""

    number: int
    key: tuple[int, int]
    """Process and thread."""
    until: float
    """When its last call ends, in the whole trace."""
    idle_since: float
    operations: list[Operation] = field(default_factory=list)
    clock: dict[int, int] = field(default_factory=dict)
    position: dict[int, int] = field(default_factory=dict)
    """File: where the last access ended."""
    wrote: set[int] = field(default_factory=set)
    """Files whose closing or syncing by it writes them out."""
    listed: set[int] = field(default_factory=set)
    """Folders that it has open and has listed: a listing takes several calls."""
    mine: frozenset[Mark] = frozenset()
    """What it waited for before its first operation, whole streams."""

    @property
    def end(self) -> End:
        """Its last operation so far."""
        return End(self.idle_since, (self.number, len(self.operations)))


class _Compiler:
    """One fold over the events of a trace, and over the calls by which its threads wake each other."""

    def __init__(self, events: pd.DataFrame, handovers: Iterator[Any]) -> None:
        self.recipe = Recipe()
        self._handovers = Handovers()
        passes = list(handovers)
        self._collected = any(row.side == "collects" for row in passes)
        self._of_process: dict[int, list[_Stream]] = {}
        self._files: dict[str, _File] = {}
        self._streams: dict[tuple[int, int], _Stream] = {}
        self._over = Ends()
        self._changed_folders: set[int] = set()
        self._totals = {name: Counter[str]() for name in ("read", "write", "sync", "metadata")}
        self._left_out: Counter[str] = Counter()
        self._buffered = set(
            events.loc[(events["api"] == "stdio") & events["letter"].isin(["R", "W"]), "file"]
        )
        self._failed_opens = failed_opens(events)
        replayed = events[events["letter"].notna()]
        self._lives = {
            (int(p), int(t)): (float(first), float(last)) for (p, t), first, last in lives(replayed)
        }
        # Who ended while a stream was idle?
        self._ends = sorted((last, key) for key, (_, last) in self._lives.items())
        self._begin = self.recipe.began = float(replayed["time"].min())
        self.recipe.ended = max(last for _, last in self._lives.values())
        calls: Iterator[Any] = events.itertuples()
        for row in heapq.merge(calls, passes, key=lambda r: float(r.time)):
            if hasattr(row, "channel"):
                self._hand_over(row)
            else:
                self._event(row)
        self._finish()

    # -- files -----------------------------------------------------------------------------------------------

    def _file(self, name: str) -> _File:
        found = self._files.get(name)
        if found is None:
            record = FileRecord(name, buffered=name in self._buffered)
            found = self._files[name] = _File(record, len(self._files))
            self.recipe.records.append(record)
        return found

    def _settle(self, file: _File, letter: str, flags: str | None, failed: bool | None) -> None:
        """Say whether a file was there before, by the first call that tells."""
        # rmdir of a file fails; mkdir of a folder that is there does, too.
        file.record.folder |= letter in "GM" or (letter == "X" and failed is not True)
        if file.known:
            return
        if letter == "O":
            if flags is None:
                return  # reads will tell
            file.known, file.record.existed = True, "O_CREAT" not in flags
            file.record.folder |= "O_DIRECTORY" in flags
        elif letter in "TGUXNAKY" and failed is False:
            file.known = file.record.existed = True
        elif letter == "M":
            file.known, file.record.existed = True, failed is True
        elif letter == "W":
            file.known = True

    # -- streams ---------------------------------------------------------------------------------------------

    def _stream(self, row: Any) -> _Stream:
        key = (int(row.process), int(row.thread))
        found = self._streams.get(key)
        if found is not None:
            return found
        if len(self._streams) == _STREAMS:
            raise UserError(f"the trace has more than {_STREAMS} threads: too many to replay on one node")
        _, until = self._lives[key]
        told = self._handovers.begin(key)
        before = told if told is not None else self._heads(float(row.time))
        begins = list(dict(end.mark for end in sorted(before, key=lambda e: e.mark)).items())
        since = max([self._begin, *(end.time for end in before)])
        found = _Stream(len(self._streams), key, until, since)
        found.clock = dict(begins)
        found.mine = frozenset(begins)
        self._streams[key] = found
        self._of_process.setdefault(key[0], []).append(found)
        self.recipe.streams.append(found.operations)
        self.recipe.begins.append(begins)
        return found

    def _heads(self, time: float) -> list[End]:
        """Return the streams that are over at `time`, and the call that ended last before it: by whoever
        started the stream that begins then, or by somebody about as far."""
        over = list(self._over.before(time))
        ended = [s for s in self._streams.values() if s.idle_since <= time and s.operations]
        return [*over, max(ended, key=lambda s: s.idle_since).end] if ended else over

    def _helpers(self, stream: _Stream, time: float) -> list[End]:
        """Return the streams that ended while this one was idle, until `time`."""
        place = bisect.bisect_right(self._ends, time, key=lambda pair: pair[0])
        found = []
        while place > 0 and self._ends[place - 1][0] > stream.idle_since:
            place -= 1
            end, key = self._ends[place]
            other = self._streams.get(key)
            told = self._collected and key[0] != stream.key[0]
            if other is not None and other is not stream and not told:
                found.append(End(end, (other.number, len(other.operations))))
        return found

    def _hand_over(self, row: Any) -> None:
        key = (int(row.process), int(row.thread))
        stream = self._streams.get(key)
        own = stream.end if stream else None
        if row.side in ("starts", "collects"):
            other = int(row.channel.removeprefix("process:[").removesuffix("]"))
            if row.side == "starts":
                self._handovers.starts(key, other, own)
            else:
                self._handovers.collects(key, other, [s.end for s in self._of_process.get(other, ())])
            return
        self._handovers.call(
            key, row.channel, row.side, row.time, row.time + row.duration, own, int(row.moved)
        )

    # -- one call --------------------------------------------------------------------------------------------

    def _event(self, row: Any) -> None:
        letter = row.letter
        if not isinstance(letter, str):
            self._left_out[str(row.function)] += 1
            return
        if letter in "RW" and pd.isna(row.size):
            if row.failed is not True:
                self._left_out[f"{row.function} without a size"] += 1
            letter = "T"
        file, stream = self._file(row.file), self._stream(row)
        flags = row.flags if isinstance(row.flags, str) else None
        failed = None if pd.isna(row.failed) else bool(row.failed)
        if letter == "O" and (failed is True or row.Index in self._failed_opens):
            letter, failed = "T", True
        elif failed is True and letter in "MUXNYKAGPQ":
            self._settle(file, letter, flags, failed)
            letter = "T"  # it changed nothing, and cost a look
        elif letter == "U" and flags is not None and "AT_REMOVEDIR" in flags:
            letter = "X"
        if letter == "O" and "creat" in str(row.function) and flags is None:
            flags = "O_WRONLY|O_CREAT|O_TRUNC"
        if letter == "G" and self._listed_before(stream, file):  # the second call says that nothing is left
            self._end(stream, float(row.time + row.duration))
            return
        self._settle(file, letter, flags, failed)
        other = self._file(row.target) if isinstance(row.target, str) else None
        if letter == "W":
            other = None  # of a copy: reading its source is an event of its own
        offset = self._offset(stream, file, row.offset)
        if letter == "R":
            self._read(stream, row, file, offset)
        else:
            on_open_file = letter in "TAK" and failed is not True and held(str(row.function), flags)
            size = HELD if on_open_file else allocated(flags) if letter in "PQ" else self._size(row)
            self._add(stream, row, file, letter, offset, size, flags, other)

    def _listed_before(self, stream: _Stream, file: _File) -> bool:
        """Say whether a stream has listed a folder since it opened it; now it has."""
        before = file.number in stream.listed
        stream.listed.add(file.number)
        return before

    def _read(self, stream: _Stream, row: Any, file: _File, offset: int) -> None:
        size = self._size(row)
        if size and file.fresh and offset + size > file.written:
            # Grown by a call that is not replayed (fallocate, a mapping): else nothing could be read.
            self._add(stream, row, file, "K", offset + size, 0, None)
        self._add(stream, row, file, "R", offset, size, None)

    def _offset(self, stream: _Stream, file: _File, told: Any) -> int:
        if told is not None and not pd.isna(told) and told >= 0:
            return int(told)
        return stream.position.get(file.number, file.written)

    def _size(self, row: Any) -> int:
        return 0 if pd.isna(row.size) else max(0, int(row.size))

    def _add(
        self, stream: _Stream, row: Any, file: _File, letter: str, offset: int, size: int, flags: str | None,
        other: _File | None = None,
    ) -> None:  # fmt: skip
        time, end = float(row.time), float(row.time + row.duration)
        changes = (
            letter in _CHANGES
            or (letter == "O" and (flags is None or creates(flags)))
            or (letter in "CSDL" and file.number in stream.wrote)
        )
        waits = self._waits(stream, file, changes, time)
        if other is not None:
            waits += self._waits(stream, other, True, time)
        waits += self._helpers(stream, time)
        waits += self._handovers.news((int(row.process), int(row.thread)))
        folders = [f for f in (self._folder_of(t) for t in (file, other) if t is not None) if f is not None]
        for folder in folders:
            waits += self._waits(stream, folder, False, time)
        marks: dict[int, int] = {}
        for each in waits:
            number, count = each.mark
            if number != stream.number and stream.clock.get(number, 0) < count:
                marks[number] = max(count, marks.get(number, 0))
        since = max([stream.idle_since, *(w.time for w in waits if w.mark[0] in marks)])
        gap = max(0.0, time - since)
        stream.clock.update(marks)
        self._follow(stream, file, letter, offset, size, flags, other)
        offset, size = self._encoded(letter, offset, size, flags, other)
        stream.operations.append(
            Operation(letter, file.number, offset, size, int(gap * 1e9), list(marks.items()))
        )
        done = End(end, (stream.number, len(stream.operations)), frozenset(marks.items()))
        for touched in (file, other):
            if touched is not None:
                (touched.changes if changes else touched.reads).add(done)
        if changes:
            for folder in folders:
                folder.reads.add(done)
        self._end(stream, end)
        self._totals[_GROUPS.get(letter, "metadata")].update(
            operations=1, bytes=size if letter in "RW" else 0
        )

    def _end(self, stream: _Stream, end: float) -> None:
        stream.idle_since = max(stream.idle_since, end)
        if end >= stream.until:
            self._over.add(End(stream.until, (stream.number, len(stream.operations)), stream.mine))

    def _folder_of(self, file: _File) -> _File | None:
        """Return the folder of a file, where the program made, renamed or removed it."""
        folder = self._files.get(file.record.name.rpartition("/")[0])
        return folder if folder is not None and folder.number in self._changed_folders else None

    def _waits(self, stream: _Stream, file: _File, changes: bool, time: float) -> list[End]:
        found = list(file.changes.before(time))
        if changes:
            found += file.reads.before(time)
        return [end for end in found if end.mark[0] != stream.number]

    def _follow(
        self, stream: _Stream, file: _File, letter: str, offset: int, size: int, flags: str | None,
        other: _File | None,
    ) -> None:  # fmt: skip
        """Keep what each file holds, and what it must have held before."""
        record = file.record
        if letter == "R":
            if size and offset + size > file.written:
                record.size = max(record.size, offset + size)
                file.known = record.existed = True
        elif letter == "W":
            file.written = max(file.written, offset + size)
            stream.wrote.add(file.number)
            record.remains = True
        elif letter == "O":
            stream.position[file.number] = 0
            stream.listed.discard(file.number)
            if flags is not None and "O_TRUNC" in flags:
                file.written, file.fresh = 0, True
            file.fresh |= file.known and not record.existed
            record.remains |= flags is not None and creates(flags) and not record.existed
        elif letter == "P":
            file.written = max(file.written, offset + size)
            record.largest = max(record.largest, file.written)
            record.remains = True
        elif letter == "K":
            file.written = offset
            record.largest = max(record.largest, offset)
            record.remains = True
        elif letter in "UX":
            file.written, file.fresh, record.remains = 0, True, False
        elif letter == "M":
            record.remains = True
            self._changed_folders.add(file.number)
        elif letter in "NY" and other is not None:
            other.written, other.known, other.record.remains = file.written, True, True
            other.fresh = file.fresh
            other.record.largest = max(other.record.largest, file.written)
            if letter == "N":
                file.written, record.remains = 0, False
                self._rename_inner(file, other)
        if letter in "RW":
            stream.position[file.number] = offset + size
            record.largest = max(record.largest, offset + size)

    def _rename_inner(self, folder: _File, other: _File) -> None:
        """Let what lies in a renamed folder be found under its new name."""
        if not folder.record.folder:
            return
        other.record.folder = True
        self._changed_folders |= {folder.number, other.number}
        inside = folder.record.name + "/"
        for file in [f for name, f in self._files.items() if name.startswith(inside)]:
            moved = self._file(other.record.name + "/" + file.record.name[len(inside) :])
            moved.written, moved.fresh, moved.known = file.written, file.fresh, True
            moved.record.remains, moved.record.folder = file.record.remains, file.record.folder
            moved.record.largest = max(moved.record.largest, file.record.largest)
            moved.changes, moved.reads = file.changes, file.reads
            file.written, file.fresh, file.record.remains = 0, True, False

    def _encoded(
        self, letter: str, offset: int, size: int, flags: str | None, other: _File | None
    ) -> tuple[int, int]:
        """Return what stands in a recipe as an operation's offset and size."""
        if letter in "RW":
            return offset, size
        if letter in "NY":
            return (0 if other is None else other.number + 1), 0
        if letter == "O" and flags is not None:
            return 0, how(flags)
        if letter in "EHV":
            words = (flags or "").split("|")
            return (offset, int(words[2])) if len(words) == 3 else (0, 0)
        if letter in "PQ":
            return offset, size
        return (offset if letter == "K" else 0), (size if letter in "TAK" else 0)

    # -- the whole -------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        recipe = self.recipe
        names = {f.record.name for f in self._files.values()}
        folders = {parent for name in names for parent in _parents(name)}
        made = {f.record.name for f in self._files.values() if f.record.folder and not f.record.existed}
        for file in self._files.values():
            record = file.record
            if record.name in folders or record.name.rstrip("/") in folders:
                record.folder = record.largest == 0
            record.made_folder = any(parent in made for parent in _parents(record.name))
            record.largest = max(record.largest, record.size)
        for operations in recipe.streams:
            _open_for_all_uses(operations)
        recipe.totals = {
            name: {"operations": c["operations"], "bytes": c["bytes"]} for name, c in self._totals.items()
        }
        recipe.left_out = dict(self._left_out)


def _open_for_all_uses(operations: list[Operation]) -> None:
    """Open a file for writing too where the stream also writes it through another descriptor.

    A replaying stream holds one descriptor of a file.
    """
    needs = {o.file for o in operations if o.kind in "WSDEPQ" or (o.kind == "O" and not o.size & READ_ONLY)}
    for o in operations:
        if o.kind == "O" and o.file in needs:
            o.size &= ~READ_ONLY


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts)) if "/".join(parts[:n])]


def write_recipe(frame: IOFrame, path: Path, limit: int | None = None, data: str = "/") -> Recipe:
    """Write the recipe of a trace to `path`, and its totals beside it (``.json``). UserError beyond
    `limit` bytes."""
    recipe = compile_trace(frame, data)
    if limit is not None and recipe.footprint > limit:
        raise UserError(
            f"the trace's files need {recipe.footprint:,} bytes and the workload allows {limit:,}: raise "
            "`largest`"
        )
    path.write_text(recipe.text(), encoding="ascii")
    facts: dict[str, Any] = {
        "totals": recipe.totals, "left_out": recipe.left_out, "files": recipe.files,
        "footprint": recipe.footprint,
    }  # fmt: skip
    path.with_suffix(".json").write_text(
        json.dumps(facts, indent=1) + "\n", encoding="utf-8", errors="surrogateescape"
    )
    return recipe


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tiercel.placement.compile")
    parser.add_argument("trace", type=Path)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    try:
        write_recipe(open_trace(arguments.trace), arguments.recipe, arguments.limit)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main() or os.EX_OK)
