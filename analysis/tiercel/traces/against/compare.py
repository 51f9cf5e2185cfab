"""Compares two traces: every number that both can say, findings, files; the largest time difference first."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import pandas as pd

from tiercel.pages.words import count, number
from tiercel.traces.against.matching import Matched, match
from tiercel.traces.against.quantities import DEPENDS_ON_DEPTH, QUANTITIES, Quantity
from tiercel.traces.against.side import Side, depths, side
from tiercel.traces.analysis.common import with_units
from tiercel.traces.analysis.counters import only_counters
from tiercel.traces.findings import Finding, Storage

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: What every comparison of two runs must say.
ONE_RUN_EACH = (
    "One run each: how much two runs of the same program differ by chance is not known from them, so that "
    "nothing here is called significant."
)
#: Two findings of one rule say the same when their sentences, numbers left out, are so much alike.
_ALIKE = 0.6
_UNITS = {"bytes": "B", "io_time": "s"}


@dataclass(frozen=True)
class Difference:
    """A quantity in both traces. `size` is B less A, in the quantity's unit."""

    quantity: Quantity
    a: float
    b: float

    @property
    def size(self) -> float:
        return self.b - self.a

    @property
    def ratio(self) -> float | None:
        """B over A; None where A has nothing."""
        return self.b / self.a if self.a else None

    @property
    def sentence(self) -> str:
        q = self.quantity
        if not self.size:
            return f"{q.words}: {q.show(self.a)} in both"
        less = "less" if self.size < 0 else "more"
        size = q.show_difference(self.size).lstrip("+−")
        times = "" if self.ratio is None or q.unit == "1" else f", {_times(self.ratio)} A's"
        return f"{q.words}: {q.show(self.a)} in A, {q.show(self.b)} in B, {size} {less}{times}"


@dataclass(frozen=True)
class Found:
    """A finding in A, in B, or (what it says and costs may differ) in both."""

    a: Finding | None
    b: Finding | None

    @property
    def fate(self) -> str:
        """``gone``, ``new`` or ``stayed``."""
        return "gone" if self.b is None else "new" if self.a is None else "stayed"


@dataclass(frozen=True)
class Comparison:
    """Everything that two traces can be asked together."""

    a: Side
    b: Side
    differences: list[Difference]
    """The largest time difference first; then the others, those that changed most first."""
    same: list[Difference]
    incomparable: list[tuple[str, str]]
    """(what, why): numbers of one trace that the other cannot say, or means differently."""
    layers: pd.DataFrame
    """Rows: layer; calls, bytes and seconds of both (see ``attrs["units"]``)."""
    found: list[Found]
    untold: list[tuple[str, Finding]]
    """(letter, finding): rules that cannot speak on the other trace."""
    matched: Matched
    files: pd.DataFrame
    """Matched files, those whose time in calls changed most first."""
    notes: list[str]


def compare(
    a: IOFrame, b: IOFrame, storage: Storage | None = None, api: str | None = None
) -> Comparison:  # fmt: skip
    """Set trace `a` beside `b` (before and after; one storage and another).

    `storage` and `api` as in `findings.explain`, for both.
    """
    counters, layer = depths(a, b, api)
    left = side("A", a, storage, api, counters, layer)
    right = side("B", b, storage, api, counters, layer)
    differences, incomparable = _quantities(left, right)
    matched = match([str(f) for f in left.files.index], [str(f) for f in right.files.index])
    found, untold = _findings(left, right)
    changed = [d for d in differences if d.size]
    return Comparison(
        left, right, sorted(changed, key=_weight), [d for d in differences if not d.size], incomparable,
        _layers(left, right), found, untold, matched, _files(left, right, matched), _notes(left, right),
    )  # fmt: skip


def _quantities(a: Side, b: Side) -> tuple[list[Difference], list[tuple[str, str]]]:
    found, not_found = [], []
    for quantity in QUANTITIES:
        one, other = a.values.get(quantity.name), b.values.get(quantity.name)
        if one is None and other is None:
            continue
        if one is None or other is None:
            silent = "A" if one is None else "B"
            not_found.append((quantity.words, f"{silent} does not say"))
        elif a.counts != b.counts and quantity.name in DEPENDS_ON_DEPTH:
            not_found.append((quantity.words, DEPENDS_ON_DEPTH[quantity.name]))
        else:
            found.append(Difference(quantity, float(one), float(other)))
    return found, not_found


def _weight(difference: Difference) -> tuple[bool, float]:
    """Sort times by seconds, before all others by how many times as much there is."""
    if difference.quantity.is_time:
        return False, -abs(difference.size)
    if difference.quantity.unit == "1":
        return True, -abs(difference.size)
    ratio = difference.ratio
    return True, -abs(math.log(ratio)) if ratio else -math.inf


