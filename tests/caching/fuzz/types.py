"""Random element types of datasets, with values for them."""

from __future__ import annotations

from typing import Any, cast

import h5py
import numpy as np

Rng = np.random.Generator
Type = np.dtype[Any]

_FIXED: tuple[Any, ...] = (
    "u1", "i1", "<i2", ">i4", "<i8", ">u8", "<f4", ">f8", "<f2", "?", "<c8", "S7",
    np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")]),
    np.dtype([("x", "<f4", (3,)), ("n", [("i", "u1"), ("j", ">i2")])]),
    h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i2"),
    np.dtype("V5"),
)  # fmt: skip


def random_type(rng: Rng) -> Type:
    """Return a type: fixed size mostly, variable length now and then."""
    kind = rng.random()
    if kind < 0.08:
        return cast(Type, h5py.string_dtype())
    if kind < 0.14:
        return cast(Type, h5py.vlen_dtype(np.dtype("<i4")))
    return cast(Type, np.dtype(_FIXED[int(rng.integers(len(_FIXED)))]))


def values(rng: Rng, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` with random values; random bytes where the type takes any."""
    count = int(np.prod(shape, dtype=np.int64))
    if h5py.check_string_dtype(dtype) is not None and dtype.kind == "O":
        words = np.array(["x" * int(n) + "é" for n in rng.integers(0, 40, count)] or [""], dtype=object)
        return words[:count].reshape(shape)
    if h5py.check_vlen_dtype(dtype) is not None:
        lists = np.empty(count, dtype=object)
        for i in range(count):
            lists[i] = rng.integers(-1000, 1000, int(rng.integers(0, 9)), dtype="<i4")
        return lists.reshape(shape)
    if h5py.check_enum_dtype(dtype):
        return rng.choice(np.array([0, 1, 42], dtype="i2"), shape).astype(dtype)
    if dtype == np.dtype("?"):
        return rng.integers(0, 2, shape).astype("?")
    if dtype.kind in "fc":
        return (rng.random(shape) * 1e3).astype(dtype)
    if dtype.kind == "S":
        texts = np.array([b"ab\x01cdefg"[: int(n)] for n in rng.integers(0, 8, count)], dtype=dtype)
        return texts.reshape(shape)
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype=dtype).reshape(shape).copy()
