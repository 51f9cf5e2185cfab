"""One user takes all that it can get; another comes later, gets in and is served."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection
from tiercel.layers.fairshare.server import running_server

from .conftest import Share, needs_mount
from .test_sharing import free_port
from .users import ALICE, BOB, act, as_user

#: Descriptors of the server in these tests: few, so that a flood is soon over.
DESCRIPTORS = 1500


@contextmanager
def with_few_descriptors(programs: Programs, tmp_path: Path, *options: str) -> Iterator[Share]:
    """A server of root, which all users reach."""
    needs_mount()
    starter = tmp_path / "starter"
    starter.write_text(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec {programs.server} "$@"\n')
    starter.chmod(0o755)
    few = replace(programs, server=starter)
    with tempfile.TemporaryDirectory(prefix="tiercel-mount-") as place:
        os.chmod(place, 0o755)
        (mount := Path(place) / "mount").mkdir()
        with running_server(few, tmp_path / "data", options, tmp_path / "log", mount=mount) as server:
            folder = server.socket.parent
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
            yield Share(programs, server, mount)


@pytest.fixture
def small(programs: Programs, tmp_path: Path, as_root: None) -> Iterator[Share]:
    with with_few_descriptors(programs, tmp_path) as share:
        yield share


HEAD = """
kept = []
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
from tests.attacks.fairshare.speech import request as asked
def frame(body): return FRAME.pack(MAGIC, len(body), 0) + body
def request(op, *path, **words): return frame(asked(op, *path, **words))
def answer(s):
    head, passed, _, _ = socket.recv_fds(s, FRAME.size, 4)
    kept.extend(passed)
    if len(head) < FRAME.size: return None
    body = s.recv(FRAME.unpack(head)[1], socket.MSG_WAITALL)
    return REPLY.unpack_from(body)[:2]
def stranger():
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(SOCKET); return s
def session(wants=1):
    s = stranger(); challenge = s.recv(32)
    s.sendall(frame(HELLO.pack(VERSION, wants, 0)))
    said = answer(s)
    return s if said and said[0] == 0 else None
"""


@contextmanager
def flood(share: Share, code: str) -> Iterator[int]:
    """While BOB does this; what it says it got."""
    head = f"SOCKET = {str(share.server.socket)!r}\n{HEAD}"
    bob = subprocess.Popen(
        [sys.executable, "-c", as_user(share, BOB, head + code + "\nsys.stdin.readline()")], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert bob.stdout is not None
    assert bob.stderr is not None
    line = bob.stdout.readline()
    assert line, bob.stderr.read()
    yield int(line)
    bob.communicate("\n")


def served(share: Share) -> bool:
    """ALICE opens a hundred files at a time, in two processes, writes and reads."""
    said = act(
        share,
        ALICE,
        """
os.mkdir(ROOT + "/a")
files = [open(f"{ROOT}/a/{n}", "w+b") for n in range(100)]
pid = os.fork()
for f in files: f.seek(0) if pid == 0 else f.write(b"x" * 300000); f.flush()
if pid == 0: os._exit(len(os.listdir(ROOT + "/a")))
same = [os.pread(f.fileno(), 9, 5) == b"x" * 9 for f in files]
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), all(same))
""",
    )
    return said.split() == ["100", "True"]


def test_silent_connections_keep_nobody_out(small: Share) -> None:
    """More than the server keeps of such; of them the oldest go."""
    with flood(small, "kept = [stranger() for n in range(600)]; print(len(kept), flush=True)") as got:
        assert got == 600
        assert served(small)


def test_sessions_of_one_keep_nobody_out(small: Share) -> None:
    code = """
sessions = []
while (one := session()) and len(sessions) < 2000: sessions.append(one)
print(len(sessions), flush=True)
"""
    with flood(small, code) as got:
        assert 50 < got < DESCRIPTORS / 2
        assert served(small)


def test_open_files_of_one_keep_nobody_out(small: Share) -> None:
    code = """
s = session(0)
def opened():
    s.sendall(request(Op.OPEN, b"/", flags=os.O_DIRECTORY))
    result, handle = answer(s)
    return result
count = 0
while (said := opened()) == 0 and count < 3000: count += 1
assert said == -errno.EMFILE, said
print(count, flush=True)
"""
    with flood(small, code) as got:
        assert 100 < got < DESCRIPTORS / 2
        assert served(small)


def test_who_takes_no_answers_gets_no_more(small: Share) -> None:
    """Reads of a megabyte each are asked for, none is taken: the server neither keeps them nor stops."""
    (small.tree / "large").write_bytes(bytes(1 << 20))
    os.chmod(small.tree / "large", 0o644)
    code = """
for _ in range(20):
    s = session(0); s.sendall(request(Op.OPEN, b"/large")); handle = answer(s)[1]; s.setblocking(False)
    kept.append(s)
    for n in range(3000):
        try: s.send(request(Op.READ, handle=handle, size=1 << 20))
        except BlockingIOError: break
