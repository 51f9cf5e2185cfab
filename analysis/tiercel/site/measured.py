"""Where a site's results lie, for whoever reads them."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError, suggest
from tiercel.project import results_folder
from tiercel.site.load import known_sites
from tiercel.site.model import check_name
from tiercel.site.simulated import real_name


def measured_folder(site: str, root: Path) -> Path:
    """Return the folder with what a site's studies gave; results stay readable when the site's file is gone.

    UserError where nothing is there, and for what is no name of a site (``../elsewhere``).
    """
    folder, known = results_folder(root, site), known_sites(root)
    if _is_name(site) and folder.is_dir():
        return folder
    if real_name(site) in known:
        raise UserError(f"{folder}: nothing measured yet: run `tiercel evaluate --site {site}`")
    measured = [path.name for path in (root / "results").glob("*") if path.is_dir()]
    raise UserError(f"no site named {site!r}, and no results of one: {suggest(site, {*known, *measured})}")


def _is_name(site: str) -> bool:
    try:
        return bool(check_name(site))
    except ValueError:
        return False
