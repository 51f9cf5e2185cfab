"""Recommendations as plain values, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tiercel.placement.copying import Staging
from tiercel.plain import plain
from tiercel.report.data import Results
from tiercel.report.recommend.model import Calls, GroupAdvice, Recommendation
from tiercel.statistics.ranking import Standing

if TYPE_CHECKING:
    from tiercel.placement.recommend import Opinion


def as_json(
    results: Results, made: Sequence[Recommendation], groups: Sequence[GroupAdvice], notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything as plain values; missing numbers are null."""
    found = {
        "study": results.study.study,
        "workloads": [_plain(results, r) for r in made],
        "groups": [
            {
                "experiment": g.of.experiment, "workload": g.of.workload, "group": g.group,
                "files": g.files, "bytes": g.size,
                # For the work done at home, so they can be compared; what each run did stands below.
                "seconds_in_calls": dict(g.seconds), "share_of_time": g.share,
                "traced": {s: _calls(c) for s, c in g.calls.items()},
                "storage": g.target, "fits": g.fits, "staging": _staging(g.staging),
            }
            for g in groups
        ],
        "notes": list(notes),
    }  # fmt: skip
    made_plain: dict[str, Any] = plain(found)
    return made_plain


def _calls(c: Calls) -> dict[str, Any]:
    each = c.seconds / c.files if c.files else None
    return asdict(c) | {"seconds_per_file": each}


def _plain(results: Results, r: Recommendation) -> dict[str, Any]:
    return {
        "class": r.of.name, "experiment": r.of.experiment, "workload": r.of.workload,
        "operation": r.of.operation, "origin": r.of.origin,
        "storage": r.home if r.decided else None, "best_measured": r.home,
        "faster_but_volatile": r.faster or None,
        "keeps_files": r.keeps, "seen_by_all_nodes": r.everywhere, "free_bytes": r.free,
        "staging": _staging(r.staging, r), "staging_unknown": r.unknown or None,
        "staged": asdict(r.amount) | {"traced": r.traced},
        "storages": {
            s: {
                "label": results.name(s), "advice": j.advice, "decided_by": j.decided_by or None,
                "against": j.standing.against or None,
                "measured": _measured(j.standing), "model": _opinion(j.opinion),
                "agreement": j.agreement or None,
            }
            for s, j in r.judgements.items()
        },
    }  # fmt: skip


def _measured(standing: Standing) -> dict[str, Any] | None:
    if not standing.rows:
        return None
    row = standing.rows[0]
    numbers = {k: float(row[k]) for k in ("ratio", "low", "high")}
    return numbers | {"over": _over(row), "outcome": standing.outcome}


def _over(row: Mapping[str, Any]) -> str:
    """Say which scales a ratio is over."""
    return "all scales" if row["scope"] == "all" else f"{int(row['nodes'])}x{int(row['processes_per_node'])}"


def _opinion(opinion: Opinion | None) -> dict[str, Any] | None:
    if opinion is None:
        return None
    numbers = {k: float(getattr(opinion, k)) for k in ("ratio", "low", "high", "confidence")}
    return numbers | {"outcome": opinion.outcome, "outside": opinion.outside}


def _staging(stage: Staging | None, of: Recommendation | None = None) -> dict[str, Any] | None:
    """Return a staging with its units in its names; `of` says at which scale the saving was counted."""
    if stage is None:
        return None
    found = {
        "from": stage.home, "to": stage.target,
        "seconds_in": stage.seconds_in, "seconds_in_least": stage.least_in,
        "seconds_out": stage.seconds_out, "seconds_out_least": stage.least_out,
        "saved_seconds": stage.saved, "saved_per": stage.per,
        "pays_from_use": stage.pays_from, "pays_from_use_at_best": stage.pays_at_best,
    }  # fmt: skip
    if of is None:
        return found
    number = of.of.numbers[stage.home]
    return found | {"saved_at": {"nodes": number.nodes, "processes": number.processes}}
