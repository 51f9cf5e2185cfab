"""Programs that change HDF5 files in many ways until they are killed, and what must be there afterwards.

Each program tells on standard output what has been acknowledged: ``all NAME VALUE`` a dataset whose every
element is VALUE, ``gone NAME`` one that was deleted, ``rows NAME COUNT`` the least length after a flush.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tiercel.layers.cachevol import throttle

from .conftest import Node

_HEAD = """
import random
chance, format = random.Random({seed}), {format!r}
def tell(*words): print(*words, flush=True)
"""

PROGRAMS = {
    "datasets": """
with h5py.File("f.h5", "w", libver=format) as f:
    for i in range(400):
        f.create_dataset(f"d{i}", data=np.full(20_000, i, "<i8"))
        tell("all", f"d{i}", i)
""",
    "groups": """
with h5py.File("f.h5", "w", libver=format) as f:
    for i in range(4000):
        g = f.create_group(f"g{i % 37}/h{i}")
        for k in range(chance.randrange(4)):
            g.attrs[f"a{k}"] = "x" * chance.randrange(3000)
        if i % 3 == 0:
            g.create_dataset("d", data=np.full(10_000, i, "<i8"))
            tell("all", f"g{i % 37}/h{i}/d", i)
""",
    "growing": """
with h5py.File("f.h5", "w", libver=format) as f:
    datasets = [
        f.create_dataset(f"d{i}", (0, 500), "<i8", maxshape=(None, 500), chunks=(20, 500), compression=c)
        for i, c in enumerate(["gzip", None, "lzf"] * 10)
    ]
    for r in range(300):
        for i, d in enumerate(datasets):
            d.resize(len(d) + 13, 0)
            d[-13:] = np.random.default_rng(r * i).integers(0, 99, (13, 500))
            if chance.random() < 0.02:
                f.flush()
                tell("rows", f"d{i}", len(d))
""",
    "deleting": """
with h5py.File("f.h5", "w", libver=format) as f:
    names = []
    for i in range(3000):
        if names and chance.random() < 0.45:
            name = names.pop(chance.randrange(len(names)))
            tell("gone", name)
            del f[name]
        name, size, kind = f"d{i}", chance.choice([3000, 20_000, 90_000]), chance.random()
        if kind < 0.5:
            f.create_dataset(name, data=np.full(size, i, "<i8"))
            if size > 3000:
                tell("all", name, i)
        elif kind < 0.8:
            f.create_dataset(name, data=np.full(size, i, "<i8"), chunks=(3000,), compression="gzip")
        else:
            f.create_dataset(name, data=["abc" * chance.randrange(99)] * (size // 99))
        names.append(name)
        if chance.random() < 0.1:
            f[chance.choice(names)].attrs["k"] = np.arange(chance.randrange(400))
""",
    "reopening": """
for k in range(200):
    with h5py.File("f.h5", "a", libver=format) as f:
        for j in range(3):
            f.create_dataset(f"k{k}_{j}", data=np.full(chance.choice([50, 20_000]), k, "<i8"))
            f.attrs[f"k{k}_{j}"] = k
            if k > 5 and chance.random() < 0.3 and f"k{k - 3}_{j}" in f:
                tell("gone", f"k{k - 3}_{j}")
                del f[f"k{k - 3}_{j}"]
    for j in range(3):
        tell("all", f"k{k}_{j}", k)
""",
    "updating": """
with h5py.File("f.h5", "w", libver=format) as f:
    for i in range(8):
        f[f"d{i}"] = np.full(500_000, i, "<i8")
tell("all", "d7", 7)
with h5py.File("f.h5", "r+", libver=format) as f:
    for r in range(1, 400):
        f[f"d{r % 7}"][...] = r
        if r % 5 == 0:
            f[f"d{r % 7}"].attrs[f"r{r}"] = "y" * chance.randrange(5000)
""",
}


def slow(node: Node, rate: int) -> dict[str, str]:
    """Environment that makes the base storage slow, so that data are still staged when the kill comes."""
    library = throttle()
    assert library is not None
    return {
        "LD_PRELOAD": str(library),
        "CACHEVOL_THROTTLE_FOLDER": str(node.base),
        "CACHEVOL_THROTTLE_RATE": str(rate),
    }


def end_with_kill(child: subprocess.Popen[str], after_lines: int, delay: float) -> list[str]:
    """Kill a program some time after it told its first lines; return all that it told."""
    assert child.stdout is not None
    seen = [child.stdout.readline() for _ in range(after_lines)]
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read()
    child.communicate()
    whole = ("".join(seen) + rest).split("\n")[:-1]  # a line cut off by the kill was not told
    return [line for line in whole if line]


def kill_at_random(node: Node, name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a program on a storage of some speed, kill it at some time; return what it told."""
    chance = random.Random(seed)
    with monkeypatch.context() as patch:
        for variable, value in slow(node, chance.choice([8, 20, 100]) * 10**6).items():
            patch.setenv(variable, value)
        head = _HEAD.format(seed=seed, format=chance.choice(["earliest", "earliest", "latest"]))
        child = node.start(head + PROGRAMS[name], adaptive=chance.random() < 0.5)
    return end_with_kill(child, 1, chance.random() ** 2 * 1.2)


def check(path: Path, told: list[str]) -> None:
    """Assert that the file opens, reads whole, holds what was acknowledged, and can be written to again."""
    lines = [line.split() for line in told]
    if all(line.startswith("gone") for line in told):
        return  # killed before anything was promised: a new file may be empty, or no file of HDF5's yet
    gone = {words[1] for words in lines if words[0] == "gone"}
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, item: item[...] is None if isinstance(item, h5py.Dataset) else None)
        for kind, name, *value in lines:
            if kind == "all" and name not in gone:
                assert np.unique(file[name][...]).tolist() == [int(value[0])], name
            elif kind == "rows":
                assert len(file[name]) >= int(value[0]), name
    with h5py.File(path, "r+") as file:
        file["after"] = np.arange(10)
