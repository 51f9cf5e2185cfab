"""What is here of all that tiercel can use, what the rest would add, and how to get it.

To add a part, write a line of `parts`. Nothing is changed; programs are asked for their versions.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any

from tiercel.engines import engines
from tiercel.engines.hdf5_library import HOW, hdf5_library
from tiercel.extras import not_installed
from tiercel.launchers import resolve
from tiercel.layers import layers
from tiercel.programs import BROWSERS, program
from tiercel.runs.tracing import preload_library
from tiercel.schedulers import schedulers
from tiercel.stack.spack import spack_program

#: Seconds that a program has to say its version.
_PATIENCE_S = 20.0
#: Older ones cannot build: what fairshare's Cargo.toml asks for; a Go that fetches a newer one itself.
_RUST, _GO = (1, 82), (1, 21)


@dataclass(frozen=True)
class Part:
    """One thing that is here or not."""

    group: str
    name: str
    found: str
    """Version or place; empty where it is not here."""
    adds: str
    """What one can do with it."""
    get: str
    """The next command, or what to do, where it is not here."""
    needed: bool = False
    """Without it `tiercel evaluate` cannot measure at all."""


def parts() -> Iterator[Part]:
    """Yield every part, by what it is for."""
    yield from _measuring()
    yield from _tracing()
    yield from _in_front()
    yield from _sites()
    yield from _reporting()
    yield from _building()


#: Engine: what it adds, how to get it.
_ENGINES = {
    "iokernel": ("reads, writes and metadata of `tiercel evaluate`", "make setup"),
    "dlkernel": ("trainings of `tiercel evaluate`; `tiercel dl`", "make setup"),
    "inferkernel": ("key-value caches and vector search (study inference)", "make setup"),
    "replay": ("replay of a trace on other storage (`tiercel advise TRACE`)", "make setup"),
    "h5kernel": ("HDF5 reads and writes in measurements of cachevol", "make setup"),
    "sharing": ("measurements of storage sharing (`tiercel share bench`)", "make layers"),
    "ior": ("IOR, for comparison with iokernel: `tiercel engines compare`",
            "with the site's MPI: git clone https://github.com/hpc/ior && cd ior && ./bootstrap && "
            "./configure --prefix=$HOME/.local && make install, and $HOME/.local/bin on PATH"),
    "mdtest": ("mdtest, for comparison with iokernel", "comes with IOR"),
    "fio": ("fio, for comparison with iokernel on one node", "Debian: apt install fio"),
    "simulation": ("simulation of a site (`tiercel evaluate --simulate`)", "part of tiercel"),
    "dlio": ("upstream's DLIO: `tiercel dl verify`", "make dlio (TensorFlow, about 2 GB)"),
}  # fmt: skip


def _measuring() -> Iterator[Part]:
    group = "Measuring"
    for name in engines:
        adds, get = _ENGINES.get(name, ("an engine of a study", "see docs/engines.md"))
        installation = engines.get(name)().find()
        version = installation.version if installation else ""
        yield Part(group, name, version, adds, _made(get), needed=name == "iokernel")
    lacking = ", ".join(not_installed("evaluate"))
    yield Part(
        group, "Snakemake", distribution_version("snakemake") if _module("snakemake") else "",
        "carries out studies: `tiercel evaluate`, `snakemake --profile NAME`", _evaluate(), needed=True,
    )  # fmt: skip
    yield Part(
        group, "packages of [evaluate]", "" if lacking else "all are here",
        "measuring, placing and packing", f"{_evaluate()} (not here: {lacking})",
    )  # fmt: skip
    launcher = resolve("auto")
    mpi = "" if not launcher.mpi or launcher.missing() else launcher.name
    yield Part(group, "MPI", mpi, "runs on several nodes, MPI-IO, IOR and mdtest", _made("make setup"))
    able = _capabilities()
    yield Part(
        group, "io_uring", "the kernel allows it" if able.get("io_uring") else "",
        "queue depths above 1", "Linux 5.6 or newer, and no kernel.io_uring_disabled",
    )  # fmt: skip
    yield Part(
        group, "cachestat", "the kernel has it" if able.get("cachestat") else "",
        "a fast check of the page cache; without it tiercel uses mincore, which is slower", "Linux 6.5",
    )  # fmt: skip
    hdf5 = hdf5_library()
    said = "" if hdf5 is None else f"{hdf5.version}, {'parallel' if hdf5.parallel else 'serial'}"
    yield Part(
        group, "HDF5", said, "the hdf5 interface of data workloads; parallel HDF5: shared files",
        f"{_pip()} install h5py; parallel: {HOW}",
    )  # fmt: skip
    pressure = Path("/proc/pressure/io").exists()
    yield Part(
        group, "pressure (PSI)", "the kernel has it" if pressure else "",
        "records how long tasks waited for cores and I/O during a run", "boot with psi=1",
    )  # fmt: skip


def _capabilities() -> Mapping[str, Any]:
    said = _answer([str(program("iokernel")), "--capabilities"]) if program("iokernel") else None
    try:
        found = json.loads(said or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tracing() -> Iterator[Part]:
    group = "Traces"
    library = preload_library()
    yield Part(group, "DFTracer", "its library is here" if library else "",
               "traced runs of a study", _made("make setup (x86-64)"))  # fmt: skip
    traced = _answer(["strace", "-qq", "-e", "trace=none", "true"]) is not None
    yield Part(group, "strace", _version("strace", "-V") if traced else "",
               "the trace that `tiercel advise` starts with; programs that DFTracer cannot trace",
               "Debian: apt install strace; a container needs CAP_SYS_PTRACE")  # fmt: skip
    yield Part(group, "Darshan", "its Python package is here" if _module("darshan") else "",
               "reads Darshan's logs: `tiercel trace`, `trace survey`",
               f"{_pip()} install 'darshan>=3.4.4,<4'")  # fmt: skip
    yield Part(group, "Dask", "its Python package is here" if _module("distributed") else "",
               "surveys and analyses on a cluster", f"{_pip()} install 'distributed>=2024.10'")  # fmt: skip
    yield Part(group, "Jupyter", "its kernel is here" if _module("ipykernel") else "",
               "the notebooks", f"{_pip()} install jupyterlab ipykernel")  # fmt: skip


#: Layer: what it adds.
_LAYERS = {
    "fairshare": "shares storage fairly among jobs: `tiercel share`",
    "cachevol": "stages and caches HDF5 files on node-local storage: `tiercel cache`",
}


def _in_front() -> Iterator[Part]:
    group = "Layers in front of storage"
    for name in layers:
        layer = layers.get(name)()
        found = layer.find()
        # `make layers` builds cachevol without Rust.
        needs = "setup" if name == "cachevol" else "layers"
        get = _made("make layers", needs) if name in _LAYERS else layer.how_to_build()
        adds = _LAYERS.get(name, "a layer of a study")
        yield Part(group, name, found.version if found else "", adds, get)
    fuse = os.access("/dev/fuse", os.R_OK | os.W_OK)
    yield Part(group, "FUSE", _version("fusermount3", "-V") if fuse else "",
               "fairshare's front end for every program (`tiercel share run`)",
               "Debian: apt install fuse3; a container needs /dev/fuse")  # fmt: skip
    yield Part(group, "versitygw", _place("versitygw"), "an S3 server to try `type: s3` with",
               _made("make gateway"))  # fmt: skip


def _sites() -> Iterator[Part]:
    group = "Sites"
    for name in schedulers:
        scheduler = schedulers.get(name)
        # Programs of one name are of several schedulers: qsub is Grid Engine's, PBS', Cobalt's.
        own = not scheduler.marks or any(map(program, scheduler.marks))
        here = own and not scheduler().missing()
        place = _place(scheduler.programs[0]) if here else ""
        yield Part(group, name, place, "jobs of a site with this scheduler",
                   "log in where jobs are submitted")  # fmt: skip
    spack = spack_program()
    yield Part(group, "Spack", str(spack) if spack else "", "builds a site's engines: `tiercel stack`",
               "git clone --depth=2 https://github.com/spack/spack ~/spack && "
               "export SPACK_ROOT=~/spack")  # fmt: skip


def _reporting() -> Iterator[Part]:
    place = next(filter(None, map(_place, BROWSERS)), "")
    yield Part("Reports", "Chromium", place, "prints the report: `tiercel report --pdf`",
               "Debian: apt install chromium")  # fmt: skip


def _building() -> Iterator[Part]:
    group = "Building"
    yield Part(group, f"C compiler ({_compiler()})", _version(_compiler(), "--version"),
               "builds the native parts", "Debian: apt install gcc libc6-dev")  # fmt: skip
    yield Part(group, "Rust (cargo)", *_new_enough("cargo", "--version", _RUST, "builds fairshare",
               "rustup; Debian 13: apt install cargo"))  # fmt: skip
    headers = _place("h5cc") or _answer(["pkg-config", "--modversion", "hdf5"])
    yield Part(group, "HDF5 with headers", headers or "", "builds cachevol for the system's HDF5",
               "Debian: apt install libhdf5-dev")  # fmt: skip
    yield Part(group, "Go", *_new_enough("go", "version", _GO, "builds versitygw",
               "https://go.dev; Debian 13: apt install golang"))  # fmt: skip


def _compiler() -> str:
    return os.environ.get("CC", "cc").split()[0]


def _made(command: str, needs: str = "") -> str:
    """Return how one gets what `command` makes, where make does: in a clone, and with its compiler first.

    `needs`: the target whose compiler it is, where that is another than the command's.
    """
    if not command.startswith("make "):
        return command
    if not (Path(__file__).resolve().parents[2] / "Makefile").is_file():
        return f"in a clone of tiercel: {command}"
    lacking = {
        "setup": "" if program(_compiler()) else "a C compiler",
        "layers": "" if program("cargo") else "Rust",
        "gateway": "" if program("go") else "Go",
    }.get(needs or command.split()[1], "")
    return f"{lacking} first (see Building), then {command}" if lacking else command


def _new_enough(name: str, option: str, least: tuple[int, int], adds: str, get: str) -> tuple[str, str, str]:
    """Return (found, adds, get) of a program that must be of a version; what is older is not here."""
    said, wanted = _version(name, option), ".".join(map(str, least))
    # A path is of a program that does not say its version.
    number = None if said.startswith("/") else re.search(r"(\d+)\.(\d+)", said)
    get = f"{wanted} or newer: {get}"
    if number and (int(number[1]), int(number[2])) < least:
        return "", adds, f"{get} ({said} is too old)"
    return said, adds, get


def _place(name: str) -> str:
    found = program(name)
    return str(found) if found else ""


def _version(name: str, option: str) -> str:
    """Return the first line that a program says of its version; empty where it is not here."""
    if program(name) is None:
        return ""
    said = _answer([str(program(name)), option])
    return said.splitlines()[0].strip() if said else str(program(name))


def _answer(command: list[str]) -> str | None:
    """Return what a command says; None where it cannot be started or ends with an error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.strip() or done.stderr.strip()


def _module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _evaluate() -> str:
    return f"{_pip()} install 'tiercel[evaluate]'"


def _pip() -> str:
    return f"{sys.executable} -m pip"


def machine() -> str:
    """Return this machine in a line: system, processors, Python."""
    return (
        f"{platform.system()} {platform.release()} on {platform.machine()}, {len(os.sched_getaffinity(0))} "
        f"processors, Python {platform.python_version()}"
    )
