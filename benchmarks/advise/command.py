"""The command: asks `tiercel advise` about each program, then measures what is true, and prints both.

What was measured stays in ``results/<site>/benchmarks-advise/<program>-<user>.json``. An interrupted
benchmark resumes: a program that has such a file is not measured again (`--again` does, for a new version). A
program that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.advise.judge import cases, summary, table, totals
from benchmarks.advise.programs import programs
from benchmarks.advise.truth import Adviser, Truth, ask
from tiercel.errors import RunFailed, UserError
from tiercel.project import project_root
from tiercel.runs.scratch import check_scratch
from tiercel.site import load_site
from tiercel.site.model import Site, Stack


def main(arguments: Sequence[str], adviser: Adviser = ask) -> int:
    """Return 0, or 1 when an answer was wrong with certainty or did harm; 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advise", description=__doc__)
    parser.add_argument("--site", default="local")
    parser.add_argument("--home", action="append", metavar="STORAGE", help="default: each that is not memory")
    parser.add_argument("--only", action="append", metavar="PROGRAM", help="may be given again")
    parser.add_argument("--repetitions", type=int, default=5, help="of each way to run (default 5)")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--json", action="store_true", help="cases and totals as JSON")
    try:
        return _main(parser.parse_args(arguments), adviser)
    except UserError as error:
        print(f"benchmarks.advise: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks.advise: interrupted; the same command resumes it", file=sys.stderr)
        return 130


def _main(options: argparse.Namespace, adviser: Adviser) -> int:
    root = project_root()
    site = load_site(options.site, root)
    homes = _homes(site, options.home)
    output = root / "results" / site.site / "benchmarks-advise"
    output.mkdir(parents=True, exist_ok=True)
    for name in options.only or programs.names():
        program = programs.get(name)()
        kept = output / f"{name}-{os.geteuid()}.json"
        if kept.exists() and not options.again:
            continue
        if why := program.missing():
            print(f"{name} skipped: {why}", file=sys.stderr)
            continue
        try:
            measured = Truth(name, program, site, homes, output).measure(adviser, options.repetitions)
        except RunFailed as error:
            print(f"{name} skipped: {error}", file=sys.stderr)
            continue
        kept.write_text(json.dumps(measured, indent=1) + "\n")
    judged = []
    for path in sorted(output.glob("*.json")):
        measured = json.loads(path.read_text())
        judged += cases(measured)
        for home in measured["homes"]:
            if failed := [run["wrong"] for run in measured["runs"][home] if run["wrong"]]:
                why = f"it fails without advice ({failed[0]})"
                print(f"{measured['program']} left out at {home}: {why}", file=sys.stderr)
    total = totals(judged)
    if options.json:
        print(json.dumps({"cases": [asdict(case) for case in judged], "totals": asdict(total)}, indent=1))
    else:
        print(table(judged))
        print(summary(total), end="")
    return int(bool(total.wrong or total.slower or total.harmed))


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
