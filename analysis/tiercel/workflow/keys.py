"""The keys of ``snakemake --config``: a misspelt one must not plan another study."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from tiercel.errors import UserError, suggest
from tiercel.project import built_in

KEYS = ("announce", "mirror", "site", "study")


def check_keys(given: Iterable[str], snakefile: Path) -> None:
    """Raise UserError for a key that the workflow does not read.

    A Snakefile of the user's own may read others: there it refuses only what resembles one of tiercel's.
    """
    ours = {(built_in() / name).resolve() for name in ("Snakefile", "workflow/Snakefile")}
    for key in given:
        if key not in KEYS and (snakefile.resolve() in ours or get_close_matches(key, KEYS)):
            raise UserError(f"--config {key}: no such key: {suggest(key, KEYS)}")
