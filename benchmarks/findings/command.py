"""How often is `tiercel trace explain` right? Asks it about every trace of a labelled set and counts.

A rule is said of a trace when one of its findings is a problem or a hint. With ``--drishti`` the Darshan
logs are given to Drishti, too, and tiercel is scored on the same logs beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from benchmarks.findings import drishti
from benchmarks.findings.ask import ask
from benchmarks.findings.labels import HALVES, LABELS, SET, Trace, read_set
from benchmarks.findings.score import Count, Score, score
from benchmarks.findings.table import misses, table
from tiercel.errors import UserError

_TRACERS = ("darshan", "dxt", "dftracer", "strace")
_DARSHAN = ("darshan", "dxt")
Said = Mapping[str, Set[str]]


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 when a trace could not be read; 2 for a mistake."""
    try:
        return _main(_options(arguments))
    except UserError as error:
        print(f"benchmarks.findings: {error}", file=sys.stderr)
        return 2


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.findings", description=__doc__)
    said = "a folder with labels.yaml and traces (default: the set of this project)"
    parser.add_argument("set", nargs="?", type=Path, default=SET, metavar="LABELLED_SET", help=said)
    parser.add_argument("--half", choices=(*HALVES, "all"), default="all")
    parser.add_argument("--tracer", action="append", choices=_TRACERS, help="may be given again")
    said = "name the traces that were misjudged: of the tuning half, unless --half says otherwise"
    parser.add_argument("--show", action="store_true", help=said)
    parser.add_argument("--drishti", metavar="COMMAND", help="how Drishti is started, to compare with it")
    said = "keep the traces that were read there, so that the next time is quicker"
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help=said)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def _main(options: argparse.Namespace) -> int:
    halves = HALVES if options.half == "all" else (options.half,)
    traces = [
        t for t in read_set(options.set)
        if t.half in halves and (not options.tracer or t.tracer in options.tracer)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tiercel-findings-") as cache:
        said, unread = ask(traces, options.set, options.cache or Path(cache))
    scores = {"tiercel": _by_half(traces, said, halves)} if said else {}
    if options.drishti:
        logs = [t for t in traces if t.tracer in _DARSHAN]
        theirs, more = drishti.ask_drishti(options.drishti, logs, options.set)
        unread += [f"Drishti: {line}" for line in more]
        both = (("all labels", LABELS), ("Drishti's labels", tuple(drishti.LABELS))) if theirs else ()
        for name, labels in both:
            scores[f"Drishti, Darshan logs, {name}"] = _by_half(logs, theirs, halves, labels)
            scores[f"tiercel, Darshan logs, {name}"] = _by_half(logs, said, halves, labels)
    for line in unread:
        print(f"benchmarks.findings: {line}", file=sys.stderr)
    if not traces or not scores:
        raise UserError(f"{options.set}: none of its traces could be read, so there is nothing to score")
    shown = {"tuning"} if options.half == "all" else {options.half}
    if options.json:
        print(json.dumps(_document(scores, shown if options.show else set()), indent=2))
    else:
        _print(scores, shown if options.show else set())
    return 1 if unread else 0


def _by_half(
    traces: Sequence[Trace], said: Said, halves: Sequence[str], labels: Sequence[str] = LABELS
) -> dict[str, Score]:
    return {half: score([t for t in traces if t.half == half], said, labels) for half in halves}


def _print(scores: Mapping[str, Mapping[str, Score]], shown: Set[str]) -> None:
    for name, by_half in scores.items():
        for half, result in by_half.items():
            print(table(f"{name}, {half}", result))
            if half in shown:
                print("\n".join(misses(result.misses)), end="\n\n")


def _document(scores: Mapping[str, Mapping[str, Score]], shown: Set[str]) -> dict[str, Any]:
    return {
        name: {half: _score(result, half in shown) for half, result in by_half.items()}
        for name, by_half in scores.items()
    }


def _score(result: Score, shown: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "traces": result.traces, "unread": result.unread,
        "clean": result.clean, "clean_alarmed": result.alarmed,
        "all": _count(result.whole), "labels": {label: _count(c) for label, c in result.labels.items()},
    }  # fmt: skip
    if shown:
        document["misses"] = [{"trace": m.trace, "missed": m.missed, "false": m.false} for m in result.misses]
    return document


def _count(count: Count) -> dict[str, Any]:
    return {
        "right": count.right, "false": count.false, "missed": count.missed,
        "precision": count.precision, "recall": count.recall,
    }  # fmt: skip
