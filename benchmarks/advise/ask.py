"""Asks `tiercel advise` about a program, and keeps what it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """One program whose files lie at `home`; `answer` is the folder that `tiercel advise` fills."""

    site: str
    home: str
    minutes: float
    command: list[str]
    folder: Path
    environment: Mapping[str, str]
    answer: Path


Adviser = Callable[[Question], dict[str, Any]]


def ask(question: Question) -> dict[str, Any]:
    """Run the command; return its verdict and what it took, or ``{"failed": why}``."""
    tiercel = Path(sys.executable).parent / "tiercel"
    # Without --home: where the files lie is for it to see.
    options = ["--site", question.site, "--minutes", f"{question.minutes:g}"]
    question.answer.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        [str(tiercel), "advise", *options, "--json", "-o", str(question.answer), "--", *question.command],
        cwd=question.folder, env={**os.environ, **question.environment}, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    took = time.monotonic() - began
    (question.answer / "said.txt").write_bytes(done.stdout + done.stderr)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        return {"failed": f"exit code {done.returncode}: {' '.join(said[-1:])[:300]}", "took": took}
    try:
        answer = json.loads((question.answer / "advice.json").read_text())
        kept = {key: answer.get(key) for key in ("home", "answer", "fidelity", "left_out", "notes", "mode")}
        return {"verdict": answer["verdict"], "moves": moves(question.answer), "took": took, **kept}
    except (OSError, ValueError, KeyError) as error:
        return {"failed": f"no readable advice.json: {error!r}", "took": took}


def plan_of(answer: Path) -> Path:
    """Return the plan's folder in the folder of an answer."""
    return answer / "plan"


def moves(answer: Path) -> int:
    """Return how many files the plan moves."""
    try:
        return len((plan_of(answer) / "burst-buffer.map").read_text(errors="surrogateescape").splitlines())
    except FileNotFoundError:
        return 0
