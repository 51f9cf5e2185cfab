"""A real server of objects: Versity's gateway over a folder of the test's, and what its access log says."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tiercel.programs import program
from tiercel.s3.client import Client
from tiercel.s3.endpoint import Credentials, Endpoint

KEY, SECRET = "only-for-tests", "gateway-secret-of-the-tests"
CREDENTIALS = Credentials(KEY, SECRET)
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
_PATIENCE_S = 30

needs_gateway = pytest.mark.skipif(
    program("versitygw") is None, reason="versitygw is not installed (make gateway)"
)


#: A line of the access log: s3_ACTION KEY TARGET STATUS. (It counts no bytes of objects that it sends.)
_LINE = re.compile(r" s3_(?P<action>\w+) (?P<key>.*?) /\S* (?P<status>\d+) ")


@dataclass(frozen=True)
class Request:
    """What the server was asked for. `action` as it calls it: GetObject."""

    action: str
    key: str
    status: int


@dataclass(frozen=True)
class Gateway:
    """A running server with a bucket, `data`, whose objects are the files in `folder`."""

    port: int
    folder: Path
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.url)

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL": self.url}

    def client(self) -> Client:
        return Client(self.endpoint, "data", CREDENTIALS)

    def requests(self, action: str = "", key: str = "") -> list[Request]:
        """Return what was asked for so far: requests of an action, of keys that begin so."""
        every = (
            Request(m["action"], m["key"], int(m["status"])) for m in _LINE.finditer(self.log.read_text())
        )
        return [one for one in every if action in ("", one.action) and one.key.startswith(key)]

    def objects(self, below: str = "") -> dict[str, int]:
        """Return what lies in the bucket below a prefix, with its bytes."""
        files = sorted(p for p in (self.folder / below).rglob("*") if p.is_file())
        names = {str(p.relative_to(self.folder)): p.stat().st_size for p in files}
        return {name: size for name, size in names.items() if not name.startswith(".")}


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a server for the tests of this process; skip where it is not installed, or cannot store tags."""
    with serving(tmp_path_factory.mktemp("gateway")) as server:
        yield server


@contextmanager
def serving(base: Path, *options: str) -> Iterator[Gateway]:
    """Run a server over a folder in `base`."""
    server = program("versitygw")
    if server is None:
        pytest.skip("versitygw is not installed (make gateway)")
    folder, log = base / "root" / "data", base / "access.log"
    folder.mkdir(parents=True)
    try:
        os.setxattr(folder, "user.tiercel-test", b"1")
    except OSError:
        pytest.skip("this file system has no extended attributes, which versitygw needs (make gateway)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "ROOT_ACCESS_KEY_ID": KEY, "ROOT_SECRET_ACCESS_KEY": SECRET}
    argv = [str(server), "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet", "--access-log", str(log),
            *options, "posix", str(folder.parent)]  # fmt: skip
    with (base / "said").open("wb") as said:
        process = subprocess.Popen(argv, stdout=said, stderr=said, env=environment)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.02)
        else:
            pytest.fail(f"versitygw does not start: {(base / 'said').read_text()[-500:]}")
        yield Gateway(port, folder, log)
    finally:
        process.terminate()
        process.wait()
