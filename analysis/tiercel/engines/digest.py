"""What an engine is built from, as a word of its version: builds that may perform otherwise differ in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of(parts: Iterable[Path]) -> str:
    """Return 8 hexadecimal digits of the contents of files, and of the Python files in folders.

    A part that is not there counts as such: without an optional program, an engine is another one.
    """
    found = hashlib.sha256()
    for part in parts:
        files = sorted(part.rglob("*.py")) if part.is_dir() else [part]
        for path in files:
            found.update(path.read_bytes() if path.is_file() else b"not there")
            found.update(b"\0")
    return found.hexdigest()[:8]
