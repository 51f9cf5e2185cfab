"""A program of the user's own, as he starts it: an application of one variant."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed, UserError
from tiercel.placement.applications.base import Application, Variant, applications
from tiercel.programs import as_started, own_program
from tiercel.runs.execute import last_line

#: In a word of the command: the folder on the storage under test.
_FOLDER = "{folder}"


class OwnCommand(Application):
    """A command in whose words {folder} is its folder on the storage, and one that makes its input there.

    UserError for a name that another application has, and for commands that cannot be run.
    """

    apart = False  # relative names in the command are the user's

    def __init__(
        self, command: Sequence[str], prepare: Sequence[str] = (), name: str = "", parallel: bool = False
    ):
        self.name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", Path(command[0]).name).strip("-") or "command"
        if name and not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise UserError(f"--name {name}: use letters, digits, - and _ only: it becomes a folder name")
        if self.name in applications:
            raise UserError(f"an application is called {self.name} already: give yours another with --name")
        if not any(_FOLDER in word for word in (*command, *prepare)):
            raise UserError(
                "no argument of the command contains {folder}, its folder on each storage: use it as "
                "the path of the files"
            )
        for first in (command[0], *prepare[:1]):
            if _FOLDER not in first:
                own_program(first)
        words = {"command": list(command), "prepare": list(prepare)}
        self.variants = (Variant("own", words, parallel=parallel),)

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:
        if not options["prepare"]:
            return
        done = subprocess.run(
            _on(folder, options["prepare"]), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        if done.returncode:
            said = last_line(done.stderr) or last_line(done.stdout)
            raise RunFailed(f"its preparation: exit code {done.returncode}: {said}")

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return _on(folder, options["command"])


def _on(folder: Path, words: Sequence[str]) -> list[str]:
    return [word.replace(_FOLDER, str(folder)) for word in as_started(words)]
