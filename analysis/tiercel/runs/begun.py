"""Whether anything of a study was ever done on a site."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError
from tiercel.results.observations import load_observations, load_runs
from tiercel.runs.stamps import stamps_folder


def check_begun(results: Path, site: str, study: str) -> None:
    """UserError for a study of which nothing was ever done in `results`: a page of it would say nothing, and
    take the place of another study's.

    One that was begun has a folder of stamps, even if it was interrupted before its first run; of one that
    was measured elsewhere, or imported, the tables hold rows.
    """
    if stamps_folder(results, study).is_dir():
        return
    if not any((table["study"] == study).any() for table in (load_runs(results), load_observations(results))):
        command = f"tiercel evaluate --site {site} --study {study}"
        raise UserError(f"study {study}: nothing of it was measured on site {site}: run `{command}`")
