"""Running an unmodified program with the connector on: ``tiercel cache run``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tiercel.children import ended_with_parent
from tiercel.errors import Interrupted, UserError
from tiercel.layers import Options
from tiercel.layers.cachevol import check_loads, settings
from tiercel.programs import as_started, own_program


def node_local(folder: Path | None) -> Path:
    """Return the node-local folder: the given one, else TMPDIR, else /tmp."""
    chosen = folder or Path(os.environ.get("HDF5_CACHE_STORAGE_PATH") or os.environ.get("TMPDIR") or "/tmp")
    if not chosen.is_dir():
        raise UserError(f"{chosen}: the node-local folder is not there")
    if not os.access(chosen, os.W_OK | os.X_OK):
        raise UserError(f"{chosen}: the node-local folder cannot be written to")
    return chosen.resolve()


def environment_for(storage: Path, options: Options) -> dict[str, str]:
    """Return the whole environment of a program with the connector on; what the user set himself stays."""
    ours = settings(storage, options)
    given = {k: v for k, v in os.environ.items() if k.startswith("HDF5_CACHE_") and k not in options}
    other = os.environ.get("HDF5_VOL_CONNECTOR", "")
    if other and not other.startswith(ours["HDF5_VOL_CONNECTOR"]):
        raise UserError(
            f"HDF5_VOL_CONNECTOR={other!r} is set already: unset it, or stack the connectors with "
            f'HDF5_VOL_CONNECTOR="{ours["HDF5_VOL_CONNECTOR"]} under_vol=...;under_info={{...}}"'
        )
    if plugins := os.environ.get("HDF5_PLUGIN_PATH"):
        ours["HDF5_PLUGIN_PATH"] += os.pathsep + plugins
    return {**os.environ, **ours, **{k: v for k, v in given.items() if k != "HDF5_CACHE_STORAGE_PATH"}}


def run(command: Sequence[str], storage: Path, options: Options) -> int:
    """Run `command` with the connector on; return its exit code (128 + signal, as a shell does).

    Raises UserError where HDF5 would not load the connector or the program is not there.
    """
    environment = environment_for(storage, options)
    check_loads(environment)
    own_program(command[0])
    child = subprocess.Popen(as_started(command), env=environment, preexec_fn=ended_with_parent)  # noqa: PLW1509
    while True:
        try:
            code = child.wait()
            break
        except KeyboardInterrupt:  # the terminal told the program too; it decides
            continue
        except Interrupted:
            child.terminate()
    if code < 0:
        print(f"tiercel: {command[0]} was ended by {signal.Signals(-code).name}", file=sys.stderr)
        return 128 - code
    return code
