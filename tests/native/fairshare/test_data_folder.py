"""A server that works for all users believes its data folder: nobody else may put anything in its place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection
from tiercel.layers.fairshare.server import running_mount, running_server

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a server for all users")
NOBODY = 65534


def refusal(programs: Programs, data: Path, *options: str) -> str:
    """Return the sentence with which a server refuses to start."""
    with pytest.raises(UserError) as caught, running_server(programs, data, options):
        pass
    return str(caught.value)


def modes(data: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((data / name).lstat().st_mode) for name in ("", "server", "lock")}


def test_what_is_made_is_the_servers_own(programs: Programs, tmp_path: Path) -> None:
    """Whatever the umask: nobody else lists, reads or writes in it, or passes through it."""
    old = os.umask(0)
    try:
        with running_server(programs, tmp_path / "above" / "data"):
            pass
    finally:
        os.umask(old)
    assert modes(tmp_path / "above" / "data") == {"": 0o700, "server": 0o600, "lock": 0o600}
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == 0o755


def test_a_folder_that_others_write_to_is_refused(programs: Programs, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_server(programs, data):
        pass
    data.chmod(0o777)
    assert "others may write there" in refusal(programs, data)
    data.chmod(0o700)
    (data / "server").chmod(0o644)
    assert "could sign tickets of any user" in refusal(programs, data)


@root_only
def test_a_folder_that_somebody_else_owns_or_holds_is_refused(programs: Programs, tmp_path: Path) -> None:
    """As somebody did who took root: rename the folder, or what is in it, and plant an own key."""
    data = tmp_path / "place" / "data"
    with running_server(programs, data):
        pass
    (tmp_path / "place").chmod(0o777)
    assert "in the place of" in refusal(programs, data)
    (tmp_path / "place").chmod(0o755)
    os.chown(data / "server", NOBODY, NOBODY)
    assert "could sign tickets" in refusal(programs, data)
    os.chown(data / "server", 0, 0)
    os.chown(data, NOBODY, NOBODY)
    assert f"belongs to user {NOBODY}" in refusal(programs, data)
    os.chown(data, 0, 0)
    (data / "tree").rename(data / "aside")
    (data / "tree").symlink_to(tmp_path)
    assert "not a folder of the server's own" in refusal(programs, data)


@root_only
def test_an_unprivileged_user_cannot_change_the_folder(programs: Programs, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):  # pytest's own folders let nobody else through
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    data = tmp_path / "data"
    with running_server(programs, data):
        theft = (
            "import os, sys\nos.setgid(65534); os.setuid(65534)\nfailed = 0\n"
            "for act in (lambda: os.rename(D + '/server', D + '/old'), lambda: os.unlink(D + '/server'),\n"
            "            lambda: open(D + '/server').read(), lambda: open(D + '/new', 'w'),\n"
            "            lambda: os.rename(D, D + '-old'), lambda: os.listdir(D)):\n"
            "    try: act()\n"
            "    except PermissionError: failed += 1\n"
            "print(failed)"
        )
        done = subprocess.run(
            [sys.executable, "-c", f"D = {str(data)!r}\n{theft}"], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "6"


def test_a_key_that_others_read_is_refused(programs: Programs, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o644)
    assert "chmod 600" in refusal(programs, tmp_path / "data", "--key", str(key))


@pytest.mark.parametrize("name", ["--listen", "--exchange"])
def test_other_machines_only_in_clear_text_and_asked_for(
    programs: Programs, tmp_path: Path, name: str
) -> None:
    assert "cleartext allows it" in refusal(programs, tmp_path / "data", name, "0.0.0.0:0")
    with running_server(programs, tmp_path / "data", [name, "0.0.0.0:0", "--cleartext"]):
        pass


@root_only
def test_a_client_does_not_believe_another_users_server(programs: Programs, tmp_path: Path) -> None:
    """Somebody else answers at the socket's path, as can be while the server is down."""
    place = tmp_path / "place"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    path = place / "socket"
    impostor = subprocess.Popen(
        [sys.executable, "-c",
         "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
         "s.bind(sys.argv[1]); s.listen(4); print('ready', flush=True); sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with impostor:
        assert impostor.stdout is not None
        assert impostor.stdout.readline() == "ready\n"
        with pytest.raises(UserError, match=f"runs as user {NOBODY}, who is neither root nor you"):
            Connection(path)
        (mount := tmp_path / "mount").mkdir()
        with (
            pytest.raises(UserError, match=f"runs as user {NOBODY}, who is neither root nor you"),
            running_mount(programs, path, mount),
        ):
            pass
        impostor.communicate()


@root_only
def test_files_are_reached_by_the_socket_alone(programs: Programs, tmp_path: Path) -> None:
    """The tree is everybody's to write to: past the socket there is no way into it, and past the policy."""
    opened(tmp_path)
    data = tmp_path / "data"
    with running_server(programs, data):
        (data / "tree" / "f").write_text("x")
        code = "import os, sys; os.setgid(65534); os.setuid(65534); open(sys.argv[1] + '/tree/f')"
        done = subprocess.run(
            [sys.executable, "-c", code, str(data)], capture_output=True, text=True, check=False
        )
        assert "PermissionError" in done.stderr
    data.chmod(0o711)
    assert "past the scheduler" in refusal(programs, data)


def opened(place: Path) -> None:
    """Let others pass to a folder of pytest's."""
    for folder in (place, *place.parents[:3]):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)


@contextmanager
def started(programs: Programs, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A server that nobody told where its socket is to be."""
    process = subprocess.Popen(
        [str(programs.server), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_socket_lies_outside_the_data_folder(programs: Programs, tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o755)
    os.chmod(runtime, 0o755)
    data = ("--data", str(tmp_path / "bb"))
    with started(programs, *data, RUNTIME_DIRECTORY=str(runtime)) as process:
        assert process.stdout is not None
        assert f"ready on {runtime}/bb.socket" in process.stdout.readline()
        with Connection(runtime / "bb.socket") as connection:
            assert connection.status()["open_files"] == 0
        mode = stat.S_IMODE((runtime / "bb.socket").stat().st_mode)
        assert mode == (0o666 if os.geteuid() == 0 else 0o600)
        other = ("--data", str(tmp_path / "x" / "bb"))
        with started(programs, *other, RUNTIME_DIRECTORY=str(runtime)) as second:
            assert "another server listens there" in second.communicate(timeout=20)[1]
        with Connection(runtime / "bb.socket"):
            pass
    os.chmod(runtime, 0o777)
    with started(programs, *data, RUNTIME_DIRECTORY=str(runtime)) as refused:
        assert "others may write there" in refused.communicate(timeout=20)[1]


@root_only
def test_what_others_could_replace_is_refused(programs: Programs, tmp_path: Path) -> None:
    """A socket's name that another turns into a link, so that the server changes the link's file; a key."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o777)
    key = place / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    assert "in the place of the key" in refusal(programs, tmp_path / "data", "--key", str(key))
    options = ("--data", str(tmp_path / "data"), "--socket", str(place / "socket"))
    with started(programs, *options) as process:
        assert "in the place of the socket" in process.communicate(timeout=20)[1]
    place.chmod(0o1777)
    with running_server(programs, tmp_path / "data", ["--key", str(key)]):
        pass


@root_only
def test_workers_keep_no_rights_beside_those_for_files(programs: Programs, tmp_path: Path) -> None:
    """A user for whom a worker with CAP_SYS_RESOURCE writes exceeds quotas and takes the reserved blocks."""
    numbers = {"CAP_SETFCAP": 31, "CAP_SYS_ADMIN": 21, "CAP_SYS_RESOURCE": 24, "CAP_SYS_RAWIO": 17}
    with running_server(programs, tmp_path / "data", ["--parallel", "2"]) as server:
        until = time.monotonic() + 20
        while (found := rights_of_workers(server.process.pid)) and time.monotonic() < until:
            if len(found) == 8 and not any(one & 1 << n for one in found for n in numbers.values()):
                break
        assert len(found) == 8  # two, and six that wait for devices and listen
        assert not any(one & 1 << n for one in found for n in numbers.values())


def rights_of_workers(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith("worker"):
            lines = (task / "status").read_text().splitlines()
            found += [int(line.split()[1], 16) for line in lines if line.startswith("CapEff")]
    return found or [-1]


@pytest.mark.parametrize("kind", ["FIFO", "link", "folder", "device", "file of another's"])
@pytest.mark.parametrize("name", ["socket.lock", "socket", "data/lock"])
def test_what_lies_where_a_lock_or_socket_is_to_be_is_refused_and_left(
    programs: Programs, tmp_path: Path, name: str, kind: str
) -> None:
    """A FIFO kept the server waiting for ever, and whatever file lay at the socket's path was removed."""
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True, mode=0o700)
    valued = tmp_path / "valued"
    valued.write_text("years")
    if kind == "FIFO":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(valued)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root makes devices")
        os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # zero
    else:
        place.write_text("years")
        if name != "socket":
            if os.geteuid() != 0:
                pytest.skip("only root gives files to others")
            os.chown(place, NOBODY, NOBODY)
    before = place.lstat()
    argv = [programs.server, "--data", tmp_path / "data", "--socket", tmp_path / "socket"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and str(place) in done.stderr, done.stderr
    assert os.path.samestat(place.lstat(), before)
    assert valued.read_text() == "years"


@root_only
def test_a_mount_that_others_could_replace_is_refused(programs: Programs, tmp_path: Path) -> None:
    """Users find the files by its path: neither a link of another's nor a folder of his is taken for it."""
    (tmp_path / "elsewhere").mkdir()
    link, foreign, shared = (tmp_path / name for name in ("link", "foreign", "shared"))
    link.symlink_to(tmp_path / "elsewhere")
    foreign.mkdir()
    os.chown(foreign, NOBODY, NOBODY)
    shared.mkdir()
    shared.chmod(0o777)
    assert "is not a folder" in refusal(programs, tmp_path / "data", "--mount", str(link))
    assert "belongs to user" in refusal(programs, tmp_path / "data", "--mount", str(foreign))
    assert "others may write there" in refusal(programs, tmp_path / "data", "--mount", str(shared))
