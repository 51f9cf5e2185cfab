"""strace: the lines of ``strace -f -ttt -T -y`` (or ``-tt``), one file, or one for each process (``-ff -o``).

Every system call becomes an event. Descriptors are followed through open, dup, fork and close, so offsets of
read and write are known where the file was opened in the trace, or where lseek told the position; they are
missing in append mode. ``-y`` is not needed for that, but names descriptors that were open before.

What system calls cannot show is not here: memory-mapped transfers, and what io_uring or Linux AIO move
(a warning says so). Reads and writes of pipes, sockets and the like are of kind ``other``. copy_file_range,
sendfile and splice appear once, as a write of the file that they write. Source: strace 6.1 and its manual.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import Any

import pyarrow as pa

from tiercel.errors import UserError
from tiercel.traces.calls import kind_of
from tiercel.traces.readers.base import BATCH, EventWriter, ReadReport, readers
from tiercel.traces.readers.text import Lines, first_bytes

_LINE = re.compile(
    r"(?:\[pid +(\d{1,9})\] |(\d{1,9}) +)?"  # who
    r"(?:(\d{9,11}\.\d{6,9})|(\d\d):(\d\d):(\d\d(?:\.\d{6,9})?)) "  # when: seconds since 1970, or time of day
    r"(.*)"
)
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\((.*)\)\s*= (-?\d{1,20}|0x[0-9a-f]{1,16}|\?)(.*)", re.DOTALL)
_UNFINISHED = re.compile(r"([a-z_][a-z0-9_]*)\((.*?),? *<unfinished \.\.\.>\)?", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]*) resumed> ?(.*)", re.DOTALL)
#: What -y and -yy put behind a descriptor; the arrow between the ends of a connection is not its end.
_SHOWN = r"<((?:->(?=[\d\[])|[^>])*(?:<[^>]*>)?)>"
_DESCRIPTOR = re.compile(r"(-?\d{1,10}|AT_FDCWD)(?:" + _SHOWN + ")?")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TOOK = re.compile(r" <(\d{1,10}\.\d{1,9})>$")
_RESULT = re.compile(_SHOWN)
_OFFSET = re.compile(r", (-?\d{1,19})$")
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
_DAY = 86400.0
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


class _Reading:
    """One pass over all files of a trace."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer
        self._rows: list[tuple[Any, ...]] = []
        self._events = 0
        self._processes: dict[int, _Process] = {}
        self._began: dict[int, _Began] = {}
        self._forking: list[int] = []
        self._start: float | None = None
        self._dated = False
        self._day = 0.0
        self._last = 0.0
        self._untimed = 0
        self._unseen: Counter[str] = Counter()

    def run(self, sources: Sequence[Path]) -> ReadReport:
        warnings: list[str] = []
        for source in sources:
            warnings += self._file(source)
        self._flush()
        if not self._events:
            raise UserError(
                f"{sources[0]}: no system call with a time (strace -f -ttt -T -y -o FILE PROGRAM writes them)"
            )
        if self._began:
            names = ", ".join(sorted({began.function for began in self._began.values()}))
            warnings.append(f"{len(self._began)} calls lost: they never returned in the trace ({names})")
        if self._untimed:
            warnings.append(f"{self._untimed} calls of unknown duration: strace ran without -T")
        for what, count in self._unseen.items():
            warnings.append(
                f"{count} calls of {what}: what it read and wrote is not in a trace of system calls"
            )
        metadata: dict[str, Any] = {"format": "strace", "ranks_from": "order of appearance"}
        if self._dated and self._start is not None:
            metadata["epoch"] = self._start
        return ReadReport(warnings, metadata)

    def _file(self, source: Path) -> list[str]:
        """Read one file. With -ff the name ends with the process' number."""
        suffix = source.suffixes[-1][1:] if source.suffixes else ""
        owner = int(suffix) if suffix.isdecimal() and len(suffix) < 10 else 0
        bad, first, number, cut = 0, 0, 0, False
        text = Lines(source)
        try:
            for block in text:
                for raw in block.split(b"\n")[: -1 if block.endswith(b"\n") else None]:
                    number += 1
                    cut = not block.endswith(b"\n")
                    if raw and not self._line(raw.decode("utf-8", "replace"), owner):
                        bad += 1
                        first = first or number
        except OSError as error:
            return [f"{source.name}: lost from line {number} on: {error.strerror or error}"]
        warnings = list(text.warnings)
        if bad and cut and first == number:
            warnings.append(f"{source.name}: the last line is cut: one call lost")
        elif bad:
            warnings.append(f"{source.name}: {bad} of {number} lines are not strace's (first: line {first})")
        return warnings

    def _line(self, line: str, owner: int) -> bool:
        """Take one line in; False when it cannot be understood."""
        found = _LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            return line.startswith(("strace: ", "+++ ", "--- "))
        one, other, since, hours, minutes, seconds, rest = found.groups()
        thread = int(one or other or owner)
        if since is not None:
            self._dated, time = True, float(since)
        else:
            time = self._day + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            if time < self._last - _DAY / 2:
                self._day += _DAY
                time += _DAY
            self._last = max(self._last, time)
        if self._start is None:
            self._start = time
        if rest.startswith(("+++ ", "--- ")):
            if rest.startswith("+++ "):
                self._processes.pop(thread, None)
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
        if child in self._processes:
            return
        mother = self._processes[parent]
        number = mother.number if "CLONE_THREAD" in arguments else child
        table = mother.table if "CLONE_FILES" in arguments else dict(mother.table)
        self._processes[child] = mother if number == mother.number else _Process(number, table, mother.folder)

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
        self._untimed += duration is None and answer != "?"  # exit does not come back
        # Addresses are hexadecimal; a damaged number may begin with zeros, which base 0 refuses.
        result = int(answer, 16 if answer.lower().startswith(("0x", "-0x")) else 10) if answer != "?" else -1
        kind = kind_of(function, "posix")
        file: str | None = None
        size = offset = flags = target = None
        if function in _UNSEEN and result > 0:
            self._unseen[_UNSEEN[function]] += 1
        if kind in {"read", "write"}:
            opened, offset = _transfer(self, process, function, arguments, result)
            target = _source(self, process, function, arguments) if function in _COPIES else None
            size = result if 0 <= result <= _LIMIT else None
            if opened is not None:
                file = opened.path
                if not opened.file:
                    kind, offset, size = "other", None, None
                    flags, target = self._passed(function, opened.path, result)
        elif change := _CHANGES.get(function):
            file = change(self, process, arguments, result, rest)
        elif function in _FORKS | _WAITS:
            flags, target = self._family(thread, function, arguments, result)
        elif kind != "other":
            file = self._named(process, arguments)
            target = _second_path(process, arguments) if function in _TWO_PATHS else None
            if function in _MOVES_ABOUT and result == 0 and file:
                process.folder = normpath(file)
            offset = _new_length(arguments) if function in _TRUNCATES else None
        elif function in _MAPS:
            file = self._mapped(process, arguments)
        if kind == "metadata":
            flags, start = _FLAGGED.get(function, _plainly_flagged)(arguments)
            offset = start if offset is None else offset
        elif function == "futex":
            flags, target = _futex(process, arguments, result)
        failed = None if answer == "?" else result < 0
        began = time - (self._start or 0.0)
        duration = 0.0 if duration is None and answer == "?" else duration
        who = (began, duration, process.number, thread, function, kind)
        self._rows.append((*who, file, offset, size, failed, flags, target))
        if len(self._rows) >= BATCH:
            self._flush()

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
        if not self._rows:
            return
        (time, duration, process, thread, function, kind, file, offset, size, failed, flags, target) = zip(
            *self._rows, strict=True
        )
        self._events += len(time)
        self._writer.write(
            {
                "time": pa.array(time, pa.float64()),
                "duration": pa.array(duration, pa.float64()),
                "process": pa.array(process, pa.int64()),
                "thread": pa.array(thread, pa.int64()),
                "function": pa.array(function, pa.string()),
                "category": pa.array(["POSIX"] * len(time), pa.string()),
                "api": pa.array(["posix"] * len(time), pa.string()),
                "kind": pa.array(kind, pa.string()),
                "file": pa.array(file, pa.string()),
                "offset": pa.array(offset, pa.int64()),
                "size": pa.array(size, pa.int64()),
                "failed": pa.array(failed, pa.bool_()),
                "flags": pa.array(flags, pa.string()),
                "target": pa.array(target, pa.string()),
            }
        )
        self._rows = []


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
    "close": _Reading.close, "lseek": _Reading.seek, "_llseek": _Reading.seek, "dup": _Reading.duplicate,
    "dup2": _Reading.duplicate, "dup3": _Reading.duplicate, "fcntl": _Reading.control,
    "fcntl64": _Reading.control,
}  # fmt: skip


