"""Which HDF5 library iokernel loads: a parallel one where there is one, so that files can be shared."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiercel.programs import program
from tiercel.project import built_in

#: Names a folder with HDF5 in lib/, where it is none of those that are looked at.
VARIABLE = "TIERCEL_PARALLEL_HDF5"
HOW = f"`make parallel-hdf5`, or {VARIABLE}=FOLDER"


@dataclass(frozen=True)
class HDF5Library:
    """A library that iokernel can load."""

    path: str
    version: str
    parallel: bool
    """Built with the MPI of iokernel-mpi."""


def prefixes() -> Iterator[Path]:
    """Yield the folders in which a site's HDF5 or the checkout's may be installed, best first."""
    if named := os.environ.get(VARIABLE):
        yield Path(named)
    for folder in os.environ.get("TIERCEL_STACK", "").split(os.pathsep):
        if folder:
            yield Path(folder).parent
    if h5pcc := program("h5pcc"):
        yield h5pcc.resolve().parent.parent
    if home := os.environ.get("HDF5_DIR"):
        yield Path(home)
    yield built_in() / ".parallel-hdf5"


def _libraries() -> Iterator[str]:
    for prefix in prefixes():
        yield from (str(f) for d in ("lib", "lib64") if (f := prefix / d / "libhdf5.so").is_file())
    # h5py's wheel brings its own, which is serial.
    spec = importlib.util.find_spec("h5py")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from map(str, sorted(Path(place).with_name("h5py.libs").glob("libhdf5-*.so*")))
    yield "libhdf5.so"


@cache
def hdf5_library() -> HDF5Library | None:
    """Return the first parallel library, else the first that can be loaded; None where there is none.

    iokernel itself is asked, since it must be able to load it.
    """
    asked = program("iokernel-mpi") or program("iokernel")
    serial = None
    for path in dict.fromkeys(_libraries()) if asked else ():
        found = _ask(str(asked), path)
        if found is not None and found.parallel:
            return found
        serial = serial or found
    return serial


def _ask(iokernel: str, path: str) -> HDF5Library | None:
    answer = subprocess.run(
        [iokernel, "--hdf5.library", path, "--capabilities"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    try:
        said = json.loads(answer.stdout)
        return HDF5Library(path, said["hdf5"], said["hdf5Parallel"]) if said["hdf5"] else None
    except (ValueError, KeyError, TypeError):
        return None
