"""What an administrator does with a server that runs: change it, send jobs away, read its log and numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.server import running_server
from tiercel.sharing.doctor import examine

from .conftest import Share
from .users import ALICE, act

UNIT = Path(__file__).parents[3] / "native" / "fairshare" / "systemd" / "fairshare@.service"


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(f"policy = 'user-fair' # by whom\n\nlog = '{tmp_path / 'events'}'\n")
    return path


def events(config: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.parent / "events").read_text().splitlines()]


@pytest.fixture
def worker(serve: Callable[..., Share], config: Path) -> Iterator[tuple[Share, subprocess.Popen[str]]]:
    """A server, and a client of job `job` that writes to an open file each time it is told to."""
    share = serve("--config", str(config))
    code = f"""f = open('{share.root}/f', 'w')
while input(): f.write('x'); f.flush(); print('written', flush=True)
"""
    with share.job(Job("job", size=3)) as enter:
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=enter,  # noqa: PLW1509
        )  # fmt: skip
        assert told(child) == "written\n"
        yield share, child
        child.kill()
        child.communicate()


def told(child: subprocess.Popen[str]) -> str:
    assert child.stdin and child.stdout
    child.stdin.write("go\n")
    child.stdin.flush()
    return child.stdout.readline()


def shares(share: Share) -> dict[str, float | None]:
    with Connection(share.server.socket) as connection:
        return {row["job"]: row["share"] for row in connection.status()["jobs"]}


def test_policy_and_rate_change_and_clients_stay(
    worker: tuple[Share, subprocess.Popen[str]], config: Path
) -> None:
    share, child = worker
    with Connection(share.server.socket) as other:
        ticket = other.ticket(Job("other", size=1))
    with Connection(share.server.socket, ticket), Connection(share.server.socket) as asks:
        # One user: halves of it within user-fair are even; by size they are 3 to 1. The asking connection is
        # of a third job, of size 1.
        before = shares(share)
        assert before["job"] == pytest.approx(before["other"])
        config.write_text(config.read_text().replace("user-fair", "size-fair") + "rate = '50MiB'\n")
        assert asks.reload() == "policy user-fair -> size-fair, rate 0 -> 52428800"
        after = shares(share)
        assert after["job"] == pytest.approx(3 * (after["other"] or 0))
        status = asks.status()
        assert (status["policy"], status["rate"]) == ("size-fair", 52428800)
        config.write_text(config.read_text() + "files = 100\n")
        assert asks.reload() == "nothing changed; a restart is needed for files"
    assert told(child) == "written\n"
    assert [event["what"] for event in events(config) if event["event"] == "reloaded"] == [
        "policy user-fair -> size-fair, rate 0 -> 52428800",
        "nothing changed; a restart is needed for files",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("polcy = 'size-fair'", "config: line 4: `polcy` is not an option; the nearest is `policy`"),
        ("rate = 'fast'", "config: line 4: `rate`: "),
        ("rate 5", 'config: line 4: `rate`: .*`rate = "5"`'),
    ],
)
def test_what_is_wrong_changes_nothing(
    serve: Callable[..., Share], config: Path, line: str, said: str
) -> None:
    share = serve("--config", str(config))
    config.write_text(config.read_text() + line + "\n")
    with Connection(share.server.socket) as connection:
        with pytest.raises(UserError, match=said):
            connection.reload()
        assert connection.status()["policy"] == "user-fair"
    assert events(config)[-1]["event"] == "not reloaded"
    done = subprocess.run(
        [share.programs.server, "--data", str(config.parent / "x"), "--config", str(config)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and re.search(said, done.stderr) and len(done.stderr.splitlines()) == 1


def test_a_signal_reloads_and_opens_the_log_anew(serve: Callable[..., Share], config: Path) -> None:
    share = serve("--config", str(config))
    log = config.parent / "events"
    log.rename(config.parent / "events.1")
    config.write_text(config.read_text().replace("user-fair", "job-fair"))
    share.server.process.send_signal(signal.SIGHUP)
    until = time.monotonic() + 20
    while not (log.exists() and log.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    assert events(config)[0]["what"] == "policy user-fair -> job-fair"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert share.bash("echo still here > $ROOT/f; cat $ROOT/f") == "still here\n"


def test_a_job_that_is_sent_away(worker: tuple[Share, subprocess.Popen[str]], config: Path) -> None:
    share, child = worker
    with Connection(share.server.socket) as connection:
        assert connection.send_away("job", None, 600) == 1
    assert told(child) == ""  # it ended with an error
    _, said = child.communicate()
    assert "Permission denied" in said
    assert share.bash("echo mine > $ROOT/g; cat $ROOT/g") == "mine\n"  # another job
    assert share.run("cat", f"{share.root}/g", job=Job("job", size=3)).returncode != 0
    with Connection(share.server.socket) as connection:
        assert connection.send_away("job", None, 0) == 0
    assert share.run("cat", f"{share.root}/g", job=Job("job", size=3)).stdout == "mine\n"
    sent = [event for event in events(config) if event["event"] == "sent away"]
    assert [(event["by"], event["job"], event["seconds"]) for event in sent] == [
        (os.geteuid(), "job", 600),
        (os.geteuid(), "job", 0),
    ]


@pytest.mark.parametrize(("user", "served"), [(ALICE, False), (0, True)])
def test_only_that_users_job_is_sent_away(open_to_all: Callable[..., Share], user: int, served: bool) -> None:
    """Whose a job is, is whom it is accounted to: what `share status` shows."""
    share = open_to_all()
    with Connection(share.server.socket) as connection:
        connection.send_away("climate", ALICE, 600)
    done = share.run("ls", str(share.root), job=Job("climate", user=user))
    assert (done.returncode == 0) is served


def test_the_own_job_of_the_administrator_can_come_back(share: Share) -> None:
    name = f"user-{os.geteuid()}"
    with Connection(share.server.socket) as connection:
        connection.send_away(name, os.geteuid(), 600)
        assert share.run("ls", str(share.root)).returncode != 0
        with Connection(share.server.socket) as second:
            second.send_away(name, os.geteuid(), 0)
    assert share.run("ls", str(share.root)).returncode == 0


def test_a_job_that_is_sent_away_has_no_mount(serve: Callable[..., Share], tmp_path: Path) -> None:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse")
    share = serve()
    place = share.root
    (place / "f").write_text("x")
    with Connection(share.server.socket) as connection:
        connection.send_away("user-0", None, 600)
        with pytest.raises(PermissionError):
            (place / "f").read_text()
        connection.send_away("user-0", None, 0)
    assert (place / "f").read_text() == "x"


def test_users_change_nothing(open_to_all: Callable[..., Share]) -> None:
    share = open_to_all()
    code = f"""
