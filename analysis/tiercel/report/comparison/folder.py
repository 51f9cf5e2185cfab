"""The folder of a comparison's page: it replaces what an earlier comparison wrote there, and nothing else.

``comparison.json`` in the folder lists the files that are a comparison's own. Whatever is not on that list is
somebody's: it is neither removed nor written over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.errors import UserError

LIST = "comparison.json"
PAGE = "index.html"
_KIND = "tiercel comparison"

#: What a comparison writes. A list that names anything else was not written by one.
_OURS = re.compile(r"index\.html|figures/[\w-]+\.svg|tables/[\w-]+\.csv")


def own_files(folder: Path) -> list[str]:
    """Return the files of an earlier comparison in `folder`, relative to it; none in a new or empty folder.

    Raises UserError where the folder cannot be a page's: it is a file, or holds what no comparison wrote.
    """
    try:
        if not folder.exists() and not folder.is_symlink():
            return []
        if not folder.is_dir():
            raise UserError(f"{folder}: is no folder: name another with --output")
        held = sorted(path.name for path in folder.iterdir())
        if not held:
            return []
        found = _listed(folder / LIST)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: cannot be used for the page: {_why(error)}") from None
    if found is None:
        raise UserError(
            f"{folder}: contains {held[0]} but no {LIST}, so it is not a comparison: name an empty folder "
            "with --output"
        )
    return found


def check_free(folder: Path, own: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise UserError where a file that is to be written exists and is not on the list of own ones."""
    for name in sorted(set(wanted) - set(own)):
        path = folder / name
        if path.exists() or path.is_symlink():
            raise UserError(f"{path}: is there and not a comparison's: name another folder with --output")


def write_list(folder: Path, files: Iterable[str]) -> None:
    """List the files that a comparison owns in `folder`."""
    write_text(folder / LIST, json.dumps({"kind": _KIND, "files": sorted(files)}, indent=1) + "\n")


def _listed(path: Path) -> list[str] | None:
    """Return the files that a list names; None where there is no list of a comparison's."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return None
    files = found.get("files") if isinstance(found, dict) and found.get("kind") == _KIND else None
    if not isinstance(files, list) or not all(isinstance(f, str) and _OURS.fullmatch(f) for f in files):
        return None
    return files


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", "") or error)
