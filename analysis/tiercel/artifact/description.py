"""What an artifact says of itself to programs: artifact.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import tiercel
from tiercel.artifact import layout
from tiercel.errors import UserError

#: Of a site or a study: that of a folder.
_NAME = re.compile(r"(?!\.)[^/\0-\x1f\x7f]{1,60}")


def describe(folder: Path) -> dict[str, Any]:
    """Return the description of the artifact in `folder`. UserError for none, or one of another format."""
    path = folder / layout.DESCRIPTION
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = found["format"], found["site"], found["study"], found["slim"]
    except FileNotFoundError:
        raise UserError(f"{folder}: no artifact: there is no {layout.DESCRIPTION}") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: not an artifact's description: {error!r}") from None
    if known[0] != layout.FORMAT:
        raise UserError(
            f"{path}: format {known[0]}, and tiercel {tiercel.__version__} knows {layout.FORMAT}: use the "
            f"tiercel in {layout.SOFTWARE}/ (sh reproduce.sh)"
        )
    if not all(isinstance(word, str) and _NAME.fullmatch(word) for word in known[1:3]):
        raise UserError(f"{path}: site and study must be names")
    if not isinstance(known[3], bool):
        raise UserError(f"{path}: slim must be true or false")
    return found
