"""One trial: copies of the working set on a storage, the program run with them, and what it wrote.

The original files are only read. The trial at home uses a copy, too, on the same storage. Copying in and
out is
the code of the staging script (`placement/stage.py`).
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO

from tiercel import pagecache
from tiercel.advice import isolation, seen
from tiercel.advice.stdin import Input
from tiercel.advice.workset import Folder
from tiercel.errors import RunFailed
from tiercel.placement import stage
from tiercel.placement.staging import Move, staged_command, staging_script
from tiercel.runs.scratch import Scratch, space_problem
from tiercel.site.model import Site, Stack

#: Outputs up to so many bytes are compared by content, larger ones by size.
_COMPARED = 256 << 20
#: A copy that takes up to so many seconds is made for each run; of another one, what the last run changed.
_QUICK_S = 0.25
HOME = "home"
#: ioctl requests of <linux/fs.h> for a file's flags, and the flag of a folder whose folders are spread.
_GET_FLAGS, _SET_FLAGS, _TOP_FOLDER = 0x80086601, 0x40086602, 0x00020000


@dataclass(frozen=True)
class Candidate:
    """A placement to try. `places`: the storage of each folder that lies elsewhere than at home."""

    name: str
    places: Mapping[str, str]
    why: str = ""

    @property
    def storages(self) -> list[str]:
        return sorted(set(self.places.values()))


@dataclass(frozen=True)
class Trial:
    """What one run took, in seconds. `copy_in`, `copy_out`: None where it was not measured."""

    seconds: float
    queued: float
    """Of `seconds`, those in which the program's main thread waited for a processor."""
    code: int | None
    copy_in: float | None
    copy_out: float | None
    outputs: Mapping[str, str] | None
    """What identifies the content of each file that the program changed; None: not looked at."""
    left: tuple[str, ...] = ()
    last_line: str = ""


@dataclass
class _Copy:
    """A copy of a folder as it is kept between trials, with the scan of its state before the program.

    One that takes little time is made anew for each run. What depends on where its files happen to lie
    differs from run to run then, as it does from today to next week, and is in the stated interval.
    """

    source: str
    base: str
    """`place` is this, with a random word after it: ext4 chooses a part of the disk by a folder's name."""
    quick: bool = True
    scan: dict[str, list[object]] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    """What was copied since the last run, below `place`."""
    _aside: int = 0

    def __post_init__(self) -> None:
        self.place = f"{self.base}-{token_hex(4)}"

    def leave(self) -> None:
        """Set the whole copy aside; the next one lies elsewhere."""
        self.set_aside({""})
        self.place = f"{self.base}-{token_hex(4)}"

    def restore(self, limit: float | None = None) -> None:
        """Make the copy equal to the original again."""
        if not self.scan or self.quick:
            self.leave()
            began = time.monotonic()
            stage.copy(self.source, self.place, limit)
            self.quick = time.monotonic() - began <= _QUICK_S
            self.scan = self.now()
            self.fresh |= self.scan.keys()
        else:
            changed = stage.changed(self.scan, self.now())
            self.set_aside(changed - {""})
            stage.apply(self.source, self.place, changed)
            self.scan = self.now()
            self.fresh |= changed & self.scan.keys()

    def set_aside(self, names: Collection[str]) -> None:
        """Move `names`, which are to be replaced, out of the way: they are removed with all copies.

        Removing them now would slow the next run down: ext4 gives inode numbers that were freed in the last
        minutes to no new file, and looks at each of them for every file that is made (`recently_deleted` in
        fs/ext4/ialloc.c).
        """
        moved = ""
        for name in sorted(names):
            path = stage.at(self.place, name)
            kept = os.path.isdir(path) and os.path.isdir(stage.at(self.source, name))  # noqa: PTH112
            if (moved and name.startswith(moved)) or not os.path.lexists(path) or (kept and name):
                continue
            moved, self._aside = f"{name}/", self._aside + 1
            with suppress(OSError):  # in a folder without write permission: `stage.apply` replaces it
                os.rename(path, f"{self.base}.old{self._aside}")  # noqa: PTH104
                _empty(f"{self.base}.old{self._aside}")

    def now(self) -> dict[str, list[object]]:
        return stage.scan(self.place, stage.in_memory(os.path.dirname(self.place)))  # noqa: PTH120

    def forget(self) -> None:
        self.scan = {}


