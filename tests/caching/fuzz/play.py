"""Runs one random HDF5 program, told by its seed alone, and returns what it saw.

The same seed does the same to a file whether the connector is loaded or not; what a read, a listing or an
error said goes into the digest.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.caching.fuzz.selections import random_selection
from tests.caching.fuzz.types import Rng, random_type, values

#: Seconds for which a file must be unchanged before the connector copies it, in these tests: longer than a
#: tick of the kernel's clock, so that a later change is sure to change the file's times.
QUIET = 0.02


def told(value: Any) -> bytes:
    """Return bytes that are equal exactly when two read values are."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return b"|".join([str(value.shape).encode(), *(told(v) for v in value.ravel())])
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    return repr(value).encode(errors="backslashreplace")


def holds_references(dtype: np.dtype[Any]) -> bool:
    """Tell references from strings and sequences of variable length, which are NumPy objects too."""
    return h5py.check_ref_dtype(dtype) is not None


class Player:
    """The state of one program: its file, and a digest of what it has seen so far."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng: Rng = np.random.default_rng(seed)
        self.path = folder / f"{seed}.h5"
        self.digest = hashlib.sha256()
        self.trail: list[str] = []
        self.made = 0
        libver = ("earliest", "latest")[int(self.rng.random() < 0.2)]
        self.how: dict[str, Any] = {"libver": libver}
        if self.rng.random() < 0.1:
            self.how["rdcc_nbytes"] = 4096
        options: dict[str, Any] = {}
        kind = self.rng.random()
        if kind < 0.1:
            options["userblock_size"] = 512
        elif kind < 0.2:
            options |= {"fs_strategy": "page", "fs_page_size": 4096}
        self.file = h5py.File(self.path, "w", **self.how, **options)

    def see(self, what: str, value: Any) -> None:
        self.trail.append(what)
        self.digest.update(what.encode() + b"=" + told(value) + b";")

    def datasets(self) -> list[str]:
        found: list[str] = []
        self.file.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset) else None)
        return sorted(name for name in found if not holds_references(self.file[name].dtype))

    def pick(self) -> h5py.Dataset | None:
        names = self.datasets()
        return self.file[names[int(self.rng.integers(len(names)))]] if names else None

    # What a program may do. Each draws from the same random numbers in either run.

    def create(self) -> None:
        rng, name = self.rng, f"d{self.made}"
        self.made += 1
        dtype = random_type(rng)
        shape = tuple(int(n) for n in rng.integers(0, 40, int(rng.integers(0, 4))))
        options: dict[str, Any] = {}
        layout = rng.random()
        full = bool(shape) and min(shape) > 0
        if full and layout < 0.45:
            options["chunks"] = tuple(int(rng.integers(1, n + 1)) for n in shape)
            if layout < 0.15:
                options["compression"] = "gzip"
            if layout < 0.10:
                options["shuffle"] = True
            if rng.random() < 0.2:
                options["fletcher32"] = True
            if rng.random() < 0.5:
                options["maxshape"] = tuple(None if rng.random() < 0.5 else n + 9 for n in shape)
        elif full and layout < 0.52 and dtype.kind != "O":
            size = int(np.prod(shape)) * dtype.itemsize
            options["external"] = [(f"{self.path.stem}.{name}.raw", 0, size)]  # in the worker's folder
        if rng.random() < 0.2 and dtype.kind in "iuf":
            options["fillvalue"] = dtype.type(7)
        if rng.random() < 0.3:  # large enough to be staged whatever the thresholds
            shape = (int(rng.integers(20_000, 120_000)),) if not options and dtype.kind != "O" else shape
        data = values(rng, dtype, shape) if rng.random() < 0.6 else None
        if data is None and not options.keys() & {"chunks", "external"}:
            options["fill_time"] = "alloc"  # else HDF5 leaves there what the space held before: anything
        where = self.file.require_group(f"g{int(rng.integers(3))}") if rng.random() < 0.4 else self.file
        where.create_dataset(name, shape=shape, dtype=dtype, data=data, **options)

    def write(self) -> None:
        if (d := self.pick()) is None or d.shape is None:
            return
        selection = random_selection(self.rng, d.shape)
        shape = d[selection].shape if d.shape else ()
        dtype = d.dtype
        if dtype.kind in "iuf" and self.rng.random() < 0.3:
            data: Any = (self.rng.random(shape) * 100).astype("f8")  # converted on its way
        else:
            data = values(self.rng, dtype, shape)
        d[selection] = data if shape else data[()]

    def read(self) -> None:
        if (d := self.pick()) is None:
            return
        self.see(f"read {d.name}", d[random_selection(self.rng, d.shape)])

    def read_part(self) -> None:
        if (d := self.pick()) is None or len(d.shape) != 1 or d.shape[0] < 4 or d.dtype.kind not in "iuf":
            return
        out = np.zeros(d.shape[0] * 2, "f8")
        start = int(self.rng.integers(d.shape[0] // 2))
        d.read_direct(out, np.s_[start : d.shape[0]], np.s_[0 : 2 * (d.shape[0] - start) : 2])
        self.see(f"read_direct {d.name}", out)

    def resize(self) -> None:
        d = self.pick()
        if d is None or not d.maxshape or d.maxshape == d.shape:
            return
        grow = [int(self.rng.integers(0, n + 12)) for n in d.shape]
        d.resize([min(g, m) if m is not None else g for g, m in zip(grow, d.maxshape, strict=True)])

    def attributes(self) -> None:
        where = self.pick() or self.file
        name, length = f"a{int(self.rng.integers(4))}", int(self.rng.integers(1, 50))
        where.attrs[name] = values(self.rng, np.dtype("<f8"), (length,))
        self.see("attrs", sorted((k, told(v)) for k, v in where.attrs.items()))

    def links(self) -> None:
        names = self.datasets()
        if not names:
            return
        name, kind = names[int(self.rng.integers(len(names)))], int(self.rng.integers(5))
        self.made += 1
        if kind == 0:
            del self.file[name]
        elif kind == 1:
            self.file.move(name, f"moved{self.made}")
        elif kind == 2:
            self.file.copy(name, f"copy{self.made}")
        elif kind == 3:
            self.file[f"soft{self.made}"] = h5py.SoftLink("/" + name)
        else:
            self.file[f"hard{self.made}"] = self.file[name]
        self.see("names", sorted(self.file))

    def virtual(self) -> None:
        names = [
            n
            for n in self.datasets()
            if self.file[n].dtype == np.dtype("u1") and len(self.file[n].shape) == 1
        ]
        if not names or not (length := self.file[names[0]].shape[0]):
            return
        layout = h5py.VirtualLayout((length,), dtype="u1")
        layout[...] = h5py.VirtualSource(".", names[0], shape=(length,))
        self.made += 1
        self.see("virtual", self.file.create_virtual_dataset(f"v{self.made}", layout)[...])

    def references(self) -> None:
        if (d := self.pick()) is None:
            return
        self.made += 1
        refs = self.file.create_dataset(f"r{self.made}", (2,), dtype=h5py.ref_dtype)
        refs[0] = d.ref
        refs[1] = self.file.ref  # else HDF5 leaves there what the space held before
        self.see("reference", self.file[refs[0]].name)

    def flush(self) -> None:
        self.file.flush()

    def fork(self) -> None:
        """A child that inherits the open file, looks at it and leaves without a word."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if (d := self.pick()) is not None:
                    d[random_selection(self.rng, d.shape)]
                code = 0
            finally:
                os._exit(code)
        self.see("child", os.waitpid(child, 0)[1])

    def reopen(self) -> None:
        self.file.close()
        if self.rng.random() < 0.5:
            self.look(epochs=2)
        self.file = h5py.File(self.path, "r+", **self.how)

    def look(self, epochs: int) -> None:
        """Read only, several times over: what is cached must be what was written."""
        if "HDF5_VOL_CONNECTOR" in os.environ:
            time.sleep(QUIET * 1.5)
        with h5py.File(self.path, "r", **self.how) as self.file:
            for _ in range(epochs):
                for _ in range(4):
                    self.read()
                if self.rng.random() < 0.1:
                    self.fork()

    def play(self) -> str:
        """Run the whole program; returns a digest of all that it saw."""
        actions: list[Callable[[], None]] = [
            self.create, self.create, self.write, self.write, self.write, self.read, self.read_part,
            self.resize, self.attributes, self.links, self.virtual, self.references, self.flush,
            self.reopen,
        ]  # fmt: skip
        for _ in range(int(self.rng.integers(8, 30))):
            action = actions[int(self.rng.integers(len(actions)))]
            if self.rng.random() < 0.01:
                action = self.fork
            try:
                action()
            except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
                text = str(error).replace(str(self.path.parent), "")
                self.see(f"{action.__name__} failed", f"{type(error).__name__}: {text}")
                if not self.file:
                    self.file = h5py.File(self.path, "r+", **self.how)
        self.file.close()
        self.look(epochs=3)
        return self.digest.hexdigest()


def contents(path: Path) -> str:
    """Return a digest of everything that plain HDF5 finds in a file: names, types, values, attributes."""
    digest = hashlib.sha256()
    with h5py.File(path, "r") as file:

        def visit(name: str, item: Any) -> None:
            digest.update(name.encode() + str(type(item)).encode())
            for key in sorted(item.attrs):
                digest.update(key.encode() + told(item.attrs[key]))
            if isinstance(item, h5py.Dataset):
                plist = item.id.get_create_plist()
                facts = (item.shape, item.maxshape, item.chunks, item.compression, plist.get_alloc_time())
                digest.update(f"{item.dtype}{facts}".encode())
                if holds_references(item.dtype):
                    digest.update(str([bool(r) for r in item[...]]).encode())
                else:
                    digest.update(told(item[...]))

        file.visititems(visit)
        digest.update(str(sorted(file)).encode())
    return digest.hexdigest()
