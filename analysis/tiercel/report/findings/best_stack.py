"""Which stack serves which workload best: the rule that most users look for."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tiercel.report import words
from tiercel.report.data import Number, Record, Results, overall
from tiercel.report.findings.finding import Evidence, Finding, Severity
from tiercel.report.findings.phrases import is_hint, of_origin, row_evidence, unconfirmed
from tiercel.statistics.ranking import both, rank, reverse, same, toward
from tiercel.statistics.verdict import Verdict


def best_stack(results: Results) -> Iterable[Finding]:
    """Say for each workload which stack serves it best.

    The best of those that keep their files is held against every other one; memory comes last.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for row in overall(results):
        if row["engine"] == results.main_engine(row["experiment"], row["workload"]):
            groups.setdefault((row["experiment"], row["workload"], row["origin"]), []).append(row)
    against_memory = []
    for (experiment, workload, origin), rows in groups.items():
        ranking = rank(rows, results.memory)
        if ranking is None:
            continue
        prefix = f"{results.title(experiment, workload)}{of_origin(origin)}"
        best = ranking.reference
        for other in dict.fromkeys(stack for row in rows for stack in (row["stack_a"], row["stack_b"])):
            pair = [toward(row, best) for row in rows if both(row) == {best, other}]
            if not pair or other == best:
                continue
            found = _pair(results, prefix, best, other, pair)
            if other in results.memory and best not in results.memory:
                against_memory.append(found)
            else:
                yield found
    yield from against_memory


def _pair(results: Results, prefix: str, best: str, other: str, rows: list[Record]) -> Finding:
    """Return the finding about one workload on two stacks; every row compares `best` with `other`."""
    a, b = results.name(best), results.name(other)
    evidence = tuple(e for row in rows for e in row_evidence(results, row, ("experiment", "workload")))
    claimed = [row for row in rows if row["verdict"] != "undecided"]
    if sum(math.log(row["ratio"]) for row in rows) < 0:  # only against memory: the faster is the subject
        rows, a, b = [reverse(row) for row in rows], b, a
    if rows[0]["origin"] == "simulated":
        return Finding("user", "fact", f"{prefix}: {_by_the_model(a, b, rows)}.", evidence)
    if len(rows) > 1:
        return _many(prefix, a, b, rows, evidence)
    row = rows[0]
    single = min(row["n_a"], row["n_b"]) < 2  # which has no interval
    within = "a single repetition" if single else words.factors(row["low"], row["high"])
    ratio = f"{words.times(row['ratio'])} ({within}{_noise(row)})"
    over = "over all scales" if row["scope"] == "all" else f"at {_scale(row)}"
    quantity = words.QUANTITIES[row["metric"]]
    if claimed:
        said = f"{prefix}: {a} gives {ratio} the {quantity} of {b}, {over}{_for_example(results, row)}."
        return Finding("user", "claim", said, evidence)
    if same(row):
        said = f"{prefix}: {a} is {words.same_as(b, row)}, {over}, {ratio}."
        return Finding("user", "claim", said, evidence)
    if is_hint(row):
        said = f"{prefix}: {a} against {b}, {over}: {Verdict.of(row).sentence()}."
        return Finding("user", "hint", said, evidence)
    said = f"{prefix}: {a} against {b}, {over}: {Verdict.of(row).sentence()}."
    return Finding("user", "open", said, evidence)


def _by_the_model(a: str, b: str, rows: list[Record]) -> str:
    """Return what a simulation gives: it has no noise that could decide, and nothing that is undecided."""
    ratios = [f"{words.times(row['ratio'])} ({words.operation(row['operation'])})" for row in rows]
    if len(rows) > 1:
        return f"by the model {a} gives, of what {b} does, {words.listed(ratios)}"
    row = rows[0]
    over = "over all scales" if row["scope"] == "all" else f"at {_scale(row)}"
    more = f"{words.times(row['ratio'])} the {words.QUANTITIES[row['metric']]}"
    return f"by the model {a} gives {more} of {b}, {over}"


def _noise(row: Record) -> str:
    if not math.isfinite(row["floor_high"]):
        return "; noise unknown"
    return f"; noise {words.factors(row['floor_low'], row['floor_high'])}" if row["floor_high"] > 1 else ""


def _scale(row: Record) -> str:
    return words.scale(int(row["nodes"]), int(row["processes_per_node"]))


def _for_example(results: Results, row: Record) -> str:
    """Return the two numbers at the largest scale that both sides have."""
    sides: dict[tuple[int, int, str], dict[str, Number]] = {}
    wanted = ("origin", "operation", "engine")
    for n in results.of_workload(row["experiment"], row["workload"]):
        if n.stack in both(row) and all(getattr(n, k) == row[k] for k in wanted) and not n.invalid:
            sides.setdefault((n.processes, n.nodes, n.scale), {})[n.stack] = n
    shared = [scale for scale, found in sides.items() if len(found) == 2]
    if not shared:
        return ""
    found = sides[max(shared)]
    first, second = found[row["stack_a"]], found[row["stack_b"]]
    at = f" at {max(shared)[2]}" if row["scope"] == "all" else ""
    return f": {first.value} against {second.value}{at}"


def _many(prefix: str, a: str, b: str, rows: list[Record], evidence: tuple[Evidence, ...]) -> Finding:
    """Return one sentence for a workload of several operations (metadata)."""
    better = sorted((r for r in rows if r["verdict"] == "higher"), key=lambda r: r["ratio"])
    worse = [r for r in rows if r["verdict"] == "lower"]
    hints = [r for r in rows if r["verdict"] == "undecided" and is_hint(r)]
    alike = [r for r in rows if r["verdict"] == "undecided" and same(r)]
    hints = [r for r in hints if r not in alike]
    rest = len(rows) - len(better) - len(worse) - len(hints) - len(alike)
    parts = []
    if better:
        parts.append(f"{a} is faster than {b} in {_of(better, rows)}, {_span(better)}")
    if worse:
        slower = words.listed(
            [f"{words.operation(r['operation'])}, {words.times(r['ratio'])}" for r in worse]
        )
        parts.append(f"slower in {_of(worse, rows)} ({slower})" if better else f"{a} is slower than {b}")
    if hints:
        start = "" if parts else f"{a} against {b}: "
        parts.append(f"{start}in {_of(hints, rows)} {_span(hints)}, {unconfirmed(hints[0])}")
    if alike:
        said = f"the same {words.within(alike[0])} in {_of(alike, rows)}"
        parts.append(said if parts else f"{a} against {b}: {said}")
    if rest:
        start = "" if parts else f"{a} against {b}: "
        parts.append(f"{start}undecided in {rest} of {len(rows)} operations")
    severity: Severity = (
        "claim" if better or worse or len(alike) == len(rows) else "hint" if hints else "open"
    )
    return Finding("user", severity, f"{prefix}: {'; '.join(parts)}.", evidence)


def _of(some: list[Record], rows: list[Record]) -> str:
    return (
        f"all {len(rows)} operations" if len(some) == len(rows) else f"{len(some)} of {len(rows)} operations"
    )


def _span(rows: list[Record]) -> str:
    rows = sorted(rows, key=lambda r: r["ratio"])
    first, last = rows[0], rows[-1]
    low = f"{words.times(first['ratio'])} ({words.operation(first['operation'])})"
    if len(rows) == 1:
        return low
    return f"{low} to {words.times(last['ratio'])} ({words.operation(last['operation'])})"