time.sleep(1)
print(0, flush=True)
"""
    before = resident(small)
    with flood(small, code):
        assert served(small)
        # At most two answers and a request of each of the 20.
        assert resident(small) - before < 20 * (4 << 20)


def resident(share: Share) -> int:
    lines = Path(f"/proc/{share.server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def test_descriptors_that_nobody_asked_for_keep_no_worker(small: Share) -> None:
    """Who closes the last of a socket that lingers waits: it was whoever read what it came with."""
    code = """
def lingering():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0)); listener.listen()
        one = socket.socket(); one.connect(listener.getsockname()); kept.append(listener.accept()[0])
    one.setblocking(False)
    try:
        while True: one.send(bytes(1 << 16))
    except BlockingIOError: pass
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return one
for n in range(40):
    s = stranger() if n % 2 else session(0); kept.append(s)
    with lingering() as one:
        try: socket.send_fds(s, [request(Op.PING)[:n] or b"x"], [one.fileno()])
        except PermissionError:  # Linux from 6.16 on is told to let none pass; we would wait ourselves
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
print(len(kept), flush=True)
"""
    with flood(small, code):
        assert served(small)


def test_mapped_files_take_no_more_descriptors(small: Share) -> None:
    """Large files that are open take no more descriptors of the server than small ones."""
    said = act(
        small,
        ALICE,
        """
os.mkdir(ROOT + "/m")
files = [open(f"{ROOT}/m/{n}", "w+b", buffering=0) for n in range(50)]
for f in files: f.write(b"y" * (256 << 10)); f.write(b"z" * (256 << 10))
print(all(os.pread(f.fileno(), 1 << 20, 0) == b"y" * (256 << 10) + b"z" * (256 << 10) for f in files))
""",
    )
    assert said == "True\n"
    descriptors = list(Path(f"/proc/{small.server.process.pid}/fd").iterdir())
    assert len(descriptors) < 90  # 50 files that the kernel remembers, 12 of a server that serves nobody


def test_names_looked_up_through_the_mount_keep_nobody_out(small: Share) -> None:
    """The kernel has the server keep each file that it looked up, and is asked to forget the older ones."""
    for n in range(2000):
        (small.tree / str(n)).touch()
    code = """
found = 0
for n in range(2000):
    try: os.stat(f"{ROOT}/{n}"); found += 1
    except OSError as e: assert e.errno == errno.EMFILE
print(found, flush=True)
"""
    with flood(small, code) as got:
        assert 300 < got <= 2000  # some are refused where the kernel is slower than who looks
        kept = len(os.listdir(f"/proc/{small.server.process.pid}/fd"))
        assert kept < DESCRIPTORS * 2 / 3
        assert served(small)


def test_who_connects_without_end_keeps_nobody_out(small: Share) -> None:
    """Two processes fill the queue of the listening socket as fast as they can; others wait their turn."""
    code = """
if os.fork() == 0: pass
else: print(0, flush=True)
while not select.select([0], [], [], 0)[0]:
    for _ in range(50):
        s = socket.socket(socket.AF_UNIX); s.setblocking(False)
        try: s.connect(SOCKET); kept.append(s)
        except OSError: pass
    if len(kept) > 100: kept.clear()
os._exit(0)
"""
    with flood(small, code):
        for _ in range(20):
            with Connection(small.server.socket) as connection:
                assert connection.status()["jobs"]


def test_a_path_that_races_with_renames_is_answered(small: Share) -> None:
    """The kernel asks to try a path with `..` again where anything on this machine is renamed."""
    code = """
if os.fork() == 0:
    os.chdir(sys.argv[1]); open("a", "w").close()
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1000): os.rename("a", "b"); os.rename("b", "a")
    os._exit(0)
time.sleep(0.2)
s = session(0)
for _ in range(5): s.sendall(request(Op.GET_ATTRIBUTES, b"../" * 1300)); said = answer(s)
print(said[0] if said else -1, flush=True)
"""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        os.chmod(place, 0o777)
        with flood(small, code.replace("sys.argv[1]", repr(place))) as got:
            assert got in (0, -errno.EAGAIN)
            assert served(small)


def test_a_write_behind_nothing_does_not_wait(small: Share) -> None:
    """A piece that says that others are in front of it, which never come, keeps no worker."""
    code = """
s = session(0)
s.sendall(request(Op.OPEN, b"/hog", flags=os.O_CREAT | os.O_RDWR)); handle = answer(s)[1]
def piece():
    return request(Op.WRITE, data=b"x", flags=1, handle=handle, offset=1 << 40, size=1)
results = set()
for _ in range(50):
    for _ in range(10): s.sendall(piece())
    for _ in range(10): results.add(answer(s)[0])
print(0 if results == {0} else -1, flush=True)
"""
    with flood(small, code) as got:
        assert got == 0
        assert served(small)


def test_who_asks_for_numbers_and_says_nothing_keeps_nobody_out(programs: Programs, tmp_path: Path) -> None:
    address = ("127.0.0.1", free_port())
    options = ["--metrics", f"{address[0]}:{address[1]}"]
    with running_server(programs, tmp_path / "data", options), ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection(address)).send(b"G")
        with urllib.request.urlopen(f"http://{options[1]}/metrics", timeout=20) as answer:
            assert b"fairshare_uptime_seconds" in answer.read()
