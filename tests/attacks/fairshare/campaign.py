"""A server that all users reach, a victim who works there, and attackers beside it: who gets what."""

from __future__ import annotations

import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.layers.fairshare.mounting import choose
from tiercel.layers.fairshare.programs import required_programs
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated
from tiercel.layers.fairshare.server import Server, running_server
from tiercel.layers.fairshare.wire import Op

from ..attackers import start, tell, told_by
from . import attacks_as_others, attacks_by_mount, namespaces
from .attacks import ATTACKS as ATTACKS_BY_SOCKET
from .attacks import Attacker, Goal
from .speech import Speaker, request

#: Users that nobody else is, with groups of the same numbers.
VICTIM, ATTACKER = 54321, 54322
ATTACKERS = 2
#: Users that are subordinate to the attacker.
FIRST_SUBORDINATE, SUBORDINATES = 2_000_000, 64
ATTACKS = (*ATTACKS_BY_SOCKET, *attacks_by_mount.ATTACKS, *attacks_as_others.ATTACKS)
NODES = 16
SUBORDINATE_USERS, SUBORDINATE_GROUPS = "/etc/subuid", "/etc/subgid"
#: Seconds between two looks at the server.
LOOK_S = 0.25

#: The victim: again and again a new process writes, large data by the preload library, and reads it.
_VICTIM = f"""
import mmap, os, sys, select
MOUNT, SECRET = os.environ["MOUNT"], os.environ["SECRET"].encode()
def by_mapping():
    path = MOUNT + "/victim/99"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.ftruncate(fd, 65536)
    with mmap.mmap(fd, 65536) as mapped:
        mapped[:] = SECRET * (65536 // len(SECRET)) + SECRET[:65536 % len(SECRET)]
        mapped.flush()
        same = os.pread(fd, len(SECRET), 0) == SECRET
    os.close(fd)
    os.unlink(path)
    return same
from tiercel.layers.fairshare.protocol import Connection
os.setgroups([]); os.setgid({VICTIM}); os.setuid({VICTIM})
job = Connection(os.environ["SERVER"], os.environ["TICKET"])
job.join(os.getpid())
count = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    count += 1
    pid = os.fork()
    if pid == 0:
        data = os.urandom(1000) * 300
        try:
            with open(f"{{MOUNT}}/victim/{{count % 4}}", "w+b", buffering=0) as f:
                f.write(data)
                f.seek(0)
                same = f.read() == data
            same = by_mapping() and same
        except OSError: same = False
        os._exit(0 if same else 1)
    print("served" if os.waitpid(pid, 0)[1] == 0 else "not served", flush=True)
"""


def campaign(minutes: float, seed: int, options: Sequence[str] = ()) -> dict[str, Any]:
    """Attack a server for so long; UserError without root. `got` in the result: what nobody should have got.

    `options` are the server's own, to see that the campaign finds what they let happen.
    """
    if os.geteuid() != 0:
        raise UserError("an attack needs root: it acts as two other users")
    secret = b"secret-" + os.urandom(16).hex().encode()
    with tempfile.TemporaryDirectory(prefix="tiercel-attack-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "outside").write_bytes(secret)
        (folder / "outside").chmod(0o600)
        choose(str(folder / "mount"), alone=False)
        (mount := folder / "mount").mkdir()
        arguments = ["--policy", "size-fair", *options]
        crowded = _own_subordinates(folder)
        with running_server(
            required_programs(), folder / "data", arguments, folder / "log", mount=mount
        ) as server:
            server.socket.parent.chmod(0o711)
            _prepare(server, secret)
            before = _state(folder, server)
            found = _fight(server, mount, crowded, secret, minutes, seed)
            after = _state(folder, server)
        changed = [
            path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)
        ]
        found["got"] += [f"a change of {path}" for path in changed]
        found["server_said"] = (folder / "log").read_text(errors="replace").splitlines()[:20]
        if not crowded:
            found["left_out"].append(f"subordinate users: this machine has no {SUBORDINATE_USERS}")
    return {"minutes": minutes, "seed": seed, **found}


def _prepare(server: Server, secret: bytes) -> None:
    for name, uid in (("victim", VICTIM), ("attacker", ATTACKER)):
        (server.tree / name).mkdir(mode=0o700)
        os.chown(server.tree / name, uid, uid)
    for path, uid in ((server.tree / "victim" / "secret", VICTIM), (server.tree / "root-only", 0)):
        path.write_bytes(secret)
        path.chmod(0o600)
        os.chown(path, uid, uid)
    (server.tree / "shared").write_bytes(b"for all to read " * 4096)
    (server.tree / "shared").chmod(0o644)
    os.chown(server.tree / "shared", VICTIM, VICTIM)


def _own_subordinates(folder: Path) -> bool:
    """Let the attacker have subordinate users, for this process and its children; False where nobody has."""
    if not all(Path(path).is_file() for path in (SUBORDINATE_USERS, SUBORDINATE_GROUPS)):
        return False
    ids = f"attacker:{FIRST_SUBORDINATE}:{SUBORDINATES}"
    (folder / "etc").mkdir(mode=0o755)
    namespaces.with_lines(
        folder / "etc",
        {
            SUBORDINATE_USERS: ids, SUBORDINATE_GROUPS: ids,
            "/etc/passwd": f"attacker:x:{ATTACKER}:{ATTACKER}::/:/bin/false",
        },
    )  # fmt: skip
    return True


