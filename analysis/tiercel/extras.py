"""Which packages only some commands need, and how one gets them: the extras of the package."""

from __future__ import annotations

import importlib.util

from tiercel.errors import UserError

#: Modules of the extras in pyproject.toml, where their name is not the package's.
_MODULES = {
    "evaluate": (
        "dftracer", "h5netcdf", "h5py", "isal", "mpi4py", "packaging", "PIL", "rocrate", "sklearn",
        "snakemake",
        "snakemake_executor_plugin_cluster_generic", "snakemake_executor_plugin_slurm",
        "snakemake_interface_common", "xarray",
    ),
    "darshan": ("darshan",),
    "cluster": ("distributed", "dask"),
    "jupyter": ("ipykernel", "jupyterlab"),
}  # fmt: skip


def missing(module: str | None) -> str | None:
    """Return one sentence on how to get `module`, or None for one that belongs to no extra."""
    top = (module or "").partition(".")[0]
    for extra, modules in _MODULES.items():
        if top in modules:
            return f"this needs the package {top}, which is not installed: pip install 'tiercel[{extra}]'"
    return None


def not_installed(extra: str) -> list[str]:
    """Return the modules of `extra` that are not installed."""
    return [module for module in _MODULES[extra] if importlib.util.find_spec(module) is None]


def need(module: str) -> None:
    """Raise UserError where `module` of an extra is not installed."""
    if importlib.util.find_spec(module) is None:
        raise UserError(missing(module) or f"no module {module}")
