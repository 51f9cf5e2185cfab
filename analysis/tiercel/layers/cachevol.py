"""cachevol: HDF5 files staged on and cached from node-local storage (paper 002; native/cachevol).

The layer is an HDF5 connector that programs load by environment variables alone. What it does is set by the
names of the original Cache VOL (HDF5_CACHE_*); `settings` renders them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tiercel.errors import UserError, suggest
from tiercel.layers.base import Layer, Options, Place, View, layers
from tiercel.layers.cachevol_node import answer
from tiercel.native import LIBRARIES
from tiercel.programs import Installation, program
from tiercel.site.model import Site
from tiercel.site.variables import expand
from tiercel.study.workloads import Workload
from tiercel.units import parse_size

#: The connector's name in HDF5_VOL_CONNECTOR.
CONNECTOR = "tiercel_cachevol"

_POLICIES = ("LRU", "LFU", "FIFO")
#: Begins the names of its settings in the environment; what follows there, of each option.
PREFIX = "HDF5_CACHE_"
_VARIABLES = {
    "storage": "STORAGE_PATH",
    "write": "WR", "read": "RD", "prefetch": "PREFETCH", "adaptive": "ADAPTIVE",
    "checkpoint": "CHECKPOINT", "size": "STORAGE_SIZE", "write_buffer": "WRITE_BUFFER_SIZE",
    "read_buffer": "READ_BUFFER_SIZE", "fusion": "FUSION_THRESHOLD", "policy": "REPLACEMENT_POLICY",
    "quiet": "QUIET", "recheck": "RECHECK", "stats": "STATS", "scope": "STORAGE_SCOPE",
    "patience": "PATIENCE", "independent": "INDEPENDENT",
}  # fmt: skip
#: Begins the name of a run's own folder on the node-local storage.
_OWN = "tiercel-cachevol-"
_NODE = "tiercel.layers.cachevol_node"


def connector() -> Path | None:
    """Return the connector's file: in the environment's lib/cachevol, or in HDF5_PLUGIN_PATH."""
    folders = [library / "cachevol" for library in LIBRARIES]
    folders += [Path(p) for p in os.environ.get("HDF5_PLUGIN_PATH", "").split(":") if p]
    return next((f / "libcachevol.so" for f in folders if (f / "libcachevol.so").is_file()), None)


def throttle() -> Path | None:
    """Return the library that makes a folder as slow as a given storage, or None."""
    places = (library / "libcachevol-throttle.so" for library in LIBRARIES)
    return next((place for place in places if place.is_file()), None)


def log_program() -> Path | None:
    """Return the program that inspects, replays and drops staging logs, or None."""
    return program("cachevol-log")


def settings(storage: Path, options: Options | None = None) -> dict[str, str]:
    """Return the environment that turns the connector on, with its node-local folder.

    Options (all may be left out): write, read, prefetch, adaptive, checkpoint, independent (true or false),
    size, write_buffer, read_buffer, fusion (bytes), quiet, recheck, patience (seconds), policy (LRU, LFU,
    FIFO), stats (file), scope (LOCAL, GLOBAL).
    """
    found = connector()
    if found is None:
        raise UserError("the connector libcachevol.so is not built: run `make layers`")
    environment = {
        "HDF5_PLUGIN_PATH": str(found.parent),
        "HDF5_VOL_CONNECTOR": CONNECTOR,
        "HDF5_CACHE_STORAGE_PATH": str(storage),
        "HDF5_CACHE_WR": "yes",
        "HDF5_CACHE_RD": "yes",
    }
    for name, value in (options or {}).items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        environment[variable(name)] = text
    return environment


def variable(option: str) -> str:
    """Return the environment's word for an option of `settings`, or for `storage`."""
    return PREFIX + _VARIABLES[option]


def check_loads(environment: Mapping[str, str]) -> None:
    """Raise UserError unless this Python's HDF5 loads the connector with `environment`.

    HDF5 2.0 crashes on a connector that it cannot load and 1.14 silently goes on without it, so it is tried
    on a file in memory, in a process of its own, before a program depends on it.
    """
    code = "import h5py; h5py.File('check', 'w', driver='core', backing_store=False).close()"
    with tempfile.TemporaryDirectory(prefix="tiercel-") as folder:
        stats = Path(folder) / "stats"
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, **environment, "HDF5_CACHE_STATS": str(stats)},
        )  # fmt: skip
        if answer.returncode == 0 and stats.is_file():
            return
    said = (answer.stderr.strip() or f"exit code {answer.returncode}").splitlines()[-1]
    raise UserError(f"HDF5 does not load {connector()}: {said}: run `make layers` again")


@layers.register("cachevol")
class CacheVol(Layer):
    """HDF5 node-local caching. Options: storage (a folder that each node has of its own; default its
    temporary folder), and those of `settings`."""

    name = "cachevol"

    def find(self) -> Installation | None:
        found, log = connector(), log_program()
        if found is None or log is None:
            return None
        both = hashlib.sha256(found.read_bytes() + log.read_bytes())
        version = "src." + both.hexdigest()[:8]
        return Installation(self.name, version, {"connector": found, "log": log})

    def check_options(self, options: Options, site: Site) -> None:
        known = {
            "storage", "write", "read", "prefetch", "adaptive", "checkpoint", "size", "write_buffer",
            "read_buffer", "fusion", "policy", "quiet", "recheck",
        }  # fmt: skip
        for name, value in options.items():
            if name not in known:
                raise UserError(f"layer cachevol has no option {name!r}: {suggest(name, known)}")
            if name in ("write", "read", "prefetch", "adaptive", "checkpoint") and not isinstance(
                value, bool
            ):
                raise UserError(f"layer cachevol: {name} must be true or false")
            if name in ("size", "write_buffer", "read_buffer", "fusion"):
                parse_size(value)
            if name == "policy" and value not in _POLICIES:
                raise UserError(f"layer cachevol: policy {value!r}: {suggest(str(value), _POLICIES)}")

    def unsupported(self, engine: str, workload: Workload, nodes: int, options: Options) -> str | None:
        if getattr(workload, "api", None) == "hdf5":  # data, whose engines do what it says
            return None
        if engine not in ("h5kernel", "dlkernel", "dlio"):
            return f"{engine} does not use HDF5 (without api: hdf5)"
        form = str(workload.features(nodes, 1).get("format", "hdf5"))
        return None if form.startswith("hdf5") else f"its files are {form}, not HDF5"

    @contextmanager
    def session(self, place: Place, installation: Installation) -> Iterator[View]:
        options = dict(place.options)
        storage = Path(expand(str(options.pop("storage", tempfile.gettempdir())), "layer cachevol: storage"))
        own = str(storage / f"{_OWN}{secrets.token_hex(8)}")
        for name in ("size", "write_buffer", "read_buffer", "fusion"):
            if name in options:
                options[name] = int(parse_size(options[name]))
        options["stats"] = str(place.output / "cachevol-stats.jsonl")
        each = place.each_node or (lambda _, words: [answer(words)])
        finish: list[str] = []
        try:
            each(_NODE, ["make", own])
            yield View(place.data, settings(Path(own), options))
            finish = [str(installation.programs["log"])]
        finally:
            each(_NODE, ["end", own, *finish])
