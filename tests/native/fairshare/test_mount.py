"""The FUSE mount: the same files, for what no preload library reaches."""

from __future__ import annotations

import mmap
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection
from tiercel.layers.fairshare.server import running_server

from .conftest import PREFIX, Share, let_through
from .posix_checks import CHECKS
from .test_posix import SCRIPT

MIB = 1024**2
CHARGE = 32 << 10  # of a request, beside its bytes: the server's --charge


def needs_mount() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine has no usable /dev/fuse")
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        pytest.skip("mounting without root needs fusermount3 (package fuse3)")


@pytest.fixture
def mounted(serve: Callable[..., Share], tmp_path: Path) -> Share:
    needs_mount()
    place = tmp_path / "mount"
    place.mkdir()
    return serve("--mount", str(place), data=tmp_path / "data")


def mount_of(share: Share) -> Path:
    return share.server.data.parent / "mount"


@pytest.mark.parametrize("name", CHECKS)
def test_posix(mounted: Share, name: str) -> None:
    own = mount_of(mounted) / "own"
    own.mkdir()
    let_through(own)
    argv = [sys.executable, str(SCRIPT), name, str(own)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr


def test_mount_and_library_show_the_same_files(mounted: Share) -> None:
    place = mount_of(mounted)
    (place / "a").write_text("by the mount")
    assert mounted.bash("cat $ROOT/a; echo by the library > $ROOT/b") == "by the mount"
    assert (place / "b").read_text() == "by the library\n"
    mounted.bash("echo more >> $ROOT/b; mv $ROOT/a $ROOT/c")
    assert (place / "b").read_text() == "by the library\nmore\n"
    assert sorted(os.listdir(place)) == ["b", "c"]


def test_shared_writable_mappings(mounted: Share) -> None:
    path = mount_of(mounted) / "f"
    path.write_bytes(b"x" * 8192)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:5] = b"hello"
        view.flush()
    assert mounted.bash("head -c 6 $ROOT/f") == "hellox"


