"""What an attacker tries. Each function is one try, with all that it says drawn by `rng`; what must not have
worked is told by :meth:`Attacker.got`, and all that the server says is searched for the victim's secret."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.wire import Op

from .speech import Speaker, request

#: Names in the served tree, and what lies around it: the victim's, root's, links that the attacker made.
TARGETS = (
    b"/victim/secret", b"/victim", b"/root-only", b"/victim/../victim/secret", b"/../server",
    b"/../../outside", b"/attacker/out", b"/attacker/up", b"/proc/self/fd/3", b"victim/secret", b"/", b"",
    b"/victim/secret/",
)  # fmt: skip
MOST_SILENT, MOST_OPEN, MOST_SESSIONS, MOST_UNREAD = 400, 2000, 600, 400


@dataclass(frozen=True)
class Goal:
    """What is attacked."""

    address: str
    data: Path
    #: Where the files are mounted, None where nothing can be.
    mount: Path | None
    #: What nobody but the victim, a user, and root may read.
    secret: bytes
    victim: int
    #: Numbers of files that root has open.
    bait: list[int]


class Attacker:
    """The attacking process's state: where the server is, what it tried and what it got."""

    def __init__(self, goal: Goal, seed: int) -> None:
        self.address, self.data, self.mount = goal.address, goal.data, goal.mount
        self.secret, self.victim, self.bait = goal.secret, goal.victim, goal.bait
        self.rng = random.Random(seed)
        self.tried: Counter[str] = Counter()
        self.gains: list[str] = []
        self._tells: int | None = None

    def got(self, what: str) -> None:
        if what not in self.gains:
            self.gains.append(what)
            if self._tells is not None:
                os.write(self._tells, what.encode() + b"\n")

    def apart(self, act: Callable[[], object]) -> None:
        """Try something in a child, which may become somebody else, or end by a signal."""
        reader, writer = os.pipe()
        if not (pid := os.fork()):
            self._tells = writer
            # What the kernel and the server refuse ends a try.
            with suppress(Exception):
                act()
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as heard:
            gains = heard.read().splitlines()
        os.waitpid(pid, 0)
        for what in gains:
            self.got(what)

    def look(self, heard: bytes) -> None:
        if self.secret in heard:
            self.got("the victim's secret")

    def speaker(self, wants: int = 0, greet: bool = True) -> Speaker:
        return Speaker(self.address, self.look, greet, wants)


def thefts_of_files(it: Attacker) -> None:
    """Calls on what belongs to others, by name, through links, and relative to an open folder."""
    rng = it.rng
    with it.speaker() as s:
        _, folder, _ = s.ask(request(Op.OPEN, b"/attacker", flags=os.O_DIRECTORY))
        for text, name in ((b"/etc/shadow", b"/out"), (b"../server", b"/up")):
            s.ask(request(Op.SYMLINK, b"/attacker" + name, text))
        for _ in range(20):
            path, other = rng.choice(TARGETS), rng.choice(TARGETS)
            op = rng.choice([Op.OPEN, Op.OPEN, Op.TRUNCATE, Op.SET_ATTRIBUTES, Op.UNLINK, Op.RENAME, Op.LINK,
                             Op.READLINK, Op.GET_XATTR, Op.SET_XATTR, Op.MAKE_DIRECTORY])  # fmt: skip
            flags = rng.choice([os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_CREAT | os.O_RDWR, 0])
            asked = request(
                op, path, other if op in (Op.RENAME, Op.LINK) else b"user.x", flags=flags,
                handle=rng.choice([0, folder]), handle2=rng.choice([0, folder]), mode=0o777,
                mask=rng.getrandbits(5), size=64,
            )  # fmt: skip
            result, handle, _ = s.ask(asked)
            if op == Op.OPEN and result >= 0:
                s.ask(request(Op.READ, handle=handle, size=4096))
                s.ask(request(Op.READ_DIRECTORY, handle=handle, size=4096))


