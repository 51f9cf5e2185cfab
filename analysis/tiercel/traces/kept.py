"""Where traces that were read before are kept, and answers that were given before.

This module imports no library: an answer that is kept is there in the time that Python needs to start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tiercel
from tiercel.plain import plain

#: Counts up when a reader or the files in the cache change: old entries are then left alone.
VERSION = 13
#: What the name of a kept answer ends with.
ANSWER = ".answer.json"
#: A folder with more files is asked anew each time: looking at them would take longer.
_MANY = 10_000


def cache_folder(cache: Path | str | None) -> Path:
    """Return where traces read before are kept: `cache`, else under the user's cache folder."""
    if cache is not None:
        return Path(cache)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "tiercel" / "traces"


def digest(about: str, sources: Iterable[Path]) -> str:
    """Return a name for `sources` as they are now, and for what is `about` them."""
    hashed = hashlib.sha256(f"{VERSION} {about}".encode(errors="surrogateescape"))
    for source in sorted(sources):
        status = source.stat()
        hashed.update(
            # Who writes in place and sets the old time again (rsync) does not set the time of that.
            f"\0{source.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}".encode(
                errors="surrogateescape"
            )
        )
    return hashed.hexdigest()[:32]


def answered(
    question: str, path: Path, cache: Path | None, ask: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return what ``ask()`` answers about the trace at `path`, as plain values.

    It is kept beside what was read of the trace, for as long as the trace's files and this program are the
    same. `question` names it with all options.
    """
    place = _place(question, path, cache_folder(cache))
    if place is not None and (known := _known(place)) is not None:
        return known
    answer: dict[str, Any] = plain(ask())
    if place is not None:
        with contextlib.suppress(OSError):  # a cache that cannot be written keeps nothing
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix=".answer-", delete=False) as draft:
                text = json.dumps(answer)
                draft.write(f"{seal(text)}\n{text}")
            Path(draft.name).replace(place)
    return answer


def _place(question: str, path: Path, folder: Path) -> Path | None:
    """Return where an answer is kept; None for files that cannot be looked at."""
    try:
        return folder / f"{digest(f'{_code()} {path} {question}', _files(path))}{ANSWER}"
    except OSError:
        return None


def _known(place: Path) -> dict[str, Any] | None:
    try:
        first, text = place.read_text().split("\n", 1)
        known: dict[str, Any] | None = json.loads(text) if first == seal(text) else None
        os.utime(place)
    except (OSError, ValueError):
        return None
    return known


def seal(text: str) -> str:
    """Return what a text that was damaged has no longer."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    """Return the files that decide about an answer. OSError where there are none, or too many to look at."""
    if not path.is_dir():
        return [path]
    found = [file for file in path.rglob("*") if file.is_file()]
    if not found or len(found) > _MANY:
        raise OSError(f"{path}: {len(found)} files")
    return found


def _code() -> str:
    """Name the code that answers: an answer of another version is another answer."""
    newest = max(file.stat().st_mtime_ns for file in Path(__file__).parent.rglob("*.py"))
    return f"{tiercel.__version__}/{newest}"


def forget_answers(folder: Path, kept: float, now: float | None = None) -> None:
    """Remove answers that nobody asked for in `kept` seconds."""
    now = time.time() if now is None else now
    for path in folder.glob(f"*{ANSWER}"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > kept:
                path.unlink()
