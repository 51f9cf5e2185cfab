"""Real programs that a model never saw: what a placement model is tested on (paper 003, section VII.B).
One file each."""

from tiercel.placement.applications import (
    arrays,
    databases,
    lammps,
    many_files,
    parallel,
    sorting,
)
from tiercel.placement.applications.base import Application, Variant, applications

__all__ = [
    "Application", "Variant", "applications", "arrays", "databases", "lammps", "many_files", "parallel",
    "sorting",
]  # fmt: skip
