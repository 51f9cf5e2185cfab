"""Molecular dynamics: GROMACS on a small box of water, with a frame of the trajectory at every step."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run

_STEPS = 1000
_TOPOLOGY = """\
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
[ system ]
water
[ molecules ]
"""
_SETTINGS = """\
integrator = md
nsteps = {steps}
dt = 0.001
nstxout = {every}
nstvout = {every}
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
"""


@programs.register("gromacs")
class Gromacs(Program):
    title = f"GROMACS, {_STEPS} steps of 348 water molecules, trajectory at every step"
    needs = ("gmx gromacs",)

    def make(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="tiercel-gromacs-") as name:
            place = Path(name)
            (place / "water.top").write_text(_TOPOLOGY)
            (place / "run.mdp").write_text(_SETTINGS.format(steps=_STEPS, every=1))
            gmx = (path_of("gmx"), "-quiet")
            top = ("-p", place / "water.top")
            run(
                *gmx,
                "solvate",
                "-cs",
                "spc216.gro",
                "-box",
                "2.2",
                "2.2",
                "2.2",
                "-o",
                place / "water.gro",
                *top,
                inside=place,
            )  # fmt: skip  -- it leaves a file where it runs
            made = ("-po", place / "all.mdp", "-o", folder / "run.tpr", "-maxwarn", "5")
            run(*gmx, "grompp", "-f", place / "run.mdp", "-c", place / "water.gro", *top, *made, inside=place)

    def command(self, folder: Path) -> list[str]:
        files = ["-s", str(folder / "run.tpr"), "-deffnm", str(folder / "out")]
        return [path_of("gmx"), "-quiet", "mdrun", *files, "-nt", "1", "-pin", "off"]

    def environment(self) -> Mapping[str, str]:
        return {"GMX_MAXBACKUP": "-1"}

    def wrong(self, folder: Path) -> str | None:
        run(path_of("gmx"), "-quiet", "check", "-f", folder / "out.trr")
        size = (folder / "out.trr").stat().st_size
        # Positions and velocities of 348 molecules of 3 atoms in single precision, and a small head a frame.
        least = (_STEPS + 1) * 348 * 3 * 2 * 12
        return None if least < size < least * 1.02 + 100_000 else f"the trajectory has {size} bytes"
