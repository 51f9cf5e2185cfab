"""What trials of decisions put in the way of a study that knows nothing of it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tiercel.errors import UserError
from tiercel.programs import program

_BURN = """
import random, sys, time
draw = random.Random(float(sys.argv[1])); a = bytearray(64 << 20)
while True:
    end = time.monotonic() + draw.uniform(1, 5)
    while time.monotonic() < end: b = bytes(a)
    time.sleep(draw.uniform(1, 5))
"""
_WRITE = """
import mmap, os, sys
block = mmap.mmap(-1, 1 << 20); file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
while True:
    for at in range(24): os.pwrite(file, block, at << 20)
"""
#: Instead of iokernel: its arguments name the run's folder, and that ends in ``.r<round>-<hash>``.
_INSTEAD = """#!/bin/sh
there=
case "$*" in *{where}/*) there=yes;; esac
round=$(expr "$*" : '.*\\.r\\([0-9]*\\)[a-z]*-[0-9a-f]*/')
case " {rounds} " in *" $round "*) ;; *) there=;; esac
if [ -z "$there" ]; then exec {engine} "$@"; fi
echo "$round" >> {log}
{then}
"""


@contextmanager
def burning(seed: float) -> Iterator[None]:
    """Burn a processor and its memory's bandwidth in half of the time, a few seconds on and off."""
    process = subprocess.Popen([sys.executable, "-c", _BURN, str(seed)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def writer_beside(folder: Path, mount: Path, rounds: Collection[int]) -> Mapping[str, str]:
    """Return the environment of a study in which, in these rounds, another program writes to `mount` as long
    as a run reads or writes there. `folder`: for what that takes."""
    write = shlex.join([sys.executable, "-c", _WRITE, str(mount / "other")])
    then = (
        f'{write} & other=$!\n{{engine}} "$@"; code=$?\nkill -9 $other; wait $other 2>/dev/null; exit $code'
    )
    return _instead(folder, mount, rounds, then)


def sessions_shared(folder: Path, mount: Path, rounds: Collection[int]) -> Mapping[str, str]:
    """Return the environment of a study in which, in these rounds, the processes of a run on `mount` share a
    session, and so what the scheduler gives one session; in all others each has its own."""
    return _instead(folder, mount, rounds, 'exec {engine} --session shared "$@"')


def _instead(folder: Path, mount: Path, rounds: Collection[int], then: str) -> Mapping[str, str]:
    engine = program("iokernel")
    if engine is None:
        raise UserError("iokernel is not built: make setup")
    folder.mkdir()
    script, path = folder / "iokernel", shlex.quote(str(engine))
    script.write_text(
        _INSTEAD.format(
            where=shlex.quote(str(mount)), rounds=" ".join(map(str, rounds)), engine=path,
            log=shlex.quote(str(folder / "log")), then=then.format(engine=path),
        )
    )  # fmt: skip
    script.chmod(0o755)
    return {"TIERCEL_STACK": str(folder)}
