"""The programs of the fairshare layer: server, preload library, and those that measure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiercel.errors import UserError
from tiercel.programs import program

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"


@dataclass(frozen=True)
class Programs:
    """Where they lie. The library is found beside its server: `bin/` and `lib/` of one place."""

    server: Path
    mount: Path
    load: Path
    limit: Path
    library: Path

    @property
    def version(self) -> str:
        """A digest of what serves: builds of one version number may perform differently."""
        return _digest(self.server, self.mount, self.library)


@cache
def _digest(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return "src." + digest.hexdigest()[:8]


def find_programs() -> Programs | None:
    """Return the programs, None unless all of them are there."""
    server, mount, load, limit = (
        program(f"fairshare-{name}") for name in ("server", "mount", "load", "limit")
    )
    if server is None or mount is None or load is None or limit is None:
        return None
    library = server.parent.parent / "lib" / "libfairshare_client.so"
    return Programs(server, mount, load, limit, library) if library.is_file() else None


def required_programs() -> Programs:
    """Return the programs; UserError with what to do otherwise."""
    found = find_programs()
    if found is None:
        raise UserError(NOT_BUILT)
    return found
