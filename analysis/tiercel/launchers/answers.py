"""How a process that a launcher started answers: a line of JSON behind a mark, among what else is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

#: Begins each answer: launchers and login scripts print lines of their own.
MARK = "tiercel-node "


def say(answer: Mapping[str, Any]) -> None:
    """Print an answer, in one write: the lines of several nodes never mix."""
    sys.stdout.write(MARK + json.dumps(answer) + "\n")


def answers_in(printed: str) -> list[dict[str, Any]]:
    """Return the answers of all processes in what a launcher passed on, by host."""
    lines = [line.partition(MARK)[2] for line in printed.splitlines() if MARK in line]
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return sorted(found, key=lambda answer: str(answer["host"]))
