"""What `tiercel trace explain` finds in the traced runs of a workload, storage by storage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiercel.pages.cells import cell
from tiercel.pages.tables import Table, table
from tiercel.report.sections.base import Point
from tiercel.report.sections.trace_cells import Row

#: Severities of a trace's findings: the word on the page, and its style.
_WORDS = {"problem": ("problem", "failure"), "hint": ("likely", "hint"), "note": ("note", "fact")}


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
    body = [[label, *(cell(name, record.get(name)) for name in names)] for label, record in records]
    words_in = {n for n in names if any(isinstance(record.get(n), str) for _, record in records)}
    columns = ["storage", *(name.replace("_", " ") for name in names)]
    numeric = [name.replace("_", " ") for name in names if name not in words_in]
    return table(f"Evidence of rule {rule}. The first rows", columns, body, numeric)
