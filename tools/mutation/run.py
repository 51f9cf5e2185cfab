"""Mutation testing: small changes are made to the code, one at a time, and the tests should fail for each.

`make mutation` runs it on a tenth of the mutants of each part (parts.toml), another tenth each day; all work
is done in a copy of the tree in a temporary folder. What no test noticed is written to
build/mutation/PART.diff, to be looked at: a test is missing, or nobody needs the code, or the change makes no
difference.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).resolve().parents[2]
PARTS = Path(__file__).with_name("parts.toml")
#: mutmut tells a mutant's module by the folder `src` above it, or none.
CODE, SEEN_AS = Path("analysis"), Path("src")
UNNOTICED = ("survived", "no tests")


def main() -> int:
    parts = tomllib.loads(PARTS.read_text())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", help=f"of {', '.join(parts)} (default: all)")
    parser.add_argument(
        "--mutants", default=str(datetime.date.today().toordinal() % 10), metavar="DIGIT|all|PATTERN",
        help="those whose number ends in DIGIT (default: today's), all, or those whose name is like PATTERN",
    )  # fmt: skip
    parser.add_argument(
        "--at-once", type=int, default=os.cpu_count() or 1, metavar="N", help="how many processes"
    )
    asked = parser.parse_args()
    if unknown := set(asked.part) - set(parts):
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(parts)}")
    # Terminated as interrupted: the temporary folder goes, and so do the processes in it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bad = [
        name for name in asked.part or parts if not _passes(name, parts[name], asked.mutants, asked.at_once)
    ]
    if bad:
        print(f"mutation: too much went unnoticed in {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


def _passes(name: str, part: dict[str, Any], mutants: str, at_once: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="tiercel-mutation-") as folder:
        tree = Path(folder)
        _copy(tree, part)
        said = _mutmut(tree, _patterns(mutants), at_once)
        os.chdir(tree)  # where mutmut looks for its mutants
        try:
            return _judged(name, part, tree, mutants, said)
        finally:
            os.chdir(ROOT)


def _copy(tree: Path, part: dict[str, Any]) -> None:
    """Copy what git tracks or would track to `tree`, and say there what is mutated and which tests run."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for file in subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0"):
        place = Path(file)
        to = tree / (SEEN_AS / place.relative_to(CODE) if place.is_relative_to(CODE) else place)
        if file and os.path.lexists(ROOT / place):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / place, to, follow_symlinks=False)
    # Links, not copies, of what no mutant is in; the tests mutmut copies by itself.
    # Made before Python starts there: it remembers of a folder on its path that it was not there.
    (tree / "mutants" / SEEN_AS).mkdir(parents=True)
    for place in tree.iterdir():
        if place.name not in ("mutants", "tests", "pyproject.toml", str(SEEN_AS)):
            (tree / "mutants" / place.name).symlink_to(place)
    (tree / "mutants" / CODE).symlink_to(SEEN_AS)
    (tree / CODE).symlink_to(SEEN_AS)
    settings = {
        "source_paths": [str(SEEN_AS)],
        "only_mutate": [str(SEEN_AS / Path(files).relative_to(CODE)) for files in part["files"]],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-m", "not nightly and not studies"],
        "pytest_add_cli_args_test_selection": part["tests"],
    }
    with (tree / "pyproject.toml").open("a") as file:
        # A list of strings is the same in JSON and TOML.
        file.write("\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(v)}\n" for key, v in settings.items()))


def _patterns(mutants: str) -> list[str]:
    if mutants == "all":
        return []
    return [f"*__mutmut_{mutants}", f"*__mutmut_*{mutants}"] if mutants.isdigit() else [mutants]


def _mutmut(tree: Path, patterns: list[str], at_once: int) -> str:
    """Run the mutants and return what mutmut said, which tells why where it stopped."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "mutants" / SEEN_AS)}
    command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", str(at_once), *patterns]
    log = tree / "mutmut.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return log.read_text(errors="replace")


def _judged(name: str, part: dict[str, Any], tree: Path, mutants: str, said: str) -> bool:
    """Print the counts of a part; return whether few enough went unnoticed."""
    status = {
        mutant: status_by_exit_code[code]
        for meta in sorted((tree / "mutants" / SEEN_AS).rglob("*.py.meta"))
        for mutant, code in json.loads(meta.read_text())["exit_code_by_key"].items()
    }
    counts = Counter(status.values())
    judged = sum(counts.values()) - counts["not checked"]
    if not judged or (mutants == "all" and counts["not checked"]):
        print(f"mutation: {name}: mutmut did not get through:\n{said[-3000:]}", file=sys.stderr)
        return False
    unnoticed = sorted(mutant for mutant in status if status[mutant] in UNNOTICED)
    left = ROOT / "build" / "mutation" / f"{name}.diff"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("".join(f"# {m}: {status[m]}\n{get_diff_for_mutant(m)}\n" for m in unnoticed))
    share = len(unnoticed) / judged
    print(
        f"mutation: {name}: {judged} of {len(status)} mutants: {judged - len(unnoticed)} noticed, "
        f"{counts['survived']} survived, {counts['no tests']} without test: {share:.1%} unnoticed "
        f"(limit {part['limit']:.1%}), in {left.relative_to(ROOT)}"
    )
    return share <= part["limit"]


if __name__ == "__main__":
    sys.exit(main())
