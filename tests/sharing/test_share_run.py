"""`tiercel share run`: how the files are mounted, and that programs see them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare import mounting
from tiercel.layers.fairshare.mounting import Way, choose
from tiercel.layers.fairshare.namespace import mount_point
from tiercel.layers.fairshare.programs import find_programs
from tiercel.layers.fairshare.protocol import Connection, Job, tcp_address
from tiercel.layers.fairshare.server import running_server

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
built = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)
TIERCEL = (sys.executable, "-m", "tiercel")


def _cannot_mount() -> str | None:
    try:
        choose("/tmp/any")
    except UserError as error:
        return str(error)
    return None


mounts = pytest.mark.skipif(_cannot_mount() is not None, reason="needs a mount of FUSE")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bool]:
    """What a machine lets its user do; the real one may be another."""
    there = {"fuse": True, "root": False, "sys_admin": True, "users": True, "fusermount3": True}
    monkeypatch.setattr(
        mounting.os, "access", lambda path, _: there["fuse"] if path == "/dev/fuse" else path != Path("/")
    )
    monkeypatch.setattr(mounting.os, "geteuid", lambda: 0 if there["root"] else 1000)
    monkeypatch.setattr(mounting, "_may_administer", lambda: there["sys_admin"])
    monkeypatch.setattr(mounting.namespace, "may_have_users", lambda: there["users"])
    monkeypatch.setattr(mounting.shutil, "which", lambda _: "/bin/x" if there["fusermount3"] else None)
    return there


@pytest.mark.parametrize(
    ("lacks", "root", "way", "for_all"),
    [
        ((), True, Way.OWN, Way.OPEN),
        ((), False, Way.APART, Way.OPEN),
        (("users",), False, Way.OPEN, Way.OPEN),
        (("fusermount3",), False, Way.APART, None),
        (("users", "fusermount3"), False, None, None),
        (("fuse",), True, None, None),
        (("sys_admin",), True, None, None),
    ],
)
def test_how_a_user_may_mount(
    machine: dict[str, bool], lacks: tuple[str, ...], root: bool, way: Way | None, for_all: Way | None
) -> None:
    """Where neither way is left, a sentence says what is missing."""
    machine["root"] = root
    for each in lacks:
        machine[each] = False
    for expected, alone in ((way, True), (for_all, False)):
        if expected is None:
            with pytest.raises(UserError, match="cannot be mounted"):
                choose("/tmp/place", alone)
        else:
            assert choose("/tmp/place", alone) is expected
    with pytest.raises(UserError):
        choose("/place-in-a-folder-that-is-not-ours")


def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TIERCEL, "share", "run", *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )


@built
@mounts
def test_through_the_mount(tmp_path: Path) -> None:
    """The command alone sees it, in its own working directory; nothing is left of it."""
    place, data = tmp_path / "place", tmp_path / "data"
    script = (
        f"grep -c '{place} fuse' /proc/self/mounts; echo hello > {place}/f; mkfifo {place}/p; pwd; exit 7"
    )
    done = run("--explain", "--prefix", str(place), "--data", str(data), "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == ["1", str(Path.cwd())]
    assert done.stderr.startswith(f"tiercel: sh reaches {place}: ")
    assert (data / "tree" / "f").read_text() == "hello\n"
    assert not place.exists()
    assert str(place) not in Path("/proc/self/mounts").read_text()


@built
@mounts
def test_two_at_the_same_place_do_not_meet(tmp_path: Path) -> None:
    place = tmp_path / "place"
    script = f"echo $0 > {place}/f; sleep 1; cat {place}/f; ls {place}"
    argv = [*TIERCEL, "share", "run", "--prefix", str(place), "--", "sh", "-c", script]
    both = [subprocess.Popen([*argv, name], stdout=subprocess.PIPE, text=True) for name in ("one", "two")]
    assert [each.communicate(timeout=60)[0] for each in both] == ["one\nf\n", "two\nf\n"]
    assert not place.exists()


def test_the_place_to_mount_goes_with_the_last_of_many(tmp_path: Path) -> None:
    """However they overlap: nobody's goes while he has it, and in the end it is gone."""
    place = tmp_path / "place"

    def use() -> int:
        found = 0
        for _ in range(200):
            with mount_point(place):
                found += place.is_dir()
        return found

    with ThreadPoolExecutor(6) as pool:
        uses = [pool.submit(use) for _ in range(6)]
        assert [each.result() for each in uses] == [200] * 6
    assert not place.exists()


@built
@mounts
def test_a_killed_run_leaves_no_mount(tmp_path: Path) -> None:
    place = tmp_path / "place"
    argv = [
        *TIERCEL,
        "share",
        "run",
        "--prefix",
        str(place),
        "--",
        "sh",
        "-c",
        f"echo x > {place}/f; echo; sleep 60",
    ]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline()
    child.kill()
    child.wait()
    assert list(place.iterdir()) == []  # an ordinary, empty folder
    done = run("--prefix", str(place), "--", "sh", "-c", f"ls {place}; echo again")
    assert (done.returncode, done.stdout) == (0, "again\n"), done.stderr


