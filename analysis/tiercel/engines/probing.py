"""Asks an upstream program which version it is, at most once for each file on disk."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiercel.programs import program

_TIMEOUT_S = 60


@dataclass(frozen=True)
class Probe:
    """What a program of the right name answered. `version` is empty for some other program."""

    path: Path | None
    version: str = ""
    note: str = ""
    """Why the engine was not found, in one sentence; empty where it was."""


def probe(name: str, arguments: Sequence[str], version: re.Pattern[str], what: str) -> Probe:
    """Look for program `name` and run it in a folder of its own; group 1 of `version` is its version.

    `what` says whose program it should be, for the note about one that is not.
    """
    path = program(name)
    if path is None:
        return Probe(None, note=f"no program {name} beside Python or on PATH")
    try:
        state = path.stat()
    except OSError as error:
        return Probe(path, note=f"{path}: {error.strerror}")
    found, said = _version(path, state.st_mtime_ns, state.st_size, tuple(arguments), version)
    if not found:
        return Probe(path, note=f"{path} is not {what}: it answers {said[:120]!r}")
    return Probe(path, found)


@cache
def _version(
    path: Path, _mtime: int, _size: int, arguments: tuple[str, ...], version: re.Pattern[str]
) -> tuple[str, str]:
    """Return the version (empty for none) and the first line said; time and size are the cache's key."""
    with tempfile.TemporaryDirectory(prefix="tiercel-probe-") as folder:
        try:
            answer = subprocess.run(
                [path, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", str(error)
    match = version.search(answer.stdout)
    said = next((line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()), "")
    return (match[1] if match else ""), said


def release(version: str) -> tuple[int, int]:
    """Return (4, 1) for ``4.1.0+dev``; (0, 0) where there is no such number."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
