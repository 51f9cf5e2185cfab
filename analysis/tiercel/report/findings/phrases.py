"""Parts of sentences, and of their evidence, that several rules need."""

from __future__ import annotations

from tiercel.report.data import Number, Record, Results
from tiercel.report.findings.finding import Evidence


def is_hint(row: Record) -> bool:
    """All repetitions lie on one side and beyond the noise; only their number forbids a claim."""
    beyond = row["low"] > row["floor_high"] or row["high"] < row["floor_low"]
    return row["verdict"] == "undecided" and bool(row["separated"]) and bool(beyond)


def bare(reason: object) -> str:
    """Return why a comparison is undecided, without the numbers: equal reasons read alike."""
    return str(reason).split(" (", maxsplit=1)[0]


def few(row: Record) -> str:
    return f"Not proven: too few repetitions ({row['n_a']} and {row['n_b']})."


def of_origin(origin: str) -> str:
    """Return the word that every number which was not measured here carries."""
    return "" if origin == "measured" else f" ({origin})"


def number_evidence(n: Number) -> Evidence:
    return Evidence(n.anchor.replace("number-", "no. "), n.anchor, tuple(n.runs))


def row_evidence(results: Results, row: Record, names: tuple[str, str]) -> tuple[Evidence, ...]:
    """Return the rows of the table of numbers that a comparison was made from."""
    stacks = {row[k] for k in ("stack", "stack_a", "stack_b") if k in row}
    wanted = set(row["runs"])
    return tuple(
        number_evidence(n)
        for n in results.of_workload(row[names[0]], row[names[1]])
        if n.stack in stacks and n.operation == row["operation"] and wanted & set(n.runs)
    )
