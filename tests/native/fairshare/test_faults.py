"""What goes wrong around servers and clients: nothing acknowledged is lost, nobody waits for ever."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.attacks.fairshare.speech import request

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.server import running_mount, running_server
from tiercel.layers.fairshare.wire import FRAME, HELLO, MAGIC, NOTICE, REQUEST, VERSION, WANT_SEGMENT, Op

from .conftest import Share, needs_mount


def restart(share: Share, programs: Programs, log: Path) -> subprocess.Popen[str]:
    """Start the server that was killed again: same data, same socket."""
    process = subprocess.Popen(
        [str(programs.server), "--data", str(share.server.data), "--socket", str(share.server.socket)],
        stdout=subprocess.PIPE, stderr=log.open("w"), text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    return process


def test_a_long_file_under_a_limit_of_file_size_is_the_clients_error(
    programs: Programs, tmp_path: Path
) -> None:
    """The kernel's signal for it (SIGXFSZ) ended the server, for all."""
    limited = tmp_path / "server"
    limited.write_text(f'#!/bin/sh\nulimit -f 8192 && exec {programs.server} "$@"\n')
    limited.chmod(0o755)
    (mount := tmp_path / "mount").mkdir()
    needs_mount()
    with running_server(
        replace(programs, server=limited), tmp_path / "data", [], tmp_path / "log", mount=mount
    ) as server:
        assert server.mounted is not None
        share = Share(programs, server, server.mounted)
        code = """
import errno
with open(ROOT + "/long", "wb") as file:
    try:
        os.ftruncate(file.fileno(), 1 << 30)
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
        assert share.python(code) == "EFBIG\n"
        assert server.process.poll() is None
        assert share.bash("echo served > $ROOT/short; cat $ROOT/short") == "served\n"


WRITER = """
file = open(ROOT + "/data", "w+b", buffering=0)
for n in range(400):
    block = n.to_bytes(8, "little") * 8192  # 64 KiB
    assert os.pwrite(file.fileno(), block, n * 65536) == 65536
    if n % 5 == 0:
        os.fsync(file.fileno())
    print(n, flush=True)  # acknowledged
assert os.pread(file.fileno(), 8, 0) == bytes(8)
"""


@pytest.fixture
def apart(share: Share, programs: Programs, tmp_path: Path) -> Iterator[Share]:
    """A server, and a mount that outlives it."""
    (mount := tmp_path / "apart").mkdir()
    os.environ["FAIRSHARE_PATIENCE"] = "20"
    with running_mount(programs, share.server.socket, mount):
        del os.environ["FAIRSHARE_PATIENCE"]
        yield Share(programs, share.server, mount)


def test_a_server_killed_under_load_loses_nothing_acknowledged(
    apart: Share, programs: Programs, tmp_path: Path
) -> None:
    """The mount goes on by itself once the server is back, with the files that it has open."""
    share = apart
    head = f"import os\nROOT = {str(share.root)!r}\n"
    client = share.start([sys.executable, "-c", head + WRITER])
    assert client.stdout is not None
    for number in range(100):  # of 400: it is in the middle of them
        assert client.stdout.readline() == f"{number}\n"
    share.server.process.kill()
    share.server.process.wait()
    time.sleep(0.3)
    again = restart(share, programs, tmp_path / "log-again")
    try:
        said = client.stdout.read().split()
        _, err = client.communicate(timeout=120)
        assert client.returncode == 0, err
    finally:
        again.terminate()
        again.wait(60)
    assert said == [str(number) for number in range(100, 400)]
    data = (share.tree / "data").read_bytes()
    assert len(data) == 400 * 65536
    for number in range(400):
        assert data[number * 65536 : number * 65536 + 8] == number.to_bytes(8, "little")
        assert data[number * 65536 + 65528 : (number + 1) * 65536] == number.to_bytes(8, "little")


def test_without_a_server_calls_fail_in_time(share: Share) -> None:
    """Those in the server's own mount at once."""
    client = share.start([sys.executable, "-c", f"""
import os, time
f = open("{share.root}/f", "wb", buffering=0)
print("open", flush=True)
input()
began = time.time()
try: f.write(b"x")
except OSError as error: print(error.errno, time.time() - began < 20)
"""], stdin=subprocess.PIPE)  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == "open\n"
    share.server.process.kill()
    share.server.process.wait()
    out, err = client.communicate("\n", timeout=240)
    assert out.split() == [str(errno.ENOTCONN), "True"], err


