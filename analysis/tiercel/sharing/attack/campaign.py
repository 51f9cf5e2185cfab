"""A server that all users reach, a victim who works there, and attackers beside it: who gets what."""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import required_programs
from tiercel.layers.fairshare.protocol import Connection, Job, client_environment
from tiercel.layers.fairshare.server import Server, running_server
from tiercel.sharing.attack.attacks import ATTACKS, Attacker
from tiercel.sharing.attack.speech import Op, Speaker, request

#: Users that nobody else is, with groups of the same numbers.
VICTIM, ATTACKER = 54321, 54322
ATTACKERS = 2
PREFIX = "/fairshare-attacked"
NODES = 16
#: Seconds between two looks at the server.
LOOK_S = 0.25

#: The victim: again and again a new process gets in, writes, and reads what it wrote.
_VICTIM = f"""
import os, sys, select
os.setgroups([]); os.setgid({VICTIM}); os.setuid({VICTIM})
count = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    count += 1
    pid = os.fork()
    if pid == 0:
        data = os.urandom(1000) * 300
        try:
            with open(f"{PREFIX}/victim/{{count % 4}}", "w+b") as f:
                f.write(data)
                f.seek(0)
                same = f.read() == data
        except OSError: same = False
        os._exit(0 if same else 1)
    print("served" if os.waitpid(pid, 0)[1] == 0 else "not served", flush=True)
"""


def campaign(minutes: float, seed: int, options: Sequence[str] = ()) -> dict[str, Any]:
    """Attack a server for so long; UserError without root. `got` in the result: what nobody should have got.

    `options` are the server's own, to see that the campaign finds what they let happen.
    """
    if os.geteuid() != 0:
        raise UserError("an attack needs root: it acts as two users beside the server's")
    secret = b"secret-" + os.urandom(16).hex().encode()
    with tempfile.TemporaryDirectory(prefix="tiercel-attack-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "outside").write_bytes(secret)
        (folder / "outside").chmod(0o600)
        arguments = ["--policy", "size-fair", *options]
        with running_server(required_programs(), folder / "data", arguments, folder / "log") as server:
            server.socket.parent.chmod(0o711)
            _prepare(server, secret)
            before = _state(folder, server)
            found = _fight(server, secret, minutes, seed)
            after = _state(folder, server)
        changed = [
            path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)
        ]
        found["got"] += [f"a change of {path}" for path in changed]
        found["server_said"] = (folder / "log").read_text(errors="replace").splitlines()[:20]
    return {"minutes": minutes, "seed": seed, **found}


def _prepare(server: Server, secret: bytes) -> None:
    for name, uid in (("victim", VICTIM), ("attacker", ATTACKER)):
        (server.tree / name).mkdir(mode=0o700)
        os.chown(server.tree / name, uid, uid)
    for path, uid in ((server.tree / "victim" / "secret", VICTIM), (server.tree / "root-only", 0)):
        path.write_bytes(secret)
        path.chmod(0o600)
        os.chown(path, uid, uid)


def _state(folder: Path, server: Server) -> dict[str, tuple[object, ...]]:
    """What an attacker must leave as it is: all that is not its own, and not what the victim works on."""
    state: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        at_work = path.parent == server.tree / "victim" and path.name.isdigit()
        if path == folder / "log" or at_work:
            continue
        if found.st_uid == ATTACKER and _top(server, path).lstat().st_uid == ATTACKER:
            continue  # the tree is everybody's to make names in, and in what he made there
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        state[str(path.relative_to(folder))] = (found.st_uid, found.st_gid, found.st_mode, content)
    return state


def _top(server: Server, path: Path) -> Path:
    """Return what lies in the tree itself and has `path` in it; for what lies elsewhere, the data folder."""
    if server.tree not in path.parents:
        return server.data
    return server.tree / path.relative_to(server.tree).parts[0]


def _fight(server: Server, secret: bytes, minutes: float, seed: int) -> dict[str, Any]:
    with Connection(server.socket) as connection:
        ticket = connection.ticket(Job("climate", NODES, holder=(VICTIM, VICTIM)))
    environment = client_environment(required_programs().library, PREFIX, str(server.socket), ticket)
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM], env={**os.environ, **environment, "FAIRSHARE_PATIENCE": "20"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60 * minutes
    holder = Speaker(str(server.socket), lambda _: None)
    bait = [holder.ask(request(Op.OPEN, b"/root-only", flags=os.O_RDWR))[1] for _ in range(3)]
    attackers = dict(_attacker(server, secret, bait, seed + n, until) for n in range(ATTACKERS))
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
        with os.fdopen(pipe) as said:
            text = said.read()
        if not text:
            raise RuntimeError("an attacking process ended before it told what it tried")
        told = json.loads(text)
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
        "server": {"most_memory_bytes": memory, "most_descriptors": descriptors},
    }  # fmt: skip


def _attacker(server: Server, secret: bytes, bait: list[int], seed: int, until: float) -> tuple[int, int]:
    """Start one; its number, and the end of a pipe where it tells in the end what it tried and got."""
    mine, its = os.pipe()
    if pid := os.fork():
        os.close(its)
        return pid, mine
    code = 1
    try:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        os.setgroups([])
        os.setgid(ATTACKER)
        os.setuid(ATTACKER)
        it = Attacker(str(server.socket), server.data, secret, bait, seed)
        order = list(ATTACKS)
        while time.monotonic() < until:
            random.Random(it.rng.random()).shuffle(order)
            for attack in order:
                # The server hangs up, or says no: that is what it is to do.
                with suppress(OSError, UserError, struct.error):
                    attack(it)
                it.tried[attack.__name__] += 1
        with os.fdopen(its, "w") as pipe:
            json.dump({"tried": it.tried, "gains": it.gains}, pipe)
        code = 0
    except BaseException:
        traceback.print_exc()  # nothing above it tells: the process ends here
    finally:
        sys.stderr.flush()
        os._exit(code)


def _stolen(status: dict[str, Any]) -> list[str]:
    """What the attackers have of the victim's part, by the server's own account."""
    jobs = [job for job in status["jobs"] if job["clients"]]
    stolen = []
    theirs = [job for job in jobs if job["user"] == ATTACKER]
    if len(theirs) > 1:
        stolen.append(f"the shares of {len(theirs)} jobs")
    for job in jobs:
        if job["job"] == "climate" and job["user"] == VICTIM and job["size"] != NODES:
            stolen.append(f"another size of the victim's job: {job['size']}")
    return stolen


def _resident(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon", "RssShmem")))
