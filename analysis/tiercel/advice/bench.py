"""One trial: copies of the working set on a storage, the program run with them, and what it wrote.

The original files are only read. The trial at home uses a copy, too, on the same storage. Copying in and
out is
the code of the staging script (`placement/stage.py`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
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
HOME = "home"


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
    """A copy of a folder as it is kept between trials, with the scan of its state before the program."""

    source: str
    place: str
    scan: dict[str, list[object]] = field(default_factory=dict)

    def restore(self, limit: float | None = None) -> None:
        """Make the copy equal to the original again."""
        if not self.scan:
            stage.remove(self.place)
            stage.copy(self.source, self.place, limit)
        else:
            stage.apply(self.source, self.place, stage.changed(self.scan, self.now()))
        self.scan = self.now()

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
        self._settle([copy.place for copy in placed])
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
            place = self._root(storage) / f"{len(self._copies)}"
            kept = self._copies[path, storage] = _Copy(path, str(place))
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
            self._roots[storage] = scratch.data
        return self._roots[storage]

    def _prepare(self, candidate: Candidate, copies: bool, limit: float | None) -> float | None:
        taken = 0.0 if copies else None
        for path in self._paths(candidate):
            copy = self._copy(path, candidate)
            try:
                if copies and path in candidate.places:
                    stage.remove(copy.place)
                    if self.cold:
                        _evict(path)
                    began = time.monotonic()
                    _, copy.scan = stage.copy_in(path, copy.place, True, True, limit)
                    taken = (taken or 0.0) + time.monotonic() - began
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

    def _settle(self, places: Sequence[str]) -> None:
        """Write the copies out; then drop them from the page cache (cold), or read them into it."""
        for place in places:
            if not stage.in_memory(os.path.dirname(place)):  # noqa: PTH120
                pagecache.sync_filesystem(os.path.dirname(place))  # noqa: PTH120
        for place in places:
            if self.cold:
                _evict(place)
            else:
                _read(place)

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


def _evict(place: str) -> None:
    for path in _files(place):
        with suppress(OSError):
            pagecache.evict([path])


def _read(place: str) -> None:
    left = 4 << 30
    for path in _files(place):
        with suppress(OSError), Path(path).open("rb", 0) as file:
            while left > 0 and (block := file.read(1 << 20)):
                left -= len(block)


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
