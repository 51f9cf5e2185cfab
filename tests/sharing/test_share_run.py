"""Which front end a program gets, and that it sees its files through it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare import front
from tiercel.layers.fairshare.front import LIBRARY, MOUNT, Asked, choose, without_library
from tiercel.layers.fairshare.namespace import mount_point
from tiercel.layers.fairshare.programs import find_programs
from tiercel.layers.fairshare.protocol import Connection, Job, tcp_address
from tiercel.layers.fairshare.server import running_server

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
built = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)
mounts = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="needs root and /dev/fuse"
)
TIERCEL = (sys.executable, "-m", "tiercel")


@pytest.fixture
def can_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which root mounts; the real one may be another."""
    monkeypatch.setattr(front.os, "access", lambda *_: True)
    monkeypatch.setattr(front.os, "geteuid", lambda: 0)
    monkeypatch.setattr(front, "_may_administer", lambda: True)


def test_the_mount_is_the_default_and_the_library_for_known_programs(can_mount: None) -> None:
    assert choose(Asked("sh", "/fs")).way == MOUNT
    assert choose(Asked("python3", "/fs")).way == MOUNT
    assert choose(Asked("cp", "/fs")) == front.Front(LIBRARY, "cp is known to do with it, and it costs less")
    assert choose(Asked("/usr/bin/cp", "/fs", front=MOUNT)).way == MOUNT
    assert choose(Asked("sh", "/fs", front=LIBRARY)).way == LIBRARY


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Asked("sh", "/fs", ticket=True), "said by a ticket"),
        (Asked("sh", "/fs", servers=2), "files of one server"),
        (Asked("sh", "/fs", servers=1), "it has no mount on /fs"),
        (Asked("sh", "/fs", servers=1, mounted="/other"), "mounted on /other, not on /fs"),
    ],
)
def test_what_the_mount_cannot_do(can_mount: None, asked: Asked, why: str) -> None:
    taken = choose(asked)
    assert taken.way == LIBRARY and why in taken.why
    with pytest.raises(UserError, match="--front mount"):
        choose(Asked(asked.program, "/fs", MOUNT, asked.ticket, asked.servers, asked.mounted))


def test_a_server_that_has_a_mount_there_is_reached_by_it() -> None:
    assert choose(Asked("sh", "/fs", servers=1, mounted="/fs")).way == MOUNT


def test_without_fuse_the_library_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front.os, "access", lambda path, _: path != "/dev/fuse")
    assert choose(Asked("sh", "/fs")) == front.Front(LIBRARY, "this machine has no usable /dev/fuse")
    monkeypatch.setattr(front.os, "access", lambda path, _: path != Path("/"))
    monkeypatch.setattr(front.os, "geteuid", lambda: 0)
    monkeypatch.setattr(front, "_may_administer", lambda: True)
    assert "only who may write to /" in choose(Asked("sh", "/fs")).why


