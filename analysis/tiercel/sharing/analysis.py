"""An analysis with h5py, as scientists write them: ``python -m tiercel.sharing.analysis make|run FILE MIB``.

`make` writes one data set of that size, in chunks of 1 MiB. `run` reads it slab by slab, computes mean and
standard deviation of each, and adds them to the file as another data set.
"""

from __future__ import annotations

import sys

import h5py
import numpy as np

#: Of a slab: one chunk of the file.
_ROWS, _COLUMNS = 128, 1024
_DATA, _RESULT = "field", "moments"


def make(path: str, mebibytes: int) -> None:
    """Write the data set: doubles, reproducible."""
    random = np.random.default_rng(1)
    slab = random.standard_normal((_ROWS, _COLUMNS))
    with h5py.File(path, "w") as file:
        data = file.create_dataset(_DATA, (mebibytes * _ROWS, _COLUMNS), dtype="f8", chunks=(_ROWS, _COLUMNS))
        for number in range(mebibytes):
            data[number * _ROWS : (number + 1) * _ROWS] = slab + number


def run(path: str) -> None:
    """Read all slabs and keep their moments; fails where a slab is not what was written."""
    with h5py.File(path, "r+") as file:
        data = file[_DATA]
        count = data.shape[0] // _ROWS
        moments = np.empty((count, 2))
        for number in range(count):
            slab = data[number * _ROWS : (number + 1) * _ROWS]
            moments[number] = slab.mean(), slab.std()
        # Slab n is the first one plus n.
        if not np.allclose(moments[:, 0] - moments[0, 0], np.arange(count)):
            raise SystemExit("analysis: error: the data is not what was written")
        if _RESULT in file:
            del file[_RESULT]
        file[_RESULT] = moments


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        run(sys.argv[2])
