"""Parquet files, as the fork of DLIO writes and reads them that MLPerf Storage 3 runs on.

A file has the workload's columns, or one column ``data`` with all bytes of a sample. Training reads the
footer of a file and then whole row groups, as they lie there: their bytes are neither unpacked nor looked at,
so what a run measures is storage. The check before training unpacks the first group of some files.
Source: mlcommons/DLIO_local_changes, July 2026, parquet_generator.py and parquet_reader_file_iterable.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import Format, Opened, register
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.spec import Spec

#: The one column where the workload names none.
_ONLY = "data"


def _arrow(module: str = "pyarrow") -> Any:
    """Import (a part of) pyarrow: it takes a while, and only this format needs it."""
    return importlib.import_module(module)


@dataclass(frozen=True)
class Group:
    """A row group: its samples, and where the chosen columns lie in the file, from the first to the last."""

    samples: int
    offset: int
    bytes: int


@register("parquet")
class Parquet(Format):
    library = "pyarrow"
    streams = True
    in_groups = True

    def prepare(self) -> None:
        _arrow("pyarrow.parquet")

    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        pq = _arrow("pyarrow.parquet")
        columns = spec.columns or [{"name": _ONLY, "dtype": "uint8", "size": file.sample_bytes}]
        step = spec.group_batch or spec.row_group
        packed = None if spec.compression == "none" else spec.compression
        writer = None
        try:
            for first in range(0, file.samples, step):
                rows = min(step, file.samples - first)
                table = _table(columns, rows, spec, f"{file.seed}:{first}")
                writer = writer or pq.ParquetWriter(path, table.schema, compression=packed)
                writer.write_table(table, row_group_size=spec.row_group)
        except OSError as error:
            raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None
        finally:
            if writer:
                writer.close()

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        raise NotImplementedError("Parquet is read in row groups")

    def groups(self, path: str, spec: Spec, calls: IO) -> Iterator[Group]:
        """Read the footer of a file, and yield its row groups.

        Failure for a file that is no Parquet, or lacks a column.
        """
        with RawFile(calls, path, "ranges") as raw:
            footer = _opened(path, raw).metadata
        chosen = _chosen(path, footer, spec)
        # Chunks of columns lie in the order of the columns, as all writers put them: two of hundreds tell.
        # Where the first group says otherwise, all are looked at.
        ends = sorted({chosen[0], chosen[-1]})
        if footer.num_row_groups and _span(footer, 0, ends) != _span(footer, 0, chosen):
            ends = list(chosen)
        for number in range(footer.num_row_groups):
            first, last = _span(footer, number, ends)
            yield Group(footer.row_group(number).num_rows, first, last - first)

    def stream(self, path: str, spec: Spec, calls: IO) -> Iterator[tuple[int, int]]:
        """Yield (samples, bytes of each) of the row groups, unpacked."""
        with RawFile(calls, path, "ranges") as raw:
            file = _opened(path, raw)
            for number in range(file.metadata.num_row_groups):
                try:
                    table = file.read_row_group(number, columns=spec.read_columns or None)
                except (ValueError, OSError) as error:
                    raise Failure(f"{path}: row group {number} cannot be read: {_first(error)}") from None
                yield table.num_rows, table.nbytes // max(1, table.num_rows)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        with RawFile(calls, path, "ranges") as raw:
            footer = _opened(path, raw).metadata
        _chosen(path, footer, spec)
        return footer.num_rows, None


def _opened(path: str, raw: RawFile) -> Any:
    try:
        return _arrow("pyarrow.parquet").ParquetFile(raw)
    except (ValueError, OSError) as error:
        raise Failure(f"{path}: not a Parquet file: {_first(error)}") from None


def _first(error: Exception) -> str:
    """Return the first line of what a library says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _chosen(path: str, footer: Any, spec: Spec) -> Sequence[int]:
    """Return the numbers of the columns that are read, in the order of the file."""
    names = [footer.schema.column(n).path.split(".")[0] for n in range(footer.num_columns)]
    if not spec.read_columns:
        return range(len(names))
    if lacking := [name for name in spec.read_columns if name not in names]:
        raise Failure(f"{path}: has no column {lacking[0]} (storage.storage_options.columns)")
    return [number for number, name in enumerate(names) if name in spec.read_columns]


def _span(footer: Any, number: int, columns: Sequence[int]) -> tuple[int, int]:
    """Return where the chunks of columns of a row group begin and end in the file."""
    group = footer.row_group(number)
    first, last = [], []
    for column in map(group.column, columns):
        begin = column.data_page_offset
        if column.dictionary_page_offset:
            begin = min(begin, column.dictionary_page_offset)
        first.append(begin)
        last.append(begin + column.total_compressed_size)
    return min(first), max(last)


def _table(columns: Sequence[dict[str, Any]], rows: int, spec: Spec, seed: str) -> Any:
    names = [one["name"] for one in columns]
    arrays = [_array(one["dtype"], one["size"], rows, spec, f"{seed}:{one['name']}") for one in columns]
    return _arrow().Table.from_arrays(arrays, names)


def _array(kind: str, size: int, rows: int, spec: Spec, seed: str) -> Any:
    """Return a column: numbers, lists of `size` numbers, or words.

    From buffers: pyarrow's own way from numpy imports pandas, which takes longer than a small dataset.
    """
    import numpy as np  # noqa: PLC0415

    pa = _arrow()

    def drawn(element: str, count: int) -> Any:
        pieces = content(spec, seed, count * np.dtype(element).itemsize)
        return np.frombuffer(b"".join(pieces), dtype=element)

    def made(of: Any, count: int, *buffers: Any) -> Any:
        return pa.Array.from_buffers(of, count, [None, *map(pa.py_buffer, buffers)])

    if kind == "string":
        words = [b"s_%d" % number for number in drawn("uint32", rows) >> 1]
        ends = np.cumsum([0, *map(len, words)], dtype="int32")
        return made(pa.string(), rows, ends, b"".join(words))
    if kind == "binary":
        return made(pa.binary(), rows, np.arange(rows + 1, dtype="int32") * size, drawn("uint8", rows * size))
    if kind == "bool":
        return made(pa.bool_(), rows, drawn("uint8", -(-rows // 8)))
    element = "float32" if kind == "list" else kind
    of = getattr(pa, element)()
    values = made(of, rows * size, drawn(element, rows * size))
    return values if size == 1 else pa.FixedSizeListArray.from_arrays(values, size)
