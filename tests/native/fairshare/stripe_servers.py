"""Several servers that stripe files, each of which a test can kill and start again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection, Job, client_environment
from tiercel.layers.fairshare.server import end

from .conftest import PREFIX

#: Bytes of a stripe: small, so that small files have many.
STRIPE = 8192
HEAD = f"import errno, os, random, sys, time\nROOT = {PREFIX!r}\nSTRIPE = {STRIPE}\n"


class Servers:
    """`count` servers below `place`, with one key; clients stripe new files over all of them."""

    def __init__(self, programs: Programs, place: Path, count: int = 3, ports: Sequence[int] = ()) -> None:
        """`ports`: clients reach the servers by TCP there, else by Unix sockets."""
        self.programs = programs
        self.ports = ports
        self.data = [place / str(n) for n in range(count)]
        self.key = place / "key"
        self.key.write_bytes(os.urandom(32))
        self.key.chmod(0o600)
        self.processes: list[subprocess.Popen[str] | None] = [None] * count
        for n in range(count):
            self.start(n)

    def start(self, n: int, *more: str) -> None:
        log = (self.data[0].parent / f"log{n}").open("a")
        process = subprocess.Popen(
            [str(self.programs.server), "--data", str(self.data[n]), "--socket",
             str(self.socket(n)), "--key", str(self.key),
             "--stripe", str(STRIPE), *self._listen(n), *more],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        log.close()
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        self.processes[n] = process

    def socket(self, n: int) -> Path:
        return self.data[n].with_suffix(".socket")

    def _listen(self, n: int) -> list[str]:
        return ["--listen", f"127.0.0.1:{self.ports[n]}"] if self.ports else []

    def kill(self, n: int) -> None:
        """kill -9: nothing is written back or said to anybody."""
        process = self.processes[n]
        assert process is not None
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
        self.processes[n] = None

    def stop(self) -> None:
        for process in self.processes:
            if process:
                end(process)

    def environment(self, patience: int = 20, only: int | None = None) -> dict[str, str]:
        chosen = range(len(self.data)) if only is None else [only]
        ticket = None
        if self.ports:
            with Connection(self.socket(0)) as connection:
                ticket = connection.ticket(Job("remote"))  # the key is the same everywhere
            addresses = [f"tcp:127.0.0.1:{self.ports[n]}" for n in chosen]
        else:
            addresses = [str(self.socket(n)) for n in chosen]
        extra = client_environment(self.programs.library, PREFIX, ",".join(addresses), ticket)
        return {**os.environ, **extra, "FAIRSHARE_PATIENCE": str(patience)}

    def popen(self, code: str, *arguments: str, patience: int = 20, **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [sys.executable, "-c", HEAD + code, *arguments], env=self.environment(patience), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
        )  # fmt: skip

    def python(self, code: str, *arguments: str, patience: int = 20, **more: object) -> str:
        """Run Python code with ROOT as the served folder; its output. Fails with its traceback."""
        options = {"env": self.environment(patience), "cwd": self.data[0], **more}
        done = subprocess.run(  # type: ignore[call-overload]
            [sys.executable, "-c", HEAD + code, *arguments], capture_output=True, text=True,
            timeout=240, check=False, **options,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    def bash(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", f"ROOT={PREFIX}\n{script}"], env=self.environment(), cwd=self.data[0],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def home(self, name: str) -> int:
        """Which server has the first name of a path."""
        (found,) = (n for n, data in enumerate(self.data) if (data / "tree" / name).exists())
        return found

    def objects(self, n: int) -> list[Path]:
        """Pieces of files that server `n` keeps, and notes of files that are gone."""
        return [path for path in (self.data[n] / "stripes").iterdir() if path.name != "home"]


@contextmanager
def striping(programs: Programs, count: int = 3, ports: Sequence[int] = ()) -> Iterator[Servers]:
    # A short path: those of sockets are limited.
    with TemporaryDirectory(prefix="stripes-") as place:
        Path(place).chmod(0o755)
        servers = Servers(programs, Path(place), count, ports)
        try:
            yield servers
        finally:
            servers.stop()
