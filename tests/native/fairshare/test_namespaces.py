"""User namespaces: who says there that he is another is himself to the server; who is unknown is nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.attacks.fairshare import namespaces

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection

from .conftest import Share, let_through
from .users import ALICE, BOB, ROOT_OF_TESTS, act

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")
UNKNOWN = 65534

#: Goes into a namespace in which it is somebody else, whatever follows.
PRETEND = f"""
os.environ["FAIRSHARE_SERVER_USER"] = "{UNKNOWN}"  # root is nobody known there
from tests.attacks.fairshare.namespaces import leave, pretend
"""


@pytest.mark.parametrize("inside", [0, ALICE, UNKNOWN])
def test_who_pretends_to_be_another_gets_nothing_of_his(
    open_to_all: Callable[..., Share], inside: int
) -> None:
    share = open_to_all()
    act(share, ALICE, "os.mkdir(ROOT + '/a', 0o700); open(ROOT + '/a/secret', 'w').write('secret')")
    said = act(share, BOB, PRETEND + f"""
pretend({inside})
attempt(open, ROOT + '/a/secret')
attempt(os.rename, ROOT + '/a', ROOT + '/b')
attempt(os.chown, ROOT + '/a', {inside}, {inside})
open(ROOT + '/mine', 'w').write('x')
""")  # fmt: skip
    assert said.split() == ["EACCES", "EPERM", "EPERM"]
    assert (share.tree / "mine").stat().st_uid == BOB


def test_a_client_whom_nobody_mapped_does_not_take_a_strangers_server_for_its_own(
    programs: Programs, tmp_path: Path
) -> None:
    """In such a namespace all users have one number, its own, too."""
    let_through(tmp_path)
    (tmp_path / "place").mkdir()
    (tmp_path / "place").chmod(0o777)
    path = tmp_path / "place" / "socket"
    code = (
        f"import os, socket, sys; os.setgid({ALICE}); os.setuid({ALICE}); s = socket.socket(socket.AF_UNIX); "
        "s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen(4); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    impostor = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with impostor:
        assert impostor.stdout is not None
        assert impostor.stdout.readline() == "ready\n"
        mount = [str(programs.mount), "--server", str(path), "--mount", str(tmp_path / "place")]
        connect = f"""
import os, sys
sys.path[:0] = {[ROOT_OF_TESTS, *sys.path]!r}
from pathlib import Path
from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection
from tests.attacks.fairshare.namespaces import leave
os.setgroups([]); os.setgid({BOB}); os.setuid({BOB})
leave()
assert os.getuid() == {UNKNOWN}
try: Connection(Path({str(path)!r}))
except UserError as e: print(e, file=sys.stderr)
os.execv({mount[0]!r}, {mount!r})
"""
        done = subprocess.run(
            [sys.executable, "-c", connect], capture_output=True, text=True, check=False, timeout=30
        )
        assert done.stderr.count("neither root nor") == 2, done.stderr
        assert done.returncode != 0
        impostor.communicate()


def test_a_user_whom_the_servers_namespace_does_not_know_is_not_served(
    programs: Programs, tmp_path: Path
) -> None:
    """To a server in a namespace all users of the machine outside it are one, which can be one of its own."""
    let_through(tmp_path)
    (tmp_path / "place").mkdir()
    path = tmp_path / "place" / "socket"
    argv = [str(programs.server), "--data", str(tmp_path / "data"), "--socket", str(path)]
    log = (tmp_path / "log").open("w")

    def serve() -> int:
        os.dup2(log.fileno(), 1)
        os.execv(argv[0], argv)

    pid = namespaces.child_in([(0, 0, 1), (5, 200_000, 1), (UNKNOWN, 200_001, 1)], lambda: None, serve)
    try:
        for _ in range(200):
            if "ready" in (tmp_path / "log").read_text():
                break
            time.sleep(0.05)
        assert path.is_socket(), (tmp_path / "log").read_text()
        with Connection(path) as root:
            assert root.status()["jobs"]
        for uid, said in ((BOB, "no number for your user"), (200_000, "")):
            reader, writer = os.pipe()
            if not (child := os.fork()):
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                os.environ["FAIRSHARE_SERVER_USER"] = "0"
                try:
                    Connection(path)
                except UserError as error:
                    os.write(writer, str(error).encode())
                os._exit(0)
            os.waitpid(child, 0)
            os.close(writer)
            with os.fdopen(reader) as heard:
                text = heard.read()
            assert (said in text) if said else text == "", text
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        log.close()