@built
@mounts
def test_root_in_a_container_gets_the_library(tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("needs setpriv (package util-linux)")
    argv = [setpriv, "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", *TIERCEL, "share", "run"]
    place = tmp_path / "p"
    argv += ["--explain", "--prefix", str(place), "--", "sh", "-c", f"echo x > {place}/f; ls {place}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "f\n"), done.stderr
    assert "preload library: root may not mount here" in done.stderr


def test_programs_that_take_no_preload_library(tmp_path: Path, can_mount: None) -> None:
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no C compiler")
    source, dynamic, static = tmp_path / "p.c", tmp_path / "dynamic", tmp_path / "static"
    source.write_text("int main(void) { return 0; }")
    subprocess.run([gcc, "-o", str(dynamic), str(source)], check=True)
    assert without_library(str(dynamic)) is None
    argv = [gcc, "-static", "-o", str(static), str(source)]
    if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
        assert "static program" in (without_library(str(static)) or "")
        script = tmp_path / "script"
        script.write_text(f"#!{static} -x\n")
        script.chmod(0o755)
        assert "static program" in (without_library(str(script)) or "")
        assert choose(Asked(str(script), "/fs")).way == MOUNT
        with pytest.raises(UserError, match="neither front end"):
            choose(Asked(str(static), "/fs", servers=2))
        with pytest.raises(UserError, match="--front library"):
            choose(Asked(str(static), "/fs", front=LIBRARY))
    go = tmp_path / "go"  # the note that Go's linker leaves, behind a dynamic program's head
    go.write_bytes(dynamic.read_bytes()[:4096] + b"\x04\0\0\0\x10\0\0\0\x04\0\0\0Go\0\0")
    go.chmod(0o755)
    assert "Go program" in (without_library(str(go)) or "")
    python = tmp_path / "python-script"
    python.write_text("#!/usr/bin/env -S FOO=1 sh\n")
    python.chmod(0o755)
    assert without_library(str(python)) is None
    assert without_library("no-such-program-anywhere") is None


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
    assert done.stderr == f"tiercel: sh reaches {place} through a mount (FUSE): it serves every program\n"
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
@pytest.mark.parametrize("front", ["library", pytest.param("mount", marks=mounts)])
@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_asked_to_end_saves_what_it_has(
    front: str, ask: signal.Signals, tmp_path: Path
) -> None:
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
    argv = [*TIERCEL, "share", "run", "--front", front, "--prefix", str(place), "--data", str(data)]
    child = subprocess.Popen([*argv, "--", sys.executable, "-c", code], start_new_session=True)
    until = time.monotonic() + 30
    while not (data / "tree" / "begun").exists() and time.monotonic() < until:
        time.sleep(0.02)
    # A terminal asks all of its group, a scheduler often the first process alone.
    (os.killpg if ask == signal.SIGINT else os.kill)(child.pid, ask)
    assert child.wait(30) == 5
    assert (data / "tree" / "saved").read_text() == "all"


@built
def test_what_the_user_preloads_stays(tmp_path: Path) -> None:
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "mine.c", tmp_path / "mine.so"
    source.write_text("int mine = 7;")
    subprocess.run([gcc, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    script = "import ctypes; print(ctypes.c_int.in_dll(ctypes.CDLL(None), 'mine').value)"
    done = subprocess.run(
        [*TIERCEL, "share", "run", "--front", "library", "--", sys.executable, "-c", script],
        capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": str(library)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


@built
@mounts
def test_the_mount_of_a_server_that_runs(tmp_path: Path) -> None:
    programs = find_programs()
    assert programs
    place = tmp_path / "place"
    place.mkdir()
    with running_server(programs, tmp_path / "data", ["--mount", str(place)]) as server:
        until = time.monotonic() + 20
        while not place.is_mount() and time.monotonic() < until:
            time.sleep(0.01)
        common = ("--explain", "--socket", str(server.socket))
        done = run(*common, "--prefix", str(place), "--", "sh", "-c", f"echo x > {place}/f")
        assert (done.returncode, "through a mount" in done.stderr) == (0, True), done.stderr
        done = run(*common, "--prefix", "/fairshare-other", "--", "sh", "-c", "cat /fairshare-other/f")
        assert (done.stdout, "the preload library" in done.stderr) == ("x\n", True), done.stderr


@built
def test_what_is_wrong_is_one_line_and_2(tmp_path: Path) -> None:
    for arguments in (("--front", "sideways"), ("--front", "mount", "--job", "j"), ("--prefix", "relative")):
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


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@built
def test_servers_of_other_machines_are_reached_by_tcp(tmp_path: Path) -> None:
    """Two of them here, on this machine's own address, which no library can tell from another's."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    programs, ports = find_programs(), [free_port(), free_port()]
    assert programs is not None
    with ExitStack() as stack:
        options = [["--listen", f"127.0.0.1:{port}", "--key", str(key)] for port in ports]
        servers = [
            stack.enter_context(running_server(programs, tmp_path / f"data{n}", each))
            for n, each in enumerate(options)
        ]
        with Connection(servers[0].socket) as connection:
            ticket = connection.ticket(Job("far", size=3))
        words = [word for port in ports for word in ("--socket", f"tcp:127.0.0.1:{port}")]
        script = "for n in 1 2 3 4 5 6 7 8; do mkdir /fs/$n; echo hi >/fs/$n/f; done; cat /fs/[1-8]/f | wc -l"

        def run(**more: str) -> subprocess.CompletedProcess[str]:
            environment = {k: v for k, v in os.environ.items() if k != "FAIRSHARE_TICKET"} | more
            return subprocess.run(
                [*TIERCEL, "share", "run", *words, "--prefix", "/fs", "--", "sh", "-c", script],
                capture_output=True, text=True, env=environment, check=False,
            )  # fmt: skip

        kept = tmp_path / "ticket"
        kept.write_text(ticket + "\n")
        done = run(FAIRSHARE_TICKET=f"@{kept}")
        assert (done.returncode, done.stdout.strip()) == (0, "8"), done.stderr
        nowhere = run(FAIRSHARE_TICKET=f"@{tmp_path}/nowhere")
        assert (nowhere.returncode, "nowhere: No such file" in nowhere.stderr) == (2, True)
        left = tmp_path / "left"  # by a run that was killed with its mount
        left.mkdir()
        seen = subprocess.run(
            [*TIERCEL, "share", "run", *words, "--prefix", str(left), "--", "ls", str(left)],
            capture_output=True, text=True, env={**os.environ, "FAIRSHARE_TICKET": ticket}, check=False,
        )  # fmt: skip
        assert seen.stdout.split() == list("12345678"), seen.stderr
        trees = [{path.name for path in (tmp_path / f"data{n}" / "tree").iterdir()} for n in (0, 1)]
        assert trees[0] and trees[1] and trees[0] | trees[1] == set("12345678")
        without, wrong = run(), run(FAIRSHARE_TICKET="00" * 200)
    assert without.returncode == 2 and "`tiercel share ticket`" in without.stderr
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    gone = subprocess.run(
        [*TIERCEL, "share", "run", *words, "--", "true"], capture_output=True, text=True, check=False,
        env={**os.environ, "FAIRSHARE_TICKET": ticket},
    )  # fmt: skip
    assert gone.returncode == 2 and "no fairshare server answers there" in gone.stderr


@pytest.mark.parametrize("address", ["tcp:", "tcp:host", "tcp:host:", "tcp::7700", "tcp:host:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="must be tcp:HOST:PORT"):
        tcp_address(address)
