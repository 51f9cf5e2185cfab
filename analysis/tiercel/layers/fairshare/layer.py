"""fairshare: a policy-driven burst buffer in front of a storage (paper 001; native/fairshare).

For a run, a server is started on the run's own folder, and its files are mounted, where the engine uses them.
So every request of the run goes through the scheduler, and the files lie on the storage. The server of a run
on several nodes is on the first one, where the harness is, and the mounts of all nodes reach it by TCP.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tiercel.errors import RunFailed, UserError, suggest
from tiercel.layers.base import Layer, Options, Place, View, layers
from tiercel.layers.fairshare.mounting import choose
from tiercel.layers.fairshare.policies import SCHEDULERS, check_policy
from tiercel.layers.fairshare.programs import find_programs, required_programs
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated
from tiercel.layers.fairshare.server import Server, running_server
from tiercel.programs import Installation
from tiercel.site.model import Site
from tiercel.study.workloads import Workload
from tiercel.units import parse_size

#: Folders of a run's own folder: what the server keeps, and where its files are mounted.
_DATA, _VIEW = "fairshare", "shared"
#: In the run's raw folder, as long as the run lasts.
_TICKET = ".fairshare-ticket"
_REACH = "tiercel.layers.fairshare.reach"


@layers.register("fairshare")
class FairShare(Layer):
    """Options: policy, scheduler, parallel (requests at a time), charge (bytes for an operation), rate (bytes
    per second that the storage gives), and of the run's job: job (name), size (nodes; default the run's),
    priority; accelerate (true: large data go through shared memory). On several nodes: cleartext (true: what
    goes over the network need not be encrypted), address (under which others reach the first one; default
    its name)."""

    name = "fairshare"

    def find(self) -> Installation | None:
        found = find_programs()
        if found is None:
            return None
        return Installation(self.name, found.version, {"server": found.server, "library": found.library})

    def how_to_build(self) -> str:
        return "run `make layers`, which needs Rust's cargo"

    def check_options(self, options: Options, site: Site) -> None:
        known = {
            "policy", "scheduler", "parallel", "charge", "rate", "job", "size", "priority", "accelerate",
            "cleartext", "address",
        }  # fmt: skip
        for name, value in options.items():
            if name not in known:
                raise UserError(f"layer fairshare has no option {name!r}: {suggest(name, known)}")
            if name == "policy":
                check_policy(str(value))
            if name == "scheduler" and value not in SCHEDULERS:
                raise UserError(f"layer fairshare: scheduler {value!r}: {suggest(str(value), SCHEDULERS)}")
            if name in ("parallel", "size", "priority") and (not isinstance(value, int) or value < 1):
                raise UserError(f"layer fairshare: {name} must be a whole number above 0")
            if name in ("cleartext", "accelerate") and not isinstance(value, bool):
                raise UserError(f"layer fairshare: {name} must be true or false")
            if name in ("charge", "rate"):
                try:
                    parse_size(value)
                except ValueError as error:
                    raise UserError(f"layer fairshare: {name} {value!r}: {error}") from None

    def unsupported(self, engine: str, workload: Workload, nodes: int, options: Options) -> str | None:
        if nodes > 1 and not options.get("cleartext"):
            return "on several nodes nothing is encrypted: `options: {cleartext: true}` allows that"
        if workload.operation == "sharing-servers":
            return "the workload starts servers of its own"
        return None

    @contextmanager
    def session(self, place: Place, installation: Installation) -> Iterator[View]:
        options = dict(place.options)
        programs = required_programs()
        arguments = ["--policy", str(options.get("policy", "size-fair"))]
        for name in ("scheduler", "parallel"):
            if name in options:
                arguments += [f"--{name}", str(options[name])]
        for name in ("charge", "rate"):
            if name in options:
                arguments += [f"--{name}", str(parse_size(options[name]))]
        job = Job(
            str(options.get("job", "run")),
            int(options.get("size", place.nodes)),
            int(options.get("priority", 1)),
        )
        log = place.output / "fairshare-server.log"
        try:
            with ExitStack() as ending:
                view = _view(ending, place)
                alone = place.nodes == 1
                server = ending.enter_context(
                    running_server(
                        programs, place.data / _DATA, [*arguments, *_listening(place)], log,
                        mount=view if alone else None,
                    )
                )  # fmt: skip
                with Connection(server.socket) as connection:
                    ticket = connection.ticket(job)
                if alone:
                    member = ending.enter_context(Connection(server.socket, ticket))
                    member.join(os.getpid())  # and what it starts: the engine
                else:
                    # Not among the words of a command, which everybody on its nodes may see.
                    file = ending.enter_context(_secret(place.output / _TICKET, ticket))
                    ending.enter_context(_mounts(place, server, view, file))
                environment = {"FAIRSHARE_SERVER": str(server.socket)}
                if options.get("accelerate"):
                    environment |= accelerated(programs.library, view)
                yield View(view, environment)
                if server.process.poll() is not None:
                    raise RunFailed(f"layer fairshare: the server ended with {server.process.returncode}")
        except UserError as error:
            raise RunFailed(f"layer fairshare: {error}") from None


def _view(ending: ExitStack, place: Place) -> Path:
    """Return the folder where the files are mounted: the same on all nodes."""
    choose(str(place.data / _VIEW), alone=False)
    if place.nodes > 1:
        return Path(tempfile.gettempdir()) / f"tiercel-share-{os.getpid()}-{place.seed}"
    view = place.data / _VIEW
    view.mkdir(exist_ok=True)
    ending.callback(_remove, view)
    return view


def _remove(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _mounts(place: Place, server: Server, view: Path, ticket: Path) -> Iterator[None]:
    """Mount on each node of the run; RunFailed where a node does not reach the server, or cannot mount."""
    assert place.each_node is not None
    host = str(place.options.get("address", platform.node()))
    try:
        place.each_node(_REACH, ["begin", f"tcp:{host}:{server.port}", str(view), str(ticket)])
        yield
    finally:
        place.each_node(_REACH, ["end", str(view)])


def _listening(place: Place) -> list[str]:
    return ["--listen", "0.0.0.0:0", "--cleartext"] if place.nodes > 1 else []


@contextmanager
def _secret(file: Path, ticket: str) -> Iterator[Path]:
    """A file that has the ticket, for its owner alone, as long as this lasts."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    try:
        file.write_text(ticket)
        yield file
    finally:
        file.unlink(missing_ok=True)
