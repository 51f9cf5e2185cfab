"""Stripes are served to those alone whom the file's home server has granted them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tiercel.layers.fairshare.programs import Programs

from .stripe_servers import Servers, striping

ALICE, BOB = 4001, 4002

#: Speaks to a server without the client library.
RAW = """
class Raw(Speaker):
    def __init__(self, path): super().__init__(path, lambda _: None)
    def ask(self, op, path=b"", payload=b"", **words):
        return super().ask(request(op, path, data=payload, **words))
    def stripe(self, op, grant): return self.ask(op, payload=grant, size=len(grant))
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
    speech = (
        "from tiercel.layers.fairshare.wire import Op\n"
        "from tiercel.sharing.attack.speech import Speaker, request"
    )
    return f"import socket, struct\n{speech}\nos.setgroups([]); os.setgid({uid}); os.setuid({uid})\n{RAW}"


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
print(home.ask(Op.OPEN, flags=os.O_RDONLY, path=b"/private")[2][120:].hex())
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
print(server.stripe(Op.STRIPE_OPEN, grant)[0], server.stripe(Op.STRIPE_REMOVE, grant)[0])
struct.pack_into("<I", grant, 32, {BOB})  # made out to himself
print(server.stripe(Op.STRIPE_OPEN, grant)[0], server.stripe(Op.STRIPE_OPEN, grant[:100])[0])
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
result, handle, _ = server.stripe(Op.STRIPE_OPEN, grant)
print(result, server.ask(Op.WRITE, handle=handle, size=1, payload=b"x")[0])
print(server.ask(Op.TRUNCATE, handle=handle)[0], server.ask(Op.SET_ATTRIBUTES, handle=handle)[0])
print(server.ask(Op.LINK, handle=handle, path=b"")[0], server.stripe(Op.STRIPE_REMOVE, grant)[0])
more = bytearray(grant); struct.pack_into("<I", more, 36, 15)  # all rights
print(server.stripe(Op.STRIPE_OPEN, more)[0], server.stripe(Op.STRIPE_REMOVE, more)[0])
old = bytearray(grant); struct.pack_into("<Q", old, 16, 1 << 40)  # for longer
print(server.stripe(Op.STRIPE_OPEN, old)[0])
other = bytearray(grant); other[8] ^= 1  # another file
print(server.stripe(Op.STRIPE_OPEN, other)[0])
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
handle = server.stripe(Op.STRIPE_OPEN, bytes.fromhex({grant!r}))[1]
print(handle, flush=True)
input()  # it is open all the time
print(server.ask(Op.READ, handle=handle, size=10)[0])
""",
        stdin=subprocess.PIPE,
    )
    assert alice.stdout is not None
    handle = alice.stdout.readline().strip()
    said = act(three, BOB, f"print(Raw({path!r}).ask(Op.READ, handle={handle}, size=10)[0])")
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
print(home.ask(Op.OPEN, flags=os.O_RDWR, path=b"/private2")[0])
""",
    )
    assert said == ["-5"]


def test_objects_belong_to_the_files_owner_and_lie_where_nobody_looks(three: Servers) -> None:
    alices_file(three)
    for n in range(3):
        (one,) = three.objects(n)
        assert (one.stat().st_uid, one.stat().st_mode & 0o777) == (ALICE, 0o600)
        assert (three.data[n] / "stripes").stat().st_mode & 0o777 == 0o700
