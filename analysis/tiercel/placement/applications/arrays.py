"""Arrays: checkpoints with numpy, HDF5 files with h5py, NetCDF files with h5netcdf; written, and read
again."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tiercel.placement.applications.base import Application, Variant, applications, python


class _Arrays(Application):
    tracer: Literal["dftracer", "strace"] = "dftracer"

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return python("array_files", self.name, folder, *(f"{k}={v}" for k, v in options.items()))


@applications.register("numpy")
class Numpy(_Arrays):
    name = "numpy"
    tracer = "strace"  # numpy writes through a copy of the descriptor, which DFTracer does not follow
    variants = (
        Variant("checkpoints", {"files": 20, "size": 1 << 21, "sync": 0}),
        Variant("synced-checkpoints", {"files": 8, "size": 1 << 21, "sync": 1}),
        Variant("shards", {"files": 400, "size": 1 << 13, "sync": 0}),
        Variant("large", {"files": 2, "size": 1 << 23, "sync": 0}),
    )


@applications.register("hdf5")
class Hdf5(_Arrays):
    name = "hdf5"
    variants = (
        Variant("contiguous", {"steps": 10, "size": 1 << 20, "chunk": 0}),
        Variant("chunked", {"steps": 10, "size": 1 << 20, "chunk": 1 << 14}),
        Variant("compressed", {"steps": 4, "size": 1 << 20, "chunk": 1 << 15, "compress": 1}),
        Variant("attributes", {"steps": 200, "size": 1 << 9, "chunk": 0}),
    )


@applications.register("netcdf")
class Netcdf(_Arrays):
    name = "netcdf"
    variants = (
        Variant("unlimited", {"steps": 40, "size": 1 << 15}),
        Variant("large", {"steps": 4, "size": 1 << 21}),
    )

    def missing(self) -> str | None:
        return (
            None
            if importlib.util.find_spec("h5netcdf")
            else "h5netcdf is not installed (pip install h5netcdf)"
        )
