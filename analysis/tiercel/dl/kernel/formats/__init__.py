"""File formats of datasets, one file each. To add one: a class under ``@register("name")``, named below."""

from __future__ import annotations

import importlib

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.formats.base import Format, Opened, registered

#: Which file holds a format: it is read when it is needed, and so are the libraries that it needs.
_MODULES = {
    "csv": "csv", "hdf5": "hdf5", "hdf5_opt": "hdf5", "indexed_binary": "indexed_binary", "jpeg": "image",
    "mmap_indexed_binary": "indexed_binary", "npy": "npy", "npz": "npz", "parquet": "parquet", "png": "image",
    "synthetic": "synthetic", "tfrecord": "tfrecord",
}  # fmt: skip

__all__ = ["Format", "Opened", "format_of"]


def format_of(name: str) -> Format:
    """Return the handler of a format; Failure where it needs a library that is not installed."""
    if name not in _MODULES:
        raise Failure(f"dataset.format: {name}: no such format (known: {', '.join(sorted(_MODULES))})")
    importlib.import_module(f"tiercel.dl.kernel.formats.{_MODULES[name]}")
    handler = registered[name]()
    lacking = handler.missing()
    if lacking:
        raise Failure(f"dataset.format: {name} needs {lacking}, which is not installed")
    return handler
