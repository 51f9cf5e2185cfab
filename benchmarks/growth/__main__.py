"""``python -m benchmarks.growth [--json] [--only NAME] [--quick] [--limit SECONDS]``: the table of growth.

For each subject and size: processor time of all processes, peak memory of the largest of them, files and
folders that are new or changed, and their bytes. A size that needs more than the limit ends the subject.

The exponent is the slope of log(processor time) over log(size), both less those of the smallest size, whose
processor time counts as that of starting. 1 means: twice the work costs twice as much.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.cost import measure
from benchmarks.growth.fit import Growth, Row, apart, grow
from benchmarks.growth.subjects import STARTS, SUBJECTS

_REPETITIONS = 5


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    names = sorted({"start", *(subject.name for subject in SUBJECTS)})
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"one of: {', '.join(names)} (repeat)"
    )
    parser.add_argument("--quick", action="store_true", help="only the three smallest sizes")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that a size may take (300)")
    parser.add_argument("--unit", help="only the subjects that count these")
    options = parser.parse_args(arguments)
    if unknown := set(options.only or ()) - set(names):
        parser.error(f"no subject {', '.join(sorted(unknown))}: one of {', '.join(names)}")
    chosen = [s for s in SUBJECTS if (not options.only or s.name in options.only)
              and options.unit in (None, s.unit)]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tiercel-growth-") as name:
        root = Path(name)
        starts = _starts(root) if not options.only or "start" in options.only else {}
        growths: list[Growth] = []
        for subject in chosen:
            sizes = subject.sizes[:2] if options.quick else subject.sizes
            print(f"{subject.name} ({subject.unit})", file=sys.stderr, flush=True)
            growths.append(grow(subject, sizes, options.limit, root, _say))
    if options.json:
        document: dict[str, Any] = {
            "processors": os.cpu_count(), "load": os.getloadavg()[0], "start": starts,
            "growth": [asdict(growth) for growth in growths],
        }  # fmt: skip
        print(json.dumps(document, indent=1))
    else:
        print("\n".join([*_start_table(starts), *_table(growths)]))
    return 0


def _starts(root: Path) -> dict[str, float]:
    """Return the median processor time in seconds of commands on tiny input."""
    found = {}
    for subject in STARTS:
        costs = []
        for _ in range(_REPETITIONS):
            trial = apart(subject.make, root, 1)
            costs.append(measure(trial.command, folder=trial.folder).cpu)
        found[subject.name] = statistics.median(costs)
    return found


def _say(row: Row) -> None:
    print(
        f"  {row.size:>12,} {_cpu(row)} {row.memory and round(row.memory / 1e6)} MB",
        file=sys.stderr,
        flush=True,
    )


def _cpu(row: Row) -> str:
    return row.reason if row.cpu is None else f"{row.cpu:.2f} s"


def _start_table(starts: dict[str, float]) -> list[str]:
    if not starts:
        return []
    rows = [f"| `{name}` | {seconds:.2f} |" for name, seconds in starts.items()]
    return ["| command, tiny input | CPU (s) |", "|---|---:|", *rows, ""]


def _table(growths: Sequence[Growth]) -> list[str]:
    lines = [
        "| subject | unit | size | CPU (s) | peak memory (MB) | files written | MB written | exponent |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for growth in growths:
        exponent = growth.reason if growth.exponent is None else f"{growth.exponent:.2f}"
        if not growth.rows:
            lines.append(f"| {growth.subject} | {growth.unit} | | | | | | not measured: {growth.reason} |")
        for row in growth.rows:
            last = exponent if row is growth.rows[-1] else ""
            cells = [growth.subject, growth.unit, f"{row.size:,}", *_cells(row), last]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cells(row: Row) -> list[str]:
    if row.cpu is None or row.memory is None or row.files is None or row.bytes is None:
        return [row.reason, "", "", ""]
    return [f"{row.cpu:.2f}", f"{row.memory / 1e6:.0f}", f"{row.files:,}", f"{row.bytes / 1e6:.1f}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