def test_a_file_replaced_while_the_server_was_away_is_not_mistaken(
    apart: Share, programs: Programs, tmp_path: Path
) -> None:
    share = apart
    client = share.start([sys.executable, "-c", f"""
import os
f = open("{share.root}/f", "w+b", buffering=0)
f.write(b"mine")
print("open", flush=True)
input()
try: os.pwrite(f.fileno(), b"oops", 0); print("wrote")
except OSError as error: print(error.errno)
"""], stdin=subprocess.PIPE)  # fmt: skip
    assert client.stdout is not None
    client.stdout.readline()
    share.server.process.kill()
    share.server.process.wait()
    (share.tree / "other").write_text("theirs")
    (share.tree / "other").rename(share.tree / "f")
    again = restart(share, programs, tmp_path / "log-again")
    out, err = client.communicate("\n", timeout=240)
    again.terminate()
    again.wait(60)
    assert out.split() == [str(errno.EIO)], err
    assert (share.tree / "f").read_text() == "theirs"


def test_clients_killed_in_mid_request_leave_the_server_and_their_files_whole(share: Share) -> None:
    code = f"""
import os, itertools
f = open("{share.root}/victim%d" % os.getpid(), "wb", buffering=0)
print("go", flush=True)
for n in itertools.count():
    f.write(os.urandom(1) * 3_000_000)
    f.seek(0)
"""
    for _ in range(5):
        client = share.start([sys.executable, "-c", code])
        assert client.stdout is not None
        client.stdout.readline()
        time.sleep(random.uniform(0.01, 0.1))
        client.kill()
        client.communicate()
    assert share.bash("echo alive > $ROOT/x; cat $ROOT/x") == "alive\n"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # what they had open is let go
        with Connection(share.server.socket) as connection:
            # The kernel keeps six names in mind, each a file; what was open besides is let go.
            if connection.status()["open_files"] <= 6:
                break
        time.sleep(0.05)
    else:
        pytest.fail("the server keeps files of clients that are gone")


@pytest.fixture
def small_store(tmp_path: Path, as_root: None) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_store_says_so_and_goes_on(serve: Callable[..., Share], small_store: Path) -> None:
    share = serve(data=small_store / "data")
    said = share.python("""
import errno
file = open(ROOT + "/big", "wb", buffering=0)
written = 0
try:
    while True: written += file.write(b"x" * 1_000_000)
except OSError as error: print(errno.errorcode[error.errno], os.fstat(file.fileno()).st_size == written)
os.ftruncate(file.fileno(), 3_000_000)
for _ in range(3): os.pwrite(file.fileno(), b"y" * 2_000_000, 0)  # room again, by the same descriptor
os.unlink(ROOT + "/big")
file.close()
open(ROOT + "/small", "w").write("fits")
print(open(ROOT + "/small").read())
""")
    assert said.split() == ["ENOSPC", "True", "fits"]


def test_a_torn_key_file_is_named(programs: Programs, tmp_path: Path) -> None:
    with running_server(programs, tmp_path / "data"):
        pass
    file = tmp_path / "data" / "server"
    file.write_bytes(file.read_bytes()[:-7])
    with (
        pytest.raises(UserError, match="server: torn or changed"),
        running_server(programs, tmp_path / "data"),
    ):
        pass


