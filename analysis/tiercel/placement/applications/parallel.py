"""Parallel programs: HACC-IO's kernel (one of the paper's four applications), and a stencil whose checkpoints
are one array of all processes, by MPI-IO."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tiercel.placement.applications.base import Application, Variant, applications, python


class _Parallel(Application):
    tracer: Literal["dftracer", "strace"] = "dftracer"

    def missing(self) -> str | None:
        found = importlib.util.find_spec("mpi4py")
        return None if found else "mpi4py is not installed (pip install mpi4py)"

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return python("parallel_files", self.name, folder, *(f"{k}={v}" for k, v in options.items()))


@applications.register("hacc")
class HaccIO(_Parallel):
    name = "hacc"
    variants = tuple(
        Variant(f"{way}-{file}{size}", {"particles": count, "mpiio": mpiio, "shared": shared}, parallel=True)
        for way, mpiio in (("posix", 0), ("mpiio", 1))
        for file, shared in (("shared", 1), ("file-per-process", 0))
        for size, count in (("", 1 << 17), ("-small", 1 << 10))
    )


@applications.register("stencil")
class Stencil(_Parallel):
    name = "stencil"
    variants = (
        Variant("collective", {"cells": 1024, "steps": 40, "every": 10, "collective": 1}, parallel=True),
        Variant("independent", {"cells": 512, "steps": 40, "every": 10, "collective": 0}, parallel=True),
        Variant("small-often", {"cells": 64, "steps": 60, "every": 2, "collective": 1}, parallel=True),
    )
