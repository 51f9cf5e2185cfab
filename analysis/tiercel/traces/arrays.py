"""numpy arrays as Arrow arrays, and back, over the same memory.

pyarrow's own ``array`` and ``to_numpy`` do the same, but import pandas, which takes longer than the summary
of a small trace. These functions take and return numbers and truth values; words are dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def to_arrow(values: Values, missing: Mask | None = None) -> pa.Array:
    """Return `values` as an Arrow array, null where `missing` is true."""
    bits = values.dtype == np.bool_
    kind = pa.bool_() if bits else pa.from_numpy_dtype(values.dtype)
    data = _packed(values) if bits else np.ascontiguousarray(values)
    lost = 0 if missing is None else int(np.count_nonzero(missing))
    valid = pa.py_buffer(_packed(~missing)) if missing is not None and lost else None
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)], lost)


def to_numpy(array: pa.Array) -> tuple[Values, Mask | None]:
    """Return the values of an Arrow array, and which are missing (None: none). The values of those that are
    missing mean nothing; both may be read-only."""
    bits = pa.types.is_boolean(array.type)
    kind = np.dtype(np.bool_ if bits else array.type.to_pandas_dtype())
    length, first = len(array), array.offset
    if not length:
        return np.empty(0, dtype=kind), None
    valid, data = array.buffers()
    values = (
        _unpacked(data, first, length) if bits
        else np.frombuffer(data, kind, count=first + length)[first:]
    )  # fmt: skip
    return values, ~_unpacked(valid, first, length) if array.null_count else None


def to_words(codes: npt.NDArray[np.int32], words: Sequence[str]) -> pa.DictionaryArray:
    """Return the words that `codes` stand for, null where a code is negative."""
    encoded = [word.encode() for word in words]
    ends = np.zeros(len(words) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(words)), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.DictionaryArray.from_arrays(
        to_arrow(codes, codes < 0), pa.Array.from_buffers(pa.string(), len(words), buffers)
    )


def _packed(values: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def _unpacked(buffer: pa.Buffer, first: int, length: int) -> Mask:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=first + length, bitorder="little")
    return bits[first:].view(np.bool_)