@built
@mounts
@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_asked_to_end_saves_what_it_has(ask: signal.Signals, tmp_path: Path) -> None:
    """It was killed a quarter of a second after Ctrl-C, and its server ended before it."""
    place, data = tmp_path / "place", tmp_path / "data"
    code = (
        "import signal, sys, time, pathlib\n"
        f"place = pathlib.Path({str(place)!r})\n"
        "def save(*_):\n"
        "    time.sleep(1); place.joinpath('saved').write_text('all'); sys.exit(5)\n"
        "signal.signal(signal.SIGINT, save); signal.signal(signal.SIGTERM, save)\n"
        "place.joinpath('begun').write_text('x')\n"
        "time.sleep(60)"
    )
    argv = [*TIERCEL, "share", "run", "--prefix", str(place), "--data", str(data)]
    child = subprocess.Popen([*argv, "--", sys.executable, "-c", code], start_new_session=True)
    until = time.monotonic() + 30
    while not (data / "tree" / "begun").exists() and time.monotonic() < until:
        time.sleep(0.02)
    # A terminal asks all of its group, a scheduler often the first process alone.
    (os.killpg if ask == signal.SIGINT else os.kill)(child.pid, ask)
    assert child.wait(30) == 5
    assert (data / "tree" / "saved").read_text() == "all"


@built
@mounts
def test_what_the_user_preloads_stays(tmp_path: Path) -> None:
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "mine.c", tmp_path / "mine.so"
    source.write_text("int mine = 7;")
    subprocess.run([gcc, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    script = "import ctypes; print(ctypes.c_int.in_dll(ctypes.CDLL(None), 'mine').value)"
    done = subprocess.run(
        [*TIERCEL, "share", "run", "--accelerate", "--prefix", str(tmp_path / "p"), "--", sys.executable,
         "-c", script],
        capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": str(library)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


@built
@mounts
def test_a_server_that_runs(tmp_path: Path) -> None:
    """In its own mount, or in one that the command gets; both count to the job."""
    programs = find_programs()
    assert programs
    (place := tmp_path / "place").mkdir()
    way = Way.OWN if os.geteuid() == 0 else Way.OPEN
    if way is Way.OPEN and not shutil.which("fusermount3"):
        pytest.skip("mounting without root needs fusermount3 (package fuse3)")
    with running_server(programs, tmp_path / "data", mount=place) as server:
        for prefix, name in ((place, "one"), (tmp_path / "other", "two")):
            words = ("--socket", str(server.socket), "--prefix", str(prefix), "--job", name)
            done = run(*words, "--", "sh", "-c", f"head -c 12345 /dev/zero > {prefix}/{name}; ls {prefix}")
            assert (done.returncode, name in done.stdout) == (0, True), done.stderr
            with Connection(server.socket) as connection:
                found = {job["job"]: job["bytes_written"] for job in connection.status()["jobs"]}
            assert found[name] == 12345


@built
def test_what_is_wrong_is_one_line_and_2(tmp_path: Path) -> None:
    for arguments in (
        ("--prefix", "relative"),
        ("--socket", "tcp:nowhere"),
        ("--socket", str(tmp_path / "no")),
    ):
        done = run(*arguments, "--", "true")
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: others have no folder that root could take for its own"
)
def test_root_does_not_mount_on_another_users_folder(tmp_path: Path) -> None:
    """Its owner could put another in its place, and get what the program writes."""
    place = tmp_path / "place"
    place.mkdir()
    os.chown(place, 65534, 65534)
    argv = [*TIERCEL, "share", "run", "--prefix", str(place), "--", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "must be an absolute path" in done.stderr


@built
@mounts
@pytest.mark.parametrize("accelerate", [(), ("--accelerate",)])
def test_a_server_of_another_machine_is_reached_by_tcp(tmp_path: Path, accelerate: tuple[str, ...]) -> None:
    """A copy that went through TCP was longer than the file, and nobody was told."""
    programs, place = find_programs(), tmp_path / "place"
    assert programs is not None
    (data := tmp_path / "random").write_bytes(os.urandom(3_000_000))
    with running_server(programs, tmp_path / "data", ["--listen", "127.0.0.1:0"]) as server:
        with Connection(server.socket) as connection:
            ticket = connection.ticket(Job("far", size=3))
        words = ["--socket", f"tcp:127.0.0.1:{server.port}", "--prefix", str(place), *accelerate]

        def remote(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
            environment = {k: v for k, v in os.environ.items() if k != "FAIRSHARE_TICKET"} | more
            return subprocess.run(
                [*TIERCEL, "share", "run", *words, "--", *command],
                capture_output=True, text=True, env=environment, check=False,
            )  # fmt: skip

        (kept := tmp_path / "ticket").write_text(ticket + "\n")
        done = remote("cp", str(data), f"{place}/copy", FAIRSHARE_TICKET=f"@{kept}")
        assert done.returncode == 0, done.stderr
        assert (server.tree / "copy").read_bytes() == data.read_bytes()
        done = remote("cmp", str(data), f"{place}/copy", FAIRSHARE_TICKET=ticket)
        assert done.returncode == 0, done.stderr
        for wrong, said in (
            ({}, "`tiercel share ticket`"), ({"FAIRSHARE_TICKET": "00" * 200}, ""),
            ({"FAIRSHARE_TICKET": f"@{tmp_path}/nowhere"}, "No such file"),
        ):  # fmt: skip
            done = remote("true", **wrong)
            assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1)
    gone = remote("true", FAIRSHARE_TICKET=ticket)
    assert gone.returncode == 2 and "no fairshare server answers there" in gone.stderr


@pytest.mark.parametrize("address", ["tcp:", "tcp:host", "tcp:host:", "tcp::7700", "tcp:host:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="must be tcp:HOST:PORT"):
        tcp_address(address)
