"""What `tiercel trace explain` finds in the traced runs of a workload, storage by storage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiercel.pages.tables import Table, table
from tiercel.report import words
from tiercel.report.sections.base import Point
from tiercel.report.sections.trace_cells import Row
from tiercel.units import format_bandwidth, format_latency, format_size

#: Severities of a trace's findings: the word on the page, and its style.
_WORDS = {"problem": ("problem", "failure"), "hint": ("likely", "hint"), "note": ("note", "fact")}
#: What a column of evidence is, by its name; others are numbers or words.
_SECONDS = ("time", "duration", "longest", "finished")
_SIZES = ("bytes", "size", "stripe")


def points(rows: Sequence[Row]) -> Iterator[Point]:
    """Yield the findings of a workload, the gravest first; what one rule says of several storages is one."""
    found: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for row in rows:
        for finding in json.loads(row["findings"]) if isinstance(row["findings"], str) else ():
            found.setdefault((finding["rule"], finding["advice"]), []).append((row["label"], finding))
    order = list(_WORDS)

    def grave(entry: tuple[tuple[str, str], list[tuple[str, Mapping[str, Any]]]]) -> tuple[int, str]:
        return min(order.index(finding["severity"]) for _, finding in entry[1]), entry[0][0]

    for (rule, advice), said in sorted(found.items(), key=grave):
        word, kind = _WORDS[order[grave(((rule, advice), said))[0]]]
        sentences = " ".join(f"{label}: {finding['sentence']}" for label, finding in said)
        yield Point(word, kind, sentences, advice, _evidence(rule, said))


def _evidence(rule: str, said: Sequence[tuple[str, Mapping[str, Any]]]) -> Table | None:
    records = [(label, record) for label, finding in said for record in finding["evidence"]]
    if not records:
        return None
    names = dict.fromkeys(
        name for _, record in records for name, value in record.items() if value is not None
    )
    body = [[label, *(_cell(name, record.get(name)) for name in names)] for label, record in records]
    words_in = {n for n in names if any(isinstance(record.get(n), str) for _, record in records)}
    columns = ["storage", *(name.replace("_", " ") for name in names)]
    numeric = [name.replace("_", " ") for name in names if name not in words_in]
    return table(f"What rule {rule} saw; of many rows, the first.", columns, body, numeric)


def _cell(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return words.MISSING if value is None else "yes" if value else "no"
    if isinstance(value, str):
        return value
    if "bandwidth" in name:
        return format_bandwidth(float(value)), value
    if any(word in name for word in _SECONDS):
        return format_latency(float(value)), value
    if any(word in name for word in _SIZES):
        return format_size(float(value)), value
    return (f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:.3g}"), value
