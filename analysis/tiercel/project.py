"""Where the project lies, and what comes with tiercel: the only place that knows.

A project is a folder with site-configs/, workflows/ and results/. There are three kinds: a checkout of
tiercel (the project and the program at once), a project of one's own (`tiercel init`), and any folder at all
where tiercel was installed as a package. What a project has not itself comes from tiercel
(`provided`, `names`).
"""

from __future__ import annotations

import errno
from pathlib import Path

from tiercel.errors import UserError

_PACKAGE = Path(__file__).resolve().parent
#: In an installed package: what a checkout has in its root (setup.py puts it there).
BUILT_IN = _PACKAGE / "builtin"


def project_root() -> Path:
    """Return the project: the current folder or one above it, else the checkout that this package is from,
    else (an installed package) the current folder as it is."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        # workflow/: as Snakemake's catalogue lays out a workflow of which tiercel's is a module.
        files = (folder / "Snakefile", folder / "workflow" / "Snakefile")
        if any(file.is_file() for file in files) and (folder / "site-configs").is_dir():
            return folder
    checkout = _checkout()
    return here if checkout is None else checkout


def workflow_root() -> Path:
    """Return the project, for a Snakemake in the current folder; UserError where it is another one.

    Snakemake's files are relative to the folder that it runs in, those of the jobs to the project.
    """
    root = project_root()
    if not root.samefile(Path.cwd()):
        raise UserError(
            f"Snakemake runs in {Path.cwd()}, and the project is {root}: start it there, or make this folder "
            "a project (`tiercel init`; of a workflow that has tiercel's as a module: `mkdir site-configs`)"
        )
    return root


def built_in() -> Path:
    """Return the folder with the Snakefile, site-configs/ and workflows/ that come with tiercel."""
    return _checkout() or BUILT_IN


def checkout() -> Path:
    """Return the checkout that this package is from. UserError for an installed package."""
    found = _checkout()
    if found is None:
        raise UserError(
            f"{_PACKAGE}: tiercel's sources are not there, which an artifact holds: name a clone of the same "
            "version (`--sources FOLDER`)"
        )
    return found


def provided(root: Path, name: str) -> Path:
    """Return the project's own file or folder `name` (relative to its root), else the one of tiercel."""
    own = root / name
    return own if own.exists() or _whole(root) else built_in() / name


def names(root: Path, pattern: str) -> set[Path]:
    """Return what matches `pattern` in the project or in tiercel, each relative to where it was found."""
    places = [root] if _whole(root) else [root, built_in()]
    return {found.relative_to(place) for place in places for found in place.glob(pattern)}


def results_folder(root: Path, site: str) -> Path:
    """Return the folder that holds everything a site's studies gave."""
    return root / "results" / site


_NOT_YOURS = (
    ": this is not yours to write to: let whose it is give it to your group (chmod g+w), or make a project"
    " of your own (`tiercel init`)"
)
_NO_ROOM = ": make room there; nothing is lost, and the same command goes on"
_TO_DO = {
    errno.EACCES: _NOT_YOURS, errno.EPERM: _NOT_YOURS, errno.ENOSPC: _NO_ROOM, errno.EDQUOT: _NO_ROOM,
    errno.EROFS: ": make a project of your own where you can write (`tiercel init`)",
}  # fmt: skip


def unwritable(error: OSError) -> str:
    """Return what to do about `error`, as the end of its line, where the project takes no file."""
    if not isinstance(error.filename, str) or not Path(error.filename).is_relative_to(project_root()):
        return ""
    return _TO_DO.get(error.errno or 0, "")


def _checkout() -> Path | None:
    """Return the checkout that this package is from; None for an installed package."""
    root = _PACKAGE.parents[1]  # exactly: an environment inside a checkout holds an installed package, too
    return root if _whole(root) else None


def _whole(root: Path) -> bool:
    """Return whether `root` is a checkout: it brings everything itself, nothing is added from elsewhere."""
    return (root / "pyproject.toml").is_file() and (root / "workflows" / "common.smk").is_file()
