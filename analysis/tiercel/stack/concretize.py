"""Resolves a site's stack to a lock; the same inputs keep the lock that is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.stack.environment import Environment
from tiercel.stack.lock import Lock, read_lock, required_architecture
from tiercel.stack.parts import scope_folder
from tiercel.stack.progress import Progress
from tiercel.stack.spack import Spack


def concretize(
    spack: Spack,
    environment: Environment,
    parts: list[str],
    packages: Path | None = None,
    mirror: str | None = None,
    fresh: bool = False,
) -> Lock:
    """Return the site's lock: the one that is there where nothing it follows from has changed.

    UserError where Spack finds no solution, or where a node came out for another machine than the site's.
    """
    origin = environment.origin(parts, packages)
    if not fresh and environment.lock.exists() and recorded(environment).get("origin") == origin:
        environment.write(packages, mirror)
        return read_lock(environment.lock)
    environment.resolved.unlink(missing_ok=True)
    environment.write(packages, mirror)
    with Progress(environment.log, f"resolving the stack of {environment.site}") as progress:
        # --force: without it Spack keeps what a changed site scope no longer allows.
        words = ["-e", str(environment.folder), "concretize", "--force"]
        status = spack.run(words, environment.variables(parts), progress.line)
    if status:
        raise UserError(
            f"stack of {environment.site}: spack concretize ended with {status}: "
            f"{progress.errors[-1] if progress.errors else 'no reason given'} (all of it: {environment.log})"
        )
    lock = read_lock(environment.lock)
    check_architecture(lock, environment)
    place = str(packages) if packages else None
    record = {"origin": origin, "parts": parts, "packages": place, "summary": lock.summary()}
    temporary = environment.resolved.with_suffix(".new")
    temporary.write_text(json.dumps(private().plain(record), indent=1) + "\n")
    temporary.replace(environment.resolved)
    return lock


def recorded(environment: Environment) -> dict[str, Any]:
    """Return what stack.json holds; nothing where it is not there or damaged."""
    try:
        content = json.loads(environment.resolved.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def check_architecture(lock: Lock, environment: Environment) -> None:
    """Raise UserError where a node is for another operating system or target than the site requires."""
    scope = scope_folder(environment.root, environment.site)
    wanted = required_architecture(scope)
    foreign = lock.foreign(*wanted) if wanted else []
    if wanted and foreign:
        first, machine = foreign[0], "-".join(wanted)
        raise UserError(
            f"stack of {environment.site}: {len(foreign)} of {len(lock.nodes)} packages are not for "
            f"{machine}, {first.name} for one ({first.os}-{first.target}): mend {scope}/packages.yaml"
        )
