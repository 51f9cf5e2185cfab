"""The applications of the engine ``sharing``: how each is made ready, and started.

To add one: a function under its name in ``APPLICATIONS``, and the name in
``workload_application``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.spec import dataset_spec_of, spec_of
from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.programs import as_started, program
from tiercel.sharing.workload_application import SharingApplicationWorkload


@dataclass(frozen=True)
class Commands:
    """What makes an application's input (once), and what is timed. `files`: to be written beforehand."""

    prepare: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]


def _h5py(folder: str, output: Path, work: float) -> Commands:
    """Read and reduce one HDF5 file of 128 MiB (at `work` 1)."""
    start = (sys.executable, "-m", "tiercel.sharing.analysis")
    file, size = f"{folder}/field.h5", str(max(1, round(128 * work)))
    return Commands(((*start, "make", file, size),), (*start, "run", file, size))


def _dlkernel(folder: str, output: Path, work: float) -> Commands:
    """Train for two epochs from 32 files of 4 MiB (at `work` 1), two readers, 10 ms of computation a step."""
    workload = parse(
        DLWorkload,
        {
            "model": {"name": "background-reads", "type": "cnn"},
            "framework": "pytorch",
            "workflow": {"generate_data": False, "train": True, "checkpoint": False},
            "dataset": {
                "data_folder": "data", "format": "npz", "num_files_train": max(8, round(32 * work)),
                "num_samples_per_file": 1, "record_length_bytes": 4 << 20,
            },
            "reader": {"data_loader": "pytorch", "batch_size": 4, "read_threads": 2},
            "train": {"epochs": 2, "computation_time": 0.01},
        },
        "application dlkernel",
    )  # fmt: skip

    def command(spec: dict[str, object], place: str) -> tuple[str, ...]:
        return (
            sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps({**spec, "seed": 1}),
            "--data", f"{folder}/dataset", "--checkpoints", f"{folder}/checkpoints",
            "--output", str(output / place), "--cold", "none", "--processes", "1",
        )  # fmt: skip

    return Commands((command(dataset_spec_of(workload), "generate"),), command(spec_of(workload), "train"))


def _lammps(folder: str, output: Path, work: float) -> Commands:
    """Simulate a melt of 32,000 atoms for 100 steps (at `work` 1), with restart file and dump every 10."""
    lmp = program("lmp")
    if lmp is None:
        raise UserError("application lammps: its program lmp is not on PATH")
    script = output / "lammps.in"
    script.write_text(
        "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 20 0 20 0 20\n"
        "create_box 1 box\ncreate_atoms 1 box\nmass 1 1.0\nvelocity all create 3.0 87287\n"
        "pair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\nfix 1 all nve\n"
        f"restart 10 {folder}/restart.1 {folder}/restart.2\n"
        f"dump 1 all atom 10 {folder}/atoms.dump\nrun {max(10, round(100 * work))}\n"
    )
    return Commands((), (str(lmp), "-in", str(script), "-log", "none", "-screen", "none"))


#: Each gets its folder (as its processes see it), a folder for what is not under test, and `work`.
APPLICATIONS: dict[str, Callable[[str, Path, float], Commands]] = {
    "dlkernel": _dlkernel,
    "h5py": _h5py,
    "lammps": _lammps,
}


def commands_of(workload: SharingApplicationWorkload, folder: str, output: Path) -> Commands:
    """Return the commands of a workload's application, or those that it names itself."""
    if workload.application != "command":
        return APPLICATIONS[workload.application](folder, output, workload.work)

    def here(words: list[str]) -> tuple[str, ...]:
        return tuple(word.replace("{folder}", folder) for word in as_started(words))

    return Commands((here(workload.prepare),) if workload.prepare else (), here(workload.command))
