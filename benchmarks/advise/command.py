"""The command: measures each program, keeps the figures, judges all that are there, prints the table.

What was measured stays in ``results/<site>/benchmarks-advise/<program>/measured.json``; a program that has
one is not measured again (`--again` does). Programs that are not installed are named and left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.advise.ask import Adviser, ask
from benchmarks.advise.judge import cases, totals
from benchmarks.advise.programs import Program, programs
from benchmarks.advise.table import summary, table
from benchmarks.advise.truth import Truth
from tiercel.errors import RunFailed, UserError
from tiercel.project import project_root
from tiercel.runs.scratch import check_scratch
from tiercel.site import load_site
from tiercel.site.model import Site, Stack

#: One of each sort: synced writes, a tree of small files, cold reads, computation.
_QUICK = ("rocksdb-sync", "7z-unpack", "numpy-loader", "samtools-sort", "xz", "grep-warm")
_MEASURED = "measured.json"


def main(arguments: Sequence[str], adviser: Adviser = ask) -> int:
    """Return 0, or 1 when advice was harmful or outputs wrong; 2 for a mistake."""
    options = _options(arguments)
    try:
        return _main(options, adviser)
    except UserError as error:
        print(f"benchmarks.advise: {error}", file=sys.stderr)
        return 2


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advise", description=__doc__)
    parser.add_argument("--site", default="local")
    said = "where files lie at first; may be given again (default: each storage that is not memory)"
    parser.add_argument("--home", action="append", metavar="STORAGE", help=said)
    parser.add_argument("--only", action="append", metavar="PROGRAM", help="may be given again")
    parser.add_argument("--repetitions", type=int, help="of each way to run (default 5; with --quick 3)")
    parser.add_argument("--minutes", type=float, help="of each advice (default 0.5)")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(_QUICK)}")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--json", action="store_true", help="cases and totals as JSON")
    return parser.parse_args(arguments)


def _main(options: argparse.Namespace, adviser: Adviser) -> int:
    root = project_root()
    site = load_site(options.site, root)
    homes = _homes(site, options.home)
    output = root / "results" / site.site / "benchmarks-advise"
    names = options.only or (_QUICK if options.quick else programs.names())
    found = _installed(names)
    minutes = options.minutes or 0.5
    repetitions = options.repetitions or (3 if options.quick else 5)
    measured = []
    for name, program in found.items():
        kept = output / name / _MEASURED
        if kept.exists() and not options.again:
            measured.append(json.loads(kept.read_text()))
            continue
        try:
            truth = Truth(name, program, site, homes, output)
            measured.append(truth.measure(adviser, minutes, repetitions))
        except RunFailed as error:
            print(f"{name} left out: {error}", file=sys.stderr)
            continue
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(measured[-1], indent=1) + "\n")
    return _answer(measured, as_json=options.json)


def _homes(site: Site, wanted: list[str] | None) -> list[str]:
    if len(site.storages) < 2:
        raise UserError(
            f"site {site.site} has a single storage: mount another (tools/network-storage makes one)"
        )
    for name, storage in site.storages.items():
        check_scratch(Stack(name, storage))
    for name in wanted or []:
        if name not in site.storages:
            raise UserError(f"site {site.site} has no storage {name} (it has {', '.join(site.storages)})")
    return wanted or [name for name, storage in site.storages.items() if storage.medium != "memory"]


def _installed(names: Sequence[str]) -> dict[str, Program]:
    found = {}
    for name in names:
        program = programs.get(name)()
        why = program.missing()
        if why:
            print(f"{name} skipped: {why}", file=sys.stderr)
        else:
            found[name] = program
    return found


def _answer(measured: Sequence[dict[str, Any]], as_json: bool) -> int:
    judged = [case for one in measured for case in cases(one)]
    total = totals(judged)
    if as_json:
        print(json.dumps({"cases": [asdict(case) for case in judged], "totals": asdict(total)}, indent=1))
    else:
        print(table(judged))
        print(summary(total), end="")
    return int(bool(total.slower or total.wrong))