def test_two_servers_do_not_share_a_data_folder(programs: Programs, share: Share) -> None:
    with pytest.raises(UserError, match="another server runs"), running_server(programs, share.server.data):
        pass


@pytest.mark.parametrize("policy", ["sise-fair", "user-then-then-size-fair", "size-user-job-fair-", ""])
def test_a_misspelt_policy_is_refused(programs: Programs, tmp_path: Path, policy: str) -> None:
    with (
        pytest.raises(UserError, match="is not a sharing policy"),
        running_server(programs, tmp_path / "data", ["--policy", policy]),
    ):
        pass


def framed(body: bytes) -> bytes:
    return FRAME.pack(MAGIC, len(body), 0) + body


def connect(share: Share) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(60)
    found.connect(str(share.server.socket))
    return found


def test_random_messages_neither_stop_nor_crash_the_server(share: Share) -> None:
    """Thousands of frames: bytes at random, requests with one field at random, before and after a hello."""
    rng = random.Random(7)
    hello = HELLO.pack(VERSION, 0, 0)
    for number in range(150):
        with connect(share) as victim, contextlib.suppress(OSError):
            if number % 3:
                victim.sendall(framed(hello))
            for _ in range(25):
                kind = rng.randrange(4)
                if kind == 0:
                    victim.sendall(rng.randbytes(rng.randrange(200)))
                    continue
                fields = [rng.choice([op for op in Op if op not in (Op.RELOAD, Op.SEND_AWAY)]),
                          rng.getrandbits(32), rng.getrandbits(64), rng.choice([0, rng.getrandbits(64)]),
                          rng.choice([-1, 0, 1 << 40, rng.getrandbits(62)]),
                          rng.choice([0, 1, 4096, 1 << 20, 1 << 62, rng.getrandbits(64)]),
                          rng.choice([0, 3, 4095, 4096, rng.getrandbits(32)]), rng.choice([0, 2, 1 << 31]),
                          *(rng.getrandbits(32) for _ in range(4)),
                          *(rng.getrandbits(62) for _ in range(4))]  # fmt: skip
                if kind == 1:
                    fields[2] = 0
                body = REQUEST.pack(*fields) + rng.randbytes(rng.randrange(300))
                length = len(body) if kind < 3 else rng.getrandbits(32)
                victim.sendall(FRAME.pack(MAGIC, length, rng.getrandbits(64)) + body)
            victim.setblocking(False)
            victim.recv(1 << 16)
    assert share.server.process.poll() is None
    assert share.bash("echo alive > $ROOT/x; cat $ROOT/x") == "alive\n"


def test_a_client_that_scribbles_over_its_shared_memory_harms_only_itself(share: Share) -> None:
    rng = random.Random(3)
    for _ in range(40):
        with connect(share) as client:
            client.recv(4096)
            client.sendall(framed(HELLO.pack(VERSION, WANT_SEGMENT, 0)))
            _, descriptors, _, _ = socket.recv_fds(client, 4096, 4)
            (memory,) = descriptors
            with mmap.mmap(memory, 8192 + 16 * 131072) as segment:
                for _ in range(30):
                    for slot in range(16):
                        at = 4096 + slot * 256
                        segment[at : at + 256] = rng.randbytes(256)
                        op = rng.choice([10, 12, 13, 14, 16, 20, 30, 31, 33, 36, 42])
                        segment[at + 16 : at + 20] = struct.pack("<I", op)
                        segment[at + 16 + 40 : at + 16 + 48] = struct.pack(
                            "<II", rng.randrange(5000), rng.randrange(99)
                        )
                    segment[64:68] = rng.randbytes(4)
                    client.sendall(FRAME.pack(MAGIC, 0, NOTICE))
            with contextlib.suppress(OSError):  # sealed: it cannot be taken away under the server
                os.ftruncate(memory, 0)
                pytest.fail("the segment could be cut")
            os.close(memory)
    assert share.server.process.poll() is None
    assert share.bash("echo alive > $ROOT/x; cat $ROOT/x") == "alive\n"


