"""The user who is attacked: again and again a new process reads and writes HDF5 files with the connector.

Run by the campaign as root; becomes the victim once all is imported, who may not read the sources.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

#: Seconds for a round, after which it counts as one that hangs.
PATIENCE_S = 60.0
#: Elements of the file that all may read; its value at a place is the place.
SHARED = 64 << 10


def reads(base: Path, secret: bytes) -> bool:
    """What it reads is what is there, from the file and from its copy."""
    with h5py.File(base / "shared.h5", "r") as file:
        return all(np.array_equal(file["x"][:], np.arange(SHARED)) for _ in range(2))


def writes(base: Path, secret: bytes) -> bool:
    """What it writes for itself alone is there afterwards."""
    wanted = np.frombuffer(secret * 8192, np.uint8)
    with h5py.File(base / "private.h5", "w") as file:
        file["x"] = wanted
    with h5py.File(base / "private.h5", "r") as file:
        return np.array_equal(file["x"][:], wanted)


def is_killed(base: Path, secret: bytes) -> bool:
    """What was flushed before a kill is there when the file is opened again."""
    wanted = np.frombuffer(secret * 4096, np.uint8)
    path = base / "killed.h5"
    if not (pid := os.fork()):
        file = h5py.File(path, "w")
        file["x"] = wanted
        file.flush()
        file["y"] = wanted
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    with h5py.File(path, "r") as file:
        return np.array_equal(file["x"][:], wanted)


def one_round(act: Callable[[Path, bytes], bool], base: Path, storage: Path, secret: bytes) -> str:
    """Do it in a child: how it ended, in words."""
    if not (pid := os.fork()):
        os.environ["HDF5_CACHE_STORAGE_PATH"] = str(storage)
        code = 1
        try:
            code = 0 if act(base, secret) else 2
        except Exception as error:
            print(f"{act.__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    until = time.monotonic() + PATIENCE_S
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"{act.__name__} hangs"
        time.sleep(0.005)
    names = {0: "served", 256: f"{act.__name__} fails", 512: f"{act.__name__} gets other data"}
    return names.get(status, f"{act.__name__} ends with {status}")


def main() -> None:
    user, base, seed, *storages = sys.argv[1:]
    secret = os.environ.pop("SECRET").encode()
    rng = random.Random(seed)
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
    os.umask(0o077)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        # A program that is killed leaves nothing to be finished where nothing is staged.
        storage = rng.choice(storages)
        acts = [reads, writes, is_killed] if storage == storages[0] else [reads, writes]
        print(one_round(rng.choice(acts), Path(base), Path(storage), secret), flush=True)


if __name__ == "__main__":
    main()