@dataclass
class Bench:
    """What all trials of a program share. As a context manager it removes its copies."""

    site: Site
    argv: Sequence[str]
    cwd: str
    folders: Sequence[Folder]
    cold: bool
    stdin: Input
    command: Sequence[str] | None = None
    """The launcher's words before each process of a parallel program; None: one process."""
    _exits: ExitStack = field(default_factory=ExitStack, init=False)
    _roots: dict[str, Path] = field(default_factory=dict, init=False)
    _copies: dict[tuple[str, str], _Copy] = field(default_factory=dict, init=False)
    runs: int = field(default=0, init=False)
    _guard: Callable[[Path], None] = field(init=False)

    def __enter__(self) -> Bench:
        self._guard = self._exits.enter_context(isolation.guarded())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def traced(self, log: Path | None, timeout: float) -> Trial:
        """Run the program for the first time, at home, and trace it into `log`."""
        return self.trial(Candidate(HOME, {}), timeout, log=log)

    def trial(
        self, candidate: Candidate, timeout: float | None, *, copies: bool = False, outputs: bool = False,
        copy_limit: float | None = None, log: Path | None = None,
    ) -> Trial:  # fmt: skip
        """Run the program once with its folders placed as `candidate` says.

        `copies`: copy in anew and measure that, and copying out. RunFailed where copies cannot be made.
        """
        copy_in = self._prepare(candidate, copies, copy_limit)
        placed = [self._copy(path, candidate) for path in self._paths(candidate)]
        self._settle(placed)
        done, last_line = self._run(placed, timeout, log)
        if done.failed:
            raise RunFailed(f"{self.argv[0]}: does not start: {done.failed}")
        before = {copy.source: copy.scan for copy in placed}
        try:
            now = {copy.source: copy.now() for copy in placed}
        except (OSError, stage.Problem) as error:  # a folder that cannot be read, something mounted in it
            for copy in placed:
                copy.forget()
            raise RunFailed(f"what it leaves cannot be read: {error}") from None
        written = _contents(placed, before, now) if outputs else None
        copy_out = self._copy_out(candidate, before) if copies and done.code is not None else None
        return Trial(done.seconds, done.queued, done.code, copy_in, copy_out, written, done.left, last_line)

    # -- copies ----------------------------------------------------------------------------------------------

    def _paths(self, candidate: Candidate) -> list[str]:
        """Return what is mounted, outer folders first."""
        return sorted({f.path for f in self.folders} | set(candidate.places), key=lambda p: (p.count("/"), p))

    def _copy(self, path: str, candidate: Candidate) -> _Copy:
        home = next((f.home for f in self.folders if path == f.path), None)
        storage = candidate.places.get(path) or home
        assert storage is not None
        kept = self._copies.get((path, storage))
        if kept is None:
            base = self._root(storage) / f"{len(self._copies)}"
            kept = self._copies[path, storage] = _Copy(path, str(base))
        return kept

    def _root(self, storage: str) -> Path:
        """Return our folder on a storage, made when it is first needed."""
        if storage not in self._roots:
            stack = Stack(storage, self.site.storages[storage])
            needed = sum(f.size for f in self.folders)
            if problem := space_problem(stack, needed):
                raise RunFailed(problem)
            scratch = Scratch(stack, f"advise-{os.uname().nodename}-{os.getpid()}")
            self._guard(scratch.data.parent)
            self._exits.enter_context(scratch)
            _spread(scratch.data)
            self._roots[storage] = scratch.data
        return self._roots[storage]

    def _prepare(self, candidate: Candidate, copies: bool, limit: float | None) -> float | None:
        taken = 0.0 if copies else None
        for path in self._paths(candidate):
            copy = self._copy(path, candidate)
            try:
                if copies and path in candidate.places:
                    copy.leave()
                    if self.cold:
                        _evict(_files(path))
                    began = time.monotonic()
                    _, copy.scan = stage.copy_in(path, copy.place, True, True, limit)
                    taken = (taken or 0.0) + time.monotonic() - began
                    copy.fresh |= copy.scan.keys()
                else:
                    copy.restore(limit)
            except TimeoutError:
                copy.forget()
                raise RunFailed(f"copying in takes more than {limit:.3g} s") from None
            except stage.Problem as problem:
                raise RunFailed(str(problem)) from None
            except OSError as error:
                copy.forget()
                raise RunFailed(f"{error.filename or copy.place}: {error.strerror}") from None
        return taken

    def _copy_out(
        self, candidate: Candidate, before: Mapping[str, dict[str, list[object]]]
    ) -> float:  # fmt: skip
        """Return the seconds that finding the changes and bringing them back takes; into the copy at home."""
        taken = 0.0
        at_home = Candidate(HOME, {})
        for path in candidate.places:
            outer = next(
                (f.path for f in self.folders if path == f.path or path.startswith(f.path + "/")), path
            )
            home = self._copy(outer, at_home)
            source = self._copy(path, candidate)
            try:
                home.restore()
                began = time.monotonic()
                paths = stage.changed(before[path], source.now())
                stage.apply(source.place, home.place + path.removeprefix(outer), paths)
                taken += time.monotonic() - began
            except (OSError, stage.Problem) as error:
                home.forget()
                raise RunFailed(f"copying out: {error}") from None
        return taken

    def _settle(self, placed: Sequence[_Copy]) -> None:
        """Write the copies out; then drop them from the page cache (cold), or read them into it (warm).

        A warm file was read from the storage, not written just before: the pages that a write leaves are
        grouped otherwise, and writing to them through a mapping takes longer.
        """
        for copy in placed:
            if not stage.in_memory(os.path.dirname(copy.place)):  # noqa: PTH120
                pagecache.sync_filesystem(os.path.dirname(copy.place))  # noqa: PTH120
        for copy in placed:
            files = _files(copy.place)
            _evict(files if self.cold else [f for f in files if f[len(copy.place) + 1 :] in copy.fresh])
            copy.fresh.clear()
            if not self.cold:
                _read(files)

    # -- the program -----------------------------------------------------------------------------------------

    def _run(
        self, placed: Sequence[_Copy], timeout: float | None, log: Path | None
    ) -> tuple[isolation.Run, str]:
        self.runs += 1
        argv = list(self.argv) if log is None else seen.traced(self.argv, log)
        binds: list[tuple[str, str]] | None = [(copy.place, copy.source) for copy in placed]
        cwd = self.cwd
        if self.command is not None:
            argv = [*self.command, *isolation.rank_command(argv, binds or [], cwd)]
            binds, cwd = None, "/"
        with tempfile.TemporaryFile() as errors, self.stdin.opened() as given:
            streams: dict[str, int | IO[bytes] | None] = {
                "stdin": given, "stdout": subprocess.DEVNULL, "stderr": errors,
            }  # fmt: skip
            done = isolation.run(argv, binds, cwd, timeout=timeout, traced=log is not None, streams=streams)
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
            lines = errors.read().decode(errors="replace").strip().splitlines()
        return done, lines[-1] if lines else ""


