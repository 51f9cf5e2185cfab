"""Who a client is, and what it may do: from the kernel and the server's signature, never from its word."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.server import running_mount

from .conftest import Share
from .users import ALICE, BOB, act, as_user

STAFF = 54400
#: By which a mount says how the server knows an open file: _IOR(0xfb, 1, 136 bytes).
IOCTL = 2 << 30 | 136 << 16 | 0xFB << 8 | 1


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def public(open_to_all: Callable[..., Share]) -> Share:
    return open_to_all()


@pytest.fixture
def public_by_size(open_to_all: Callable[..., Share]) -> Share:
    return open_to_all("--policy", "size-fair")


def test_a_private_file_stays_private(public: Share) -> None:
    act(
        public,
        ALICE,
        """
os.umask(0o077); os.mkdir(ROOT + "/alice"); open(ROOT + "/alice/diary", "w").write("secret")
os.umask(0o022); open(ROOT + "/open-letter", "w").write("hello")
""",
    )
    said = act(
        public,
        BOB,
        """
attempt(open, ROOT + "/alice/diary"); attempt(os.listdir, ROOT + "/alice")
attempt(os.stat, ROOT + "/alice/diary")
attempt(open, ROOT + "/open-letter"); attempt(open, ROOT + "/open-letter", "a")
attempt(os.unlink, ROOT + "/open-letter"); attempt(os.rename, ROOT + "/alice", ROOT + "/bob")
attempt(os.chmod, ROOT + "/open-letter", 0o666); attempt(os.chown, ROOT + "/open-letter", BOB, -1)
print(os.access(ROOT + "/open-letter", os.R_OK), os.access(ROOT + "/open-letter", os.W_OK))
attempt(os.truncate, ROOT + "/open-letter", 0); attempt(os.setxattr, ROOT + "/open-letter", "user.x", b"1")
""".replace("BOB", str(BOB)),
    )
    assert said.split() == [
        "EACCES", "EACCES", "EACCES", "ok", "EACCES", "EPERM", "EPERM", "EPERM", "EPERM", "True", "False",
        "EACCES", "EACCES",
    ]  # fmt: skip
    assert os.stat(public.tree / "alice" / "diary").st_uid == ALICE


def test_groups_count(public: Share) -> None:
    (public.tree / "shared").write_text("x")
    os.chown(public.tree / "shared", 0, STAFF)
    os.chmod(public.tree / "shared", 0o660)
    assert act(public, ALICE, 'attempt(open, ROOT + "/shared", "a")', groups=[STAFF]) == "ok\n"
    assert act(public, ALICE, 'attempt(open, ROOT + "/shared", "a")') == "EACCES\n"


def test_nothing_leads_out_of_the_tree(public: Share) -> None:
    (public.server.data / "beside").write_text("not served")
    os.symlink("../beside", public.tree / "up")
    said = act(
        public,
        ALICE,
        """
attempt(open, ROOT + "/up"); attempt(os.stat, ROOT + "/../beside")
d = os.open(ROOT, os.O_RDONLY)
attempt(lambda: os.open("../../beside", os.O_RDONLY, dir_fd=d))
""",
    )
    assert set(said.split()) <= {"ENOENT", "ENOTDIR"}
    public.python("os.link(ROOT + '/up', ROOT + '/caught', follow_symlinks=False)")
    assert os.path.islink(public.tree / "caught")  # the link itself, not what it says


def test_a_handle_of_another_user_is_no_handle(public: Share) -> None:
    """What the preload library learns of an open file helps nobody but its owner."""
    (public.tree / "f").write_text("root's own")
    os.chmod(public.tree / "f", 0o600)
    code = f"""
import fcntl
f = os.open(ROOT + "/f", os.O_RDONLY)
said = fcntl.ioctl(f, {IOCTL}, bytes(136))
print(int.from_bytes(said[:8], "little"), flush=True)
input()
"""
    holder = public.start(
        [sys.executable, "-c", f"import os\nROOT={str(public.root)!r}\n{code}"], stdin=subprocess.PIPE
    )
    assert holder.stdout is not None
    handle = int(holder.stdout.readline())
    thief = f"""
