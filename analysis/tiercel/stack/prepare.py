"""The stack before a measurement: built where the site asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

from tiercel.stack.concretize import concretize, recorded
from tiercel.stack.environment import Environment
from tiercel.stack.install import built_lock, install
from tiercel.stack.parts import site_parts
from tiercel.stack.spack import find_spack, spack_program


def prepare(site: str, root: Path) -> bool:
    """Build the stack of a site whose parts.yaml says ``build_before_measuring``, unless it is built; return
    whether that was done now.

    Where no Spack is found, tiercel says so and goes on with the engines that are there.
    """
    if not (root / "site-configs" / site / "spack").is_dir():
        return False
    environment, wanted = Environment(root, site), site_parts(root, site)
    if not wanted.build_before_measuring or is_installed(environment, wanted.parts):
        return False
    if spack_program() is None:
        print(
            f"tiercel: site {site}: no Spack (SPACK_ROOT or PATH), so its stack is not built; going on with "
            "the engines that are there",
            file=sys.stderr,
        )
        return False
    spack = find_spack()
    lock = concretize(spack, environment, wanted.parts)
    install(spack, environment, lock, wanted.parts)
    return True


def is_installed(environment: Environment, parts: list[str]) -> bool:
    """Tell whether the stack as the site's files describe it now was built to its end."""
    record = recorded(environment)
    packages = record.get("packages")
    origin = environment.origin(parts, Path(packages) if packages else None)
    return record.get("origin") == origin and built_lock(environment) == environment.lock_digest()
