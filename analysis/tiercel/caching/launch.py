"""Running an unmodified program with the connector on: ``tiercel cache run``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tiercel.children import ended_with_parent, followed
from tiercel.errors import UserError
from tiercel.layers import Options
from tiercel.layers.cachevol import PREFIX, check_loads, settings, variable
from tiercel.programs import as_started, own_program


def node_local(folder: Path | None) -> Path:
    """Return the node-local folder: the given one, else TMPDIR, else /tmp."""
    chosen = folder or Path(os.environ.get("HDF5_CACHE_STORAGE_PATH") or os.environ.get("TMPDIR") or "/tmp")
    if not chosen.is_dir():
        raise UserError(f"{chosen}: the node-local folder is not there")
    if not os.access(chosen, os.W_OK | os.X_OK):
        raise UserError(f"{chosen}: the node-local folder cannot be written to")
    return chosen.resolve()


def environment_for(storage: Path | None, options: Options) -> dict[str, str]:
    """Return the whole environment of a program with the connector on.

    What is asked for here comes first, then what the user's own variables say, then what is so by itself;
    where the user set the connector up with a file (``config=FILE``), the file stands in for the last.
    """
    ours = settings(node_local(storage), options)
    asked = {variable(name) for name in options} | ({variable("storage")} if storage else set())
    connector = ours.pop("HDF5_VOL_CONNECTOR")
    chosen = os.environ.get("HDF5_VOL_CONNECTOR") or connector
    if chosen.split(" ")[0] != connector:
        raise UserError(
            f"HDF5_VOL_CONNECTOR={chosen!r} is set already: unset it, or stack the connectors with "
            f'HDF5_VOL_CONNECTOR="{connector} under_vol=...;under_info={{...}}"'
        )
    if plugins := os.environ.get("HDF5_PLUGIN_PATH"):
        ours["HDF5_PLUGIN_PATH"] += os.pathsep + plugins
    own = set(ours) if "config=" in chosen else set(os.environ) - {variable("storage")}
    kept = {name for name in own - asked if name.startswith(PREFIX)}
    return {
        **os.environ, **{k: v for k, v in ours.items() if k not in kept}, "HDF5_VOL_CONNECTOR": chosen,
    }  # fmt: skip


def run(command: Sequence[str], storage: Path | None, options: Options) -> int:
    """Run `command` with the connector on; return its exit code (128 + signal, as a shell does).

    Raises UserError where HDF5 would not load the connector or the program is not there.
    """
    environment = environment_for(storage, options)
    check_loads(environment)
    own_program(command[0])
    with tempfile.TemporaryDirectory(prefix="tiercel-cache-") as own:
        counts = Path(environment.setdefault(variable("stats"), f"{own}/counts"))
        if not os.access(counts if counts.exists() else counts.parent, os.W_OK):
            raise UserError(f"{counts}: the counts of --stats (HDF5_CACHE_STATS) cannot be written there")
        before = _written(counts)
        code = followed(
            subprocess.Popen(as_started(command), env=environment, preexec_fn=ended_with_parent)  # noqa: PLW1509
        )
        if _written(counts) == before:
            print(
                f"tiercel: {command[0]}: no process on this node loaded the connector, so nothing was staged "
                "or cached here: it opened no HDF5 file, or by an HDF5 older than 1.14",
                file=sys.stderr,
            )
    if code < 0:
        print(f"tiercel: {command[0]} was ended by {signal.Signals(-code).name}", file=sys.stderr)
        return 128 - code
    return code


def _written(counts: Path) -> int:
    """Return when a file of counts was last written (the connector does when it is loaded); 0: never."""
    try:
        return counts.stat().st_mtime_ns
    except OSError:
        return 0
