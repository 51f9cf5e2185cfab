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
    """Say what more nodes or processes gain: one sentence for each workload."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for row in results.scaling:
        main = results.main_engine(row["experiment"], row["workload"])
        if row["metric"] == "bandwidth" and row["engine"] == main and math.isfinite(row["ratio"]):
            key = ("experiment", "workload", "operation", "origin", "over", "smallest", "largest", "growth")
            groups.setdefault(tuple(row[k] for k in key), []).append(row)
    for rows in groups.values():
        first = rows[0]
        noun = "nodes" if first["over"] == "nodes" else "processes on a node"
        parts = [_gain(results, row) for row in rows]
        claims = any(row["verdict"] != "undecided" for row in rows)
        kind: Severity = "claim" if claims else "hint" if any(map(is_hint, rows)) else "open"
        title = results.title(first["experiment"], first["workload"]) + of_origin(first["origin"])
        yield Finding(
            "engineer",
            "fact" if first["origin"] == "simulated" else kind,
            f"{title}: going from "
            f"{first['smallest']:.0f} to {first['largest']:.0f} {noun} (at best "
            f"{words.times(first['growth'])}) {'; '.join(parts)}.",
            tuple(e for row in rows for e in row_evidence(results, row, ("experiment", "workload"))),
        )


def _gain(results: Results, row: Record) -> str:
    name = results.name(row["stack"])
    if row["origin"] == "simulated":  # there is no noise that it could be held against
        return f"gives {words.times(row['ratio'])} on {name}"
    ratio = f"{words.times(row['ratio'])} ({words.factors(row['low'], row['high'])})"
    if row["verdict"] == "higher":
        return f"gains {ratio} on {name}, {words.percent(row['efficiency'])} efficiency"
    if row["verdict"] == "lower":
        return f"loses on {name}, {ratio} of the bandwidth remains"
    return f"gives {ratio} on {name}, {unconfirmed(row)}"


def synced_latency(results: Results) -> Iterable[Finding]:
    """Say how long a synced write takes: median and slowest 1 %."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for n in _at_largest(results):
        if n.fsync == "write" and math.isfinite(n.latency_p50) and math.isfinite(n.latency_p99):
            groups.setdefault((n.experiment, n.workload, n.origin, n.scale), []).append(n)
    for (_, _, origin, scale), numbers in groups.items():
        parts = [
            f"{format_latency(n.latency_p50)} in the median and at least {format_latency(n.latency_p99)} in "
            f"the slowest 1 % on {results.stacks[n.stack]}"
            for n in numbers
        ]
        yield Finding(
            "engineer",
            "fact",
            f"A write with fsync takes {'; '.join(parts)} ({scale}){of_origin(origin)}.",
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
    """Name the least steady numbers."""
    shaky = sorted((n for n in results.numbers if n.n >= 3 and n.cv > _STEADY), key=lambda n: -n.cv)
    if not shaky:
        return
    n = shaky[0]
    spread = words.interval(n.metric, n.median, n.minimum, n.maximum)
    few = words.count(len(shaky), "number")
    yield Finding(
        "engineer",
        "fact",
        f"{few} of {len(results.numbers)} vary by more than {words.percent(_STEADY)} from run to run; the "
        f"least steady is {_named(results, n)}, {spread} in {n.n} repetitions.",
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
        out = (
            "; the repetitions concerned are left out of all comparisons"
            if flag.severity == "invalid"
            else ""
        )
        share = f"{len(numbers)} of {words.count(results.total, 'number')}{out}"
        evidence = (Evidence("checks", f"flag-{code}"),)
        share += _behind(numbers) if code == CACHE_BEHIND else ""
        if 2 * len(numbers) > results.total:
            yield Finding("user", "caution", f"{flag.title}: {share}.", evidence)
        yield Finding("engineer", "caution", f"{flag.title}: {share}. {flag.advice}", evidence)


def _behind(numbers: Sequence[Number]) -> str:
    """Return how much of the reads came from a cache behind the client: its least and most."""
    shares = [n.behind_share for n in numbers if not math.isnan(n.behind_share)]
    if not shares:
        return ""
    least, most = (words.percent(of(shares)) for of in (min, max))
    said = most if least == most else f"{least} to {most}"
    return f"; behind the client {said} of the reads came at memory speed"


RULES: tuple[Rule, ...] = (failures, gains, synced_latency, unsteady, cautions)
