"""Findings on a trace that is still being written: it is read again and again, in a small share of a core."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError
from tiercel.traces.findings import Finding, Storage, explain
from tiercel.traces.frame import read_once
from tiercel.traces.readers.text import UNFINISHED
from tiercel.traces.sources import find_sources

#: Part of a processor's time that reading may take: the job that is traced runs beside it.
_SHARE = 0.2


@dataclass(frozen=True)
class Look:
    """What a trace holds at one moment."""

    events: int
    job_time: float
    findings: Sequence[Finding] = ()
    """All of them, the gravest first."""
    news: Sequence[Finding] = ()
    """Those of rules that found nothing, or something of another severity, when the trace was last read."""
    gone: Sequence[str] = ()
    """Rules that found something then, and no longer do."""
    warnings: Sequence[str] = ()


def follow(
    path: Path, storage: Storage | None = None, *, format: str | None = None, memory: int | None = None,
    interval: float = 5.0, idle: float | None = None, sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Look]:  # fmt: skip
    """Yield a look at the trace at `path` each time that its files have changed.

    `interval`: seconds from one look to the next, at least. Ends when nothing has changed for `idle` seconds;
    None: never. A last line and a gzip block that are not complete yet are read by a later look.
    """
    seen: Mapping[Path, tuple[int, int]] | None = None
    before: dict[str, list[str]] = {}
    quiet = 0.0
    while True:
        used, now = time.process_time(), _state(path)
        if now != seen:
            seen, quiet = now, 0.0
            if any(size for size, _ in now.values()):
                look, before = _look(path, storage, format, memory, before)
                yield look
        elif idle is not None and quiet >= idle:
            return
        pause = max(interval, (time.process_time() - used) / _SHARE)
        sleep(pause)
        quiet += pause


def _state(path: Path) -> dict[Path, tuple[int, int]]:
    """Return size and time of change of the trace's files."""
    found = {}
    for file in path.rglob("*") if path.is_dir() else [path]:
        try:
            if file.is_file():
                found[file] = (file.stat().st_size, file.stat().st_mtime_ns)
        except OSError:  # it went just then
            continue
    return found


def _look(
    path: Path, storage: Storage | None, format: str | None, memory: int | None,
    before: dict[str, list[str]],
) -> tuple[Look, dict[str, list[str]]]:  # fmt: skip
    """Return a look, and the severities of each rule's findings."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tiercel-follow-") as name,
            find_sources(path, format) as sources,
        ):
            frame = read_once(sources, Path(name), memory)
            findings, events = explain(frame, storage), len(frame)
    except (UserError, OSError) as error:  # nothing of it is complete yet, or a file was renamed just then
        return Look(0, 0.0, warnings=(str(error),)), before
    severities: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        severities[finding.rule].append(finding.severity)
    return Look(
        events, frame.job_time, findings,
        [f for f in findings if severities[f.rule] != before.get(f.rule)],
        sorted(before.keys() - severities.keys()),
        [w for w in frame.warnings if not any(words in w for words in UNFINISHED)],
    ), dict(severities)  # fmt: skip
