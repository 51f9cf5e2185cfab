"""Carries out the commands that answer statements, and enters what they gave into the book."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiercel import __version__
from tiercel.children import ended_with_parent
from tiercel.errors import UserError
from tiercel.papers.book import Found, read_book, write_book
from tiercel.papers.load import load_papers
from tiercel.papers.model import Statement
from tiercel.papers.readings import Figure, reading_of
from tiercel.papers.verdicts import decided
from tiercel.site.machine import cores, memory


def measure(statements: list[Statement], root: Path, say: Callable[[str], None]) -> list[str]:
    """Answer `statements` by their commands, each command once; return what failed, a sentence each.

    UserError where none of them has a command. Each answer is in the book as soon as its commands have ended.
    """
    wanted = [s for s in statements if s.answer.command]
    if not wanted:
        raise UserError("no command can check these statements: `tiercel claims` lists the reasons")
    commands = _Commands(root, say, wanted)
    known, failed = _with_commands(), []
    for statement in wanted:
        try:
            printed = commands.printed_for(statement)
        except _Failed as error:
            failed.append(str(error))
            continue
        book = {name: entry for name, entry in read_book().items() if name in known}
        book.pop(statement.id, None)  # what is not found again is not claimed any longer
        try:
            book[statement.id] = Found(
                **_figure(statement, printed),
                command=statement.answer.commands,
                date=datetime.now(UTC).strftime("%Y-%m-%d"),
                machine=commands.machines[statement.answer.command[0]],
                version=__version__,
            )
        except _Failed as error:
            failed.append(f"{statement.answer.commands}: {error}")
        write_book(book)
    return list(dict.fromkeys(failed))


def _with_commands() -> set[str]:
    """Return the statements that a command answers: the book keeps no others."""
    return {s.id for p in load_papers() for s in p.statements if s.answer.command}


class _Failed(Exception):
    """A command gave no figure; the others go on."""


@dataclass
class _Commands:
    """What the commands printed so far: several statements may rest on one."""

    root: Path
    say: Callable[[str], None]
    wanted: list[Statement]
    machines: dict[str, str] = field(default_factory=dict)
    """The machine as it was before each command."""
    _ended: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def printed_for(self, statement: Statement) -> Any:
        """Return what its command printed, of several a list; _Failed where one of them failed."""
        mine = set(statement.answer.command)
        # Also what another statement needs before a command that both share: it runs once.
        sharing = (each for each in self.wanted if mine & set(each.answer.command))
        for command in (command for each in sharing for command in each.answer.first):
            self._once(command, json_wanted=False)
        printed = [self._once(command, json_wanted=True) for command in statement.answer.command]
        return printed[0] if len(printed) == 1 else printed

    def _once(self, command: str, json_wanted: bool) -> Any:
        key = (command, json_wanted)
        if key not in self._ended:
            about = [s.id for s in self.wanted if command in (*s.answer.first, *s.answer.command)]
            self.say(f"{', '.join(about)}: {command}")
            self.machines[command], began = _machine(), time.monotonic()
            try:
                self._ended[key] = _carry_out(command, self.root, json_wanted)
            except _Failed as error:
                self._ended[key] = error
            self.say(f"  {time.monotonic() - began:.0f} s")
        found = self._ended[key]
        if isinstance(found, _Failed):
            raise found
        return found


def _carry_out(command: str, root: Path, json_wanted: bool) -> Any:
    words = shlex.split(command)[1:]
    # Commands that start others find tiercel by its name, as the user who copies them does.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", *words], cwd=root, preexec_fn=ended_with_parent,
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode in (0, 1):  # 1: a target of its own was missed, which is a figure as any other
        try:
            return json.loads(done.stdout) if json_wanted else None
        except ValueError:
            pass
    last = (done.stderr.strip() or "no JSON was printed").splitlines()[-1]
    raise _Failed(f"{command}: {last.removeprefix('tiercel: ')}")


def _figure(statement: Statement, printed: Any) -> dict[str, float]:
    """Return ours, and where it has an interval low and high; _Failed for what decides nothing."""
    reading = reading_of(statement.id)
    if reading is None:
        raise _Failed(f"{statement.id} has no reading (papers/readings.py)")
    try:
        read = reading(printed)
        found = asdict(read) if isinstance(read, Figure) else {"value": float(read)}
    # RuntimeError is what a generator makes of StopIteration.
    except (LookupError, TypeError, ValueError, StopIteration, RuntimeError, ZeroDivisionError) as error:
        raise _Failed(f"{statement.id}: no figure in what was printed ({error})") from None
    ours = found.pop("value")
    if not math.isfinite(ours):
        raise _Failed(f"{statement.id}: its figure is {ours}")
    if found and not decided(statement.answer, found["low"], found["high"]):
        raise _Failed(
            f"{statement.id}: between {found['low']:.3g} and {found['high']:.3g}, of which a part holds: the "
            "machine is too busy"
        )
    return {"ours": ours, **found}


def _machine() -> str:
    """Return the machine in words that name nobody: kind, processors, memory, and how busy it is."""
    kind = f"{platform.system()} on {platform.machine()}, {cores()} processors, {memory() / 1024**3:.0f} GiB"
    return f"{kind}, load {os.getloadavg()[0]:.1f} before"
