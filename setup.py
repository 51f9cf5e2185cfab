"""Puts into the package what a checkout has beside it: workflow, sites, recipes, and the native parts, built.

All else stands in pyproject.toml. An editable install takes none of this: the checkout itself is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
DATA = ("Snakefile", "site-configs", "workflows", "recipes")
#: Measured on the machine where they lie: no part of what comes with tiercel.
MEASURED = {ROOT / "site-configs" / site / "facts.yaml" for site in ("local", "slurm-virtual")}
PARTS = ("iokernel", "tracescan", "dlkernel", "replay", "fairshare", "cachevol")


class Build(build_py):
    """Builds the package, and builtin/ in it."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            built_in = Path(self.build_lib).resolve() / "tiercel" / "builtin"
            shutil.rmtree(built_in, ignore_errors=True)
            _copy(built_in)
            _build(built_in)


class Wheel(bdist_wheel):
    """A wheel for one kind of machine and every Python: the native parts are programs and plain libraries."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class WithPrograms(Distribution):
    """Not pure: the wheel belongs to a platform."""

    def has_ext_modules(self) -> bool:
        return True


def _copy(target: Path) -> None:
    for name in DATA:
        source = ROOT / name
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file() and path not in MEASURED and "__pycache__" not in path.parts:
                place = target / path.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)


def _build(target: Path) -> None:
    """Build the native parts; MPICC names the MPI compiler (none: iokernel without MPI)."""
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
        print("tiercel: no C compiler: the native parts are left out", file=sys.stderr)
        return
    where = [
        f"BINDIR={target / 'bin'}",
        f"LIBDIR={target / 'lib'}",
        f"MPICC={os.environ.get('MPICC', 'none')}",
    ]
    for part in PARTS:
        subprocess.run(
            ["make", "-s", "-C", ROOT / "native" / part, "BUILD=build/wheel", *where, "install"], check=True
        )


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=WithPrograms)