def _transfer(reading: _Reading, process: _Process, function: str, arguments: str,
              result: int) -> tuple[_Open | None, int | None]:  # fmt: skip
    """Return what a read or write was of and where, and move its position on."""
    if function in _COPIES:
        return _copy(reading, process, function, arguments, result)
    opened = reading._opened(process, arguments)[1]
    if opened is None:
        return None, None
    if function.startswith(("pread", "pwrite")):
        text = arguments.rpartition(", ")[0] if function.endswith("v2") else arguments
        given = _OFFSET.search(text)
        where = int(given[1]) if given else None
        if where is not None and where >= 0:
            return opened, min(where, _LIMIT)
    here = None if opened.appends and kind_of(function, "posix") == "write" else opened.at
    opened.at = None if here is None or not 0 <= result <= _LIMIT else min(here + result, _LIMIT)
    if result < 0:
        opened.at = here
    return opened, here


def _copy(reading: _Reading, process: _Process, function: str, arguments: str,
          result: int) -> tuple[_Open | None, int | None]:  # fmt: skip
    """Follow a copy between descriptors: both move on where no offset was given."""
    shown = re.sub(r" => \[\d+\]", "", arguments)
    parts = [part.strip() for part in re.split(r",(?![^<]*>)", shown)]
    if len(parts) < 4:
        return None, None
    moved = max(result, 0)
    source, target = (parts[1], parts[0]) if function.startswith("sendfile") else (parts[0], parts[2])
    given = (parts[2], "NULL") if function.startswith("sendfile") else (parts[1], parts[3])
    read, written = reading._opened(process, source)[1], reading._opened(process, target)[1]
    if read is not None and given[0] == "NULL" and read.at is not None:
        read.at = min(read.at + moved, _LIMIT)
    if written is None:
        return None, None
    if given[1] != "NULL":
        found = re.match(r"\[(\d{1,19})", given[1])
        return written, min(int(found[1]), _LIMIT) if found else None
    here = None if written.appends else written.at
    written.at = None if here is None else min(here + moved, _LIMIT)
    return written, here


def _source(reading: _Reading, process: _Process, function: str, arguments: str) -> str | None:
    """Return the file that a copy between descriptors reads."""
    parts = [part.strip() for part in re.split(r",(?![^<]*>)", arguments)]
    number = 1 if function.startswith("sendfile") else 0
    opened = reading._opened(process, parts[number])[1] if len(parts) > number else None
    return opened.path if opened is not None and opened.file else None


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
