"""Names of files in tables: below the folder that all of them share."""

from __future__ import annotations

from collections.abc import Sequence


def common_folder(names: Sequence[str]) -> str:
    """Return the folder that all names begin with, and its slash; they are shown without it."""
    # Between the first and the last name in order lie all others: what these two share, all share.
    first, last = (min(names), max(names)) if names else ("", "")
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: first.rfind("/", 0, length) + 1]
