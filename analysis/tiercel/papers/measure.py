"""Carries out the commands that answer statements, and enters what they gave into the book."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiercel.children import ended_with_parent
from tiercel.errors import UserError
from tiercel.papers.book import Found, digest_of, read_book, write_book
from tiercel.papers.load import load_papers
from tiercel.papers.model import Statement
from tiercel.papers.readings import reading_of
from tiercel.site.machine import cores, memory


def measure(statements: list[Statement], root: Path, say: Callable[[str], None]) -> list[str]:
    """Answer `statements` by their commands, each command once; return what failed, a sentence each.

    UserError where none of them has a command. Each answer is in the book as soon as its command has ended.
    """
    wanted: dict[str, list[Statement]] = {}
    for statement in statements:
        if statement.answer.command:
            wanted.setdefault(statement.answer.command, []).append(statement)
    if not wanted:
        raise UserError("no command answers these statements: `tiercel claims` says why")
    failed = []
    for command, about in wanted.items():
        say(f"{', '.join(s.id for s in about)}: {command}")
        machine = _machine()
        digests = {s.id: digest_of(s.answer.rests_on, root) for s in about}
        lacking = [name for name, digest in digests.items() if digest is None]
        if lacking:
            raise UserError(f"{lacking[0]}: what it rests on is not below {root}: use a checkout of tiercel")
        try:
            printed = _carry_out(command, root)
        except _Failed as error:
            failed.append(f"{command}: {error}")
            continue
        book = {name: entry for name, entry in read_book().items() if name in _with_commands()}
        for statement in about:
            book.pop(statement.id, None)  # what is not found again is not claimed any longer
            try:
                ours = _figure(statement, printed)
            except _Failed as error:
                failed.append(f"{command}: {error}")
                continue
            book[statement.id] = Found(
                ours=ours,
                command=command,
                date=datetime.now(UTC).strftime("%Y-%m-%d"),
                machine=machine,
                digest=digests[statement.id] or "",
            )
        write_book(book)
    return failed


def _with_commands() -> set[str]:
    """Return the statements that a command answers: the book keeps no others."""
    return {s.id for p in load_papers() for s in p.statements if s.answer.command}


class _Failed(Exception):
    """A command gave no figure; the others go on."""


def _carry_out(command: str, root: Path) -> Any:
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", *words], cwd=root, preexec_fn=ended_with_parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:  # 1: a target of its own was missed, which is a figure as any other
        if done.returncode in (0, 1):
            return json.loads(done.stdout)
    except ValueError:
        pass
    last = (done.stderr.strip() or "no JSON was printed").splitlines()[-1]
    raise _Failed(last.removeprefix("tiercel: "))


def _figure(statement: Statement, printed: Any) -> float:
    reading = reading_of(statement.id)
    if reading is None:
        raise _Failed(f"{statement.id} has no reading (papers/readings.py)")
    try:
        value = float(reading(printed))
    except (KeyError, IndexError, TypeError, ValueError, StopIteration, ZeroDivisionError) as error:
        raise _Failed(f"{statement.id}: no figure in what was printed ({error})") from None
    if not math.isfinite(value):
        raise _Failed(f"{statement.id}: its figure is {value}")
    return value


def _machine() -> str:
    """Return the machine in words that name nobody: kind, processors, memory, and how busy it is."""
    kind = f"{platform.system()} on {platform.machine()}, {cores()} processors, {memory() / 1024**3:.0f} GiB"
    return f"{kind}, load {os.getloadavg()[0]:.1f} before"
