"""Which stack serves which workload best: the rule that most users look for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tiercel.report import words
from tiercel.report.data import Record, Results, overall
from tiercel.report.findings.finding import Evidence, Finding
from tiercel.report.findings.phrases import is_hint, of_origin, row_evidence, unconfirmed
from tiercel.statistics.ranking import both, rank, same, toward


def best_stack(results: Results) -> Iterable[Finding]:
    """Say for each workload which stack serves it best.

    The best of those that keep their files is compared with every other one; memory comes last. Ratios have
    the direction of the first screen: of memory to storage that keeps files, else of the best to the others.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for row in overall(results):
        if row["engine"] == results.main_engine(row["experiment"], row["workload"]):
            groups.setdefault((row["experiment"], row["workload"], row["origin"]), []).append(row)
    against_memory: list[Finding] = []
    for (experiment, workload, origin), rows in groups.items():
        ranking = rank(rows, results.memory)
        if ranking is None:
            continue
        prefix = f"{results.title(experiment, workload)}{of_origin(origin)}"
        best = ranking.reference
        for other in dict.fromkeys(stack for row in rows for stack in (row["stack_a"], row["stack_b"])):
            pair = [row for row in rows if both(row) == {best, other}]
            if not pair or other == best:
                continue
            if other in results.memory and best not in results.memory:
                pair = [toward(row, other) for row in pair]
                against_memory += _pair(results, prefix, other, best, pair)
            else:
                yield from _pair(results, prefix, best, other, [toward(row, best) for row in pair])
    yield from against_memory


def _pair(results: Results, prefix: str, a: str, b: str, rows: list[Record]) -> Iterator[Finding]:
    """Yield what is known about one workload on two stacks, one finding for each status; every row has the
    ratio of `a` to `b`."""
    a, b = results.name(a), results.name(b)
    evidence = tuple(e for row in rows for e in row_evidence(results, row, ("experiment", "workload")))
    if rows[0]["origin"] == "simulated":
        yield Finding("user", "fact", f"{prefix}: {_by_the_model(a, b, rows)}.", evidence)
    elif len(rows) > 1:
        yield from _many(prefix, a, b, rows, evidence)
    else:
        yield _one(prefix, a, b, rows[0], evidence)


def _one(prefix: str, a: str, b: str, row: Record, evidence: tuple[Evidence, ...]) -> Finding:
    single = min(row["n_a"], row["n_b"]) < 2  # which has no interval
    within = "one repetition" if single else f"95 % CI {words.factors(row['low'], row['high'])}"
    ratio = f"{words.times(row['ratio'])} ({within})"
    more = f"{prefix}: {a} has {ratio} the {words.QUANTITIES[row['metric']]} of {b}"
    if row["verdict"] != "undecided":
        return Finding("user", "claim", f"{more}.", evidence)
    if same(row):
        return Finding(
            "user", "claim", f"{prefix}: {a} and {b} are equal {words.within(row)}, {ratio}.", evidence
        )
    if is_hint(row):
        return Finding("user", "hint", f"{more}. {unconfirmed(row)}", evidence)
    said = f"{prefix}: no proven difference between {a} and {b}, {ratio}."
    return Finding("user", "open", f"{said} {unconfirmed(row)}", evidence)


def _by_the_model(a: str, b: str, rows: list[Record]) -> str:
    """Return the sentence on simulated results, which have no noise and so no verdict."""
    ratios = [f"{words.times(row['ratio'])} ({words.operation(row['operation'])})" for row in rows]
    if len(rows) > 1:
        return f"simulated ratio of {a} to {b}: {words.listed(ratios)}"
    row = rows[0]
    over = "over all scales" if row["scope"] == "all" else f"at {_scale(row)}"
    more = f"{words.times(row['ratio'])} the {words.QUANTITIES[row['metric']]}"
    return f"simulated: {a} has {more} of {b}, {over}"


def _scale(row: Record) -> str:
    return words.scale(int(row["nodes"]), int(row["processes_per_node"]))


def _many(
    prefix: str, a: str, b: str, rows: list[Record], evidence: tuple[Evidence, ...]
) -> Iterator[Finding]:
    """Yield the findings on a workload of several operations (metadata)."""
    left = [r for r in rows if r["verdict"] == "undecided"]
    alike = [r for r in left if same(r)]
    hints = [r for r in left if is_hint(r) and r not in alike]
    rest = [r for r in left if r not in alike and r not in hints]
    for verdict, how in (("higher", "faster"), ("lower", "slower")):
        if some := [r for r in rows if r["verdict"] == verdict]:
            said = f"{prefix}: {a} is {how} than {b} in {_of(some, rows)}: {_span(some)}."
            yield Finding("user", "claim", said, evidence)
    if alike:
        said = f"{prefix}: {a} and {b} are equal {words.within(alike[0])} in {_of(alike, rows)}."
        yield Finding("user", "claim", said, evidence)
    if hints:
        said = f"{prefix}: {a} may differ from {b} in {_of(hints, rows)}: {_span(hints)}."
        yield Finding("user", "hint", f"{said} {unconfirmed(hints[0])}", evidence)
    if rest:
        said = f"{prefix}: no proven difference between {a} and {b} in {_of(rest, rows)}."
        yield Finding("user", "open", said, evidence)


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
