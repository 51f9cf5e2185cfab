"""Asks `explain` about every trace of a set."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

from benchmarks.findings.labels import Trace
from tiercel.errors import UserError
from tiercel.traces import open_trace
from tiercel.traces.findings import explain

#: Notes are worth knowing; they do not say that something is wrong.
SAID = ("problem", "hint")


def ask(traces: Iterable[Trace], folder: Path, cache: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Return the rules that speak of each trace, by its name, and what could not be read and why.

    `cache` is where traces that were read are kept: a folder of the caller's, so that the user's own cache
    neither grows nor answers with what an older reader understood.
    """
    said, unread = {}, []
    for trace in traces:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = open_trace(folder / trace.file, cache=cache)
            said[trace.name] = {f.rule for f in explain(frame) if f.severity in SAID}
        except (UserError, OSError) as error:
            unread.append(f"{trace.name}: {error}")
    return said, unread
