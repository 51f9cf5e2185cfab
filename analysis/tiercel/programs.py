"""Finds programs: in the site's stack first, then beside this Python (the virtual environment),
then in the package (a wheel's native parts), then on PATH.

The stack's folders are in ``TIERCEL_STACK`` (as PATH has them), so that every process that tiercel starts
finds the same programs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiercel.errors import UserError


@dataclass(frozen=True)
class Installation:
    """An engine or a layer found on this machine. `version` tells apart builds that perform differently."""

    name: str
    version: str
    programs: Mapping[str, Path]


#: Names of Chromium, which prints pages; the first that is there is taken.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: The programs inside an installed package.
_PACKAGED = Path(__file__).resolve().parent / "builtin" / "bin"
_OURS = "tiercel"
#: In ``results/<site>/stack/``, written when the stack is built: the folders that hold its programs.
STACK_FILE = "programs.json"


def modules_hint() -> str:
    """Return what else to do about a missing program, as the end of its line, where there are modules."""
    there = any(os.environ.get(name) for name in ("MODULEPATH", "MODULESHOME", "LMOD_CMD"))
    return "; this machine has modules: `module load` the one that brings it" if there else ""


def use_stack(stack: Path) -> list[str]:
    """Look for programs in the stack built in folder `stack` first; return the folders that are there.

    A TIERCEL_STACK that the user set stands.
    """
    if "TIERCEL_STACK" not in os.environ:
        try:
            named = json.loads((stack / STACK_FILE).read_text())["folders"]
            folders = [str(folder) for folder in named if Path(folder).is_dir()]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        os.environ["TIERCEL_STACK"] = os.pathsep.join(folders)
        program.cache_clear()
    return os.environ["TIERCEL_STACK"].split(os.pathsep)


@cache
def program(name: str) -> Path | None:
    """Return the path of program `name`, or None."""
    places = [
        os.environ.get("TIERCEL_STACK"),
        str(Path(sys.executable).parent),
        str(_PACKAGED),
        os.environ.get("PATH", os.defpath),
    ]
    search = os.pathsep.join(place for place in places if place)
    found = shutil.which(name, path=search)
    return Path(found) if found else None


def as_started(words: Sequence[str]) -> list[str]:
    """Return a command that a user named as it is started: `tiercel` is this one where PATH has none.

    So commands that start others, as the papers' do, work without the virtual environment on PATH. Of other
    programs PATH alone decides, as in a shell: `python` is the user's, not ours.
    """
    if words and words[0] == _OURS and shutil.which(_OURS) is None and (ours := program(_OURS)):
        return [str(ours), *words[1:]]
    return list(words)


def own_program(name: str) -> Path:
    """Return the file that is run where a user names a program; UserError where nothing can be run.

    A script whose first line names no interpreter is started by shells alone: a tracer cannot start it.
    """
    found = shutil.which(as_started([name])[0])
    if found is None:
        raise UserError(
            f"{name}: {'is not executable' if Path(name).is_file() else 'no such program on PATH'}"
        )
    try:
        with Path(found).open("rb") as file:
            start = file.read(256)
    except OSError:  # may be run, and not read
        return Path(found)
    if b"\0" not in start and not start.startswith(b"#!"):
        raise UserError(
            f"{name}: no program, or a script without a first line like #!/bin/sh: `sh {name}` runs one"
        )
    if start.startswith(b"#!"):
        interpreter = os.fsdecode(
            start[2:].partition(b"\n")[0].strip(b" \t").replace(b"\t", b" ").split(b" ")[0]
        )
        if shutil.which(interpreter) is None:
            raise UserError(f"{name}: its first line names {interpreter!r}, which is no program here")
    return Path(found)
