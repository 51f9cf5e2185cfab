"""The head of the page: what ran, and one sentence with the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiercel.pages.words import capital, count, listed, name, plain, portion, seconds
from tiercel.traces.findings import Finding, no_findings
from tiercel.traces.findings.base import SEVERITIES

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

_YEAR_2000 = 946_684_800.0
#: Letters of a command on the page.
_COMMAND = 600


def title(frame: IOFrame) -> str:
    return name(Path(str(frame.metadata.get("path", "trace"))).name or "trace")


def command(frame: IOFrame) -> str:
    """Return the program's command line where the trace tells it; empty where not."""
    told = frame.metadata.get("commands") or [frame.metadata.get("command") or ""]
    said = plain(str(told[0]).strip())
    more = f" (and {count(len(told) - 1, 'other command')})" if len(told) > 1 else ""
    return (said if len(said) <= _COMMAND else f"{said[: _COMMAND - 1]}…") + more


def facts(frame: IOFrame, numbers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what ran, where and when, as far as the trace tells."""
    tracer = numbers["format"] or "unknown"
    version = frame.metadata.get("darshan_version") or frame.metadata.get("version") or ""
    began = frame.began
    # A tracer that counts from its own start tells no time of day.
    when = (
        ""
        if not began or began < _YEAR_2000
        else f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
    length = numbers["job_time_s"]
    whole = "counters alone" if numbers["from"] == "counters" else count(numbers["events"], "event")
    if numbers["from"] == "counters and events":
        whole += " (reads and writes), and counters of every call"
    shown = f"only events with {' and '.join(map(plain, frame.chosen))}" if frame.chosen else ""
    found = [
        ("Ranks", str(numbers["ranks"] or "")), ("Hosts", str(numbers["hosts"] or "")),
        ("Job time", "" if length is None else seconds(float(length))), ("Began", when),
        ("Tracer", name(f"{tracer} {version}".strip())), ("Trace holds", whole),
        ("Files", str(numbers["files"])), ("Shown", shown),
    ]  # fmt: skip
    return [(word, said) for word, said in found if said]


def caution(frame: IOFrame) -> str:
    """Return what must be known before any number: that the tracer kept only a part; else empty."""
    partial = frame.metadata.get("partial") or ()
    if not partial:
        return ""
    modules = listed(list(partial))
    return f"{modules}: Darshan ran out of its memory, so this log holds a part of the program's I/O."


def verdict(frame: IOFrame, numbers: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    """Return the share of I/O in the job, and the gravest finding, or what their lack means."""
    wrong = _wrong(findings) if findings else no_findings(frame)
    return f"{capital(_weight(numbers))}. {capital(wrong)}."


def _weight(numbers: Mapping[str, Any]) -> str:
    length = numbers["job_time_s"]
    spent = numbers["in_calls_s"]
    if spent is not None:
        if not length or not numbers["ranks"]:
            return f"{seconds(spent)} of the processes' time is in I/O calls"
        share = spent / (length * numbers["ranks"])
        processes = count(numbers["ranks"], "process", "processes")
        return f"{portion(share)} of the time of the {processes} is in I/O calls"
    if not numbers["io_s"] or not length:
        return "no I/O call in this trace takes any time"
    said = f"at least one rank does I/O in {portion(numbers['io_s'] / length)} of {seconds(length)}"
    if numbers["compute_s"]:
        share = (numbers["overlapped_io_s"] or 0.0) / numbers["io_s"]
        hidden = portion(share) if share else "nothing"
        said += f", and computation hides {hidden} of that"
    return said


def _wrong(findings: Sequence[Finding]) -> str:
    numbers = [(severity, sum(f.severity == severity for f in findings)) for severity in SEVERITIES]
    counted = listed([count(n, severity) for severity, n in numbers if n])
    first = findings[0]
    gravest = first.rule.replace("-", " ")
    dear = f" (up to {portion(first.share)} of their time)" if first.share else ""
    return f"{counted}, the gravest: {gravest}{dear}" if len(findings) > 1 else f"{counted}: {gravest}{dear}"
