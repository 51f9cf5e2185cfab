"""``python -m benchmarks.growth.sharing JOBS``: one fairshare server, its jobs, fifty requests each."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tiercel.layers.fairshare.programs import required_programs
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.server import memory_folder, running_server
from tiercel.layers.fairshare.wire import REQUEST, Op

_REQUESTS = 50
#: File operations are the C client's: Connection has no function for them.
_ATTRIBUTES_OF_ROOT = REQUEST.pack(Op.GET_ATTRIBUTES, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0) + b"."


def main() -> None:
    """Let every job stay connected, and ask for the attributes of the root folder in turn."""
    jobs = int(sys.argv[1])
    with (
        tempfile.TemporaryDirectory(prefix="tiercel-growth-", dir=memory_folder()) as name,
        ExitStack() as end,
    ):
        server = end.enter_context(
            running_server(required_programs(), Path(name) / "data", ["--policy", "job-fair"])
        )
        with Connection(server.socket) as asking:
            tickets = [asking.ticket(Job(f"job{number}", size=1 + number % 8)) for number in range(jobs)]
        members = [end.enter_context(Connection(server.socket, ticket)) for ticket in tickets]
        for _ in range(_REQUESTS):
            for member in members:
                member._send(_ATTRIBUTES_OF_ROOT)
                member._answer("was not served")


if __name__ == "__main__":
    main()
