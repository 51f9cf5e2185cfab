"""``python -m tiercel.launchers.mpicc`` prints the MPI compiler to build native parts with, or nothing.

It is the one that belongs to the mpiexec that will start them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tiercel.programs import program
from tiercel.project import project_root


def compiler() -> Path | None:
    """Return the MPI compiler; ours where the environment's own would trip over a blank in its path."""
    found = program("mpicc")
    if found is None or len(str(found).split()) == 1:
        return found
    ours = project_root() / "tools" / "mpicc"
    return ours if found.parent == Path(sys.executable).parent and ours.is_file() else None


if __name__ == "__main__":
    print(compiler() or "")