with Speaker({str(public.server.socket)!r}, lambda _: None) as s:
    print(s.ask(request(Op.READ, handle={handle}, size=100))[0])
"""
    assert int(act(public, BOB, thief)) == -9  # EBADF
    holder.communicate("\n")


def ticket_of(share: Share, uid: int, job: Job) -> str:
    code = f"""
try:
    with Connection(Path({str(share.server.socket)!r})) as c: print(c.ticket({job!r}))
except UserError as error: print("refused", error)
"""
    return act(share, uid, code)


def test_only_the_servers_own_user_gives_sizes(public: Share) -> None:
    assert "refused" in ticket_of(public, ALICE, Job("huge", size=1000))
    assert "refused" in ticket_of(public, ALICE, Job("mine", user=BOB))
    assert "refused" in ticket_of(public, ALICE, Job("slurm-17"))
    assert "refused" in ticket_of(public, ALICE, Job("mine", holder=(ALICE, 0), group=ALICE))
    assert "refused" in ticket_of(public, ALICE, Job("mine", holder=(BOB, BOB)))
    assert "refused" not in ticket_of(public, ALICE, Job("mine"))
    with Connection(public.server.socket) as connection:
        assert len(connection.ticket(Job("huge", size=1000))) == 2 * (128 + 32)


def test_a_ticket_of_another_or_a_changed_one_is_refused(public: Share) -> None:
    with Connection(public.server.socket) as connection:
        good = connection.ticket(Job("job", size=2))
    changed = bytearray.fromhex(good)
    changed[16] = 200  # the size
    for ticket, uid in ((good, ALICE), (changed.hex(), 0)):
        code = f"""
try: Connection(Path({str(public.server.socket)!r}), {ticket!r}); print("let in")
except UserError as error: print("refused", error)
"""
        assert act(public, uid, code).startswith("refused")


def test_who_becomes_another_user_leaves_the_job_behind(public: Share) -> None:
    """A program that gives root up goes on as the one job of the user that it is now."""
    os.chmod(public.tree, 0o777)
    code = f"""
open(ROOT + "/as-root", "w").write("1"); os.setgid({ALICE}); os.setuid({ALICE})
open(ROOT + "/as-alice", "w").write("22")
"""
    head = f"import os\nROOT = {str(public.root)!r}\n"
    done = public.run(sys.executable, "-c", head + code, job=Job("job", size=2))
    assert done.returncode == 0, done.stderr
    jobs = public.jobs()
    assert (jobs["job"]["bytes_written"], jobs[f"user-{ALICE}"]["bytes_written"]) == (1, 2)


def test_the_environment_does_not_make_a_job(share: Share) -> None:
    lies = {"SLURM_JOB_ID": "1", "SLURM_NNODES": "5000", "USER": "somebody"}
    share.run("cat", f"{share.root}/x", env={**share.environment(), **lies})
    assert [(name, job["size"]) for name, job in share.jobs().items()] == [(f"user-{os.geteuid()}", 1)]


def test_over_tcp_only_with_a_ticket(serve: Callable[..., Share], tmp_path: Path) -> None:
    share = serve("--listen", "127.0.0.1:0")
    address = f"tcp:127.0.0.1:{share.server.port}"
    (mount := tmp_path / "remote").mkdir()
    with pytest.raises(UserError, match="needs a ticket"), running_mount(share.programs, address, mount):
        pass
    with Connection(share.server.socket) as connection:
        ticket = connection.ticket(Job("remote"))
    script = f"cd {mount}; seq 100000 > f; tail -1 f; mkdir d; mv f d; ls d; cp d/f g; cmp g d/f && echo same"
    with running_mount(share.programs, address, mount, ticket):
        done = share.run("bash", "-euc", script)
    assert done.stdout.split() == ["100000", "f", "same"], done.stderr
    assert (share.tree / "g").stat().st_size == 588895
    assert share.jobs()["remote"]["bytes_written"] >= 2 * 588895


def test_a_connection_with_a_ticket_keeps_its_job_there(serve: Callable[..., Share]) -> None:
    """Two connected jobs of sizes 3 and 1 are entitled to 3/4 and 1/4; gone, to nothing."""
    share = serve("--policy", "size-fair")
    with Connection(share.server.socket) as asking:
        tickets = [asking.ticket(Job(name, size)) for name, size in (("large", 3), ("small", 1))]
        with Connection(share.server.socket, tickets[0]), Connection(share.server.socket, tickets[1]):
            jobs = {job["job"]: job for job in asking.status()["jobs"]}
        assert {name: jobs[name]["clients"] for name in ("large", "small")} == {"large": 1, "small": 1}
        assert jobs["large"]["share"] == pytest.approx(3 * jobs["small"]["share"])
        forged = tickets[0][:-2] + ("00" if tickets[0][-2:] != "00" else "01")
        with pytest.raises(UserError, match="not signed by this server's key"):
            Connection(share.server.socket, forged)


def granted(share: Share, name: str, uid: int, size: int) -> str:
    """A ticket as the administrator gives it to a user's job."""
    with Connection(share.server.socket) as connection:
        return connection.ticket(Job(name, size, holder=(uid, uid)))


