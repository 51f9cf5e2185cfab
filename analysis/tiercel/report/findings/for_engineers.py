"""Findings for storage engineers: does the system deliver, and what bounds it?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from tiercel.report import words
from tiercel.report.data import CACHE_BEHIND, Number, Record, Results
from tiercel.report.findings.finding import Evidence, Finding, Rule, Severity
from tiercel.report.findings.phrases import is_hint, number_evidence, of_origin, row_evidence, unconfirmed
from tiercel.results.reasons import by_reason
from tiercel.units import format_latency

#: Above this coefficient of variation a number is not steady.
_STEADY = 0.2


def failures(results: Results) -> Iterable[Finding]:
    """Say which runs failed: one sentence for each storage and cause, the commonest first."""
    places: dict[str, list[tuple[str, str]]] = {}
    for run in results.failed:
        label = words.stack(run["storage_label"] or run["storage"], run["layer"])
        reason: Any = run["reason"]
        places.setdefault(label, []).append((str(run["run"]), "" if pd.isna(reason) else str(reason)))
    found = [(label, cause) for label, failed in places.items() for cause in by_reason(failed)]
    for label, cause in sorted(found, key=lambda each: -len(each[1].runs)):
        yield Finding(
            "engineer",
            "failure",
            f"{words.count(len(cause.runs), 'run')} failed on {label}: {cause.reason}",
            (Evidence("failed runs", "failed", cause.runs),),
        )


def gains(results: Results) -> Iterable[Finding]:
    """Say what more nodes or processes gain: one sentence for each workload and status."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for row in results.scaling:
        main = results.main_engine(row["experiment"], row["workload"])
        if row["metric"] == "bandwidth" and row["engine"] == main and math.isfinite(row["ratio"]):
            key = ("experiment", "workload", "operation", "origin", "over", "smallest", "largest", "growth")
            groups.setdefault(tuple(row[k] for k in key), []).append(row)
    for rows in groups.values():
        by_status: dict[Severity, list[Record]] = {}
        for row in rows:
            by_status.setdefault(_status(row), []).append(row)
        for status, some in by_status.items():
            yield _gain(results, status, some)


def _status(row: Record) -> Severity:
    if row["origin"] == "simulated":  # there is no noise to compare it with
        return "fact"
    if row["verdict"] != "undecided":
        return "claim"
    return "hint" if is_hint(row) else "open"


def _gain(results: Results, status: Severity, rows: list[Record]) -> Finding:
    """Return one sentence on the scaling of a workload on storages with the same status."""
    first = rows[0]
    noun = "nodes" if first["over"] == "nodes" else "processes"
    title = results.title(first["experiment"], first["workload"]) + of_origin(first["origin"])
    parts = [
        f"{words.times(row['ratio'])} on {results.name(row['stack'])}"
        + (f" ({words.factors(row['low'], row['high'])})" if status != "fact" else "")
        for row in rows
    ]
    scales = f"from {first['smallest']:.0f} to {first['largest']:.0f} {noun}"
    said = f"{title} {scales}: {words.listed(parts)}. Ideal: {words.times(first['growth'])}."
    ending = {"hint": f" {unconfirmed(first)}", "open": " No change is proven."}.get(status, "")
    evidence = tuple(e for row in rows for e in row_evidence(results, row, ("experiment", "workload")))
    return Finding("engineer", status, said + ending, evidence)


def synced_latency(results: Results) -> Iterable[Finding]:
    """Say how long a synced write takes: median and slowest 1 %."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for n in _at_largest(results):
        if n.fsync == "write" and math.isfinite(n.latency_p50) and math.isfinite(n.latency_p99):
            groups.setdefault((n.experiment, n.workload, n.origin, n.scale), []).append(n)
    for (_, _, origin, scale), numbers in groups.items():
        parts = [
            f"{format_latency(n.latency_p50)} (p99 {format_latency(n.latency_p99)}) on "
            f"{results.stacks[n.stack]}"
            for n in numbers
        ]
        yield Finding(
            "engineer",
            "fact",
            f"A write with fsync takes {words.listed(parts)} at {scale}{of_origin(origin)}.",
            tuple(number_evidence(n) for n in numbers),
        )


def _at_largest(results: Results) -> list[Number]:
    most: dict[tuple[str, ...], Number] = {}
    for n in results.numbers:
        if n.engine == results.main_engine(n.experiment, n.workload):
            key = (n.experiment, n.workload, n.operation, n.stack, n.origin)
            if key not in most or n.processes > most[key].processes:
                most[key] = n
    return list(most.values())


def unsteady(results: Results) -> Iterable[Finding]:
    """Count the results that vary much, and name the worst."""
    shaky = sorted((n for n in results.numbers if n.n >= 3 and n.cv > _STEADY), key=lambda n: -n.cv)
    if not shaky:
        return
    n = shaky[0]
    spread = words.interval(n.metric, n.median, n.minimum, n.maximum)
    few = words.count(len(shaky), "result")
    yield Finding(
        "engineer",
        "fact",
        f"{few} of {len(results.numbers)} vary by more than {words.percent(_STEADY)} between repetitions. "
        f"Most variable: {_named(results, n)}, {spread}.",
        tuple(number_evidence(x) for x in shaky[:5]),
    )


def _named(results: Results, n: Number) -> str:
    plain = n.metric == "bandwidth" and not n.operation.startswith(("job-", "all-jobs"))
    what = "" if plain else f"{words.operation(n.operation)}, "
    return f"{what}{n.title or n.workload} on {results.name(n.stack)} at {n.scale}{of_origin(n.origin)}"


def cautions(results: Results) -> Iterable[Finding]:
    """Say which validity checks numbers did not pass, and what to do; to users too where most did not."""
    for code, numbers in results.flags.items():
        flag = results.flag(code)
        if flag.severity == "info":
            continue
        share = f"{len(numbers)} of {words.count(results.total, 'result')}"
        share += ", not compared" if flag.severity == "invalid" else ""
        evidence = (Evidence("checks", f"flag-{code}"),)
        share += _behind(numbers) if code == CACHE_BEHIND else ""
        if 2 * len(numbers) > results.total:
            yield Finding("user", "caution", f"{flag.title}: {share}.", evidence)
        yield Finding("engineer", "caution", f"{flag.title}: {share}.", evidence)


def _behind(numbers: Sequence[Number]) -> str:
    """Return how much of the reads came from a cache behind the client: its least and most."""
    shares = [n.behind_share for n in numbers if not math.isnan(n.behind_share)]
    if not shares:
        return ""
    least, most = (words.percent(of(shares)) for of in (min, max))
    said = most if least == most else f"{least} to {most}"
    return f", {said} of the reads at memory speed"


RULES: tuple[Rule, ...] = (failures, gains, synced_latency, unsteady, cautions)