def _layers(a: Side, b: Side) -> pd.DataFrame:
    columns = {
        "calls": "",
        "bytes_read": "B",
        "bytes_written": "B",
        "data_s": "s",
        "metadata_s": "s",
        "sync_s": "s",
    }
    rows = []
    by_api = [{row["api"]: row for row in one.layers} for one in (a, b)]
    for api in dict.fromkeys([*by_api[0], *by_api[1]]):
        row = {"layer": api}
        for column in columns:
            for letter, there in zip("ab", by_api, strict=True):
                row[f"{column}_{letter}"] = there.get(api, {}).get(column)
        rows.append(row)
    names = ["layer", *(f"{column}_{letter}" for column in columns for letter in "ab")]
    units = {f"{column}_{letter}": unit for column, unit in columns.items() for letter in "ab"}
    return with_units(pd.DataFrame(rows, columns=names), units)


def _findings(a: Side, b: Side) -> tuple[list[Found], list[tuple[str, Finding]]]:
    untold = [("A", f) for f in a.findings if f.rule not in b.tellable]
    untold += [("B", f) for f in b.findings if f.rule not in a.tellable]
    left = [f for f in a.findings if f.rule in b.tellable]
    right = [f for f in b.findings if f.rule in a.tellable]
    pairs = sorted(
        ((_alike(x, y), i, j) for i, x in enumerate(left) for j, y in enumerate(right) if x.rule == y.rule),
        key=lambda p: (-p[0], p[1], p[2]),
    )
    partner: dict[int, int] = {}
    for alike, i, j in pairs:
        if alike >= _ALIKE and i not in partner and j not in partner.values():
            partner[i] = j
    found = [Found(f, right[partner[i]] if i in partner else None) for i, f in enumerate(left)]
    found += [Found(None, f) for j, f in enumerate(right) if j not in partner.values()]
    return found, untold


def _alike(a: Finding, b: Finding) -> float:
    one, other = (re.sub(r"\S*\d\S*|/\S+", "", f.sentence) for f in (a, b))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _files(a: Side, b: Side, matched: Matched) -> pd.DataFrame:
    """Return matched files: bytes and time in calls of both, and by how much the time changed."""
    pairs = pd.DataFrame(matched.pairs, columns=["file", "file_b"])
    columns = {"bytes_read": "read", "bytes_written": "written", "io_time": "io_time"}
    for letter, key, files in (("a", "file", a.files), ("b", "file_b", b.files)):
        own = files[list(columns)].rename(columns={old: f"{new}_{letter}" for old, new in columns.items()})
        own.index = own.index.astype(object)  # of no files, too
        pairs = pairs.astype({key: object}).join(own, on=key)
    for letter in "ab":
        pairs[f"bytes_{letter}"] = pairs.pop(f"read_{letter}") + pairs.pop(f"written_{letter}")
    pairs["io_time_change"] = pairs["io_time_b"] - pairs["io_time_a"]
    order = pairs["io_time_change"].abs().sort_values(ascending=False, kind="stable").index
    units = {f"{name}_{letter}": unit for name, unit in _UNITS.items() for letter in "ab"}
    return with_units(pairs.loc[order].reset_index(drop=True), {**units, "io_time_change": "s"})


def _notes(a: Side, b: Side) -> list[str]:
    notes = [ONE_RUN_EACH]
    if a.counts != b.counts:
        which, other = ("A", "B") if a.counts else ("B", "A")
        notes.append(
            f"{which} holds counters alone and {other} events: what both can say of {a.layer} is compared."
        )
    elif only_counters(a.frame) != only_counters(b.frame):
        which = "A" if only_counters(a.frame) else "B"
        notes.append(f"{which} holds counters alone: both are compared by their counters.")
    if a.numbers["format"] != b.numbers["format"]:
        notes.append(
            f"A was traced by {a.numbers['format'] or 'something unknown'}, B by "
            f"{b.numbers['format'] or 'something unknown'}: tracers do not see the same calls, and slow them "
            "differently."
        )
    if a.layer != b.layer and not (a.counts or b.counts):
        notes.append(f"A's calls are those of {a.layer}, B's of {b.layer}: --api names one for both.")
    if a.numbers["ranks"] and b.numbers["ranks"] and a.numbers["ranks"] != b.numbers["ranks"]:
        notes.append(
            f"A has {count(a.numbers['ranks'], 'rank')}, B {b.numbers['ranks']}: "
            "times in calls are sums over them."
        )
    return notes


def _times(ratio: float) -> str:
    if 0 < ratio < 0.01:
        return f"1/{number(1 / ratio)} of"
    return f"{ratio:.3g} times" if ratio < 1000 else f"{number(ratio)} times"


def largest(differences: Sequence[Difference]) -> Difference | None:
    """Return the largest time difference; None where no time differs."""
    return next((d for d in differences if d.quantity.is_time), None)
