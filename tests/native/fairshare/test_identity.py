"""Who a client is, and what it may do: from the kernel and the server's signature, never from its word."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection, Job

from .conftest import PREFIX, Share

ALICE, BOB, STAFF = 54321, 54322, 54400


@pytest.fixture
def public(serve: Callable[..., Share], as_root: None, tmp_path_factory: pytest.TempPathFactory) -> Share:
    """A server of root, reachable by all users."""
    share = serve()
    for folder in (share.server.socket.parent, *share.server.socket.parent.parents):
        if folder != folder.parent and not os.stat(folder).st_mode & stat.S_IXOTH:
            os.chmod(folder, os.stat(folder).st_mode | stat.S_IXOTH)
    return share


def act(share: Share, uid: int, code: str, *, groups: list[int] | None = None, gid: int | None = None) -> str:
    """Run code as a user; what it prints. Modules are read before the rights to their folders are dropped."""
    head = f"""
import errno, os, socket, struct, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.errors import UserError
os.setgroups({groups or []}); os.setgid({gid if gid is not None else uid}); os.setuid({uid})
ROOT = {PREFIX!r}
def attempt(call, *a):
    try: call(*a); print("ok")
    except OSError as e: print(errno.errorcode[e.errno])
"""
    done = share.run(sys.executable, "-c", head + code)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    os.symlink("/etc/passwd", public.tree / "absolute")
    os.symlink("../beside", public.tree / "up")
    said = act(
        public,
        ALICE,
        """
attempt(open, ROOT + "/absolute"); attempt(open, ROOT + "/up"); attempt(os.stat, ROOT + "/../beside")
d = os.open(ROOT, os.O_RDONLY)
attempt(lambda: os.open("../../beside", os.O_RDONLY, dir_fd=d))
""",
    )
    assert set(said.split()) <= {"ENOENT", "ENOTDIR"}
    public.python("os.link(ROOT + '/up', ROOT + '/caught', follow_symlinks=False)")
    assert os.path.islink(public.tree / "caught")  # the link itself, not what it says


def test_a_handle_of_another_user_is_no_handle(public: Share) -> None:
    """The descriptor's name is public; it helps nobody but its owner."""
    (public.tree / "f").write_text("root's own")
    os.chmod(public.tree / "f", 0o600)
    code = """
import socket
f = os.open(ROOT + "/f", os.O_RDONLY)
print(socket.socket(fileno=os.dup(f)).getpeername().decode().split("/")[-1], flush=True)
input()
"""
    holder = public.start(
        [sys.executable, "-c", f"import os\nROOT={PREFIX!r}\n{code}"], stdin=subprocess.PIPE
    )
    assert holder.stdout is not None
    handle = int(holder.stdout.readline(), 16)
    thief = f"""
s = socket.socket(socket.AF_UNIX); s.connect({str(public.server.socket)!r}); s.recv(99)
hello = struct.pack("<IIQ", 2, 0, 0)
s.sendall(struct.pack("<IIQ", 0x31525346, len(hello), 0) + hello); s.recv(999)
read = struct.pack("<IIQQqQIIIIII4q", 13, 0, {handle}, 0, 0, 100, *([0] * 10))
s.sendall(struct.pack("<IIQ", 0x31525346, len(read), 0) + read)
print(struct.unpack_from("<q", s.recv(999), 16)[0])
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
    assert "refused" not in ticket_of(public, ALICE, Job("mine"))
    with Connection(public.server.socket) as connection:
        assert len(connection.ticket(Job("huge", size=1000))) == 2 * (128 + 32)


def test_a_ticket_of_another_or_a_changed_one_is_refused(public: Share) -> None:
    with Connection(public.server.socket) as connection:
        good = connection.ticket(Job("job", size=2))
    changed = bytearray.fromhex(good)
    changed[16] = 200  # the size
    for ticket, uid in ((good, ALICE), (changed.hex(), 0)):
        environment = {**public.environment(), "FAIRSHARE_TICKET": ticket}
        code = f"import os; os.setgid({uid}); os.setuid({uid}); os.stat('{PREFIX}')"
        done = public.run(sys.executable, "-c", code, env=environment)
        assert done.returncode != 0
        assert "refuses" in done.stderr


def test_the_environment_does_not_make_a_job(share: Share) -> None:
    lies = {"SLURM_JOB_ID": "1", "SLURM_NNODES": "5000", "USER": "somebody"}
    share.run("cat", f"{PREFIX}/x", env={**share.environment(), **lies})
    with Connection(share.server.socket) as connection:
        assert [(job["job"], job["size"]) for job in connection.status()["jobs"]] == [
            (f"user-{os.geteuid()}", 1)
        ]


def test_over_tcp_only_with_a_ticket(serve: Callable[..., Share]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    share = serve("--listen", f"127.0.0.1:{port}")
    address = f"tcp:127.0.0.1:{port}"
    script = (
        f"cd {PREFIX}; seq 100000 > f; tail -1 f; mkdir d; mv f d; ls d; cp d/f g; cmp g d/f && echo same"
    )
    without = share.run("bash", "-euc", script, env=share.environment(server=address))
    assert "needs a ticket" in without.stderr
    done = share.run("bash", "-euc", script, env=share.environment(Job("remote"), address))
    assert done.stdout.split() == ["100000", "f", "same"], done.stderr
    assert (share.tree / "g").stat().st_size == 588895


def test_a_connection_with_a_ticket_keeps_its_job_there(share: Share) -> None:
    """Two connected jobs of sizes 3 and 1 are entitled to 3/4 and 1/4; gone, to nothing."""
    with Connection(share.server.socket) as asking:
        tickets = [asking.ticket(Job(name, size)) for name, size in (("large", 3), ("small", 1))]
        with Connection(share.server.socket, tickets[0]), Connection(share.server.socket, tickets[1]):
            jobs = {job["job"]: job for job in asking.status()["jobs"]}
        assert {name: jobs[name]["clients"] for name in ("large", "small")} == {"large": 1, "small": 1}
        assert jobs["large"]["share"] == pytest.approx(3 * jobs["small"]["share"])
        forged = tickets[0][:-2] + ("00" if tickets[0][-2:] != "00" else "01")
        with pytest.raises(UserError, match="not signed by this server's key"):
            Connection(share.server.socket, forged)


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


def test_a_slurm_job_is_as_large_as_slurm_says(
    serve: Callable[..., Share], slurm_cgroup: Path, as_root: None
) -> None:
    """Slurm is asked by a command; the environment of the job says nothing that counts."""
    share = serve("--slurm", "echo JobId={job} NumNodes=6")
    code = "os.stat(ROOT); print('known', flush=True); input()"
    client = subprocess.Popen(
        [sys.executable, "-c", f"import os\nROOT={PREFIX!r}\nos.environ.clear()\n{code}"],
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
