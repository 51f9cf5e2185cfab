"""strace: the lines of ``strace -f -ttt -T -y`` (or ``-tt``), one file, or one for each process (``-ff -o``).

Every system call becomes an event. Descriptors are followed through open, dup, fork and close, so offsets of
read and write are known where the file was opened in the trace, or where lseek told the position; they are
missing in append mode. ``-y`` is not needed for that, but names descriptors that were open before.

What system calls cannot show is not here: memory-mapped transfers, and what io_uring or Linux AIO move
(a warning says so). Reads and writes of pipes, sockets and the like are of kind ``other``. copy_file_range,
sendfile and splice are a read of the file that they read and a write of the file that they write; where both
are files, each has half of the time.

The lines of several files (``-ff``) are merged by time, because processes share descriptors and positions.
Without ``-o`` strace names a process only while it traces several; lines without a name are those of the one
process that is left. Source: strace 6.1 and its manual.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import normpath
from typing import Any

import pyarrow as pa

from tiercel.errors import UserError
from tiercel.traces.calls import kind_of
from tiercel.traces.readers.base import BATCH, EventWriter, ReadReport, readers
from tiercel.traces.readers.text import Lines, first_bytes

_LINE = re.compile(
    r"(?:\[pid +(\d{1,9})(?:<.*?>)?\] |(\d{1,9})(?:<.*?>)? +)?"  # who; -Y adds the name of its program
    # When: seconds since 1970, or time of day; of any precision.
    r"(?:(\d{9,11}(?:\.\d{3,9})?)|(\d\d):(\d\d):(\d\d(?:\.\d{3,9})?)) "
    r"(.*)"
)
#: strace's own word, which may stand within the line of the call that starts the process.
_ATTACHED = re.compile(r"(?:strace: )?Process (\d{1,9}) attached$")
#: A fork that came back with a process: its number is in the last group.
_FORKED = re.compile(r"(?:v?fork|clone3?)\(.*\)\s*= (\d{1,9})(?!\d)")
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\((.*)\)\s*= (-?\d{1,20}|0x[0-9a-f]{1,16}|\?)(?![^ <])(.*)", re.DOTALL)
_UNFINISHED = re.compile(r"([a-z_][a-z0-9_]*)\((.*?),? *<unfinished \.\.\.>\)?", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]*) resumed> ?(.*)", re.DOTALL)
#: What -y and -yy put behind a descriptor; the arrow between the ends of a connection is not its end.
_SHOWN = r"<((?:->(?=[\d\[])|[^>])*(?:<[^>]*>)?)>"
_DESCRIPTOR = re.compile(r"(-?\d{1,10}|AT_FDCWD)(?:" + _SHOWN + ")?")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TOOK = re.compile(r" <(\d{1,10}(?:\.\d{1,9})?)>$")
_RESULT = re.compile(_SHOWN)
_OFFSET = re.compile(r", (-?\d{1,19})$")
_POSITION = re.compile(r"\[(\d{1,19})\], SEEK_")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
_NOT_A_FILE = re.compile(
    r"(?:socket|pipe|anon_inode|TCP|UDP|UNIX|NETLINK|mqueue|/memfd|ICMP|RAW|PACKET)[^/]*:"
)
_ESCAPED = {"n": 10, "t": 9, "r": 13, "v": 11, "f": 12, "a": 7, "b": 8, "e": 27}
_FORKS = {"fork", "vfork", "clone", "clone3"}
_WAITS = {"wait4", "waitpid", "waitid"}
_UNSEEN = {"io_uring_enter": "io_uring", "io_submit": "Linux AIO"}
_OPENS = {"open", "openat", "openat2", "creat"}
_NEW_PLACES = {
    "memfd_create",
    "socket",
    "accept",
    "accept4",
    "epoll_create",
    "epoll_create1",
    "eventfd2",
    "timerfd_create",
}
_UNNAMED = 0
_DAY = 86400.0
#: Text of all files of a trace that is held while their lines are merged.
_HELD = 32 << 20
_LIMIT = (1 << 63) - 1
_FLAGS = re.compile(r"\b(?:O|AT|RENAME)_[A-Z_]+(?:\|(?:O|AT|RENAME)_[A-Z_]+)*(?=[,)]|$)")
#: fcntl's locks of byte ranges: l_whence is SEEK_SET of all programs that name ranges.
_RANGE = re.compile(
    r"(F_(?:OFD_)?(?:SETLKW?|GETLK))(?:64)?, \{l_type=(F_[A-Z]+), l_whence=SEEK_SET, "
    r"l_start=(\d{1,19}), l_len=(\d{1,19})"
)
#: fallocate's mode, offset and length.
_ALLOCATION = re.compile(r", (0|FALLOC_[A-Z_|]+), (\d{1,19}), (\d{1,19})$")
#: A connected socket, as ``-yy`` shows it: its own end and the other.
_SOCKET = re.compile(r"(UNIX|TCP)[^\[]*:\[([^\]]+?)->([^\],]+)")
_FLOCK = re.compile(r"\bLOCK_(?:SH|EX|UN)\b")
_MOVES_ABOUT = {"chdir", "fchdir"}
_TWO_PATHS = {"rename", "renameat", "renameat2", "link", "linkat"}
_TRUNCATES = {"truncate", "truncate64", "ftruncate", "ftruncate64"}
_MAPS = {"mmap", "mmap2"}
_COPIES = {"copy_file_range", "splice", "sendfile", "sendfile64"}


@dataclass
class _Open:
    """An open file description: what descriptors made by dup and fork share."""

    path: str | None
    at: int | None = None
    appends: bool = False
    file: bool = True


@dataclass
class _Process:
    """What threads share."""

    number: int
    table: dict[int, _Open] = field(default_factory=dict)
    folder: str | None = None
    """Its working folder, once the trace told it: what relative names are below."""
    inherited: bool = False
    """Whether it has what its parent had open."""


@dataclass(slots=True)
class _Event:
    """A row. `process` is resolved to its number when rows are written: it may be named late."""

    time: float
    duration: float | None
    process: _Process
    thread: int
    function: str
    kind: str
    file: str | None = None
    offset: int | None = None
    size: int | None = None
    failed: bool | None = None
    flags: str | None = None
    target: str | None = None


@dataclass
class _Began:
    """A call whose answer comes in a later line."""

    function: str
    arguments: str
    time: float


@readers.register("strace")
class Strace:
    """Reads strace's lines in order; of several files, one after the other."""

    title = "strace -f -ttt -T -y"
    alone = False

    def recognises(self, path: Path) -> bool:
        if not path.is_file():
            return False
        lines = first_bytes(path, 1 << 14).decode("utf-8", "replace").splitlines()[:40]
        return any(_is_call(line) for line in lines)

    def read(self, sources: Sequence[Path], writer: EventWriter) -> ReadReport:
        return _Reading(writer).run(sources)


