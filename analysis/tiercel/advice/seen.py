"""What one cheap trace says of a program: which files it opens, makes, removes and syncs.

Reads and writes are not traced, so the run costs little more than without. The trace says which folders to
try;
it does not decide whether a storage is faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tiercel.placement.groups import SYSTEM_FOLDERS

#: Files that programs are made of.
PROGRAM_FILES = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|/__pycache__/|\.so(?:\.[^/]+)?$|\.pyc$|/\.pyenv/|/\.venv/|/conda/|/\.rustup/"
)
_CALLS = [
    "?open", "openat", "?openat2", "?creat", "?mkdir", "mkdirat", "?rename", "renameat", "?renameat2",
    "?link", "linkat", "?symlink", "symlinkat", "?unlink", "unlinkat", "?rmdir", "?truncate", "?mknod",
    "mknodat", "fsync", "fdatasync", "msync", "sync_file_range", "syncfs",
]  # fmt: skip
_SYNCS = frozenset(("fsync", "fdatasync", "msync", "sync_file_range", "syncfs"))
_REMOVES = frozenset(("unlink", "unlinkat", "rmdir"))
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?")
_PATH = re.compile(r'(?:(?:AT_FDCWD|-?\d+)<((?:[^>\\]|\\.)*)>(?:\([^)]*\))?, )?"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)")
_NAMED = {"n": 10, "t": 9, "r": 13, "v": 11, "f": 12}


@dataclass
class File:
    """One file or folder of the trace."""

    opens: int = 0
    written: bool = False
    made: bool = False
    removed: bool = False
    syncs: int = 0


@dataclass
class Seen:
    """Everything that the trace named, by absolute path."""

    files: dict[str, File] = field(default_factory=dict)

    def data(self) -> dict[str, File]:
        """Return the files that hold the program's data: not the system's, nor what programs are made of."""
        return {
            name: file
            for name, file in self.files.items()
            if not name.startswith(SYSTEM_FOLDERS)
            and (file.written or file.made or not PROGRAM_FILES.search(name))
        }


def traced(argv: Sequence[str], log: Path) -> list[str]:
    """Return the command that runs `argv` under strace, which writes to `log`."""
    # -DDD: the program stays our child.
    options = ["-DDD", "-f", "-qq", "-y", "--seccomp-bpf", "-e", "signal=none", "-s", "4096"]
    return ["strace", *options, "-e", f"trace={','.join(_CALLS)}", "-o", str(log), "--", *argv]


def read(log: Path) -> Seen:
    """Return what a trace names. Lines that were cut off by a kill are left out."""
    found = Seen()
    waiting: dict[str, str] = {}
    try:
        lines = log.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return found
    for line in lines:
        process = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            waiting[process] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        if " resumed>" in line and process in waiting:
            line = waiting.pop(process) + line.partition(" resumed>")[2]  # noqa: PLW2901
        if (match := _LINE.match(line)) and int(match[3]) >= 0:
            _take(found.files, match[1], match[2], match[4])
    return found


def _take(files: dict[str, File], call: str, words: str, opened: str | None) -> None:
    if call in _SYNCS:
        if match := re.match(r"\d+<((?:[^>\\]|\\.)*)>", words):
            _file(files, _plain(match[1])).syncs += 1
        return
    paths = [_joined(match[1], match[2]) for match in _PATH.finditer(words)]
    if opened is not None:
        paths[:1] = [_plain(opened.removesuffix("(deleted)"))]
    for path in paths:
        if not path.startswith("/"):
            continue
        file = _file(files, path)
        if call.startswith(("open", "creat")):
            file.opens += 1
            made = "O_CREAT" in words or call == "creat"
            file.made |= made
            file.written |= made or "O_WRONLY" in words or "O_RDWR" in words or "O_TRUNC" in words
            file.removed = False
        elif call in _REMOVES:
            file.removed = True
        else:
            file.made = True
            file.removed = call.startswith("rename") and path == paths[0] and len(paths) > 1


def _file(files: dict[str, File], path: str) -> File:
    return files.setdefault(path, File())


def _joined(folder: str | None, path: str) -> str:
    path = _plain(path)
    return os.path.normpath(f"{_plain(folder)}/{path}") if folder and not path.startswith("/") else path


def _plain(text: str) -> str:
    """Return a path without strace's escapes."""
    if "\\" not in text:
        return text

    def byte(match: re.Match[str]) -> bytes:
        word = match[1]
        if word[0] == "x":
            return bytes([int(word[1:], 16)])
        if word[0].isdigit():
            return bytes([int(word, 8) & 0xFF])
        return bytes([_NAMED[word]]) if word in _NAMED else word.encode()

    out, end = b"", 0
    for match in _ESCAPE.finditer(text):
        out += os.fsencode(text[end : match.start()]) + byte(match)
        end = match.end()
    return os.fsdecode(out + os.fsencode(text[end:]))


def common(names: Iterable[str]) -> str:
    """Return the deepest folder that holds all `names`."""
    folders = [name.rpartition("/")[0] or "/" for name in names]
    return os.path.commonpath(folders) if folders else ""
