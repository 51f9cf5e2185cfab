"""Stripes are served to those alone whom the file's home server has granted them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tiercel.layers.fairshare.programs import Programs

from .stripe_servers import Servers, striping

ALICE, BOB = 4001, 4002

#: Speaks to a server without the client library: request fields in the order of the wire.
RAW = """
OPEN, READ, WRITE, TRUNCATE, SET_ATTRIBUTES, LINK = 10, 13, 14, 16, 21, 34
STRIPE_OPEN, STRIPE_REMOVE = 60, 61
class Raw:
    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX); self.s.connect(path); self.take()
        self.send(struct.pack("<IIQ", 3, 0, 0)); self.take()
    def send(self, body): self.s.sendall(struct.pack("<IIQ", 0x31525346, len(body), 0) + body)
    def take(self):
        head = self.s.recv(16, socket.MSG_WAITALL)
        return self.s.recv(struct.unpack("<IIQ", head)[1], socket.MSG_WAITALL)
    def ask(self, op, flags=0, handle=0, offset=0, size=0, path=b"", mode=0, payload=b""):
        self.send(struct.pack("<IIQQqQIIIIII4q", op, flags, handle, 0, offset, size, len(path), 0, mode,
                              *([0] * 7)) + path + payload)
        body = self.take()
        result, value, length = struct.unpack_from("<qQI", body)
        return result, value, body[24:24 + length]
    def stripe(self, op, grant): return self.ask(op, size=len(grant), payload=grant)
"""


@pytest.fixture
def three(programs: Programs, as_root: None) -> Iterator[Servers]:
    with striping(programs) as servers:
        yield servers


def act(servers: Servers, uid: int, code: str) -> list[str]:
    return servers.python(acting(uid) + code).split()


def acting(uid: int) -> str:
    """Return what turns a process into one of user `uid`, and gives it Raw."""
    # Modules are read before the rights to their folders are dropped.
    return f"import socket, struct\nos.setgroups([]); os.setgid({uid}); os.setuid({uid})\n{RAW}"


def alices_file(three: Servers) -> tuple[int, str]:
    """A private file of Alice's, and a grant to read it that she got: its home, and hexadecimal digits."""
    act(
        three,
        ALICE,
        """
fd = os.open(ROOT + "/private", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"secret " * 9 * STRIPE)
""",
    )
    home = three.home("private")
    (grant,) = act(
        three,
        ALICE,
        f"""
home = Raw({str(three.socket(home))!r})
print(home.ask(OPEN, flags=os.O_RDONLY, path=b"/private")[2][120:].hex())
""",
    )
    assert len(grant) == 2 * 592
    return home, grant


def test_another_user_gets_nothing_by_path_or_by_a_stolen_grant(three: Servers) -> None:
    _, grant = alices_file(three)
    for n in range(3):
        said = act(
            three,
            BOB,
            f"""
try: open(ROOT + "/private")
except OSError as problem: print(-problem.errno)
server, grant = Raw({str(three.socket(n))!r}), bytearray.fromhex({grant!r})
print(server.stripe(STRIPE_OPEN, grant)[0], server.stripe(STRIPE_REMOVE, grant)[0])
struct.pack_into("<I", grant, 32, {BOB})  # made out to himself
print(server.stripe(STRIPE_OPEN, grant)[0], server.stripe(STRIPE_OPEN, grant[:100])[0])
""",
        )
        assert said == ["-13", "-13", "-13", "-13", "-74"]  # EACCES; EBADMSG for half a grant


def test_a_grant_gives_what_it_says_and_no_more(three: Servers) -> None:
    """Alice's grant is to read: no writing, cutting, removing or naming of the object with it."""
    _, grant = alices_file(three)
    for n in range(3):
        said = act(
            three,
            ALICE,
            f"""
server, grant = Raw({str(three.socket(n))!r}), bytearray.fromhex({grant!r})
result, handle, _ = server.stripe(STRIPE_OPEN, grant)
print(result, server.ask(WRITE, handle=handle, size=1, payload=b"x")[0])
print(server.ask(TRUNCATE, handle=handle)[0], server.ask(SET_ATTRIBUTES, handle=handle)[0])
print(server.ask(LINK, handle=handle, path=b"")[0], server.stripe(STRIPE_REMOVE, grant)[0])
more = bytearray(grant); struct.pack_into("<I", more, 36, 15)  # all rights
print(server.stripe(STRIPE_OPEN, more)[0], server.stripe(STRIPE_REMOVE, more)[0])
old = bytearray(grant); struct.pack_into("<Q", old, 16, 1 << 40)  # for longer
print(server.stripe(STRIPE_OPEN, old)[0])
other = bytearray(grant); other[8] ^= 1  # another file
print(server.stripe(STRIPE_OPEN, other)[0])
""",
        )
        assert said[0] == "0"
        assert said[1:] == ["-9", "-22", "-1", "-1", "-13", "-13", "-13", "-13", "-13"]


def test_an_object_that_is_open_is_open_to_its_user_alone(three: Servers) -> None:
    home, grant = alices_file(three)
    path = str(three.socket(home))
    alice = three.popen(
        acting(ALICE)
        + f"""
server = Raw({path!r})
handle = server.stripe(STRIPE_OPEN, bytes.fromhex({grant!r}))[1]
print(handle, flush=True)
input()  # it is open all the time
print(server.ask(READ, handle=handle, size=10)[0])
""",
        stdin=subprocess.PIPE,
    )
    assert alice.stdout is not None
    handle = alice.stdout.readline().strip()
    said = act(three, BOB, f"print(Raw({path!r}).ask(READ, handle={handle}, size=10)[0])")
    out, err = alice.communicate("\n", timeout=120)
    assert (out.split(), said) == (["10"], ["-9"]), err


def test_a_layout_is_no_other_files(three: Servers) -> None:
    """Who may write to the backing store itself cannot make another file's stripes his file's."""
    home, _ = alices_file(three)
    tree = three.data[home] / "tree"
    layout = os.getxattr(tree / "private", "user.fairshare.stripes")
    mine = tree / "private2"
    mine.write_bytes(b"")
    os.chown(mine, BOB, BOB)
    os.setxattr(mine, "user.fairshare.stripes", layout)
    said = act(
        three,
        BOB,
        f"""
home = Raw({str(three.socket(home))!r})
print(home.ask(OPEN, flags=os.O_RDWR, path=b"/private2")[0])
""",
    )
    assert said == ["-5"]


def test_objects_belong_to_the_files_owner_and_lie_where_nobody_looks(three: Servers) -> None:
    alices_file(three)
    for n in range(3):
        (one,) = three.objects(n)
        assert (one.stat().st_uid, one.stat().st_mode & 0o777) == (ALICE, 0o600)
        assert (three.data[n] / "stripes").stat().st_mode & 0o777 == 0o700