def _is_attackers(uid: int) -> bool:
    return uid == ATTACKER or FIRST_SUBORDINATE <= uid < FIRST_SUBORDINATE + SUBORDINATES


def _state(folder: Path, server: Server) -> dict[str, tuple[object, ...]]:
    """What an attacker must leave as it is: all that is not its own, and not what the victim works on."""
    state: dict[str, tuple[object, ...]] = {}
    for path in sorted([*folder.iterdir(), *server.data.rglob("*")]):
        found = path.lstat()
        at_work = path.parent == server.tree / "victim" and path.name.isdigit()
        if path in (folder / "log", folder / "mount") or at_work:
            continue
        if _is_attackers(found.st_uid) and _is_attackers(_top(server, path).lstat().st_uid):
            continue  # the tree is everybody's to make names in, and in what he made there
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        state[str(path.relative_to(folder))] = (found.st_uid, found.st_gid, found.st_mode, content)
    return state


def _top(server: Server, path: Path) -> Path:
    """Return what lies in the tree itself and has `path` in it; for what lies elsewhere, the data folder."""
    if server.tree not in path.parents:
        return server.data
    return server.tree / path.relative_to(server.tree).parts[0]


def _fight(
    server: Server, mount: Path, crowded: bool, secret: bytes, minutes: float, seed: int
) -> dict[str, Any]:
    with Connection(server.socket) as connection:
        ticket = connection.ticket(Job("climate", NODES, holder=(VICTIM, VICTIM)))
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM],
        env={**os.environ, **accelerated(required_programs().library, mount), "MOUNT": str(mount),
             "SERVER": str(server.socket), "TICKET": ticket, "SECRET": secret.decode()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60 * minutes
    holder = Speaker(str(server.socket), lambda _: None)
    bait = [holder.ask(request(Op.OPEN, b"/root-only", flags=os.O_RDWR))[1] for _ in range(3)]
    goal = Goal(str(server.socket), server.data, mount, secret, VICTIM, bait)
    attackers = dict(_attacker(goal, seed + n, until) for n in range(ATTACKERS))
    if crowded:
        attackers |= dict([_crowd(goal, seed + ATTACKERS, until)])
    got: list[str] = []
    looks, memory, descriptors = 0, 0, 0
    with Connection(server.socket) as asking:
        while time.monotonic() < until and server.process.poll() is None:
            with suppress(UserError, OSError):
                got += [what for what in _stolen(asking.status()) if what not in got]
                looks += 1
            process = Path(f"/proc/{server.process.pid}")
            with suppress(OSError):
                memory = max(memory, _resident(process))
                descriptors = max(descriptors, len(list((process / "fd").iterdir())))
            time.sleep(LOOK_S)
    rounds, _ = victim.communicate("\n")
    tried: Counter[str] = Counter()
    for pipe in attackers.values():
        told = told_by(pipe)
        tried.update(told["tried"])
        got += [what for what in told["gains"] if what not in got]
    for pid in attackers:
        os.waitpid(pid, 0)
    holder.close()
    if server.process.poll() is not None:
        got.append("the server's end")
    counts = Counter(rounds.splitlines())
    return {
        "tried": dict(sorted(tried.items())), "got": got,
        "victim": {"served": counts["served"], "not_served": counts["not served"]}, "looks": looks,
        "left_out": [],
        "server": {"most_memory_bytes": memory, "most_descriptors": descriptors},
    }  # fmt: skip


def _attacker(goal: Goal, seed: int, until: float) -> tuple[int, int]:
    # The server hangs up, or says no: that is what it is to do.
    refusals = (OSError, UserError, struct.error)
    return start(_become_attacker, lambda: Attacker(goal, seed), ATTACKS, until, refusals)


def _crowd(goal: Goal, seed: int, until: float) -> tuple[int, int]:
    """Start one with its subordinate users, as in a rootless container; it is one after the other."""
    mine, its = os.pipe()
    it = Attacker(goal, seed)

    def act() -> int:
        while time.monotonic() < until:
            user = it.rng.randrange(SUBORDINATES + 1)  # 0: itself

            def as_user(user: int = user, seed: int = it.rng.getrandbits(32)) -> None:
                it.rng = random.Random(seed)
                os.setgid(user)
                os.setuid(user)
                attacks_as_others.crowd(it)

            it.apart(as_user)
            it.tried["crowd"] += 1
        tell(it, its)
        return 0

    ranges = [(0, ATTACKER, 1), (1, FIRST_SUBORDINATE, SUBORDINATES)]
    pid = namespaces.child_in(ranges, _become_attacker, act)
    os.close(its)
    return pid, mine


def _become_attacker() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.setgroups([])
    os.setgid(ATTACKER)
    os.setuid(ATTACKER)


def _stolen(status: dict[str, Any]) -> list[str]:
    """What the attackers have of the victim's part, by the server's own account."""
    jobs = [job for job in status["jobs"] if job["clients"]]
    stolen = []
    theirs = [job for job in jobs if _is_attackers(job["user"])]
    if len(theirs) > 1:
        stolen.append(f"the shares of {len(theirs)} jobs")
    for job in jobs:
        if job["job"] == "climate" and job["user"] == VICTIM and job["size"] != NODES:
            stolen.append(f"another size of the victim's job: {job['size']}")
    return stolen


def _resident(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon", "RssShmem")))
