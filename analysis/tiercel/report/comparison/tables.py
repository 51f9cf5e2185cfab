"""The tables of a comparison's page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tiercel.compare.answer import Answer, Pair, reasons, worst_first
from tiercel.compare.judging import Row
from tiercel.compare.matching import Alone, Question, Scale
from tiercel.compare.side import Side
from tiercel.pages.tables import Cell, Table
from tiercel.report import words
from tiercel.report.comparison.sentences import (
    findable_of,
    scale_of,
    stack_of,
    title_of,
    verdict_of,
    when,
)
from tiercel.results.validity import FLAGS
from tiercel.statistics.noise import Floor
from tiercel.statistics.select import flag_list

#: No page shows more rows of one table than this; the CSV files beside it have all.
MOST_ROWS = 400


def sides(answer: Answer) -> Table:
    rows = [("", [Cell(text) for text in _side(side)]) for side in answer.sides]
    rows[0][1][0] = Cell(f"{answer.sides[0].name} (baseline)", kind="strong")
    columns = ("Side", "Site", "Study", "Measured", "Origin", "Runs", "Storage systems", "Layers", "tiercel")
    return Table("What is compared.", columns, frozenset({"Runs"}), rows)


def _side(side: Side) -> list[str]:
    failed = f", {len(side.failed)} failed" if len(side.failed) else ""
    return [
        side.name,
        words.listed(side.names("site")),
        words.listed(side.names("study")),
        when(side) or words.MISSING,
        words.listed(side.names("origin")),
        f"{len(side.runs)}{failed}",
        words.listed(side.names("storage")),
        words.listed(side.names("layer")),
        side.version or words.MISSING,
    ]


def differing(answer: Answer) -> Table | None:
    """Return the circumstances that differ, sides as columns."""
    rows = [
        ("", [Cell(words.capital(c.name)), *(Cell(value or "unknown", kind="name") for value in c.values)])
        for c in answer.circumstances
        if c.differs
    ]
    if not rows:
        return None
    columns = ("Circumstance", *(side.name for side in answer.sides))
    return Table("This may be the cause of what the numbers show.", columns, frozenset(), rows)


def ratios(rows: Sequence[Row], caption: str) -> Table:
    """Return rows with both medians, ratio, interval, noise of each side and verdict; worst first."""
    columns: tuple[tuple[str, Callable[[Row], Cell]], ...] = (
        ("Workload", lambda r: Cell(title_of(r.match.base), kind="title")),
        ("Storage", lambda r: Cell(stack_of(r), kind="name")),
        ("Engine", lambda r: Cell(r.match.base["engine"])),
        ("Origin", lambda r: Cell(r.origin, kind="" if r.origin == "measured" else "mark")),
        ("Scale", lambda r: Cell(scale_of(r), r.scale[0] * 1e6 + r.scale[1] if r.scale else 1e9, "short")),
        ("Baseline", lambda r: _median(r, r.median_base)),
        ("Other", lambda r: _median(r, r.median_other)),
        ("n", lambda r: Cell(f"{r.comparison.n_b}, {r.comparison.n_a}", r.comparison.n_b)),
        ("Ratio", lambda r: Cell(words.times(r.comparison.ratio), _sortable(r.comparison.ratio), "strong")),
        ("Interval", _interval),
        ("Noise", lambda r: _noise(r.comparison.floor)),
        ("p", lambda r: Cell(f"{r.comparison.p_corrected:.2g}", _sortable(r.comparison.p_corrected))),
        ("Verdict", lambda r: Cell(verdict_of(r), r.outcome, "title")),
        ("Detectable", lambda r: Cell(findable_of(r), _sortable(r.findable), "title")),
        ("Checks", lambda r: Cell(_checks(r), kind="title")),
    )
    order = worst_first(rows)
    shown = order[:MOST_ROWS]
    if len(order) > len(shown):
        caption += f" The first {len(shown)} of {len(order)}; tables/ has all."
    dropped = {
        "Engine": len({r.match.base["engine"] for r in rows}) == 1,
        "Origin": {r.origin for r in rows} == {"measured"},
        "Checks": not any(_checks(r) for r in shown),
        "Baseline": all(r.scale is None for r in rows),
        "Other": all(r.scale is None for r in rows),
    }
    kept = [(name, make) for name, make in columns if not dropped.get(name)]
    numeric = {"Baseline", "Other", "n", "Ratio", "Interval", "Noise, baseline", "Noise, other", "p"}
    made = [("", [make(row) for _, make in kept]) for row in shown]
    return Table(caption, tuple(name for name, _ in kept), frozenset(numeric), made)


def counted(pair: Pair) -> Table | None:
    """Return why numbers have no partner, with how many there are."""
    rows = [("", [Cell(words.capital(reason)), Cell(str(n), n)]) for reason, n in reasons(pair.alone)]
    if not rows:
        return None
    caption = f"Numbers of {pair.base.name} and {pair.other.name} without a partner, by reason."
    return Table(caption, ("Reason", "Numbers"), frozenset({"Numbers"}), rows)


def alone(pair: Pair) -> Table:
    order = [reason for reason, _ in reasons(pair.alone)]
    found = sorted(pair.alone, key=lambda a: (order.index(a.reason), a.side, a.question.key, a.scale))
    caption = "Each of them: a number is one configuration and operation."
    if len(found) > MOST_ROWS:
        caption += f" The first {MOST_ROWS} of {len(found)}; tables/ has all."
    columns = ("Side", "Workload", "Storage", "Scale", "Engine", "Origin", "Reason", "In detail")
    return Table(caption, columns, frozenset(), [("", _alone(each)) for each in found[:MOST_ROWS]])


def _alone(each: Alone) -> list[Cell]:
    question = each.question
    return [
        Cell(each.side),
        Cell(title_of(question), kind="title"),
        Cell(words.stack(question["storage_label"], question["layer"]), kind="name"),
        Cell(words.scale(*each.scale), each.scale[0] * 1e6 + each.scale[1], "short"),
        Cell(question["engine"]),
        Cell(question["origin"], kind="" if question["origin"] == "measured" else "mark"),
        Cell(each.reason, kind="name"),
        Cell(each.detail, kind="title"),
    ]


def _median(row: Row, median: float) -> Cell:
    return Cell(words.value(row.match.metric, median), _sortable(median))


def _interval(row: Row) -> Cell:
    c = row.comparison
    return Cell(words.factors(c.low, c.high) if math.isfinite(c.low) else words.MISSING, _sortable(c.low))


def _noise(floor: Floor) -> Cell:
    text = words.factors(floor.low, floor.high) if floor.known else "unknown"
    return Cell(text, _sortable(floor.high))


def _checks(row: Row) -> str:
    """Return the cautions that at least half of a side's repetitions carry, and which side."""
    scales = row.match.scales if row.scale is None else (row.scale,)
    found = []
    for code, flag in FLAGS.items():
        if flag.severity == "caution":
            base, other = (_carried(code, q, scales) for q in (row.match.base, row.match.other))
            if base or other:
                found.append(
                    f"{flag.title} ({'both' if base and other else 'baseline' if base else 'other'})"
                )
    return ", ".join(found)


def _carried(code: str, question: Question, scales: Sequence[Scale]) -> bool:
    cells = [cell for scale in scales for cell in question.scales[scale]["flags"]]
    return 2 * sum(code in flag_list(cell) for cell in cells) >= len(cells)


def _sortable(value: float) -> float:
    return value if math.isfinite(value) else -1.0
