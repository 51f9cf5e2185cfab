"""Findings: sentences for one audience, each with the numbers that support it.

A rule is a function from results to findings. No rule claims a difference that the statistics did not:
`claim` needs a verdict, `hint` says what was seen in all repetitions and why that is no claim, `open` says
what could not be told apart. `fact` describes a number without comparing; `caution` and `failure` say what
to mind and what went wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from tiercel.report import words
from tiercel.report.data import Number, Record, Results, overall, reverse
from tiercel.units import format_latency

Audience = Literal["user", "engineer", "researcher"]
Severity = Literal["claim", "hint", "open", "fact", "caution", "failure"]

AUDIENCES: dict[Audience, tuple[str, str]] = {
    "user": ("For application users", "Where do I put my files, and what do I gain?"),
    "engineer": ("For storage engineers", "Does the system deliver, and what bounds it?"),
    "researcher": ("For I/O researchers", "How sure are these numbers, and can I repeat them?"),
}
_STEADY = 0.2


@dataclass(frozen=True)
class Evidence:
    """What a sentence rests on: words, the place in the page, and the runs."""

    text: str
    anchor: str = ""
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    audience: Audience
    severity: Severity
    sentence: str
    evidence: tuple[Evidence, ...] = ()


Rule = Callable[[Results], Iterable[Finding]]


def find(results: Results) -> list[Finding]:
    """Return the findings of all rules, in the order of the rules."""
    return [finding for rule in RULES for finding in rule(results)]


def top(findings: list[Finding], most: int = 5) -> list[Finding]:
    """Return the few that matter first: failures, then a share for each audience."""
    order: list[Severity] = ["claim", "hint", "caution", "open", "fact"]
    failures = [f for f in findings if f.severity == "failure"][:1]
    rest = sorted(
        (f for f in findings if f.severity != "failure"),
        key=lambda f: (f.audience != "user", order.index(f.severity)),
    )
    return [*failures, *rest][:most]


# For application users.


def nothing_measured(results: Results) -> Iterable[Finding]:
    if results.failed and not results.numbers:
        yield Finding(
            "user",
            "failure",
            f"No run gave a number: {words.count(len(results.failed), 'run')} failed. The reasons are below.",
            (Evidence("failed runs", "failed"),),
        )


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
        title = results.title(experiment, workload)
        prefix = f"{title}{_of_origin(origin)}"
        lasting = [row for row in rows if not _both(row) & results.memory]
        stacks = list(dict.fromkeys(stack for row in rows for stack in (row["stack_a"], row["stack_b"])))
        kept = [stack for stack in stacks if stack not in results.memory]
        best = _best(lasting) if lasting else kept[0] if kept else _best(rows)
        for other in stacks:
            pair = [_toward(row, best) for row in rows if _both(row) == {best, other}]
            if not pair:
                continue
            found = _pair(results, prefix, best, other, pair)
            if other in results.memory and best not in results.memory:
                against_memory.append(found)
            else:
                yield found
    yield from against_memory


def memory(results: Results) -> Iterable[Finding]:
    """Say what a fast stack that is memory is not."""
    names = [results.stacks[stack] for stack in results.stacks if stack in results.memory]
    if names:
        verb = "is" if len(names) == 1 else "are"
        yield Finding(
            "user",
            "caution",
            f"{words.listed(names)} {verb} memory: files there take memory from your program, are seen on "
            "their node only, and are gone after a restart. Use it for copies and temporary files.",
        )


def factors(results: Results) -> Iterable[Finding]:
    """Say what fsync, random access, a shared file or direct I/O costs on each stack."""
    for row in results.contrasts:
        if row["factor"] in ("fsync", "pattern", "layout", "direct"):
            yield from _factor(results, row)


# For storage engineers.


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
        title = results.title(first["experiment"], first["workload"]) + _of_origin(first["origin"])
        yield Finding(
            "engineer",
            "claim" if claims else "hint" if any(map(_hints, rows)) else "open",
            f"{title}: going from "
            f"{first['smallest']:.0f} to {first['largest']:.0f} {noun} (at best "
            f"{words.times(first['growth'])}) {'; '.join(parts)}.",
            tuple(e for row in rows for e in _evidence(results, row, ("experiment", "workload"))),
        )


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
            f"A write with fsync takes {'; '.join(parts)} ({scale}){_of_origin(origin)}.",
            tuple(_number(n) for n in numbers),
        )


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
        tuple(_number(x) for x in shaky[:5]),
    )


def failures(results: Results) -> Iterable[Finding]:
    """Say which runs failed, one sentence for each reason."""
    reasons: dict[tuple[str, str], list[Record]] = {}
    for run in results.failed:
        label = words.stack(run["storage_label"] or run["storage"], run["layer"])
        reasons.setdefault((label, _text(run["reason"])), []).append(run)
    for (label, reason), runs in reasons.items():
        yield Finding(
            "engineer",
            "failure",
            f"{words.count(len(runs), 'run')} failed on {label}: {reason or 'no reason recorded'}",
            (Evidence("failed runs", "failed", tuple(run["run"] for run in runs)),),
        )


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
        share = f"{len(numbers)} of {words.count(len(results.numbers), 'number')}{out}"
        evidence = (Evidence("checks", f"flag-{code}"),)
        if 2 * len(numbers) > len(results.numbers):
            yield Finding("user", "caution", f"{flag.title}: {share}.", evidence)
        yield Finding("engineer", "caution", f"{flag.title}: {share}. {flag.advice}", evidence)


# For I/O researchers.


def noise(results: Results) -> Iterable[Finding]:
    """Say how far the same configuration lies from itself."""
    own = [row for row in results.floors if row["source"] == "own"]
    if not own:
        if results.numbers:
            yield Finding(
                "researcher",
                "caution",
                "No configuration was run twice over (A/A), so the noise is unknown and no difference is "
                "claimed.",
            )
        return
    by_stack: dict[str, list[float]] = {}
    for row in own:
        name = results.name(row["stack"]) + _of_origin(row["origin"])
        by_stack.setdefault(name, []).append(row["high"])
    parts = [
        f"{words.times(sorted(v)[len(v) // 2])} (at worst {words.times(max(v))}) on {name}"
        for name, v in by_stack.items()
    ]
    yield Finding(
        "researcher",
        "fact",
        f"The same configuration, run twice over, differs by up to {words.listed(parts)}; smaller "
        "differences are not claimed.",
        (Evidence("noise floors", "noise"),),
    )


def undecided(results: Results) -> Iterable[Finding]:
    """Count what could not be decided, and why."""
    rows = overall(results)
    still = [row for row in rows if row["verdict"] == "undecided"]
    if not rows:
        return
    why = Counter(_why(row) for row in still)
    reasons = "; ".join(f"{number} because {reason}" for reason, number in why.most_common())
    said = (
        f"{len(rows) - len(still)} of {words.count(len(rows), 'comparison')} of storage systems are decided"
    )
    yield Finding(
        "researcher",
        "fact" if not still else "open",
        f"{said}{f', {len(still)} are not: {reasons}' if still else ''}.",
        (Evidence("comparisons", "comparisons"),),
    )


def intervals(results: Results) -> Iterable[Finding]:
    """Say where the intervals are ranges for want of repetitions."""
    short = [n for n in results.numbers if n.coverage < 0.95]
    if not short:
        return
    fewest = min(n.n for n in short)
    covers = min(n.coverage for n in short)
    yield Finding(
        "researcher",
        "caution",
        f"{words.count(len(short), 'number')} of {len(results.numbers)} rest on fewer than 6 repetitions (as "
        f"few as {fewest}): their interval is the range, which covers the true median with "
        f"{words.percent(covers)} at least, not 95 %.",
        (Evidence("numbers", "numbers"),),
    )


def engines_agree(results: Results) -> Iterable[Finding]:
    """Say whether tiercel's own engine agrees with the upstream ones."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in results.agreement:
        groups.setdefault((row["engine_a"], row["engine_b"]), []).append(row)
    for (a, b), rows in groups.items():
        within = sum(bool(row["within_floor"]) for row in rows)
        furthest = max(rows, key=lambda row: abs(math.log(row["ratio"])) if row["ratio"] > 0 else math.inf)
        yield Finding(
            "researcher",
            "fact" if within == len(rows) else "caution",
            f"{a} agrees with {b} within the noise in {within} of {words.count(len(rows), 'pair')}; "
            f"the furthest apart is {words.operation(furthest['operation'])} on "
            f"{results.name(furthest['stack'])}{_of_origin(furthest['origin'])}, "
            f"{words.times(furthest['ratio'])} ({words.factors(furthest['low'], furthest['high'])}).",
            (Evidence("engine agreement", "agreement"),),
        )


