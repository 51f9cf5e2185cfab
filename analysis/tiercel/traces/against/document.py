"""A comparison as plain values, for --json."""

from __future__ import annotations

from typing import Any

from tiercel.traces.against.compare import Comparison, Difference, Found
from tiercel.traces.against.side import Side
from tiercel.traces.findings import Finding


def document(comparison: Comparison) -> dict[str, Any]:
    """Return everything that the comparison says; numbers in bytes and seconds, missing ones None."""
    matched = comparison.matched
    return {
        "a": _side(comparison.a), "b": _side(comparison.b),
        "differences": [_difference(d) for d in comparison.differences],
        "same": [_difference(d) for d in comparison.same],
        "not_compared": [{"what": what, "why": why} for what, why in comparison.incomparable],
        "layers": comparison.layers.to_dict("records"),
        "findings": [_found(found) for found in comparison.found],
        "findings_of_one": [{"trace": letter, **_finding(f)} for letter, f in comparison.untold],
        "files": {
            "matched": len(matched.pairs), "same_path": matched.same_path,
            "below_folder": matched.below_folder,
            "by_end": matched.by_end, "folders": list(matched.folders), "only_a": len(matched.only_a),
            "only_b": len(matched.only_b), "changed": comparison.files.to_dict("records"),
        },
        "notes": comparison.notes,
    }  # fmt: skip


def _side(side: Side) -> dict[str, Any]:
    return {
        "path": str(side.frame.metadata.get("path", "")), "format": side.numbers["format"],
        "from": side.numbers["from"], "layer": side.layer, "ranks": side.numbers["ranks"],
        "warnings": list(side.frame.warnings),
    }  # fmt: skip


def _difference(d: Difference) -> dict[str, Any]:
    return {
        "quantity": d.quantity.name, "words": d.quantity.words, "unit": d.quantity.unit, "a": d.a, "b": d.b,
        "difference": d.size, "ratio": d.ratio, "sentence": d.sentence,
    }  # fmt: skip


def _found(found: Found) -> dict[str, Any]:
    return {
        "fate": found.fate,
        "a": None if found.a is None else _finding(found.a),
        "b": None if found.b is None else _finding(found.b),
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule, "severity": finding.severity, "sentence": finding.sentence,
        "seconds": finding.seconds, "share": finding.share,
    }  # fmt: skip
