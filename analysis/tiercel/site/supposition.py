"""Simulated sites with other hardware: ``evaluate --simulate --set gateway.units=16``.

Each has a name, and so results, of its own; what is supposed lies with them (``supposed.yaml``), and every
command takes the name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from tiercel.atomic_file import write_text
from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError
from tiercel.project import results_folder
from tiercel.quantities import Line
from tiercel.site.simulated import real_name, simulated_name

FILE = "supposed.yaml"


class Supposition(Document):
    """The content of a supposed.yaml."""

    site: str
    set: list[Line]


def supposed_name(site: str, changes: Sequence[str]) -> str:
    """Return the name of a simulated site with changes: the same for the same ones in the same order."""
    found = hashlib.sha256(json.dumps(list(changes)).encode()).hexdigest()[:6]
    return simulated_name(f"{real_name(site)}-{found}")


def read_supposition(name: str, root: Path) -> Supposition | None:
    """Return what a simulated site supposes, or None; UserError for a damaged file."""
    path = results_folder(root, name) / FILE
    return parse(Supposition, read_yaml(path), str(path)) if path.is_file() else None


def write_supposition(site: str, changes: Sequence[str], root: Path) -> str:
    """Keep what is supposed and return the name of its site; UserError where it cannot be written."""
    name = supposed_name(site, changes)
    path = results_folder(root, name) / FILE
    content = {"site": real_name(site), "set": list(changes)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, yaml.safe_dump(content, sort_keys=False))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return name