def test_a_peer_that_does_not_read_stops_nobody(share: Share) -> None:
    (share.tree / "big").write_bytes(b"x" * 1_000_000)
    with connect(share) as lazy:
        lazy.recv(4096)
        lazy.sendall(framed(HELLO.pack(VERSION, 0, 0)))
        lazy.recv(4096)
        lazy.setblocking(False)
        ask = framed(request(Op.STATUS, size=1 << 20))
        with contextlib.suppress(BlockingIOError):
            for _ in range(20000):
                lazy.sendall(ask)
        assert share.bash("cat $ROOT/big | wc -c").strip() == "1000000"


def test_users_cannot_take_more_than_their_share_of_handles(
    serve: Callable[..., Share], tmp_path: Path
) -> None:
    """Of their own mounts: of those that its own kernel holds the server counts the descriptors."""
    share = serve("--files", "50")
    (mount := tmp_path / "mine").mkdir()
    with running_mount(share.programs, share.server.socket, mount):
        said = replace(share, root=mount).python("""
import errno
files = []
try:
    while True: files.append(open(ROOT + "/f", "a"))
except OSError as error: print(errno.errorcode[error.errno], len(files))
""")
    assert said.split() == ["EMFILE", "49"]  # and one for the name


def test_old_data_is_served_again_after_a_restart(serve: Callable[..., Share], tmp_path: Path) -> None:
    first = serve(data=tmp_path / "data")
    first.bash("mkdir $ROOT/d; echo kept > $ROOT/d/f; ln -s d/f $ROOT/l; sync $ROOT/d/f")
    first.server.process.send_signal(signal.SIGKILL)
    first.server.process.wait()
    second = serve(data=tmp_path / "data")
    assert second.bash("cat $ROOT/l") == "kept\n"


def test_a_job_is_what_its_ticket_says(share: Share) -> None:
    script = f"echo x > {share.root}/f; cat {share.root}/f"
    share.run("bash", "-c", script, job=Job("climate", size=4, user=1234))
    with Connection(share.server.socket) as connection:
        jobs = {job["job"]: job for job in connection.status()["jobs"]}
    assert (jobs["climate"]["size"], jobs["climate"]["user"]) == (4, 1234)
    assert jobs["climate"]["bytes_written"] == 2


def test_a_server_that_says_much_goes_on(programs: Programs, tmp_path: Path) -> None:
    """Its standard error goes to a file; nobody reads it while the server runs."""
    talker = tmp_path / "talker"
    talker.write_text(f'#!/bin/sh\nhead -c 300000 /dev/zero >&2\nexec {programs.server} "$@"\n')
    talker.chmod(0o755)
    with running_server(replace(programs, server=talker), tmp_path / "data") as server, \
            Connection(server.socket) as connection:  # fmt: skip
        assert connection.status()["open_files"] == 0


def test_two_mounts_that_write_one_file_do_not_wait_for_each_other(share: Share, tmp_path: Path) -> None:
    """Each held the page of its last bytes until the other had dropped it; one of them got EIO."""
    (place := tmp_path / "other").mkdir()
    code = """
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for n in range(200):
    os.pwrite(fd, bytes([int(sys.argv[2])]) * 100000, (2 * (n % 20) + int(sys.argv[2])) * 100000)
"""
    with running_mount(share.programs, share.server.socket, place):
        argv = [sys.executable, "-c", "import os, sys" + code]
        writers = [
            share.start([*argv, str(folder / "f"), str(number)])
            for number, folder in enumerate((share.root, place))
        ]
        for writer in writers:
            assert writer.communicate(timeout=120)[1] == "" and writer.returncode == 0
        expected = b"".join(bytes([n % 2]) * 100000 for n in range(40))
        assert (place / "f").read_bytes() == (share.root / "f").read_bytes() == expected
