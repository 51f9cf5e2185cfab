"""A server of its own for each test that asks for one, and programs that run through it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tiercel.layers.fairshare.programs import Programs, find_programs
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated
from tiercel.layers.fairshare.server import Server, running_server


@pytest.fixture(scope="session")
def programs() -> Programs:
    found = find_programs()
    if found is None:
        pytest.skip("the fairshare layer is not built: run `make layers`, which needs Rust's cargo")
    return found


def needs_mount() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine has no usable /dev/fuse")
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        pytest.skip("mounting without root needs fusermount3 (package fuse3)")


@dataclass
class Share:
    """A server, and a mount of its files at `root` by which programs use them."""

    programs: Programs
    server: Server
    root: Path
    accelerate: bool = False

    @property
    def tree(self) -> Path:
        return self.server.tree

    def environment(self) -> dict[str, str]:
        return {**os.environ, **(accelerated(self.programs.library, self.root) if self.accelerate else {})}

    @contextmanager
    def job(self, job: Job) -> Iterator[Callable[[], None]]:
        """What a child calls before it starts a program, whose requests then count to the job."""
        with Connection(self.server.socket) as connection:
            ticket = connection.ticket(job)
        with Connection(self.server.socket, ticket) as connection:
            yield lambda: connection.join(os.getpid())

    def jobs(self) -> dict[str, Any]:
        with Connection(self.server.socket) as connection:
            return {row["job"]: row for row in connection.status()["jobs"]}

    def start(self, argv: Sequence[str], **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [str(a) for a in argv], env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
        )  # fmt: skip

    def run(
        self, *argv: str, timeout: float = 240, job: Job | None = None, **more: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a program beside the served folder; `env`, `user` and the like as subprocess has them."""
        options = {
            "env": self.environment(), "cwd": self.server.data, "capture_output": True, "text": True, **more,
        }  # fmt: skip
        with ExitStack() as stack:
            if job:
                options["preexec_fn"] = stack.enter_context(self.job(job))
            return subprocess.run(  # type: ignore[call-overload,no-any-return]
                [str(a) for a in argv], timeout=timeout, check=False, **options
            )

    def python(self, code: str, *arguments: str, **more: object) -> str:
        """Run Python code with ROOT as the served folder; its output. Fails with its traceback."""
        head = f"import os, sys\nROOT = {str(self.root)!r}\n"
        done = self.run(sys.executable, "-c", head + code, *arguments, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def bash(self, script: str, **more: object) -> str:
        """Run a shell script with $ROOT as the served folder; its output."""
        done = self.run("bash", "-euc", f"ROOT={self.root}\n{script}", **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def serve(programs: Programs, tmp_path: Path) -> Iterator[Callable[..., Share]]:
    """Start servers, each with a mount: serve("--policy", "job-fair", data=...)."""
    needs_mount()
    with ExitStack() as stack:
        count = 0

        def start(*options: str, data: Path | None = None) -> Share:
            nonlocal count
            count += 1
            place, mount = data or tmp_path / f"data{count}", tmp_path / f"mount{count}"
            mount.mkdir()
            server = stack.enter_context(
                running_server(programs, place, options, tmp_path / f"log{count}", mount=mount)
            )
            return Share(programs, server, mount)

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
        let_through(share.root.parent)
        return share

    return start


@pytest.fixture
def open_to_all_or_own(serve: Callable[..., Share], request: pytest.FixtureRequest) -> Share:
    """A server that all users reach where we are root, else one of our own."""
    return request.getfixturevalue("open_to_all")() if os.geteuid() == 0 else serve()