def thefts_of_handles(it: Attacker) -> None:
    """Whoever learns the number of another user's open file can do nothing with it."""
    with it.speaker() as s:
        for handle in it.bait:
            for op in (
                Op.READ,
                Op.VOUCH,
                Op.GET_ATTRIBUTES,
                Op.WRITE,
                Op.TRUNCATE,
                Op.LOCK,
                Op.CLOSE,
            ):
                result, _, _ = s.ask(request(op, handle=handle, size=8, data=b"attacked"))
                if result >= 0:
                    it.got(f"another's open file, by {op.name}")


def thefts_by_ticket(it: Attacker) -> None:
    """Tickets for others, for groups and sizes that are not its own, for Slurm's jobs; changed ones."""
    uid, gid, rng = os.getuid(), os.getgid(), it.rng
    wanted = rng.choice([
        Job("mine", size=rng.choice([2, 16, 2**31])), Job("mine", priority=9), Job("mine", user=0),
        Job("mine", group=0), Job("slurm-42"), Job("mine", holder=(0, 0)),
        Job("mine", holder=(uid, 0), group=gid),
        Job("mine", holder=(0, gid), user=uid), Job("climate", user=uid + 1),
    ])  # fmt: skip
    with suppress(UserError), Connection(Path(it.address)) as c:
        c.ticket(wanted)
        it.got(f"a ticket for {wanted}")
    with Connection(Path(it.address)) as c:
        good = bytearray.fromhex(c.ticket(Job("mine")))
    # What lies behind the name says nothing.
    good[rng.randrange(48 + len("mine"))] ^= 1 << rng.randrange(8)
    with suppress(UserError), Connection(Path(it.address), good.hex()):
        it.got("a place by a ticket that it changed")


def thefts_of_shares(it: Attacker) -> None:
    """Sixteen jobs of its own making, and the victim's name: together they are one user's one job."""
    with ExitStack() as stack, suppress(UserError):
        asking = stack.enter_context(Connection(Path(it.address)))
        for name in ("climate", *(f"mine-{n}" for n in range(16))):
            ticket = asking.ticket(Job(name))
            stack.enter_context(Connection(Path(it.address), ticket))
        own = [job for job in asking.status()["jobs"] if job["user"] == os.getuid() and job["clients"]]
        if len(own) > 1 or own[0]["size"] != 1:
            it.got(f"{len(own)} jobs, the largest of size {max(job['size'] for job in own)}")


def broken_frames(it: Attacker) -> None:
    """Garbage, lengths that are not so, numbers of operations that are none, ends in the middle."""
    rng = it.rng
    with it.speaker(greet=rng.random() < 0.8) as s, suppress(OSError):
        for _ in range(rng.randrange(1, 20)):
            kind = rng.randrange(4)
            if kind == 0:
                s.socket.sendall(rng.randbytes(rng.randrange(200)))
                continue
            words = [rng.getrandbits(n) for n in (32, 64, 64, 62, 64, 32)]
            body = request(
                rng.choice([*Op, rng.getrandbits(32)]), rng.randbytes(rng.randrange(40)), flags=words[0],
                handle=rng.choice([0, words[1]]), handle2=words[2], offset=words[3],
                size=rng.choice([0, 4096, 1 << 20, words[4]]), mode=words[5],
            )  # fmt: skip
            s.say(body, rng.getrandbits(64), None if kind < 3 else rng.getrandbits(32))
        s.socket.settimeout(0.01)
        while s.hear():
            pass


