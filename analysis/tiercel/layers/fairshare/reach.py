"""Whether a node reaches a server: ``python -m tiercel.layers.fairshare.reach HOST PORT``.

A launcher starts one on each node of a run.
"""

from __future__ import annotations

import platform
import socket
import sys

from tiercel.launchers.answers import say
from tiercel.layers.fairshare import wire

_WITHIN_S = 10.0


def reach(host: str, port: int) -> str | None:
    """Return why no fairshare server answers there, or None."""
    try:
        with socket.create_connection((host, port), timeout=_WITHIN_S) as connection:
            said = connection.recv(wire.FRAME.size, socket.MSG_WAITALL)
    except OSError as error:
        return f"{error.strerror or error}"
    # Whoever connects is greeted with a challenge.
    whole = len(said) == wire.FRAME.size
    return None if whole and wire.FRAME.unpack(said)[0] == wire.MAGIC else "something else answers there"


def main(words: list[str]) -> int:
    """Answer; the exit code is 0 also for an error, which the answer names."""
    host, port = words
    problem = reach(host, int(port))
    answer = {"host": platform.node()}
    if problem:
        answer["error"] = (
            f"layer fairshare: {answer['host']} does not reach the server on {host}, port {port}: {problem}; "
            "`options: {address: NAME}` names the first node as the others know it"
        )
    say(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
