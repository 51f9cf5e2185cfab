"""Writes arrays to files and reads them again: python array_files.py numpy|hdf5|netcdf FOLDER
KEY=NUMBER..."""
# Each library is imported only where its files are asked for: the program is traced.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def _numpy(folder: Path, files: int, size: int, sync: int) -> None:
    import numpy as np

    data = np.arange(size // 8, dtype=float)
    for number in range(files):
        with (folder / f"state-{number}.npy").open("wb") as file:
            np.save(file, data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
    for number in range(files):
        np.load(folder / f"state-{number}.npy").sum()


def _hdf5(folder: Path, steps: int, size: int, chunk: int, compress: int = 0) -> None:
    import h5py
    import numpy as np

    data = np.random.default_rng(1).integers(0, 100, size // 8).astype(float)
    with h5py.File(folder / "out.h5", "w") as file:
        for step in range(steps):
            group = file.create_group(f"step{step}")
            group.attrs["time"] = step
            group.create_dataset(
                "x",
                data=data,
                chunks=(chunk // 8,) if chunk else None,
                compression="gzip" if compress else None,
            )
            if step % 5 == 0:
                file.flush()
    with h5py.File(folder / "out.h5") as file:
        for step in range(steps):
            file[f"step{step}/x"][:].sum()


def _netcdf(folder: Path, steps: int, size: int) -> None:
    import h5netcdf
    import numpy as np

    with h5netcdf.File(folder / "out.nc", "w") as file:
        file.dimensions = {"time": None, "x": size // 8}
        variable = file.create_variable("v", ("time", "x"), float, chunks=(1, size // 8))
        for step in range(steps):
            file.resize_dimension("time", step + 1)
            variable[step, :] = np.full(size // 8, float(step))
    with h5netcdf.File(folder / "out.nc") as file:
        for step in range(steps):
            file["v"][step, :].sum()


if __name__ == "__main__":
    _kind, _folder, *_words = sys.argv[1:]
    _options = {k: int(v) for k, v in (word.split("=") for word in _words)}
    _programs: dict[str, Callable[..., None]] = {"numpy": _numpy, "hdf5": _hdf5, "netcdf": _netcdf}
    _programs[_kind](Path(_folder), **_options)
