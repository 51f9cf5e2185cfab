"""HDF5 files: a dataset ``records_0`` (or several) of all samples, chunked and compressed as the workload
says.

h5py reads, so the calls on the file are HDF5's own; counted are the samples' bytes and the time in the
library.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from tiercel.clock import now
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import Format, Opened, register
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec

_BLOCK = 64 << 20


def _h5py() -> Any:
    """Import h5py: it takes a while, and only this format needs it."""
    return importlib.import_module("h5py")


def chunks_of(file: FileSpec, spec: Spec) -> tuple[int, ...] | None:
    """Return the dimensions of a chunk of about `chunk_bytes`: samples, rows of one, or part of a row."""
    whole = (file.samples, *_part(file, spec))
    if spec.chunk_dims:
        given = tuple(spec.chunk_dims)
        full = given if len(given) == len(whole) else (1, *given)
        return tuple(min(a, b) for a, b in zip(full, whole, strict=False))
    if not spec.chunk_bytes:
        return None
    left = max(1, spec.chunk_bytes // file.element_bytes)
    dims: tuple[int, ...] = ()
    for size in reversed(whole):
        dims = (max(1, min(size, left)), *dims)
        left //= dims[0] if dims[0] == size else max(left, 1)
        left = max(1, left)
    return dims


def _part(file: FileSpec, spec: Spec) -> tuple[int, ...]:
    """Return a sample's shape in one of its datasets."""
    return (max(1, file.shape[0] // spec.datasets), *file.shape[1:])


#: DLIO 2.0.0 has one dataset, of this name; later ones number theirs. Files here have both for the first.
_OLD_NAME = "records"


@register("hdf5", "hdf5_opt")
class HDF5(Format):
    library = "h5py"

    def prepare(self) -> None:
        _h5py()

    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        import numpy as np  # noqa: PLC0415

        h5py = _h5py()

        shape = (file.samples, *_part(file, spec))
        options: dict[str, Any] = {"chunks": chunks_of(file, spec)}
        if spec.max_shape:
            options["maxshape"] = (file.samples, *spec.max_shape)
        if spec.compression != "none":
            options["compression"] = spec.compression
            if spec.compression == "gzip":
                options["compression_opts"] = spec.compression_level
        each = math.prod(shape[1:]) * file.element_bytes
        step = max(1, _BLOCK // each)
        try:
            with h5py.File(path, "w", libver="latest") as out:
                for number in range(spec.datasets):
                    dataset = out.create_dataset(f"records_{number}", shape, spec.element, **options)
                    for first in range(0, file.samples, step):
                        count = min(step, file.samples - first)
                        seed = f"{file.seed}:{number}:{first}"
                        data = np.frombuffer(b"".join(content(spec, seed, count * each)), dtype=spec.element)
                        if spec.compression != "none":
                            data = _squeezable(data)
                        dataset[first : first + count] = data.reshape(count, *shape[1:])
                out[_OLD_NAME] = out["records_0"]
                out.create_dataset("labels", data=np.zeros(file.samples, dtype="int64"))
        except (OSError, ValueError) as error:  # such as chunks of more than HDF5 can have
            raise Failure(f"{path}: cannot be written: {error}") from None

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        return _Opened(path, spec, calls)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        h5py = _h5py()
        try:
            with h5py.File(path, "r") as file:
                records = _records(file, 0)
                shape, size = records.shape, records.dtype.itemsize
        except (OSError, KeyError) as error:
            raise Failure(f"{path}: not an HDF5 file with a dataset records_0: {error}") from None
        return shape[0], math.prod(shape[1:]) * size * spec.datasets


def _records(file: Any, number: int) -> Any:
    """Return a dataset of samples, by the name of today or, of the first, by that of DLIO 2.0.0."""
    name = f"records_{number}"
    return file[_OLD_NAME] if number == 0 and name not in file and _OLD_NAME in file else file[name]


def _squeezable(data: Any) -> Any:
    """Return numbers that compress to about half: noise does not compress, and scientific data does."""
    if data.dtype.kind == "f":
        raw = data.view(f"u{data.dtype.itemsize}")
        return (raw & raw.dtype.type((1 << (4 * data.dtype.itemsize)) - 1)).view(data.dtype)
    return data & data.dtype.type((1 << (4 * data.dtype.itemsize)) - 1)


class _Opened(Opened):
    def __init__(self, path: str, spec: Spec, calls: IO) -> None:
        h5py = _h5py()
        self._path, self._spec, self._calls = path, spec, calls
        arguments: dict[str, Any] = {}
        if spec.access == "collective":
            from mpi4py import MPI  # noqa: PLC0415

            arguments = {"driver": "mpio", "comm": MPI.COMM_WORLD}
        began = now()
        try:
            self._file = h5py.File(path, "r", **arguments)
            self._sets = [_records(self._file, n) for n in range(spec.datasets)]
        except (OSError, KeyError) as error:
            raise Failure(f"{path}: not an HDF5 file with a dataset records_0: {error}") from None
        calls.library("H5Fopen", "HDF5", began, path)

    def read(self, sample: int) -> int:
        began, size = now(), 0
        try:
            for dataset in self._sets:
                if self._spec.access == "collective":
                    with dataset.collective:
                        size += dataset[sample].nbytes
                else:
                    size += dataset[sample].nbytes
        except (OSError, IndexError, ValueError) as error:
            raise Failure(f"{self._path}: sample {sample} cannot be read: {error}") from None
        self._calls.library("H5Dread", "HDF5", began, self._path, size)
        return size

    def close(self) -> None:
        began = now()
        self._file.close()
        self._calls.library("H5Fclose", "HDF5", began, self._path)