def _is_call(line: str) -> bool:
    found = _LINE.match(line)
    if not found:
        return False
    rest = found[7]
    return bool(_CALL.fullmatch(rest) or _UNFINISHED.fullmatch(rest) or rest.startswith("<... "))


@dataclass(frozen=True)
class _Line:
    """One line: when, in which file, who (None: the line does not name it), and what it says."""

    time: float
    source: _Source
    who: int | None
    text: str


class _Source:
    """One file of lines. With -ff its name ends with the process' number; then no line names a process."""

    def __init__(self, path: Path, block: int, day: float = 0.0) -> None:
        suffix = path.suffixes[-1][1:] if path.suffixes else ""
        self.path = path
        self.owner = int(suffix) if suffix.isdecimal() and len(suffix) < 10 else None
        #: The process of lines that name none, once it is known.
        self.main: int | None = self.owner
        #: Processes that lines name and that have not ended.
        self.alive: set[int] = set()
        self.dated = False
        self.warnings: list[str] = []
        self._block = block
        self._day = day
        self._number = self._bad = self._first_bad = 0
        self._cut = False

    def lines(self) -> Iterator[_Line]:
        """Yield the lines that have a time, and those that say that a process is attached, in their order."""
        text = Lines(self.path, self._block)
        last, day, begun = 0.0, self._day, ""
        try:
            for block in text:
                self._cut = not block.endswith(b"\n")
                for raw in block.split(b"\n")[: None if self._cut else -1]:
                    self._number += 1
                    line = begun + raw.decode("utf-8", "backslashreplace").rstrip("\r")
                    begun = ""
                    if line.endswith("attached") and (attached := _ATTACHED.search(line)):
                        begun = line[: attached.start()]
                        yield _Line(last, self, None, attached[0])
                        continue
                    found = _LINE.fullmatch(line)
                    if found is None:
                        if line and not line.startswith(("strace: ", "+++ ", "--- ")):
                            self.misread()
                        continue
                    one, other, since, hours, minutes, seconds, rest = found.groups()
                    if since is not None:
                        self.dated, time = True, float(since)
                    else:
                        time = day + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
                        if time < last - _DAY / 2:
                            day += _DAY
                            time += _DAY
                    last = max(last, time)
                    named = one or other
                    yield _Line(time, self, int(named) if named else None, rest)
        except OSError as error:
            self.warnings.append(
                f"{self.path.name}: lost from line {self._number} on: {error.strerror or error}"
            )
        self.warnings += text.warnings

    def misread(self) -> None:
        """Count the line that was yielded last as one that cannot be understood."""
        self._bad += 1
        self._first_bad = self._first_bad or self._number

    def lost(self) -> list[str]:
        """Return a sentence for each thing that was lost."""
        if self._bad and self._cut and self._first_bad == self._number:
            return [*self.warnings, f"{self.path.name}: the last line is cut: one call lost"]
        if self._bad:
            return [*self.warnings, f"{self.path.name}: {self._bad} of {self._number} lines are not strace's "
                    f"(first: line {self._first_bad})"]  # fmt: skip
        return self.warnings