def _contents(
    placed: Sequence[_Copy], before: Mapping[str, dict[str, list[object]]],
    now: Mapping[str, dict[str, list[object]]],
) -> dict[str, str]:  # fmt: skip
    """Return what identifies the content of each path that the program changed."""
    found, left = {}, _COMPARED
    for copy in placed:
        for name in sorted(stage.changed(before[copy.source], now[copy.source])):
            path = stage.at(copy.place, name)
            key = stage.at(copy.source, name)
            if not os.path.lexists(path):
                found[key] = "removed"
            elif os.path.islink(path):  # noqa: PTH114
                found[key] = f"link to {os.readlink(path)}"  # noqa: PTH115
            elif os.path.isfile(path):  # noqa: PTH113
                size = os.path.getsize(path)  # noqa: PTH202
                left -= size
                with suppress(OSError):
                    found[key] = stage.digest(path) if left > 0 else f"{size} bytes"
    return found


def _files(place: str) -> list[str]:
    paths = [stage.at(place, name) for name in stage.scan(place)]
    return [p for p in paths if os.path.isfile(p) and not os.path.islink(p)]  # noqa: PTH113, PTH114


def _empty(path: str) -> None:
    """Free the space of files that are set aside, but of those that have other names."""
    for file in _files(path):
        with suppress(OSError):
            if os.lstat(file).st_nlink == 1:
                os.truncate(file, 0)


def _evict(files: Sequence[str]) -> None:
    for path in files:
        with suppress(OSError):
            pagecache.evict([path])


def _read(files: Sequence[str]) -> None:
    left = 4 << 30
    for path in files:
        with suppress(OSError), Path(path).open("rb", 0) as file:
            while left > 0 and (block := file.read(1 << 20)):
                left -= len(block)


def _spread(folder: Path) -> None:
    """Have ext4 give each folder in `folder` a part of the disk of its own (`chattr +T`).

    Near the user's other folders many inode numbers may have been freed lately, by a trial before this one,
    too (`_Copy.set_aside`). Other file systems refuse the flag, or ignore it.
    """
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            flags = bytearray(struct.calcsize("l"))
            fcntl.ioctl(opened, _GET_FLAGS, flags)
            fcntl.ioctl(opened, _SET_FLAGS, struct.pack("l", struct.unpack("l", flags)[0] | _TOP_FOLDER))
        finally:
            os.close(opened)


def timed_script(folder: Path) -> Callable[[], float]:
    """Return a function that runs the staging script as users start it, with `true` and an empty folder; it
    returns the seconds that this takes."""
    (folder / "moved").mkdir()
    script = folder / "stage.py"
    script.write_text(staging_script([Move(str(folder / "moved"), str(folder / "there"), True, True, True)]))
    words = staged_command(script, ["true"])

    def run() -> float:
        began = time.monotonic()
        subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        return time.monotonic() - began

    return run


def resident(folders: Sequence[Folder], most: int = 2000) -> bool:
    """Return whether most of the working set is in the page cache, by a look at some of its files."""
    paths = [p for f in folders for p in _files(f.path)][:most]
    found = pagecache.Residency()
    for path in paths:
        with suppress(OSError):
            one = pagecache.residency([path])
            if one.fraction is None or one.memory_backed:
                return True
            found.pages += one.pages
            found.resident += one.resident
    return found.pages == 0 or found.resident > found.pages / 2
