"""Collects the sources of a site's stack in a folder, for machines that reach no network."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError
from tiercel.stack.environment import Environment
from tiercel.stack.parts import scope_folder
from tiercel.stack.progress import Progress
from tiercel.stack.spack import Spack


def create_mirror(spack: Spack, environment: Environment, parts: list[str], folder: Path) -> int:
    """Put the sources of every package of the lock into `folder`; return how many files it holds.

    What is there already is not fetched again. Our own packages are in the checkout and need no mirror.
    """
    scope_folder(environment.root, environment.site)
    folder.mkdir(parents=True, exist_ok=True)
    with Progress(environment.log, f"mirroring the stack of {environment.site}") as progress:
        words = ["-e", str(environment.folder), "mirror", "create", "--all", "--directory", str(folder)]
        status = spack.run(words, environment.variables(parts), progress.line)
    if status or progress.errors:
        raise UserError(
            f"mirror {folder}: spack mirror create ended with {status}: "
            f"{progress.errors[0] if progress.errors else 'no reason given'} (all of it: {environment.log}); "
            "the same command fetches what is missing"
        )
    return sum(1 for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def mirror_url(mirror: str | None) -> str | None:
    """Return `mirror` as Spack names it: a URL, or a folder's; UserError for a folder that is not there."""
    if not mirror or "://" in mirror:
        return mirror
    folder = Path(mirror)
    if not folder.is_dir():
        raise UserError(f"--mirror {mirror}: no such folder")
    return folder.resolve().as_uri()
