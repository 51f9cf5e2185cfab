"""Where the project lies: the folder with Snakefile, site-configs/ and workflows/."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError


def project_root() -> Path:
    """Return the checkout: the current folder or one above it, else the one that this package is from."""
    here = Path.cwd()
    package = Path(__file__).resolve()
    for folder in (here, *here.parents, *package.parents):
        if (folder / "Snakefile").is_file() and (folder / "site-configs").is_dir():
            return folder
    raise UserError(f"{here}: not inside a checkout of tiercel: change to the folder with its Snakefile")


def results_folder(root: Path, site: str) -> Path:
    """Return the folder that holds everything a site's studies gave."""
    return root / "results" / site
