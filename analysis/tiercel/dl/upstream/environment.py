"""Finds upstream DLIO: the Python that it is installed for, and what that Python can do.

DLIO needs TensorFlow or PyTorch, which tiercel's own environment does not have. It is looked for, in this
order, in ``TIERCEL_DLIO_PYTHON`` (one Python or several, as in PATH), in the environments that ``make dlio``
and ``make dlio-torch`` make beside the project, and behind ``dlio_benchmark`` on PATH (Spack, a module).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiercel.errors import UserError
from tiercel.programs import program
from tiercel.project import project_root

VARIABLE = "TIERCEL_DLIO_PYTHON"
FOLDERS = {".venv-dlio": "make dlio", ".venv-dlio-torch": "make dlio-torch"}

#: Run by DLIO's Python, so it is not part of what tiercel imports.
START = Path(__file__).with_name("start.py")
_TIMEOUT_S = 120


@dataclass(frozen=True)
class DLIOEnvironment:
    """A Python with DLIO. Versions are empty for what it lacks."""

    python: Path
    dlio: str
    tensorflow: str = ""
    torch: str = ""
    dftracer: str = ""
    renamed_keys: bool = False
    """Whether it takes the key names of DLIO after 2.0.0 (``record_length_bytes``)."""

    def runs(self, framework: str) -> bool:
        return bool(self.tensorflow if framework == "tensorflow" else self.torch)

    @property
    def version(self) -> str:
        """Return DLIO's version and those of the frameworks, which do its I/O."""
        parts = [("tensorflow", self.tensorflow), ("torch", self.torch)]
        return " ".join(
            [self.dlio + ("+" if self.renamed_keys else ""), *(f"{n}-{v}" for n, v in parts if v)]
        )


def environments() -> list[DLIOEnvironment]:
    """Return every Python with DLIO, the first that is looked for first.

    Raises UserError for a TIERCEL_DLIO_PYTHON that is no Python with DLIO: it was meant.
    """
    found = []
    for python, meant in _candidates():
        try:
            state = python.stat()
        except OSError as error:
            if meant:
                raise UserError(f"{VARIABLE}: {python}: {error.strerror}") from None
            continue
        environment, said = _probe(python, state.st_mtime_ns)
        if environment is not None:
            found.append(environment)
        elif meant:
            raise UserError(f"{VARIABLE}: {python} has no DLIO: {said}")
    return found


def environment_for(framework: str) -> DLIOEnvironment | None:
    """Return the first environment that has DLIO and `framework`."""
    return next((e for e in environments() if e.runs(framework)), None)


def _candidates() -> Iterator[tuple[Path, bool]]:
    """Yield Pythons to try, and whether the user named them."""
    for name in os.environ.get(VARIABLE, "").split(os.pathsep):
        if name:
            yield Path(name), True
    try:
        root: Path | None = project_root()
    except UserError:
        root = None
    for folder in FOLDERS if root else ():
        assert root is not None
        yield root / folder / "bin" / "python", False
    script = program("dlio_benchmark")
    if script is not None:
        python = _interpreter(script)
        if python is not None:
            yield python, False


def _interpreter(script: Path) -> Path | None:
    """Return the Python in a script's first line; Spack's long paths hide it, then the one on PATH."""
    try:
        with script.open("rb") as file:
            first = file.readline(4096).decode(errors="replace")
    except OSError:
        return None
    named = first.removeprefix("#!").split()
    if first.startswith("#!") and named and Path(named[0]).name.startswith("python"):
        return Path(named[0])
    return program("python3")


@cache
def _probe(python: Path, _mtime: int) -> tuple[DLIOEnvironment | None, str]:
    """Ask a Python what it has; the time is the cache's key."""
    try:
        answer = subprocess.run(
            [python, START, "--versions"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        said = json.loads(answer.stdout) if answer.returncode == 0 else {}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return None, str(error)
    if not said.get("dlio"):
        words = [line for line in answer.stderr.splitlines() if line.strip()]
        return None, words[-1] if words else "no package dlio_benchmark"
    return DLIOEnvironment(python=python, **said), ""
