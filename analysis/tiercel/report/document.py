"""What the report says, as plain values for programs: `tiercel show --json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiercel.plain import plain
from tiercel.report.classes import WorkloadClass, classes
from tiercel.report.data import Number, Record, Results
from tiercel.report.findings import find
from tiercel.report.sections.recommendations import FILE as RECOMMENDATIONS
from tiercel.report.sections.told import tell
from tiercel.report.verdict import verdict
from tiercel.results.validity import FLAGS
from tiercel.site.model import Site
from tiercel.statistics.ranking import same
from tiercel.study.model import Study

#: What of a number's row is passed on, with its unit: the sizes are bytes, times seconds, rates a second.
_NUMBER = (
    "experiment", "workload", "operation", "metric", "engine", "storage", "layer", "nodes",
    "processes_per_node", "median", "low", "high", "n", "latency_p99", "origin",
    "behind_share",
)  # fmt: skip
#: What of a comparison is passed on: the ratio of two medians with its interval, and the noise that it is
#: held against.
_RATIO = (
    "operation", "metric", "nodes", "processes_per_node", "ratio", "low", "high", "floor_low", "floor_high",
    "outcome", "rule", "detectable", "verdict", "reason", "needed", "amount_a", "amount_b",
)  # fmt: skip


def document(folder: Path, site: Site, study: Study) -> dict[str, Any]:
    """Return a study's results: the verdict of the report's first screen, every number with its interval,
    comparisons' findings, what each subject has to say of its own (`subjects`), counts of runs, and where the
    page and the recommendations lie.

    Numbers are medians over repetitions with the bounds of their intervals: bandwidths in B/s, rates in 1/s,
    latencies in s. UserError where nothing was measured.
    """
    everything = Results.from_folder(folder, study, FLAGS)
    results = everything.named()
    page = folder / "report" / "index.html"
    recommended = folder / "report" / RECOMMENDATIONS
    ranked = classes(results)
    found = verdict(everything, site, ranked)
    return plain({  # type: ignore[no-any-return]
        "site": site.site,
        "study": study.study,
        "origin": "simulated" if site.simulated else "measured",
        "runs": {"ok": results.ok, "traced": results.traced, "failed": len(results.failed)},
        "verdict": [_class(of) for of in ranked],
        "sentences": [s for s in (found.where, found.gain, found.mind, found.silent) if s] if found else [],
        "numbers": [_number(n) for n in results.numbers],
        "findings": [
            {"audience": f.audience, "severity": f.severity, "sentence": f.sentence,
             "runs": sorted({run for e in f.evidence for run in e.runs})}
            for f in find(results)
        ],
        "subjects": tell(everything),
        "report": str(page) if page.is_file() else None,
        "recommendations": str(recommended) if recommended.is_file() else None,
    })  # fmt: skip


def _class(of: WorkloadClass) -> dict[str, Any]:
    """Return what is advised for a class: each storage with the ratios of its rates to those of `against`."""
    ranking = of.ranking
    return {
        "workload": of.name,
        "reference": ranking.reference,
        "storages": {
            stack: {
                "advice": ranking.advice[stack],
                "against": standing.against or None,
                "ratios": [_ratio(row) for row in standing.rows],
            }
            for stack, standing in ranking.standings.items()
        },
    }


def _ratio(row: Record) -> dict[str, Any]:
    """Return a comparison; one that is sure to be within the margin is the same, not undecided."""
    told = {name: row[name] for name in _RATIO}
    alike = row["verdict"] == "undecided" and same(row)
    return told | {"verdict": "same", "reason": "", "needed": None} if alike else told


def _number(n: Number) -> dict[str, Any]:
    return {name: n.row[name] for name in _NUMBER} | {"flags": sorted(n.flags), "valid": not n.invalid}
