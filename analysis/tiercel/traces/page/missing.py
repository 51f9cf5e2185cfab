"""The last section: what the trace does not hold, so that nobody takes silence for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tiercel.pages.words import capital, count, plain
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


def missing_part(frame: IOFrame, numbers: Mapping[str, Any]) -> Part:
    """Warnings, notes, and what this tracer does not see."""
    said = list(_COUNTERS) if numbers["from"] == "counters" else []
    if numbers["from"] == "events":
        apis = {row["api"] for row in numbers["layers"]}
        if not numbers["compute_s"]:
            said.append("Computation is not marked in this trace: how much I/O it hides is not known.")
        kinds = [("metadata", "metadata_s"), ("sync", "sync_s")]
        for word, column in kinds:
            if apis and not any(row[column] for row in numbers["layers"]):
                said.append(f"No {word} call took time, or none was traced.")
    warnings = list(dict.fromkeys(numbers["warnings"]))
    said += warnings[:_WARNINGS]
    if len(warnings) > _WARNINGS:
        said.append(f"{count(len(warnings) - _WARNINGS, 'more warning')}: tiercel trace summary.")
    notes = tuple(capital(note) + "." for note in numbers["notes"])
    whole = tuple(plain(capital(sentence)) for sentence in said) or (
        "Nothing that this page could show is missing.",
    )
    return Part("missing", "What the trace does not hold", whole, notes=notes)
