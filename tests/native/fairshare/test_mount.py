"""What is particular to the mount: rights of several users, mappings, whose requests these are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection
from tiercel.layers.fairshare.server import running_server

from .conftest import Share, let_through, needs_mount

MIB = 1024**2
CHARGE = 32 << 10  # of a request, beside its bytes: the server's --charge


@pytest.fixture
def mounted(serve: Callable[..., Share], tmp_path: Path) -> Share:
    return serve(data=tmp_path / "data")


def mount_of(share: Share) -> Path:
    return share.root


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
        replace(programs, server=limited), tmp_path / "data", [], tmp_path / "log", mount=place
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
    share = serve("--rate", str(8 * MIB), data=tmp_path / "data")
    place = share.root
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