def test_programs_can_be_started_from_it(mounted: Share) -> None:
    program = mount_of(mounted) / "program"
    shutil.copy("/bin/true", program)
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_other_users_have_their_own_rights(mounted: Share, as_root: None) -> None:
    place = mount_of(mounted)
    let_through(place)
    (place / "private").write_text("secret")
    os.chmod(place / "private", 0o600)
    code = f"cat {place}/private; echo mine > {place}/own && cat {place}/own"
    done = subprocess.run(
        ["sh", "-c", code],
        user=54321,
        group=54321,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Permission denied" in done.stderr
    assert done.stdout == "mine\n"
    assert os.stat(mounted.tree / "own").st_uid == 54321


def test_the_mount_shows_what_the_library_wrote_to_open_and_mapped_files(mounted: Share) -> None:
    """The kernel kept the pages of an open file, and showed them for ever, whatever others wrote."""
    path = mount_of(mounted) / "f"
    path.write_bytes(b"-" * 3 * MIB)
    steps = {
        "os.pwrite(fd, b'first', 0)": b"first",
        "os.pwrite(fd, b'again', 0)": b"again",
        "os.pwrite(fd, b'large' * (MIB // 2), 0)": b"large",
        "os.ftruncate(fd, 0); os.ftruncate(fd, 3 * MIB)": bytes(5),
        "os.pwrite(fd, b'later', 0)": b"later",
        "os.posix_fallocate(fd, 0, 3 * MIB); os.close(os.open(name, os.O_WRONLY | os.O_TRUNC)); "
        "os.ftruncate(fd, 3 * MIB)": bytes(5),
    }
    code = f"""MIB = {MIB}; name = ROOT + "/f"; fd = os.open(name, os.O_RDWR)
for line in sys.stdin: exec(line); print("done", flush=True)
"""
    argv = [sys.executable, "-c", f"import os, sys\nROOT = {PREFIX!r}\n{code}"]
    with (
        mounted.start(argv, stdin=subprocess.PIPE) as writer,
        path.open("rb", buffering=0) as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view,
    ):
        assert writer.stdin is not None and writer.stdout is not None
        for step, there in steps.items():
            before = os.pread(file.fileno(), 5, 0), view[:5]
            writer.stdin.write(step + "\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n", before
            assert (os.pread(file.fileno(), 5, 0), view[:5]) == (there, there), step


def test_who_waits_for_his_own_mapping_keeps_nobody_waiting(
    serve: Callable[..., Share], tmp_path: Path, as_root: None
) -> None:
    """The kernel first brings what a mapping wrote. One thread waited for that, for all who change them."""
    needs_mount()
    (place := tmp_path / "mount").mkdir()
    (config := tmp_path / "config").write_text("")
    share = serve("--mount", str(place), "--config", str(config), data=tmp_path / "data")
    let_through(place)
    let_through(share.server.socket.parent)
    code = """import mmap, os, sys
who, place = int(sys.argv[1]), sys.argv[2]
os.setgroups([]); os.setgid(who); os.setuid(who)
fd = os.open(f"{place}/{who}", os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 8 << 20)
view = mmap.mmap(fd, 8 << 20)
view[:] = b"x" * (8 << 20) if who == 54321 else bytes(8 << 20)
if who != 54321: view.flush()
other = os.open(f"{ROOT}/{who}", os.O_RDWR)
print("mapped", flush=True); sys.stdin.readline()
os.pwrite(other, b"y", 0)
print("written", flush=True); sys.stdin.readline()
"""
    argv = [sys.executable, "-c", f"ROOT = {PREFIX!r}\n{code}"]
    users = [share.start([*argv, str(who), str(place)], stdin=subprocess.PIPE) for who in (54321, 54322)]
    for user in users:
        assert user.stdout is not None and user.stdout.readline() == "mapped\n"
    with Connection(share.server.socket) as connection:
        config.write_text("rate = 200000\n")
        assert "rate" in connection.reload()
        for user in users:
            assert user.stdin is not None
            user.stdin.write("\n")
            user.stdin.flush()
            while user is users[0]:  # until the kernel brings what its mapping wrote
                jobs = {job["job"]: job["bytes_written"] for job in connection.status()["jobs"]}
                if jobs["user-54321"] > 4096:
                    break
        assert users[1].stdout is not None and users[1].stdout.readline() == "written\n"
        assert select.select([users[0].stdout], [], [], 0)[0] == []  # 8 MiB take 40 s
        config.write_text("rate = 0\n")
        connection.reload()
    for user in users:
        user.communicate("\n")


def test_what_a_mapping_wrote_counts_to_whoever_opened_the_file(mounted: Share, as_root: None) -> None:
    """The kernel brings it when it likes, in nobody's name: it counted to root, past the user's share."""
    place = mount_of(mounted)
    let_through(place)
    code = f"""import mmap, os
os.setgroups([]); os.setgid(54321); os.setuid(54321)
fd = os.open({str(place / "mapped")!r}, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, {MIB})
with mmap.mmap(fd, {MIB}) as view:
    view[:] = b"x" * {MIB}
    view.flush()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with Connection(mounted.server.socket) as connection:
        written = {job["job"]: job["bytes_written"] for job in connection.status()["jobs"]}
    assert written["user-54321"] == MIB
    assert written.get("user-0", 0) == 0
    assert (mounted.tree / "mapped").read_bytes() == b"x" * MIB


def test_a_tree_of_more_files_than_descriptors(programs: Programs, tmp_path: Path) -> None:
    """The kernel remembers each file that a walk finds, the server with a descriptor: they are let go."""
    needs_mount()
    limited = tmp_path / "server"
    limited.write_text(f'#!/bin/sh\nulimit -n 1000 && exec {programs.server} "$@"\n')
    limited.chmod(0o755)
    (place := tmp_path / "mount").mkdir()
    with running_server(
        replace(programs, server=limited), tmp_path / "data", ["--mount", str(place)], tmp_path / "log"
    ) as server:
        for folder in range(20):
            (server.tree / str(folder)).mkdir()
            for name in range(150):
                (server.tree / str(folder) / str(name)).write_text(str(name))
        with (place / "0" / "7").open() as kept:
            working = subprocess.Popen(["sleep", "60"], cwd=place / "1")
            # 3,000 files, 1,000 descriptors: a walk found some 700, and after it none could be opened.
            for _ in range(2):
                assert sum(path.stat().st_size for path in place.glob("*/*")) == 20 * (10 + 90 * 2 + 50 * 3)
            (place / "new").write_text("made")
            assert (server.tree / "new").read_text() == "made"
            # What is in use was not taken away.
            assert kept.read() == "7"
            assert os.readlink(f"/proc/self/fd/{kept.fileno()}") == str(place / "0" / "7")
            assert os.readlink(f"/proc/{working.pid}/cwd") == str(place / "1")
            working.kill()
            working.wait()


def test_a_write_is_one_request(mounted: Share) -> None:
    """Before each the kernel asked whether the file gives rights to who runs it: a request of its own."""
    job = f"user-{os.geteuid()}"
    counts = []
    fd = os.open(mount_of(mounted) / "f", os.O_RDWR | os.O_CREAT)
    try:
        for _ in range(2):
            for block in range(200):
                os.pwrite(fd, b"x" * 4096, block * 4096)
            with Connection(mounted.server.socket) as connection:
                [status] = [each for each in connection.status()["jobs"] if each["job"] == job]
            counts.append(status["served"])
    finally:
        os.close(fd)
    of_one = 4096 + CHARGE
    assert 200 * of_one <= counts[1] - counts[0] < 220 * of_one


WRITES_OF_ANOTHER = """
import os, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
fd = os.open(sys.argv[1], os.O_RDWR)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


@pytest.mark.parametrize(
    "step",
    [
        "os.pwrite(fd, b'new', 0)",
        "os.ftruncate(fd, 1)",
        "os.truncate(sys.argv[1], 1)",
        "os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC))",
    ],
)
def test_who_changes_a_file_takes_the_rights_away_that_it_gives(
    mounted: Share, tmp_path: Path, as_root: None, step: str
) -> None:
    """As on an ordinary folder, also where the kernel found before that there was nothing to take away."""
    (ordinary := tmp_path / "ordinary").mkdir()
    let_through(ordinary)
    let_through(mount_of(mounted))
    found = {}
    for name, place, backing in [
        ("ordinary", ordinary, ordinary),
        ("mount", mount_of(mounted), mounted.tree),
    ]:
        (backing / "f").write_text("old old")
        (backing / "f").chmod(0o777)
        argv = [sys.executable, "-c", WRITES_OF_ANOTHER, str(place / "f")]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None and other.stdout is not None

            def does(line: str, other: subprocess.Popen[str] = other) -> None:
                assert other.stdin is not None and other.stdout is not None
                other.stdin.write(line + "\n")
                other.stdin.flush()
                assert other.stdout.readline() == "done\n"

            does("os.pwrite(fd, b'x', 0)")
            (backing / "f").chmod(0o6777)
            os.setxattr(
                backing / "f",
                "security.capability",
                bytes.fromhex("0100000200040000000000000000000000000000"),
            )
            does(step)
            other.stdin.close()
        status = os.stat(place / "f")
        found[name] = (oct(status.st_mode), status.st_size, os.listxattr(backing / "f"))
    assert found["mount"] == found["ordinary"]
    assert found["ordinary"][0] == "0o100777" and found["ordinary"][2] == []


def test_what_is_read_ahead_waits_by_the_policy(
    serve: Callable[..., Share], tmp_path: Path, as_root: None
) -> None:
    """The kernel kept it in a line of its own, in which one user's reads stood before all others'."""
    needs_mount()
    (place := tmp_path / "mount").mkdir()
    share = serve("--mount", str(place), "--rate", str(8 * MIB), data=tmp_path / "data")
    for name, size in (("large", 48 * MIB), ("small", 100_000)):
        (share.tree / name).write_bytes(bytes(size))
        (share.tree / name).chmod(0o644)
    let_through(place)
    code = f"""import os, sys
fd = os.open({str(place / "large")!r}, os.O_RDONLY)
os.setgroups([]); os.setgid(54321); os.setuid(54321)
for at in range(0, {48 * MIB}, {MIB // 8}): os.posix_fadvise(fd, at, {MIB // 8}, os.POSIX_FADV_WILLNEED)
print("asked for", flush=True); sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as greedy:
        assert greedy.stdout is not None and greedy.stdout.readline() == b"asked for\n"
        assert len((place / "small").read_bytes()) == 100_000
        with Connection(share.server.socket) as connection:
            read = {job["job"]: job["bytes_read"] for job in connection.status()["jobs"]}
        greedy.kill()
    assert 0 < read["user-54321"] < 32 * MIB
