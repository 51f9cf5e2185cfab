"""Findings for application users: where do I put my files, and what do I gain?"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tiercel.report import words
from tiercel.report.data import Record, Results
from tiercel.report.findings.best_stack import best_stack
from tiercel.report.findings.finding import Evidence, Finding, Rule
from tiercel.report.findings.phrases import is_hint, of_origin, row_evidence, unconfirmed


def nothing_measured(results: Results) -> Iterable[Finding]:
    """Say where nothing was measured."""
    if results.failed and not results.total:
        yield Finding(
            "user",
            "failure",
            f"No run has a result: {words.count(len(results.failed), 'run')} failed.",
            (Evidence("failed runs", "failed"),),
        )


def factors(results: Results) -> Iterable[Finding]:
    """Say what fsync, random access, a shared file or direct I/O costs on each stack."""
    for row in results.contrasts:
        if row["factor"] in ("fsync", "pattern", "layout", "direct"):
            yield from _factor(results, row)


def _factor(results: Results, row: Record) -> Iterable[Finding]:
    name = results.name(row["stack"]) + of_origin(row["origin"])
    operation = words.operation(row["operation"])
    with_it = words.LEVELS.get((row["factor"], row["level_a"]), row["level_a"])
    without = words.LEVELS.get((row["factor"], row["level_b"]), row["level_b"])
    if row["factor"] == "pattern":
        subject, object_ = f"{with_it} {operation}s", f"{without} {operation}s"
    else:
        subject, object_ = f"{operation}s with {with_it}", f"{operation}s with {without}"
    evidence = row_evidence(results, row, ("experiment_a", "workload_a")) + row_evidence(
        results, row, ("experiment_b", "workload_b")
    )
    interval = f"95 % CI {words.percent(row['low'])} to {words.percent(row['high'])}"
    reach = f"{words.percent(row['ratio'])} ({interval})"
    if row["origin"] == "simulated":  # a model has no noise that a difference could be held against
        if math.isfinite(row["ratio"]):
            share = words.percent(row["ratio"])
            said = f"On {name}, {subject} reach {share} of the bandwidth of {object_}."
            yield Finding("user", "fact", said, evidence)
    elif row["verdict"] != "undecided":
        said = f"On {name}, {subject} reach {reach} of the bandwidth of {object_}."
        yield Finding("user", "claim", said, evidence)
    elif is_hint(row):
        said = f"On {name}, {subject} reach {reach} of the bandwidth of {object_}. {unconfirmed(row)}"
        yield Finding("user", "hint", said, evidence)
    elif math.isfinite(row["ratio"]):
        said = f"On {name}, no proven difference between {subject} and {object_}: {reach}. "
        said += unconfirmed(row)
        yield Finding("user", "open", said, evidence)


RULES: tuple[Rule, ...] = (nothing_measured, best_stack, factors)