with Connection(Path({str(share.server.socket)!r})) as c:
    for ask in (c.reload, lambda: c.send_away("user-0", None, 60)):
        try: print("done", ask())
        except UserError as error: print(error)
"""
    said = act(share, ALICE, code).splitlines()
    assert len(said) == 2
    assert all("only its own user and root may change what it does" in line for line in said)
    assert share.run("ls", str(share.root)).returncode == 0


def test_who_joined_and_who_was_refused(open_to_all: Callable[..., Share], config: Path) -> None:
    share = open_to_all("--config", str(config))
    assert share.run("ls", str(share.root), job=Job("climate", size=16, user=ALICE)).returncode == 0
    with pytest.raises(UserError):
        Connection(share.server.socket, "00" * 160)
    act(share, ALICE, "os.listdir(ROOT)")
    found = events(config)
    joined = [event for event in found if event["event"] == "joined"]
    said = [(e["uid"], e["job"], e["size"], e["user"], e.get("proof", "kernel")) for e in joined]
    assert (0, "climate", 16, ALICE, "ticket") in said
    assert (ALICE, f"user-{ALICE}", 1, ALICE, "kernel") in said
    assert all(event["pid"] > 0 and event["over"] in ("socket", "mount") for event in joined)
    (refused,) = [event for event in found if event["event"] == "refused"]
    assert refused["uid"] == 0 and refused["reason"]
    (ticket,) = [event for event in found if event["event"] == "ticket"]
    assert (ticket["by"], ticket["job"], ticket["size"], ticket["user"]) == (0, "climate", 16, ALICE)
    assert found[0]["event"] == "began"


def get(address: str, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_numbers_for_prometheus(serve: Callable[..., Share]) -> None:
    address = f"127.0.0.1:{port()}"
    share = serve("--metrics", address)
    words = ("dd", "if=/dev/zero", f"of={share.root}/f", "bs=1000", "count=7")
    share.run(*words, job=Job('a"b\\c'))
    silent = socket.create_connection(address.split(":"))  # type: ignore[arg-type]
    lines = get(address).splitlines()
    silent.close()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    user = os.geteuid()
    key = f'{{job="a\\"b\\\\c",user="{user}",direction="written"}}'
    assert values[f"fairshare_job_bytes_total{key}"] == "7000"
    assert float(values["fairshare_joined_total"]) >= 2
    assert values["fairshare_refused_total"] == "0"
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    names = {name.split("{")[0] for name in values}
    assert names <= set(kinds) and kinds["fairshare_job_bytes_total"] == "counter"
    assert len(kinds) == len([line for line in lines if line.startswith("# TYPE")])  # each is told once
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(address, "/other")


def test_numbers_do_not_leave_the_machine_unasked(serve: Callable[..., Share]) -> None:
    with pytest.raises(UserError, match=r"--metrics: 0\.0\.0\.0:1.*cleartext"):
        serve("--metrics", "0.0.0.0:1")


def test_systemd_is_told_when_it_is_ready(
    serve: Callable[..., Share], tmp_path: Path, monkeypatch: Any
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "n"))
        listener.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        serve()
        assert listener.recv(100) == b"READY=1"


def test_the_unit_is_one(share: Share, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze")
    text = UNIT.read_text().replace("/usr/local/bin/fairshare-server", str(share.programs.server))
    assert str(share.programs.server) in text
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(
        [verify, "verify", str(tmp_path / UNIT.name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and UNIT.name not in done.stderr, done.stderr


def states(checks: Any, what: str) -> list[str]:
    return [check.state for check in checks if check.what.startswith(what)]


def test_the_doctor(share: Share, tmp_path: Path) -> None:
    well = examine((share.server.socket,), share.server.data)
    assert set(states(well, "server")) == {"ok"} and "fail" not in states(well, "data")
    share.server.data.chmod(0o755)
    assert "fail" in states(examine((share.server.socket,), share.server.data), "data")
    share.server.data.chmod(0o700)
    folder = share.server.socket.parent
    folder.chmod(0o777)
    changed = [check for check in examine((share.server.socket,)) if check.state == "fail"]
    assert [check.said for check in changed] == [f"others can change {folder} (mode 777)"]
    folder.chmod(0o700)
    gone = tmp_path / "gone.socket"
    (check,) = [
        check for check in examine((gone,)) if check.what == f"server {gone}" and check.state == "fail"
    ][-1:]
    assert "no fairshare server answers there" in check.said


def test_a_server_takes_over_the_mount_of_one_that_was_killed(
    programs: Programs, tmp_path: Path, as_root: None
) -> None:
    """A dead mount kept it from starting until somebody unmounted it."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs /dev/fuse")
    (place := tmp_path / "mount").mkdir()
    for kill in (True, False):
        with running_server(programs, tmp_path / "data", mount=place) as server:
            (place / "f").write_text("there")
            assert (server.tree / "f").read_text() == "there"
            if kill:
                server.process.kill()
                server.process.wait()
                with pytest.raises(OSError, match="not connected"):
                    os.listdir(place)
    assert os.listdir(place) == []


def test_the_doctor_of_a_mount_that_is_gone(serve: Callable[..., Share], tmp_path: Path) -> None:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse")
    share = serve()
    place = share.root
    assert states(examine((share.server.socket,)), "server") == ["ok", "ok"]
    subprocess.run(["umount", str(place)], check=True)
    assert states(examine((share.server.socket,)), "server") == ["ok", "warn"]