RULES: tuple[Rule, ...] = (
    nothing_measured,
    best_stack,
    memory,
    factors,
    failures,
    gains,
    synced_latency,
    unsteady,
    cautions,
    noise,
    undecided,
    intervals,
    engines_agree,
)


# Parts of sentences.


def _pair(results: Results, prefix: str, best: str, other: str, rows: list[Record]) -> Finding:
    """Return the finding about one workload on two stacks; every row compares `best` with `other`."""
    a, b = results.name(best), results.name(other)
    evidence = tuple(e for row in rows for e in _evidence(results, row, ("experiment", "workload")))
    claimed = [row for row in rows if row["verdict"] != "undecided"]
    if sum(math.log(row["ratio"]) for row in rows) < 0:  # only against memory: the faster is the subject
        rows, a, b = [reverse(row) for row in rows], b, a
    if len(rows) > 1:
        return _many(prefix, a, b, rows, evidence)
    row = rows[0]
    ratio = f"{words.times(row['ratio'])} ({words.factors(row['low'], row['high'])}{_noise(row)})"
    over = "over all scales" if row["scope"] == "all" else f"at {_scale(row)}"
    quantity = words.QUANTITIES[row["metric"]]
    if claimed:
        said = f"{prefix}: {a} gives {ratio} the {quantity} of {b}, {over}{_for_example(results, row)}."
        return Finding("user", "claim", said, evidence)
    if _hints(row):
        ahead = f"{a} was ahead of {b} in all repetitions, {words.times(row['ratio'])}"
        said = f"{prefix}: {ahead}, {over}; {_few(row)}."
        return Finding("user", "hint", said, evidence)
    said = f"{prefix}: {a} and {b} cannot be told apart {over}, {ratio}: {row['reason']}."
    return Finding("user", "open", said, evidence)


