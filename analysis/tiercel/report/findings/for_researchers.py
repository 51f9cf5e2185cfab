"""Findings for I/O researchers: how sure are these numbers, and can I repeat them?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from statistics import median

from tiercel.report import words
from tiercel.report.data import Record, Results, overall
from tiercel.report.findings.finding import Evidence, Finding, Rule
from tiercel.report.findings.phrases import of_origin
from tiercel.simulation.fidelity import NO_ERROR, errors_of
from tiercel.statistics.ranking import same
from tiercel.statistics.verdict import Outcome


def noise(results: Results) -> Iterable[Finding]:
    """Say how far two placements of the same configuration lie from each other."""
    own = [row for row in results.floors if row["source"] == "own"]
    if not own:
        if results.numbers and all(n.origin == "simulated" for n in results.numbers):
            yield Finding(
                "researcher",
                "fact",
                "A simulation has no noise, so it has no intervals and proves no difference. "
                f"{' '.join(errors_of(results.observations)) or NO_ERROR}",
            )
        elif results.total:
            yield Finding(
                "researcher",
                "caution",
                "No configuration has an A/A replicate, so the noise is unknown and no difference is proven.",
            )
        return
    by_stack: dict[str, list[float]] = {}
    for row in own:
        name = results.name(row["stack"]) + of_origin(row["origin"])
        by_stack.setdefault(name, []).append(row["high"])
    parts = [
        f"{words.times(max(v))} on {name} (median {words.times(median(v))})" for name, v in by_stack.items()
    ]
    yield Finding(
        "researcher",
        "fact",
        f"Two replicates of the same configuration differ by at most {words.listed(parts)}. Only larger "
        "differences are proven.",
        (Evidence("noise", "noise"),),
    )


def undecided(results: Results) -> Iterable[Finding]:
    """Count what could not be decided, and why."""
    rows = [row for row in overall(results) if row["origin"] != "simulated"]  # of which none is claimed
    alike = [row for row in rows if row["verdict"] == "undecided" and same(row)]
    still = [row for row in rows if row["verdict"] == "undecided" and row not in alike]
    if not rows:
        return
    why = Counter(row["rule"] for row in still)
    reasons = "; ".join(f"{reason} ({number})" for reason, number in why.most_common())
    said = [
        f"Decided: {len(rows) - len(still)} of {words.count(len(rows), 'comparison')} between storage systems"
        f"{f' ({len(alike)} equal)' if alike else ''}"
    ]
    for name, others in (("effects of scale", results.scaling), ("effects of settings", results.contrasts)):
        of = [row for row in others if row["origin"] != "simulated" and math.isfinite(row["ratio"])]
        if of:
            said.append(f"{sum(row['verdict'] != 'undecided' for row in of)} of {len(of)} {name}")
    yield Finding(
        "researcher",
        "fact" if not still else "open",
        f"{words.listed(said)}.{f' Open: {reasons}.' if still else ''}",
        (Evidence("comparisons", "comparisons"),),
    )


def intervals(results: Results) -> Iterable[Finding]:
    """Say where the intervals are ranges for want of repetitions."""
    short = [n for n in results.numbers if n.values and n.coverage < 0.95 and n.origin != "simulated"]
    if not short:
        return
    fewest = min(n.n for n in short)
    covers = min(n.coverage for n in short)
    yield Finding(
        "researcher",
        "caution",
        f"{len(short)} of {words.count(len(results.numbers), 'result')} have fewer than 6 repetitions "
        f"(minimum {fewest}). Their interval is the range, with a coverage of at least "
        f"{words.percent(covers)}.",
        (Evidence("results", "numbers"),),
    )


def engines_agree(results: Results) -> Iterable[Finding]:
    """Say whether tiercel's own engine agrees with the upstream ones."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in results.agreement:
        groups.setdefault((row["engine_a"], row["engine_b"]), []).append(row)
    for (a, b), rows in groups.items():
        agree, blind = (sum(row["outcome"] == o for row in rows) for o in (Outcome.SAME, Outcome.NO_POWER))
        furthest = max(rows, key=lambda row: abs(math.log(row["ratio"])) if row["ratio"] > 0 else math.inf)
        yield Finding(
            "researcher",
            "fact" if agree == len(rows) else "caution",
            f"{a} agrees with {b} {words.within(rows[0])} in {agree} of {words.count(len(rows), 'pair')}; "
            f"{blind} have no power to show it. "
            f"Largest difference: {words.operation(furthest['operation'])} on "
            f"{results.name(furthest['stack'])}{of_origin(furthest['origin'])}, "
            f"{words.times(furthest['ratio'])} ({words.factors(furthest['low'], furthest['high'])}).",
            (Evidence("engine agreement", "agreement"),),
        )


RULES: tuple[Rule, ...] = (noise, undecided, intervals, engines_agree)
