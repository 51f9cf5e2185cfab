"""What an attacker tries in user namespaces, where it says itself who it is."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.wire import Op

from . import namespaces
from .attacks import Attacker, thefts_of_files
from .speech import request

#: What stands for all users that a namespace does not know.
UNKNOWN = 65534
SESSIONS_EACH = 8


def pretences(it: Attacker) -> None:
    """Root, the victim, or nobody, in a namespace of its own: on the socket, by the mount, by tickets."""
    victim = it.victim
    who = it.rng.choice([0, victim, UNKNOWN])
    seed = it.rng.getrandbits(32)

    def act() -> None:
        it.rng = random.Random(seed)
        namespaces.pretend(who)
        os.environ["FAIRSHARE_SERVER_USER"] = str(UNKNOWN)  # what root is called there
        for attack in (_tickets_of_others, thefts_of_files, _thefts_by_mount):
            with suppress(OSError, UserError, struct.error):
                attack(it)

    it.apart(act)


def _tickets_of_others(it: Attacker) -> None:
    for job in (Job("mine", user=0), Job("mine", user=it.victim), Job("mine", holder=(it.victim, it.victim))):
        with suppress(UserError), Connection(Path(it.address)) as c:
            c.ticket(job)
            it.got(f"a ticket for {job}, from a user namespace")
    with Connection(Path(it.address)) as c:
        if any(
            job["clients"] and job["user"] == it.victim for job in c.status()["jobs"] if "mine" in job["job"]
        ):
            it.got("a job of the victim's")
        acts: dict[str, Callable[[], object]] = {
            "a reload": c.reload,
            "the victim's job sent away": lambda: c.send_away("climate", it.victim, 1),
        }
        for what, act in acts.items():
            with suppress(UserError):
                act()
                it.got(f"{what}, from a user namespace")


def _thefts_by_mount(it: Attacker) -> None:
    if it.mount is None:
        return
    mount, own = it.mount, it.mount / f"own-{os.getpid()}"
    for path in (mount / "victim" / "secret", mount / "root-only"):
        with suppress(OSError):
            it.look(path.read_bytes())
    own.write_bytes(b"own")
    acts: dict[str, Callable[[], object]] = {
        "the victim's folder under another name": lambda: (mount / "victim").rename(mount / "taken"),
        "no shared file": (mount / "shared").unlink,
        "a change of the shared file": lambda: (mount / "shared").write_bytes(b"attacked"),
        "a file that belongs to another": lambda: os.chown(own, it.victim, it.victim),
        "a device": lambda: os.mknod(mount / f"null-{os.getpid()}", 0o20666, os.makedev(1, 3)),
        "a label that root alone gives": lambda: os.setxattr(own, "trusted.x", b"1"),
        "the mount itself": lambda: namespaces.unmount(mount),
    }
    for what, act in acts.items():
        with suppress(OSError):
            act()
            if what != "a file that belongs to another" or own.stat().st_uid != os.getuid():
                it.got(f"{what}, from a user namespace")
    own.unlink()


def crowd(it: Attacker) -> None:
    """All that a flood of one is, as the subordinate users that its namespace has numbers for."""
    kind = it.rng.choice(["sessions", "files", "thefts"])
    with ExitStack() as stack, suppress(OSError):
        for _ in range(SESSIONS_EACH):
            s = stack.enter_context(it.speaker(wants=1))
            if kind == "files":
                while len(s.descriptors) < 100 and (
                    s.ask(request(Op.OPEN, b"/", flags=os.O_DIRECTORY))[0] >= 0
                ):
                    pass
        if kind == "thefts":
            thefts_of_files(it)
            _thefts_by_mount(it)
            _tickets_of_others(it)


ATTACKS = (pretences,)
