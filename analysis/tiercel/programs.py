"""Finds programs: beside this Python first (the virtual environment), then on PATH."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Installation:
    """An engine or a layer found on this machine. `version` tells apart builds that may perform differently."""

    name: str
    version: str
    programs: Mapping[str, Path]


@cache
def program(name: str) -> Path | None:
    """Return the path of program `name`, or None."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=search)
    return Path(found) if found else None
