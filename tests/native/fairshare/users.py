"""Several users of one server: what each of them runs."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import Share

ALICE, BOB = 54321, 54322
#: From which `tests` is imported.
ROOT_OF_TESTS = str(Path(__file__).resolve().parents[3])


def as_user(
    share: Share, uid: int, code: str, groups: list[int] | None = None, gid: int | None = None
) -> str:
    """Code that a user runs. Modules are read before the rights to their folders are dropped."""
    return f"""
import errno, os, resource, select, socket, struct, sys, time
sys.path[:0] = {[ROOT_OF_TESTS, *sys.path]!r}
from pathlib import Path
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.wire import FRAME, HELLO, MAGIC, REPLY, VERSION, Op
from tests.attacks.fairshare.speech import Speaker, request
from tiercel.errors import UserError
os.setgroups({groups or []}); os.setgid({gid if gid is not None else uid}); os.setuid({uid})
ROOT = {str(share.root)!r}
def attempt(call, *a):
    try: call(*a); print("ok")
    except OSError as e: print(errno.errorcode[e.errno])
{code}"""


def act(share: Share, uid: int, code: str, *, groups: list[int] | None = None, gid: int | None = None) -> str:
    """Run code as a user; what it prints."""
    done = share.run(sys.executable, "-c", as_user(share, uid, code, groups, gid))
    assert done.returncode == 0, done.stderr
    return done.stdout
