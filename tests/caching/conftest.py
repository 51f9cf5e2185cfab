"""Running small HDF5 programs with the connector on, as users do: by environment variables alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tiercel.layers.cachevol import connector, log_program, settings

needs_connector = pytest.mark.skipif(
    connector() is None or log_program() is None, reason="cachevol is not built (make layers builds it)"
)

#: Settings under which the connector stages and copies all it can, at once.
EAGER: dict[str, bool | int | float | str] = {"adaptive": False, "quiet": 0}


#: What every program begins with. `copied(size)` waits until the copies hold so many bytes: they are made in
#: the background, and how soon is the machine's matter (from 8192, a map has a word a block, 0 without it).
_HEAD = """
import contextlib, glob, h5py, numpy as np, os, signal, sys, time

def copied(size):
    for _ in range(6000):
        maps = glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/read/*/map")
        words = []
        for m in maps:
            with contextlib.suppress(FileNotFoundError):  # it has just been evicted
                words.append(np.frombuffer(open(m, "rb").read()[8192:], "u8"))
        if sum(4096 * np.count_nonzero(w) for w in words) >= size:
            return
        time.sleep(0.01)
    sys.exit("the copies do not hold what was read")

"""


class Node:
    """A node-local folder and a base storage, and programs that run on them."""

    def __init__(self, folder: Path) -> None:
        self.local, self.base = folder / "local", folder / "base"
        self.stats_file = folder / "stats"
        self.local.mkdir()
        self.base.mkdir()

    def environment(self, **options: Any) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
        return plain | settings(self.local, {**EAGER, "stats": str(self.stats_file), **options})

    def start(
        self, program: str, wrap: tuple[str, ...] = (), extra: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a Python program with the connector, in `base`; `extra` joins its environment."""
        return subprocess.Popen(
            [*wrap, sys.executable, "-c", _HEAD + dedent(program)], cwd=self.base, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(**options) | (extra or {}),
        )  # fmt: skip

    def run(
        self,
        program: str,
        wrap: tuple[str, ...] = (),
        extra: dict[str, str] | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        child = self.start(program, wrap, extra, **options)
        out, err = child.communicate(timeout=120)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def good(self, program: str, wrap: tuple[str, ...] = (), **options: Any) -> str:
        """Run a program that must end well; return what it printed."""
        done = self.run(program, wrap, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def counts(self) -> dict[str, int]:
        """Return the counts of the program that ended last."""
        found: dict[str, int] = json.loads(self.stats_file.read_text().splitlines()[-1])
        return found

    @property
    def logs(self) -> list[Path]:
        return sorted((self.local / f"cachevol-{os.geteuid()}" / "logs").glob("*"))

    @property
    def copies(self) -> list[Path]:
        return sorted((self.local / f"cachevol-{os.geteuid()}" / "read").glob("*"))

    @property
    def markers(self) -> list[Path]:
        return sorted(self.base.glob(".*.cachevol"))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)
