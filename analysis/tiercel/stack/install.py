"""Builds what the lock names, and writes down where later steps find the programs.

Spack keeps every package that was built: after an interruption or a failure the same command goes on.
"""

from __future__ import annotations

import json
from pathlib import Path

from tiercel.errors import UserError
from tiercel.programs import STACK_FILE
from tiercel.stack.environment import Environment
from tiercel.stack.lock import Lock
from tiercel.stack.parts import scope_folder
from tiercel.stack.progress import Progress
from tiercel.stack.spack import Spack


def install(
    spack: Spack, environment: Environment, lock: Lock, parts: list[str], jobs: int | None = None
) -> list[Path]:
    """Build the lock's packages and their view; return the folders that hold the stack's programs."""
    missing = missing_externals(lock)
    if missing:
        raise UserError(
            f"stack of {environment.site}: not on this machine: {missing[0]}"
            f"{f' (and {len(missing) - 1} more)' if len(missing) > 1 else ''}: mend "
            f"{scope_folder(environment.root, environment.site)}/packages.yaml, or run this on the site"
        )
    total = len(lock.nodes)
    with Progress(environment.log, f"building the stack of {environment.site}", total) as progress:
        words = ["-e", str(environment.folder), "install", "--fail-fast"]
        words += ["-j", str(jobs)] if jobs else []
        status = spack.run(words, environment.variables(parts), progress.line)
    if status:
        raise UserError(
            f"stack of {environment.site}: spack install ended with {status} after {len(progress.done)} of "
            f"{total} packages: {progress.errors[0] if progress.errors else 'no reason given'} "
            f"(all of it: {environment.log}); run the same command again to resume"
        )
    folders = program_folders(environment, lock)
    if not folders[0].is_dir():
        raise UserError(f"{folders[0]}: not there, although spack install succeeded (see {environment.log})")
    file = environment.folder / STACK_FILE
    temporary = file.with_suffix(".new")
    written = {"folders": [str(f) for f in folders], "lock": environment.lock_digest()}
    temporary.write_text(json.dumps(written, indent=1) + "\n")
    temporary.replace(file)
    return folders


def program_folders(environment: Environment, lock: Lock) -> list[Path]:
    """Return where the stack's programs are: its view, then the site's MPI (its mpiexec fits the engines)."""
    mpi = lock.provider("mpi")
    outside = [Path(mpi.external) / "bin"] if mpi and mpi.external else []
    return [environment.view / "bin", *outside]


def built_lock(environment: Environment) -> str | None:
    """Return the digest of the lock that was built to its end; None where there is none."""
    try:
        content = json.loads((environment.folder / STACK_FILE).read_text())
    except (OSError, ValueError):
        return None
    digest = content.get("lock") if isinstance(content, dict) else None
    return str(digest) if digest else None


def missing_externals(lock: Lock) -> list[str]:
    """Return ``name@version (prefix)`` of everything that the site should provide and that is not there."""
    return [
        f"{n.name}@{n.version} ({n.external})"
        for n in lock.externals
        if n.external and not Path(n.external).is_dir()
    ]
