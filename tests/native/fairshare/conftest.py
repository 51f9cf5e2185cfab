"""A server of its own for each test that asks for one, and programs that run through it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tiercel.layers.fairshare.programs import Programs, find_programs
from tiercel.layers.fairshare.protocol import Connection, Job, client_environment
from tiercel.layers.fairshare.server import Server, running_server

PREFIX = "/fairshare-test"


@pytest.fixture(scope="session")
def programs() -> Programs:
    found = find_programs()
    if found is None:
        pytest.skip("the fairshare layer is not built: run `make layers`, which needs Rust's cargo")
    return found


@dataclass
class Share:
    """A server, and the ways to run a program that sees its files below PREFIX."""

    programs: Programs
    server: Server
    patience: int = 20

    @property
    def tree(self) -> Path:
        return self.server.tree

    def environment(self, job: Job | None = None, server: str | None = None) -> dict[str, str]:
        ticket = None
        if job:
            with Connection(self.server.socket) as connection:
                ticket = connection.ticket(job)
        extra = client_environment(self.programs.library, PREFIX, server or str(self.server.socket), ticket)
        return {**os.environ, **extra, "FAIRSHARE_PATIENCE": str(self.patience)}

    def start(self, argv: Sequence[str], **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [str(a) for a in argv], env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
        )  # fmt: skip

    def run(self, *argv: str, timeout: float = 240, **more: object) -> subprocess.CompletedProcess[str]:
        """Run a program beside the served folder; `env`, `user` and the like as subprocess has them."""
        options = {
            "env": self.environment(), "cwd": self.server.data, "capture_output": True, "text": True, **more,
        }  # fmt: skip
        return subprocess.run([str(a) for a in argv], timeout=timeout, check=False, **options)  # type: ignore[call-overload,no-any-return]

    def python(self, code: str, *arguments: str, **more: object) -> str:
        """Run Python code with ROOT as the served folder; its output. Fails with its traceback."""
        head = f"import os, sys\nROOT = {PREFIX!r}\n"
        done = self.run(sys.executable, "-c", head + code, *arguments, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def bash(self, script: str, **more: object) -> str:
        """Run a shell script, its shell included, with $ROOT as the served folder; its output."""
        done = self.run("bash", "-euc", f"ROOT={PREFIX}\n{script}", **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def serve(programs: Programs, tmp_path: Path) -> Iterator[Callable[..., Share]]:
    """Start servers: serve("--policy", "job-fair", data=...)."""
    with ExitStack() as stack:
        count = 0

        def start(*options: str, data: Path | None = None) -> Share:
            nonlocal count
            count += 1
            place = data or tmp_path / f"data{count}"
            server = stack.enter_context(running_server(programs, place, options, tmp_path / f"log{count}"))
            return Share(programs, server)

        yield start


@pytest.fixture
def share(serve: Callable[..., Share]) -> Share:
    return serve()


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as several users")


def let_through(path: Path) -> None:
    """Let all users pass the folders on the way to what lies in `path`."""
    for folder in (path, *path.parents):
        if folder != folder.parent and not os.stat(folder).st_mode & stat.S_IXOTH:
            os.chmod(folder, os.stat(folder).st_mode | stat.S_IXOTH)


@pytest.fixture
def open_to_all(serve: Callable[..., Share], as_root: None) -> Callable[..., Share]:
    """Start servers of root that all users reach."""

    def start(*options: str, data: Path | None = None) -> Share:
        share = serve(*options, data=data)
        let_through(share.server.socket.parent)
        return share

    return start


@pytest.fixture
def open_to_all_or_own(serve: Callable[..., Share], request: pytest.FixtureRequest) -> Share:
    """A server that all users reach where we are root, else one of our own."""
    return request.getfixturevalue("open_to_all")() if os.geteuid() == 0 else serve()
