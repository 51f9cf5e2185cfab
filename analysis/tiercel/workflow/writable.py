"""Looks whether jobs can leave what they find, before any is started.

Snakemake makes the folders of its jobs itself, and ends in the middle of a study where it may not; a job that
finds no room for its log ends like one that measured nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tiercel.errors import UserError
from tiercel.project import results_folder, unwritable
from tiercel.runs.stamps import stamps_folder

#: A block: less fits where nothing else does.
_SOME = bytes(4096)


def check_writable(root: Path, site: str, study: str) -> None:
    """Raise UserError for a folder of the site's results that takes no file of this user."""
    for folder in _folders(root, site, study):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(_SOME)
        except OSError as error:
            error.filename = str(folder)  # neither a file of ours that is gone again, nor none
            raise UserError(f"{folder}: {error.strerror}{unwritable(error)}") from None


def _folders(root: Path, site: str, study: str) -> Iterator[Path]:
    results = results_folder(root, site)
    yield from (results, results / "raw", results / "logs", results / "logs" / study)
    yield stamps_folder(results, study)
    yield root / ".snakemake"