def jobs_with(
    share: Share, tickets: list[tuple[int, str | None]], own: list[tuple[int, str]]
) -> dict[str, Any]:
    """Let processes of users join at the same time, with tickets of the administrator, or for a job that they
    had signed themselves; then `job of user: [size, share]`."""
    code = """
with Connection(Path(SOCKET)) as asking:
    mine = TICKET if NAME is None else asking.ticket(Job(NAME))
with Connection(Path(SOCKET), mine) as joined:
    print("joined", flush=True)
    sys.stdin.readline()
"""
    wants = [(uid, ticket, None) for uid, ticket in tickets] + [(uid, None, name) for uid, name in own]
    clients = []
    for uid, ticket, name in wants:
        head = f"SOCKET, TICKET, NAME = {str(share.server.socket)!r}, {ticket!r}, {name!r}\n"
        client = subprocess.Popen(
            [sys.executable, "-c", as_user(share, uid, head + code)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        clients.append(client)
        assert client.stdout is not None
        assert client.stdout.readline() == "joined\n"
    with Connection(share.server.socket) as asking:
        jobs = [job for job in asking.status()["jobs"] if job["clients"] and job["user"] != 0]
    for client in clients:
        client.communicate("\n")
    # As parts of what these jobs have together: root, who asks, has a job too.
    whole = sum(job["share"] for job in jobs)
    return {f"{job['job']} of {job['user']}": [job["size"], round(job["share"] / whole, 4)] for job in jobs}


def test_a_job_belongs_to_its_user(public_by_size: Share) -> None:
    """B joins a job of the name of A's, with a ticket of its own: A's 16 nodes stay 16 beside B's one."""
    climate = granted(public_by_size, "climate", ALICE, 16)
    found = jobs_with(public_by_size, [(ALICE, climate)], [(BOB, "climate")])
    assert found == {f"climate of {ALICE}": [16, 0.9412], f"user-{BOB} of {BOB}": [1, 0.0588]}


def test_the_newest_joiner_changes_nothing(public_by_size: Share) -> None:
    """A's own processes without the administrator's ticket, and with an older one, join later."""
    old, new = (granted(public_by_size, "climate", ALICE, size) for size in (2, 16))
    found = jobs_with(public_by_size, [(ALICE, old), (ALICE, new), (ALICE, old)], [(ALICE, "climate")])
    assert found[f"climate of {ALICE}"][0] in (2, 16)
    either_order = jobs_with(public_by_size, [(ALICE, new), (ALICE, old)], [])
    assert either_order[f"climate of {ALICE}"][0] == found[f"climate of {ALICE}"][0]


def test_sixteen_jobs_of_ones_own_making_are_one(public_by_size: Share) -> None:
    found = jobs_with(public_by_size, [(ALICE, None)], [(BOB, f"mine-{n}") for n in range(16)])
    assert found == {f"user-{ALICE} of {ALICE}": [1, 0.5], f"user-{BOB} of {BOB}": [1, 0.5]}


def test_users_make_jobs_where_the_administrator_lets_them(open_to_all: Callable[..., Share]) -> None:
    share = open_to_all("--jobs", "users", "--policy", "user-fair")
    found = jobs_with(share, [(ALICE, None)], [(BOB, f"mine-{n}") for n in range(3)])
    assert found == {f"user-{ALICE} of {ALICE}": [1, 0.5]} | {
        f"mine-{n} of {BOB}": [1, 0.1667] for n in range(3)
    }


def test_users_are_alike_by_default(open_to_all: Callable[..., Share]) -> None:
    """However large the jobs are that one of them was given."""
    share = open_to_all()
    huge = granted(share, "huge", BOB, 1000)
    found = jobs_with(share, [(ALICE, None), (BOB, huge)], [(BOB, "more")])
    assert found[f"user-{ALICE} of {ALICE}"] == [1, 0.5]


def test_a_ticket_over_tcp_gives_no_group_that_its_user_lacks(open_to_all: Callable[..., Share]) -> None:
    """A ticket is all that says who comes over TCP: a user must not have one signed for root's group."""
    share = open_to_all()
    signed = ticket_of(share, BOB, Job("mine", holder=(BOB, 0), group=BOB)).strip()
    assert "refused" in signed


def test_a_connection_to_nobody_is_named(tmp_path: object) -> None:
    with pytest.raises(UserError, match="no fairshare server answers"):
        Connection(__import__("pathlib").Path(str(tmp_path)) / "none")


@pytest.fixture
def slurm_cgroup() -> Iterator[Path]:
    """A control group with a name as Slurm gives it to job 77; the file that takes processes."""
    for root in (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")):
        outer, inner = root / "slurm-tiercel", root / "slurm-tiercel/job_77"
        try:
            outer.mkdir(exist_ok=True)
            inner.mkdir(exist_ok=True)
        except OSError:
            continue
        procs = inner / "cgroup.procs"
        if procs.exists():
            yield procs
            inner.rmdir()
            outer.rmdir()
            return
        inner.rmdir()
        outer.rmdir()
    pytest.skip("control groups cannot be made here")


def names_in(share: Share, procs: Path, uid: int) -> set[str]:
    """The jobs that a server sees while a process of a user has a connection from within a control group."""
    code = f"""
with Connection(Path({str(share.server.socket)!r})): print("joined", flush=True); sys.stdin.readline()
"""
    client = subprocess.Popen(
        [sys.executable, "-c", as_user(share, uid, code)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: procs.write_text(str(os.getpid())),  # noqa: PLW1509
    )  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == "joined\n"
    with Connection(share.server.socket) as asking:
        found = {job["job"] for job in asking.status()["jobs"] if job["user"] == uid and job["clients"]}
    client.communicate("\n")
    return found


def test_a_control_group_that_its_user_made_is_no_job(
    open_to_all: Callable[..., Share], slurm_cgroup: Path
) -> None:
    """A user who was given a control group writes there, and makes one like Slurm's for job 42 below."""
    share = open_to_all("--slurm", "echo JobId={job} NumNodes=16")
    assert names_in(share, slurm_cgroup, BOB) == {"slurm-77"}
    outer = slurm_cgroup.parent.parent
    given = outer.with_name("given-to-bob")
    groups = [given, given / "slurm", given / "slurm" / "job_42"]
    try:
        for group in groups:
            group.mkdir()
            os.chown(group, BOB, BOB)
            os.chown(group / "cgroup.procs", BOB, BOB)
        assert names_in(share, groups[-1] / "cgroup.procs", BOB) == {f"user-{BOB}"}
    finally:
        for group in reversed(groups):
            if group.exists():
                group.rmdir()
    os.chown(outer, BOB, BOB)  # and where the whole of Slurm's was given away
    assert names_in(share, slurm_cgroup, BOB) == {f"user-{BOB}"}


def test_a_slurm_job_is_as_large_as_slurm_says(
    serve: Callable[..., Share], slurm_cgroup: Path, as_root: None
) -> None:
    """Slurm is asked by a command; the environment of the job says nothing that counts."""
    share = serve("--slurm", "echo JobId={job} NumNodes=6")
    code = "os.stat(ROOT); print('known', flush=True); input()"
    client = subprocess.Popen(
        [sys.executable, "-c", f"import os\nROOT={str(share.root)!r}\nos.environ.clear()\n{code}"],
        env={**share.environment(), "SLURM_JOB_NUM_NODES": "999"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: slurm_cgroup.write_text(str(os.getpid())),  # noqa: PLW1509
    )  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == "known\n"
    sizes: list[int] = []
    with Connection(share.server.socket) as connection:
        while 6 not in sizes and len(sizes) < 3000:
            sizes += [job["size"] for job in connection.status()["jobs"] if job["job"] == "slurm-77"]
            time.sleep(0.02)
    client.communicate("\n")
    assert sizes[-1] == 6


def subordinate() -> tuple[int, int] | None:
    """A user of this machine, and an id that is subordinate to it."""
    for line in Path("/etc/subuid").read_text().splitlines() if Path("/etc/subuid").is_file() else []:
        with contextlib.suppress(ValueError, KeyError):
            name, first, count = line.split(":")
            owner = pwd.getpwnam(name).pw_uid
            if owner and int(count) > 5:
                return owner, int(first) + 5
    return None


def test_a_subordinate_user_is_its_owner_to_the_policy_and_itself_to_files(
    open_to_all: Callable[..., Share],
) -> None:
    """Each was a user with a share of its own, and whoever runs rootless containers has 65,536 of them."""
    found = subordinate()
    if found is None:
        pytest.skip("nobody here has subordinate ids (/etc/subuid)")
    owner, uid = found
    share = open_to_all()
    act(share, uid, "open(ROOT + '/theirs', 'w').write('x' * 1000)")
    with Connection(share.server.socket) as connection:
        written = {job["job"]: (job["user"], job["bytes_written"]) for job in connection.status()["jobs"]}
    assert written[f"user-{owner}"] == (owner, 1000)
    assert f"user-{uid}" not in written
    assert (share.tree / "theirs").stat().st_uid == uid


FALSE_SERVER = """
import os, socket, struct, sys
from tiercel.layers.fairshare.wire import ATTRIBUTES, FRAME, MAGIC, REPLY, REQUEST, WELCOME, Op
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1]))); listener.listen()
print("listens", flush=True)
def say(s, body): s.sendall(FRAME.pack(MAGIC, len(body), 0) + body)
def hear(s):
    head = s.recv(FRAME.size, socket.MSG_WAITALL)
    return s.recv(FRAME.unpack(head)[1], socket.MSG_WAITALL) if len(head) == FRAME.size else b""
while True:
    s, _ = listener.accept()
    say(s, b"c" * 16); hear(s)
    welcome = WELCOME.pack(1, 7, 0, 0, 0, 0, 0) + b"s" * int(sys.argv[2])
    say(s, REPLY.pack(0, 0, len(welcome)) + welcome)
    while asked := hear(s):
        op, *_ = REQUEST.unpack_from(asked)
        if op == Op.WRITE: print("got", asked[REQUEST.size:], flush=True)
        file = ATTRIBUTES.pack(*[0] * 4, 0o100644, *[0] * 12)
        say(s, REPLY.pack(len(asked) - REQUEST.size, 5, len(file)) + file)
"""


@pytest.mark.parametrize("proof", [0, 32])
def test_who_takes_a_servers_address_gets_nothing(
    serve: Callable[..., Share], tmp_path: Path, proof: int
) -> None:
    """Over TCP nothing but the ticket's secret tells a server from whoever has its port when it is down."""
    port = free_port()
    share = serve("--listen", f"127.0.0.1:{port}")
    with Connection(share.server.socket) as connection:
        ticket = connection.ticket(Job("job"))
    share.server.process.terminate()
    share.server.process.wait()
    false = subprocess.Popen(
        [sys.executable, "-c", FALSE_SERVER, str(port), str(proof)], stdout=subprocess.PIPE, text=True
    )
    assert false.stdout is not None
    assert false.stdout.readline() == "listens\n"
    (mount := tmp_path / "remote").mkdir()
    with (
        pytest.raises(UserError, match="does not know the secret of the ticket"),
        running_mount(share.programs, f"tcp:127.0.0.1:{port}", mount, ticket),
    ):
        pass
    false.kill()
    assert false.communicate()[0] == ""