def _sources(paths: Sequence[Path]) -> list[_Source]:
    block = max(_HELD // len(paths), 1 << 16)
    days = _days([_Source(path, block) for path in paths]) if len(paths) > 1 else {}
    return [_Source(path, block, days.get(path, 0.0)) for path in paths]


def _days(sources: Sequence[_Source]) -> dict[Path, float]:
    """Return on which day each file begins, in seconds, where lines tell the time of day alone: not before
    its process was started in another file. Empty where they tell the date."""
    first: dict[int, tuple[float, Path]] = {}
    children: dict[int, list[tuple[int, float]]] = {}
    for source in sources:
        for line in source.lines():
            if source.dated or source.owner is None:
                return {}
            first.setdefault(source.owner, (line.time, source.path))
            if (forked := _FORKED.match(line.text)) and int(forked[1]) != source.owner:
                children.setdefault(source.owner, []).append((int(forked[1]), line.time))
    started = {child for found in children.values() for child, _ in found}
    found: dict[Path, float] = {}
    waiting = [(owner, 0.0) for owner in first if owner not in started]
    while waiting:
        owner, day = waiting.pop()
        if owner not in first or first[owner][1] in found:
            continue
        found[first[owner][1]] = day
        for child, at in children.get(owner, ()):
            if child in first:
                behind = at + day - first[child][0] - 1.0
                waiting.append((child, max(math.ceil(behind / _DAY), 0) * _DAY))
    return found


class _Reading:
    """One pass over all files of a trace."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer
        self._rows: list[_Event] = []
        self._events = 0
        self._processes: dict[int, _Process] = {}
        self._began: dict[int, _Began] = {}
        self._forking: list[int] = []
        self._attached: set[int] = set()
        self._start: float | None = None
        self._unanswered = 0
        self._unseen: Counter[str] = Counter()

    def run(self, paths: Sequence[Path]) -> ReadReport:
        sources = _sources(paths)
        for line in heapq.merge(*(source.lines() for source in sources), key=lambda each: each.time):
            if not self._line(line):
                line.source.misread()
        warnings = [sentence for source in sources for sentence in source.lost()]
        self._flush()
        if not self._events:
            raise UserError(
                f"{paths[0]}: no system call with a time (strace -f -ttt -T -y -o FILE PROGRAM writes them)"
            )
        if self._began:
            names = ", ".join(sorted({began.function for began in self._began.values()}))
            warnings.append(f"{len(self._began)} calls lost: they never returned in the trace ({names})")
        if self._unanswered:
            warnings.append(
                f"{self._unanswered} reads and writes have no answer (their process ended): they failed"
            )
        for what, count in self._unseen.items():
            warnings.append(
                f"{count} calls of {what}: what it read and wrote is not in a trace of system calls"
            )
        metadata: dict[str, Any] = {"format": "strace", "ranks_from": "order of appearance"}
        if any(source.dated for source in sources) and self._start is not None:
            metadata["epoch"] = self._start
        return ReadReport(warnings, metadata)

    def _line(self, line: _Line) -> bool:
        """Take one line in; False when it cannot be understood."""
        if attached := _ATTACHED.match(line.text):
            self._attached.add(int(attached[1]))
            return True
        time, rest = line.time, line.text
        thread = self._thread(line)
        if self._start is None:
            self._start = time
        if rest.startswith(("+++ ", "--- ")):
            if rest.startswith("+++ "):
                self._processes.pop(thread, None)
                line.source.alive.discard(thread)
            return True
        if rest.startswith("<... "):
            return self._resumed(rest, thread, time)
        if rest.endswith(("<unfinished ...>", "<unfinished ...>)")):
            began = _UNFINISHED.fullmatch(rest)
            if began is None:
                return False
            self._process(thread)
            self._began[thread] = _Began(began[1], began[2], time)
            if began[1] in _FORKS:
                self._forking.append(thread)
            return True
        call = _CALL.fullmatch(rest)
        if call is None:
            return False
        self._call(thread, time, call[1], call[2], call[3], call[4])
        return True

    def _thread(self, line: _Line) -> int:
        """Return whose line it is. `_UNNAMED` stands for a process until a line names it."""
        source, who = line.source, line.who
        if who is None:
            # strace names processes while there are several: what is left needs no name.
            left = next(iter(source.alive)) if len(source.alive) == 1 else None
            return next((each for each in (left, source.main) if each is not None), _UNNAMED)
        source.alive.add(who)
        if source.main is None and who not in self._processes and self._is_unnamed(who, line.text):
            source.main = who
            unnamed = self._processes.pop(_UNNAMED)
            if not self._events:  # else rows with the stand-in are written: it stays the process' number
                unnamed.number = who
            self._processes[who] = unnamed
            if began := self._began.pop(_UNNAMED, None):
                self._began[who] = began
            self._forking = [who if each == _UNNAMED else each for each in self._forking]
        return who

    def _is_unnamed(self, who: int, text: str) -> bool:
        """Say whether a process that a line names for the first time is the one that had no name before."""
        if _UNNAMED not in self._processes or who in self._attached:
            return False
        # While it forks it says nothing: then another one's line is the child's.
        return _UNNAMED not in self._forking or text.startswith(("<... fork", "<... vfork", "<... clone"))

    def _resumed(self, rest: str, thread: int, time: float) -> bool:
        resumed = _RESUMED.fullmatch(rest)
        began = self._began.pop(thread, None)
        if resumed is None:
            return False
        function, end = resumed[1], resumed[2]
        if began is not None and began.function == function:
            middle = ", " if began.arguments and end and not end.startswith((")", ",")) else ""
            arguments, start = began.arguments + middle, began.time
        else:  # its beginning is not in the trace
            arguments, start = "", time
        call = _CALL.fullmatch(f"{function}({arguments}{end}")
        if thread in self._forking:
            self._forking.remove(thread)
        if call is None:
            return False
        self._call(thread, start, call[1], call[2], call[3], call[4], until=time)
        return True

    # -- descriptors -----------------------------------------------------------------------------------------

    def _process(self, thread: int) -> _Process:
        """Return the process of a thread; a new one is the child of whoever is forking."""
        known = self._processes.get(thread)
        if known is None:
            parent = self._forking[0] if self._forking else None
            if parent is not None and parent != thread and parent in self._processes:
                began = self._began.get(parent)
                self._fork(parent, thread, began.arguments if began else "")
                known = self._processes[thread]
            else:
                known = self._processes[thread] = _Process(thread)
        return known

    def _fork(self, parent: int, child: int, arguments: str) -> None:
        mother = self._processes[parent]
        if known := self._processes.get(child):
            if not known.inherited and known is not mother:  # its first line has the time of the fork
                known.table.update({**mother.table, **known.table})
                known.folder, known.inherited = known.folder or mother.folder, True
            return
        table = mother.table if "CLONE_FILES" in arguments else dict(mother.table)
        self._processes[child] = (
            mother if "CLONE_THREAD" in arguments else _Process(child, table, mother.folder, True)
        )

    def _opened(self, process: _Process, text: str) -> tuple[int | None, _Open | None]:
        """Return the descriptor at the start of `text` and what is known of it."""
        found = _DESCRIPTOR.match(text)
        if found is None or found[1].startswith("A"):
            return None, None
        number = int(found[1])
        opened = process.table.get(number)
        shown = found[2]
        if shown is not None and (opened is None or opened.path != _unescape(shown)):
            if opened is None or opened.path is not None or opened.file:
                opened = process.table[number] = _described(shown)
        elif opened is None and number >= 0:
            opened = process.table[number] = _Open(None)
        return number, opened

    # -- calls -----------------------------------------------------------------------------------------------

    def _call(self, thread: int, time: float, function: str, arguments: str, answer: str, rest: str,
              until: float | None = None) -> None:  # fmt: skip
        process = self._process(thread)
        took = _TOOK.search(rest)
        duration = float(took[1]) if took else None if until is None else until - time
        # Addresses are hexadecimal; a damaged number may begin with zeros, which base 0 refuses.
        result = int(answer, 16 if answer.lower().startswith(("0x", "-0x")) else 10) if answer != "?" else -1
        # What never came back moved nothing that the program knows of; a restarted call says so again.
        failed = (
            (True if kind_of(function, "posix") in {"read", "write"} else None)
            if answer == "?"
            else result < 0
        )
        self._unanswered += failed is True and answer == "?" and not rest.startswith(" ERESTART")
        event = _Event(
            time - (self._start or 0.0), 0.0 if duration is None and answer == "?" else duration, process,
            thread, function, kind_of(function, "posix"), failed=failed,
        )  # fmt: skip
        if function in _UNSEEN and result > 0:
            self._unseen[_UNSEEN[function]] += 1
        if function in _COPIES:
            self._rows += _copied(self, event, arguments, result)
        else:
            self._fill(event, arguments, result, rest)
            self._rows.append(event)
        if len(self._rows) >= BATCH:
            self._flush()

    def _fill(self, event: _Event, arguments: str, result: int, rest: str) -> None:
        """Find out what a call was about, and follow what it changes."""
        process, function, kind = event.process, event.function, event.kind
        if kind in {"read", "write"}:
            opened, event.offset = _transfer(self, process, function, arguments, result)
            event.size = result if 0 <= result <= _LIMIT else None
            if opened is not None:
                event.file = opened.path
                if not opened.file:
                    event.kind, event.offset, event.size = "other", None, None
                    event.flags, event.target = self._passed(function, opened.path, result)
        elif change := _CHANGES.get(function):
            event.file = change(self, process, arguments, result, rest)
        elif function in _FORKS | _WAITS:
            event.flags, event.target = self._family(event.thread, function, arguments, result)
        elif kind != "other":
            event.file = self._named(process, arguments)
            event.target = _second_path(process, arguments) if function in _TWO_PATHS else None
            if function in _MOVES_ABOUT and result == 0 and event.file:
                process.folder = normpath(event.file)
            event.offset = _new_length(arguments) if function in _TRUNCATES else None
        elif function in _MAPS:
            event.file = self._mapped(process, arguments)
        if kind == "metadata":
            event.flags, start = _FLAGGED.get(function, _plainly_flagged)(arguments)
            event.offset = start if event.offset is None else event.offset
        elif function == "futex":
            event.flags, event.target = _futex(process, arguments, result)

    def _passed(self, function: str, path: str | None, result: int) -> tuple[str | None, str | None]:
        """Return how many bytes were read or written, and whose inbox they went through: a pipe's, or that of
        one end of a connection."""
        if path is None or result < 0:
            return None, None
        reads = kind_of(function, "posix") == "read"
        inbox = path if path.startswith("pipe:") else None
        if found := _SOCKET.match(path):
            inbox = f"{found[1]}:[{found[2] if reads else found[3]}]"
        return (None, None) if inbox is None else (f"{'reads' if reads else 'writes'}|{result}", inbox)

    def _family(
        self, thread: int, function: str, arguments: str, result: int
    ) -> tuple[str | None, str | None]:
        """Return which process or thread was started, or which process was waited for until it ended."""
        if function in _WAITS:
            return _collected(arguments, result)
        if not 0 < result <= _LIMIT:
            return None, None
        self._fork(thread, result, arguments)
        return "starts", f"process:[{result}]"

    def _mapped(self, process: _Process, arguments: str) -> str | None:
        """Return the file that is mapped into memory, whose accesses then are in no trace of calls."""
        parts = arguments.split(", ", 4)
        return self._by_descriptor(process, parts[4]) if len(parts) == 5 else None

    def _named(self, process: _Process, arguments: str) -> str | None:
        """Return the file that a call names: by path, or by its descriptor."""
        if path := _PATH.search(arguments):
            where = _DESCRIPTOR.match(arguments)
            if where and where.end() > path.start():
                where = None
            return _join(process, where, _unescape(path[1])) or self._by_descriptor(process, arguments)
        return self._by_descriptor(process, arguments)

    def _by_descriptor(self, process: _Process, arguments: str) -> str | None:
        opened = self._opened(process, arguments)[1]
        return opened.path if opened is not None and opened.file else None

    def open(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        shown = _RESULT.match(rest.removesuffix("(deleted)"))
        path = _unescape(shown[1]) if shown else self._named(process, arguments)
        if 0 <= result <= _LIMIT:
            appends = "O_APPEND" in arguments.rpartition('"')[2]
            made = _described(shown[1]) if shown else _Open(path)
            made.appends, made.at = appends, None if appends or not made.file else 0
            process.table[result] = made
        return path

    def new_place(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        if 0 <= result <= _LIMIT:
            process.table[result] = _Open(None, file=False)
        return None

    def close(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        number, opened = self._opened(process, arguments)
        if number is not None and result == 0:
            process.table.pop(number, None)
        return opened.path if opened is not None and opened.file else None

    def long_seek(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        """_llseek returns 0, and the position through its third argument."""
        there = _POSITION.search(arguments) if result == 0 else None
        return self.seek(process, arguments, int(there[1]) if there else -1, rest)

    def seek(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        opened = self._opened(process, arguments)[1]
        if opened is None:
            return None
        if 0 <= result <= _LIMIT:
            opened.at = result
        return opened.path if opened.file else None

    def duplicate(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        opened = self._opened(process, arguments)[1]
        if opened is not None and 0 <= result <= _LIMIT:
            process.table[result] = opened
        return opened.path if opened is not None and opened.file else None

    def control(self, process: _Process, arguments: str, result: int, rest: str) -> str | None:
        """fcntl: some of its commands duplicate, one sets append mode."""
        if "F_DUPFD" in arguments:
            return self.duplicate(process, arguments, result, rest)
        opened = self._opened(process, arguments)[1]
        if opened is not None and "F_SETFL" in arguments and result == 0:
            opened.appends = "O_APPEND" in arguments
        return opened.path if opened is not None and opened.file else None

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        self._events += len(rows)
        columns = {
            "time": ([row.time for row in rows], pa.float64()),
            "duration": ([row.duration for row in rows], pa.float64()),
            "process": ([row.process.number for row in rows], pa.int64()),
            "thread": ([row.thread or row.process.number for row in rows], pa.int64()),
            "function": ([row.function for row in rows], pa.string()),
            "category": (["POSIX"] * len(rows), pa.string()),
            "api": (["posix"] * len(rows), pa.string()),
            "kind": ([row.kind for row in rows], pa.string()),
            "file": ([row.file for row in rows], pa.string()),
            "offset": ([row.offset for row in rows], pa.int64()),
            "size": ([row.size for row in rows], pa.int64()),
            "failed": ([row.failed for row in rows], pa.bool_()),
            "flags": ([row.flags for row in rows], pa.string()),
            "target": ([row.target for row in rows], pa.string()),
        }
        self._writer.write({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def _flags(arguments: str) -> str | None:
    found = _FLAGS.search(arguments.rpartition('"')[2])
    return found[0] if found else None


#: What sleeps in a futex, and what wakes the one that does.
_FUTEX = re.compile(r"0x([0-9a-f]{1,16})(?:<[^>]*>)?, FUTEX_((?:LOCK_PI|WAIT|WAKE|UNLOCK_PI|CMP_REQUEUE)\w*)")


_WAITED = re.compile(r"CLD_(?:EXITED|KILLED|DUMPED), si_pid=(\d{1,9})")


def _collected(arguments: str, result: int) -> tuple[str | None, str | None]:
    """Return which process was waited for until it ended; nothing where none had."""
    found = _WAITED.search(arguments)
    if found or (0 < result <= _LIMIT and "WIFSTOPPED" not in arguments and "WIFCONTINUED" not in arguments):
        return "collects", f"process:[{found[1] if found else result}]"
    return None, None


def _futex(process: _Process, arguments: str, result: int) -> tuple[str | None, str | None]:
    """Return whether a futex waits or wakes somebody, and which it is; nothing where it did neither."""
    found = _FUTEX.match(arguments)
    if found is None or result < 0:
        return None, None
    wakes = found[2].startswith(("WAKE", "UNLOCK", "CMP"))
    if found[2].startswith(("WAKE", "CMP")) and result == 0:
        return None, None  # nobody slept
    owner = f"{process.number}:" if "PRIVATE" in found[2] else ""
    return "wakes" if wakes else "waits", f"futex:[{owner}{found[1]}]"


def _plainly_flagged(arguments: str) -> tuple[str | None, int | None]:
    return _flags(arguments), None


def _allocation(arguments: str) -> tuple[str | None, int | None]:
    """Return mode and length of a fallocate (``FALLOC_FL_KEEP_SIZE|4194304``), and the offset."""
    found = _ALLOCATION.search(arguments)
    if found is None:
        return None, None
    return f"{found[1]}|{min(int(found[3]), _LIMIT)}", min(int(found[2]), _LIMIT)


def _lock(arguments: str) -> tuple[str | None, int | None]:
    """Return what locks what, ``F_SETLK|F_WRLCK|510`` (bytes) or ``LOCK_EX``, and the offset of the range;
    nothing of a call that does something else."""
    if found := _RANGE.search(arguments):
        return f"{found[1]}|{found[2]}|{min(int(found[4]), _LIMIT)}", min(int(found[3]), _LIMIT)
    if found := _FLOCK.search(arguments):
        return found[0], None
    return None, None


#: How the flags of a call, and a number that is kept as its offset, are read from its arguments.
_FLAGGED: dict[str, Callable[[str], tuple[str | None, int | None]]] = {
    **dict.fromkeys(("fcntl", "fcntl64", "flock"), _lock), "fallocate": _allocation,
}  # fmt: skip

_Change = Callable[[_Reading, _Process, str, int, str], str | None]
_CHANGES: dict[str, _Change] = {
    **dict.fromkeys(_OPENS, _Reading.open),
    **dict.fromkeys(_NEW_PLACES, _Reading.new_place),
    "close": _Reading.close, "lseek": _Reading.seek, "_llseek": _Reading.long_seek, "dup": _Reading.duplicate,
    "dup2": _Reading.duplicate, "dup3": _Reading.duplicate, "fcntl": _Reading.control,
    "fcntl64": _Reading.control,
}  # fmt: skip


def _transfer(reading: _Reading, process: _Process, function: str, arguments: str,
              result: int) -> tuple[_Open | None, int | None]:  # fmt: skip
    """Return what a read or write was of and where, and move its position on."""
    opened = reading._opened(process, arguments)[1]
    if opened is None:
        return None, None
    writes = kind_of(function, "posix") == "write"
    # Linux appends whatever offset is given (pwrite's manual, BUGS).
    appends = writes and (opened.appends or "RWF_APPEND" in arguments.rpartition(", ")[2])
    if function.startswith(("pread", "pwrite")):
        text = arguments.rpartition(", ")[0] if function.endswith("v2") else arguments
        given = _OFFSET.search(text)
        there = int(given[1]) if given else None
        if there is not None and there >= 0:
            return opened, None if appends else min(there, _LIMIT)
    here = None if appends else opened.at
    opened.at = None if here is None or not 0 <= result <= _LIMIT else min(here + result, _LIMIT)
    if result < 0:
        opened.at = here
    return opened, here


def _copied(reading: _Reading, event: _Event, arguments: str, result: int) -> list[_Event]:
    """Return the read and the write that a copy between descriptors is, those of them that are of files.

    Both descriptors move on where no offset was given.
    """
    shown = re.sub(r" => \[\d+\]", "", arguments)
    parts = [part.strip() for part in re.split(r",(?![^<]*>)", shown)]
    if len(parts) < 4:
        return [event]
    by_sendfile = event.function.startswith("sendfile")
    source, target = (parts[1], parts[0]) if by_sendfile else (parts[0], parts[2])
    given = (parts[2], "NULL") if by_sendfile else (parts[1], parts[3])
    read, written = (reading._opened(event.process, each)[1] for each in (source, target))
    moved = result if 0 <= result <= _LIMIT else 0
    offsets = [_moved_on(*each, moved) for each in ((read, given[0]), (written, given[1]))]
    event.size = result if 0 <= result <= _LIMIT else None
    from_file, to_file = (each is not None and each.file for each in (read, written))
    if to_file and written is not None:
        event.file, event.offset = written.path, offsets[1]
        event.target = read.path if from_file and read is not None else None
    if not from_file or read is None:
        if not to_file:
            event.kind, event.size = "other", None
        return [event]
    reads = replace(event, kind="read", file=read.path, offset=offsets[0], target=None)
    if not to_file:
        return [reads]
    if event.duration is not None:
        event.duration = reads.duration = event.duration / 2
        event.time += event.duration
    return [reads, event]


def _moved_on(opened: _Open | None, given: str, moved: int) -> int | None:
    """Return where a copy reads or writes, and move the position on where `given` is no offset."""
    if opened is None:
        return None
    if given != "NULL":
        found = re.match(r"\[(\d{1,19})", given)
        return min(int(found[1]), _LIMIT) if found else None
    here = None if opened.appends else opened.at
    opened.at = None if here is None else min(here + moved, _LIMIT)
    return here


def _described(shown: str) -> _Open:
    """Return what -y says of a descriptor whose opening is not in the trace: its position is unknown."""
    if _NOT_A_FILE.match(shown):
        return _Open(_unescape(shown), file=False)
    return _Open(_unescape(shown.split("<", maxsplit=1)[0]))


def _new_length(arguments: str) -> int | None:
    """Return the length that a truncate gives its file."""
    found = _OFFSET.search(arguments)
    return min(max(int(found[1]), 0), _LIMIT) if found else None


def _second_path(process: _Process, arguments: str) -> str | None:
    """Return the new name in the arguments of a rename or a link."""
    paths = list(_PATH.finditer(arguments))
    if len(paths) < 2:
        return None
    where = _DESCRIPTOR.match(arguments[paths[0].end() :].lstrip(", "))
    return _join(process, where, _unescape(paths[1][1])) or None


def _join(process: _Process, where: re.Match[str] | None, path: str) -> str:
    """Return a path as it is from the root, as far as the trace tells: below the descriptor before it,
    else below
    the process' working folder."""
    folder = _unescape(where[2]) if where and where[2] else None
    if folder and where and where[1] == "AT_FDCWD":
        process.folder = folder
    folder = folder or (process.folder if where is None or where[1] == "AT_FDCWD" else None)
    if not path or path.startswith("/") or not folder:
        return path
    return f"{folder.rstrip('/')}/{path}"


def _unescape(text: str) -> str:
    """Return a path as it is: strace writes unusual bytes as in C."""
    if "\\" not in text:
        return text

    def byte(found: re.Match[str]) -> bytes:
        word = found[1]
        if word[0] in "01234567":
            return bytes([int(word, 8) & 255])
        if word[0] == "x" and len(word) == 3:
            return bytes([int(word[1:], 16)])
        return bytes([_ESCAPED[word]]) if word in _ESCAPED else word.encode("utf-8", "replace")

    out, at = b"", 0
    for found in _ESCAPE.finditer(text):
        out += text[at : found.start()].encode("utf-8", "replace") + byte(found)
        at = found.end()
    return (out + text[at:].encode("utf-8", "replace")).decode("utf-8", "replace")