def _for_example(results: Results, row: Record) -> str:
    """Return the two numbers at the largest scale that both sides have."""
    sides: dict[tuple[int, int, str], dict[str, Number]] = {}
    for n in results.numbers:
        wanted = ("origin", "experiment", "workload", "operation", "engine")
        if n.stack in _both(row) and all(getattr(n, k) == row[k] for k in wanted) and not n.invalid:
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
    hints = [r for r in rows if r["verdict"] == "undecided" and _hints(r)]
    rest = len(rows) - len(better) - len(worse) - len(hints)
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
        parts.append(
            f"{start}in {_of(hints, rows)} all repetitions lie on one side ({_span(hints)}), but "
            f"{_few(hints[0])}"
        )
    if rest:
        start = "" if parts else f"{a} against {b}: "
        parts.append(f"{start}undecided in {rest} of {len(rows)} operations")
    severity: Severity = "claim" if better or worse else "hint" if hints else "open"
    return Finding("user", severity, f"{prefix}: {'; '.join(parts)}.", evidence)


def _gain(results: Results, row: Record) -> str:
    name = results.name(row["stack"])
    ratio = f"{words.times(row['ratio'])} ({words.factors(row['low'], row['high'])})"
    if row["verdict"] == "higher":
        return f"gains {ratio} on {name}, {words.percent(row['efficiency'])} efficiency"
    if row["verdict"] == "lower":
        return f"loses on {name}, {ratio} of the bandwidth remains"
    if _hints(row):
        change = "gained" if row["ratio"] > 1 else "lost"
        return f"{change} in all repetitions on {name}, {ratio}, but {_few(row)}"
    if not math.isfinite(row["floor_high"]):
        return f"gives {ratio} on {name}, with the noise unknown"
    noise = words.factors(row["floor_low"], row["floor_high"])
    return f"cannot be told from the noise on {name}, {ratio} with a noise of {noise}"


