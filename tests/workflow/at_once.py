"""Snakemake's command line for many lists of words, each in a process of its own, and loaded once for all.

To load it, and what a workflow loads, takes three times as long as to look at a workflow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

_EACH = """
import json, os, sys
import requests, tiercel.runs.stamps, tiercel.workflow
from snakemake.cli import main
for number, call in enumerate(json.loads(sys.argv[1])):
    if not (child := os.fork()):
        for file, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{sys.argv[2]}/{number}.{name}", os.O_WRONLY | os.O_CREAT), file)
        os.chdir(call["folder"])
        os.environ.update(call["environment"])
        sys.argv = ["snakemake", *call["words"]]
        main(call["words"])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@dataclass(frozen=True)
class Call:
    """Snakemake in a folder."""

    folder: str
    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def at_once(calls: Sequence[Call], said: Path) -> list[tuple[int, str, str]]:
    """Return exit code, output and errors of each call, as kept in the new folder `said`."""
    said.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TIERCEL_")}
    done = subprocess.run(
        [sys.executable, "-c", _EACH, json.dumps([asdict(call) for call in calls]), str(said)],
        cwd=calls[0].folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [
        (int(code), *((said / f"{number}.{name}").read_text() for name in ("out", "err")))
        for number, code in enumerate(done.stdout.split())
    ]
