"""A comparison as plain rows: for --json, and as CSV beside the page."""

from __future__ import annotations

import math
from typing import Any

from tiercel.compare.answer import Answer, Pair, reasons, tally
from tiercel.compare.judging import Row
from tiercel.compare.matching import Alone
from tiercel.compare.side import Side
from tiercel.report.comparison import sentences
from tiercel.report.data import Record


def document(answer: Answer) -> Record:
    """Return all of it for JSON: no number in it is infinite or NaN."""
    return {
        "summary": sentences.summary(answer),
        "remarks": sentences.remarks(answer),
        "sides": [_side(side) for side in answer.sides],
        "circumstances": [
            {"name": c.name, "differs": c.differs, "values": list(c.values)} for c in answer.circumstances
        ],
        "comparisons": [_pair(pair) for pair in answer.pairs],
    }


def matches(pair: Pair) -> list[Record]:
    """Return one flat row for each match, and for each scale of those that have several.

    `kind` tells them apart: outcomes count the verdicts; details repeat them at each scale.
    """
    verdicts = [{"kind": "verdict", **_row(row)} for row in pair.judged.rows]
    return verdicts + [{"kind": "detail", **_row(row)} for row in pair.judged.details]


def without_partner(pair: Pair) -> list[Record]:
    return [_alone(each) for each in pair.alone]


def _pair(pair: Pair) -> Record:
    by_origin: Record = {
        origin: dict(tally([row for row in pair.rows if row.origin == origin])) for origin in pair.origins
    }
    return {
        "baseline": pair.base.name,
        "other": pair.other.name,
        "one_session": pair.interleaved,
        "outcomes": by_origin,
        "lost": len({each.question.key for each in pair.failed})
        + sum(row.outcome == "lost" for row in pair.rows),
        "storages": dict(pair.stacks.storages),
        "matches": [_plain(row) for row in matches(pair)],
        "reasons": dict(reasons(pair.alone)),
        "without_partner": without_partner(pair),
    }


def _side(side: Side) -> Record:
    return {
        "name": side.name,
        "side": side.spelling.text,
        "began": list(side.span) if side.span else None,
        "sites": side.names("site"),
        "studies": side.names("study"),
        "origins": side.names("origin"),
        "storages": side.names("storage"),
        "layers": side.names("layer"),
        "runs": len(side.runs),
        "failed": len(side.failed),
        "tiercel": side.version,
        "notes": list(side.notes),
    }


def _row(row: Row) -> Record:
    base, other, c = row.match.base, row.match.other, row.comparison
    nodes, processes = row.scale or (None, None)
    return {
        "origin": row.origin,
        "study": base["study"],
        "experiment": base["experiment"],
        "workload": base["workload"],
        "title": base["title"],
        "operation": base["operation"],
        "engine": base["engine"],
        "storage": base["storage"],
        "layer": base["layer"],
        "storage_other": other["storage"],
        "layer_other": other["layer"],
        "workload_other": other["workload"],
        "scope": "all" if row.scale is None else "scale",
        "nodes": nodes,
        "processes_per_node": processes,
        "scales": len(row.match.scales) if row.scale is None else 1,
        "metric": row.match.metric,
        "median_baseline": row.median_base,
        "median_other": row.median_other,
        "n_baseline": c.n_b,
        "n_other": c.n_a,
        "ratio": c.ratio,
        "low": c.low,
        "high": c.high,
        "floor_low": c.floor.low,
        "floor_high": c.floor.high,
        "floor_source": c.floor.source,
        "p_value": c.p_value,
        "p_corrected": c.p_corrected,
        "outcome": row.outcome,
        "reason": row.reason,
        "findable": row.findable,
        "verdict": str(c.value.outcome),
        "rule": str(c.value.rule),
        "needed": c.value.needed,
        "no_rate_baseline": row.strays[0],
        "no_rate_other": row.strays[1],
        "runs_baseline": list(row.runs_base),
        "runs_other": list(row.runs_other),
    }


def _alone(each: Alone) -> Record:
    question = each.question
    return {
        "side": each.side,
        "reason": each.reason,
        "lost": each.lost,
        "detail": each.detail,
        **{
            name: question[name]
            for name in (
                "origin",
                "study",
                "experiment",
                "workload",
                "title",
                "operation",
                "engine",
                "storage",
                "layer",
            )
        },
        "nodes": each.scale[0],
        "processes_per_node": each.scale[1],
    }


def _plain(record: Record) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