def broken_rings(it: Attacker) -> None:
    """Scribbles over its shared memory while the server reads there; what lies in it is searched, too."""
    rng = it.rng
    with it.speaker(wants=1) as s:
        memory = s.memory()
        if memory is None:
            return
        with memory:
            for _ in range(30):
                for slot in range(16):
                    at = 4096 + slot * 256
                    path = rng.choice(TARGETS)
                    asked = request(
                        rng.choice([*Op, rng.getrandbits(32)]), path, handle=rng.getrandbits(8),
                        flags=rng.getrandbits(12), size=rng.choice([100, 1 << 17, rng.getrandbits(60)]),
                        offset=rng.choice([-1, 0, rng.getrandbits(62)]),
                    )  # fmt: skip
                    memory[at : at + 256] = (
                        rng.randbytes(16) + asked[:96].ljust(112, b"\0") + rng.randbytes(128)
                    )
                    data = 8192 + slot * (128 << 10)
                    memory[data : data + len(path)] = path
                memory[64:68] = struct.pack("<I", rng.getrandbits(32))
                os.write(s.descriptors[1], struct.pack("<Q", 1))
            it.look(memory[:])
        for length in (0, 1 << 30):
            with suppress(OSError):
                os.ftruncate(s.descriptors[0], length)
                it.got("shared memory of another length")


def floods(it: Attacker) -> None:
    """As many silent connections, sessions, open files or unread answers as it can get, held for a moment."""
    kind = it.rng.choice(["silent", "sessions", "files", "unread"])
    with ExitStack() as stack, suppress(OSError):
        if kind in ("silent", "sessions"):
            for _ in range(MOST_SILENT if kind == "silent" else MOST_SESSIONS):
                s = stack.enter_context(it.speaker(wants=1, greet=kind == "sessions"))
                if kind == "sessions" and struct.unpack_from("<q", s.welcome.ljust(8, b"\xff"))[0] < 0:
                    break
        elif kind == "files":
            s = stack.enter_context(it.speaker())
            while (
                len(s.descriptors) < MOST_OPEN and s.ask(request(Op.OPEN, b"/", flags=os.O_DIRECTORY))[0] >= 0
            ):
                pass
        else:
            for _ in range(8):
                s = stack.enter_context(it.speaker())
                s.socket.settimeout(0.01)
                with suppress(OSError):
                    for _ in range(MOST_UNREAD):
                        s.say(request(Op.STATUS, size=1 << 20))


def takings_of_time(it: Attacker) -> None:
    """Requests that say little and take long, while the victim asks one by one."""
    rng, name = it.rng, b"/attacker/hog-%d" % os.getpid()
    with it.speaker() as s:
        flags = os.O_CREAT | os.O_RDWR | rng.choice([0, os.O_SYNC])
        _, handle, _ = s.ask(request(Op.OPEN, name, flags=flags, mode=0o600))
        acts = (
            request(Op.ALLOCATE, handle=handle, size=rng.choice([1 << 20, 1 << 28])),
            request(Op.TRUNCATE, handle=handle),
            request(Op.WRITE, handle=handle, data=b"x", size=1),
            # A piece behind others, which never come; a path that renames race with.
            request(Op.WRITE, handle=handle, data=b"x", size=1, offset=1 << 40, flags=1),
            request(Op.GET_ATTRIBUTES, b"../" * 1300),
        )
        for _ in range(30):
            s.ask(rng.choice(acts))
        s.ask(request(Op.UNLINK, name))


def past_the_server(it: Attacker) -> None:
    """The data folder, its key and the socket, as files."""
    socket = Path(it.address)
    acts: dict[str, Callable[[], object]] = {
        "the key": (it.data / "server").read_bytes,
        "a list of the data folder": lambda: list(it.data.iterdir()),
        "the tree past the server": lambda: list((it.data / "tree").iterdir()),
        "a file past the server": (it.data / "tree" / "victim" / "secret").read_bytes,
        "another data folder in its place": lambda: it.data.rename(it.data.with_name("old")),
        "another key in its place": lambda: (it.data / "server").rename(it.data / "old"),
        "another socket in its place": lambda: socket.rename(socket.with_name("old")),
        "no socket": socket.unlink,
        "the server's lock": lambda: os.open(f"{socket}.lock", os.O_RDWR),
    }
    for what, act in acts.items():
        with suppress(OSError):
            act()
            it.got(what)


ATTACKS = (
    thefts_of_files, thefts_of_handles, thefts_by_ticket, thefts_of_shares, broken_frames, broken_rings,
    floods, takings_of_time, past_the_server,
)  # fmt: skip