def _factor(results: Results, row: Record) -> Iterable[Finding]:
    name = results.name(row["stack"]) + _of_origin(row["origin"])
    operation = words.operation(row["operation"])
    with_it = words.LEVELS.get((row["factor"], row["level_a"]), row["level_a"])
    without = words.LEVELS.get((row["factor"], row["level_b"]), row["level_b"])
    if row["factor"] == "pattern":
        subject, object_ = f"{with_it} {operation}s", f"{without} {operation}s"
    else:
        subject, object_ = f"{operation}s with {with_it}", f"{operation}s with {without}"
    evidence = _evidence(results, row, ("experiment_a", "workload_a")) + _evidence(
        results, row, ("experiment_b", "workload_b")
    )
    reach = f"{words.percent(row['ratio'])} ({words.percent(row['low'])} to {words.percent(row['high'])})"
    if row["verdict"] != "undecided":
        said = f"On {name}, {subject} reach {reach} of the bandwidth of {object_}."
        yield Finding("user", "claim", said, evidence)
    elif _hints(row):
        said = f"On {name}, {subject} reached {words.percent(row['ratio'])} of the bandwidth of {object_}"
        said += f", on one side in all repetitions; {_few(row)}."
        yield Finding("user", "hint", said, evidence)
    elif math.isfinite(row["ratio"]):
        said = f"On {name}, {subject} cannot be told from {object_}, {reach}: {row['reason']}."
        yield Finding("user", "open", said, evidence)


def _hints(row: Record) -> bool:
    """All repetitions lie on one side and beyond the noise; only their number forbids a claim."""
    beyond = row["low"] > row["floor_high"] or row["high"] < row["floor_low"]
    return row["verdict"] == "undecided" and bool(row["separated"]) and bool(beyond)


def _few(row: Record) -> str:
    return f"{row['n_a']} repetitions against {row['n_b']} are too few to claim it"


def _why(row: Record) -> str:
    """Return the reason without its numbers, so that equal reasons count as one."""
    return str(row["reason"]).split(" (", maxsplit=1)[0]


def _noise(row: Record) -> str:
    if not math.isfinite(row["floor_high"]):
        return "; noise unknown"
    return f"; noise {words.factors(row['floor_low'], row['floor_high'])}"


def _best(rows: list[Record]) -> str:
    """Return the stack with the highest numbers over all comparisons of a workload."""
    score: dict[str, float] = {}
    for row in rows:
        score[row["stack_a"]] = score.get(row["stack_a"], 0) + math.log(row["ratio"])
        score[row["stack_b"]] = score.get(row["stack_b"], 0) - math.log(row["ratio"])
    return max(score, key=lambda stack: score[stack])


def _both(row: Record) -> set[str]:
    return {row["stack_a"], row["stack_b"]}


def _other(row: Record, stack: str) -> str:
    return str(row["stack_b"] if row["stack_a"] == stack else row["stack_a"])


def _toward(row: Record, stack: str) -> Record:
    return row if row["stack_a"] == stack else reverse(row)


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


def _scale(row: Record) -> str:
    return words.scale(int(row["nodes"]), int(row["processes_per_node"]))


def _named(results: Results, n: Number) -> str:
    what = f"{words.operation(n.operation)}, " if n.metric != "bandwidth" else ""
    return f"{what}{n.title or n.workload} on {results.name(n.stack)} at {n.scale}{_of_origin(n.origin)}"


def _of_origin(origin: str) -> str:
    """Return the word that every number which was not measured here carries."""
    return "" if origin == "measured" else f" ({origin})"


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _at_largest(results: Results) -> list[Number]:
    most: dict[tuple[str, ...], Number] = {}
    for n in results.numbers:
        if n.engine == results.main_engine(n.experiment, n.workload):
            key = (n.experiment, n.workload, n.operation, n.stack, n.origin)
            if key not in most or n.processes > most[key].processes:
                most[key] = n
    return list(most.values())


def _number(n: Number) -> Evidence:
    return Evidence(n.anchor.replace("number-", "no. "), n.anchor, tuple(n.runs))


def _evidence(results: Results, row: Record, names: tuple[str, str]) -> tuple[Evidence, ...]:
    """Return the rows of the table of numbers that a comparison was made from."""
    stacks = {row[k] for k in ("stack", "stack_a", "stack_b") if k in row}
    experiment, workload = row[names[0]], row[names[1]]
    wanted = set(row["runs"])
    return tuple(
        _number(n)
        for n in results.numbers
        if n.stack in stacks
        and (n.experiment, n.workload, n.operation) == (experiment, workload, row["operation"])
        and wanted & set(n.runs)
    )
