"""The last section: what the trace does not hold, so that nobody takes silence for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tiercel.pages.words import capital, count, plain
from tiercel.traces.findings import unjudged
from tiercel.traces.page.part import Part

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Warnings on the page; a trace that is damaged everywhere has thousands.
_WARNINGS = 30
_COUNTERS = (
    "What happened when, call by call: the log holds counters (sums over the job for each file and rank).",
    "Computation, and so how much I/O it hides.",
    "What was done before to the same bytes.",
)


#: What a tracer's traces lack by its nature.
_UNSEEN = {
    "dftracer": "DFTracer sees no formatted output (fprintf, printf), no memory map and no io_uring, and of "
    "processes that do no I/O it writes nothing.",
    "strace": "strace sees calls of the kernel: what the C library gathers in its buffers is seen when it is "
    "passed on, and what is read and written through memory maps is not.",
}


def missing_part(frame: IOFrame, numbers: Mapping[str, Any]) -> Part:
    """Warnings, notes, and what this tracer does not see."""
    said = list(_COUNTERS) if numbers["from"] == "counters" else []
    if numbers["from"] == "counters and events" and not numbers["compute_s"]:
        said.append("Computation is not in this log: how much I/O it hides is not known.")
    if numbers["from"] == "events":
        apis = {row["api"] for row in numbers["layers"]}
        if not numbers["compute_s"]:
            said.append("Computation is not marked in this trace: how much I/O it hides is not known.")
        kinds = [("metadata", "metadata_s"), ("sync", "sync_s")]
        for word, column in kinds:
            if apis and not any(row[column] for row in numbers["layers"]):
                said.append(f"No {word} call took time, or none was traced.")
    said += [_UNSEEN[numbers["format"]]] if numbers["format"] in _UNSEEN else []
    said += [f"{capital(sentence)}." for sentence in unjudged(frame)]
    warnings = list(dict.fromkeys(numbers["warnings"]))
    said += warnings[:_WARNINGS]
    if len(warnings) > _WARNINGS:
        said.append(f"{count(len(warnings) - _WARNINGS, 'more warning')}: tiercel trace summary.")
    notes = tuple(capital(note) + "." for note in numbers["notes"])
    whole = tuple(plain(capital(sentence)) for sentence in said) or (
        "Nothing that this page could show is missing.",
    )
    return Part("missing", "What the trace does not hold", whole, notes=notes)
