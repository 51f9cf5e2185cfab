"""Applications beside a background job, several servers, and the sums of `tiercel share bench`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.programs import find_programs
from tiercel.sharing import application_experiment as applications
from tiercel.sharing import applications as catalogue
from tiercel.sharing import engine
from tiercel.sharing.application_experiment import PIECE, allowed, application_experiment
from tiercel.sharing.contest_runs import deviations, mounted_server, summary
from tiercel.sharing.contests import SCHEDULERS, contests
from tiercel.sharing.engine import Sharing
from tiercel.sharing.jobs import Throughput
from tiercel.sharing.own_command import own_command
from tiercel.sharing.servers_experiment import global_shares, servers_experiment
from tiercel.sharing.workload_application import SharingApplicationWorkload
from tiercel.sharing.workload_servers import SharingServersWorkload

from ..cli.test_bad_input import asked

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
built = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)

ANALYSIS = SharingApplicationWorkload.model_validate({
    "operation": "sharing-application", "application": "h5py", "work": 0.05, "size": 3,
    "background": {"processes": 1, "file_size": "1MiB"},
})  # fmt: skip
TWO_SERVERS = {
    "operation": "sharing-servers", "exchange": "50ms",
    "jobs": [
        {"name": "both", "user": 1, "size": 16, "processes": 4, "servers": [0, 1], "seconds": 3},
        {"name": "first", "user": 2, "size": 8, "processes": 2, "servers": [0], "seconds": 3},
        {"name": "second", "user": 3, "size": 8, "processes": 2, "servers": [1], "seconds": 3},
    ],
}  # fmt: skip


def test_what_a_share_allows_by_hand() -> None:
    """2 GB at 1 GB/s take 2 s alone; with a share of 4/5 they take 2.5 s: half a second of 10 is lost, 5 %.

    1000 requests may each wait for a piece of 128 KiB, 131 us: 0.131 s, another 1.3 %.
    """
    assert allowed({"bytes": 2e9, "operations": 0}, 1e9, 0.8, 10.0) == pytest.approx(0.05)
    waiting = 1000 * PIECE / 1e9 / 10
    assert allowed({"bytes": 2e9, "operations": 1000}, 1e9, 0.8, 10.0) == pytest.approx(0.05 + waiting)
    assert allowed(None, 1e9, 0.8, 10.0) is None
    assert allowed({"bytes": 2e9, "operations": 0}, 1e9, None, 10.0) is None


def test_summary_of_an_application_by_hand() -> None:
    """3 s beside, 2 s alone: half slower. It moved 300 of 400 bytes that the server moved meanwhile."""
    background = Throughput("background", 0.1, np.full(40, 50.0), np.zeros(40), 0.1, 0.2)
    found = applications.summary(
        ANALYSIS, [1.9, 2.1], 3.0, (0.5, 3.5), background,
        {"h5py": {"bytes": 100, "operations": 1}, "background": {"bytes": 50, "operations": 0}},
        {"h5py": {"bytes": 400, "operations": 3}, "background": {"bytes": 150, "operations": 9}},
        {"h5py": 0.6, "background": 0.2, "user-0": 0.2}, 500,
    )  # fmt: skip
    application, other = found["jobs"]
    assert application["slowdown"] == pytest.approx(0.5)
    assert (found["rate"], found["alone_seconds"]) == (500, [1.9, 2.1])
    assert application["noise"] == pytest.approx(0.1)  # the runs alone took 1.9 and 2.1 s
    assert (application["share"], other["share"]) == (0.75, 0.25)
    assert (application["entitled"], other["entitled"]) == (pytest.approx(0.75), pytest.approx(0.25))
    assert (application["bytes"], application["operations"], other["bytes"]) == (300, 2, 100)
    assert found["total"]["bytes_per_second"] == pytest.approx(400 / 3)


def test_an_application_on_a_plain_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip(NOT_BUILT)
    monkeypatch.delenv("FAIRSHARE_SERVER", raising=False)
    found = application_experiment(programs.load, tmp_path / "data", ANALYSIS)
    application, background = found["jobs"]
    assert application["seconds"] > 0
    assert background["bytes_per_second"] > 0  # it ran all the time and said so when it was ended early
    assert application["share"] is None
    (tmp_path / "sharing.json").write_text(json.dumps(found))
    rows = Sharing().parse(None, tmp_path)  # type: ignore[arg-type]
    assert [row.operation for row in rows] == ["job-h5py", "job-background", "all-jobs"]
    assert rows[0].metrics["slowdown"] == application["slowdown"]


@built
def test_an_application_through_the_layer(tmp_path: Path) -> None:
    """As the engine runs below the layer: by its command, in the mount."""
    programs = find_programs()
    assert programs
    result = tmp_path / "sharing.json"
    with mounted_server(programs, tmp_path / "d", ["--policy", "size-fair"]) as server:
        done = subprocess.run(
            [
                sys.executable, "-m", "tiercel.sharing", str(programs.load), f"{server.mounted}/data",
                str(result), ANALYSIS.model_dump_json(),
            ],
            env={**os.environ, "FAIRSHARE_SERVER": str(server.socket)},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (server.tree / "data" / "h5py" / "field.h5").is_file()
    application, background = json.loads(result.read_text())["jobs"]
    assert application["entitled"] == pytest.approx(0.75)  # 3 nodes and 1
    assert application["bytes"] >= 6 << 20  # it read its 6 MiB (0.05 of 128) beside the other
    assert application["share"] + background["share"] == pytest.approx(1)
    assert application["allowed"] > 0
    assert any(application["series"])


def test_a_failing_application_says_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip(NOT_BUILT)
    monkeypatch.delenv("FAIRSHARE_SERVER", raising=False)
    failing = catalogue.APPLICATIONS["h5py"]

    def broken(folder: str, output: Path, work: float) -> object:
        commands = failing(folder, output, work)
        return type(commands)(commands.prepare, ("sh", "-c", "echo no such field >&2; exit 3"))

    monkeypatch.setitem(catalogue.APPLICATIONS, "h5py", broken)  # type: ignore[arg-type]
    with pytest.raises(RunFailed, match="application h5py: no such field"):
        application_experiment(programs.load, tmp_path / "data", ANALYSIS)


def test_lammps_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "program", lambda _: None)
    workload = ANALYSIS.model_copy(update={"application": "lammps"})
    assert "LAMMPS is not installed" in str(Sharing().unsupported(workload, 1))
    assert workload.optional  # so a study goes on without it
    assert not ANALYSIS.optional


@pytest.mark.parametrize(
    ("background", "said"),
    [
        ({"file_size": "64KiB"}, "file_size must not be less than transfer_size"),
        ({"name": "h5py"}, "needs another name than the application"),
    ],
)
def test_background_jobs_that_cannot_be(background: dict[str, object], said: str) -> None:
    document = ANALYSIS.model_dump() | {"background": background}
    with pytest.raises(ValueError, match=said):
        SharingApplicationWorkload.model_validate(document)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"servers": 1}, "greater than or equal to 2"),
        ({"jobs": [TWO_SERVERS["jobs"][0], {**TWO_SERVERS["jobs"][1], "servers": [2]}]}, "numbered from 0"),
        ({"jobs": [{**TWO_SERVERS["jobs"][0], "processes": 1}, TWO_SERVERS["jobs"][1]]}, "one for each"),
        ({"jobs": [TWO_SERVERS["jobs"][1], TWO_SERVERS["jobs"][1]]}, "a name of its own"),
        ({"jobs": [TWO_SERVERS["jobs"][1], {**TWO_SERVERS["jobs"][2], "start": 3}]}, "run together for 0 s"),
    ],
)  # fmt: skip
def test_servers_that_cannot_be(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SharingServersWorkload.model_validate({**TWO_SERVERS, **change})


@built
def test_two_servers_share_by_the_whole() -> None:
    """16 nodes on both, 8 on each alone: 16/32, 8/32, 8/32 of everything; each alone would give 16/24."""
    shares = global_shares(SharingServersWorkload.model_validate(TWO_SERVERS))
    assert shares == {"both": pytest.approx(0.5), "first": pytest.approx(0.25), "second": pytest.approx(0.25)}
    with pytest.raises(UserError, match="guarantees no shares"):
        global_shares(SharingServersWorkload.model_validate({**TWO_SERVERS, "policy": "fifo"}))


@built
def test_two_servers_for_real(tmp_path: Path) -> None:
    found = servers_experiment(tmp_path / "servers", SharingServersWorkload.model_validate(TWO_SERVERS))
    assert [job["job"] for job in found["jobs"]] == ["both", "first", "second"]
    assert sum(job["share"] for job in found["jobs"]) == pytest.approx(1)
    assert all(job["bytes"] > 0 for job in found["jobs"])


def contest_round(big: float) -> dict[str, object]:
    return {
        "alone": 100.0, "total": 95.0, "reached": 0.1, "jobs": {"big": 50.0, "small": 50.0},
        "rates": {"big": [40.0, 60.0], "small": [50.0, 50.0]},
        "fractions": {"big": [0.5 - big, 0.5 + big], "small": [0.5 + big, 0.5 - big]},
    }  # fmt: skip


def test_deviations_by_hand() -> None:
    """Two intervals at 1/2 - x and 1/2 + x: the deviation is x times the root of 2 (n - 1 = 1)."""
    listed = [contest for contest in contests() if contest.name.startswith("job-fair")]
    assert tuple(contest.scheduler for contest in listed) == SCHEDULERS
    found = [
        summary(contest, [contest_round(x), contest_round(1.5 * x)])
        for contest, x in zip(listed, (0.01, 0.04, 0.012, 0.02), strict=True)
    ]
    big = found[0]["jobs"][0]
    assert big["deviation"] == pytest.approx(0.0125 * 2**0.5)  # the middle of 0.01 and 0.015
    assert big["deviation_range"] == [pytest.approx(0.01 * 2**0.5), pytest.approx(0.015 * 2**0.5)]
    assert big["rate_deviation"] == pytest.approx(200**0.5 / 50)  # of 40 and 60: root of 200, mean 50
    assert found[0]["total_to_alone"] == pytest.approx(0.95)
    assert found[0]["intervals"] == 4
    rows = deviations(found)
    assert [row["scheduler"] for row in rows] == ["stride", "gift", "tbf", "token"]
    assert [row["multiple"] for row in rows] == [
        1.0,
        pytest.approx(1.2),
        pytest.approx(2.0),
        pytest.approx(4.0),
    ]
    # gift's rounds (0.012 to 0.018) overlap with stride's (0.01 to 0.015), the others' lie above.
    assert [row["separate"] for row in rows] == [False, False, True, True]


OWN = {
    "operation": "sharing-application", "application": "command", "data": "2MiB", "size": 3,
    "prepare": ["dd", "if=/dev/zero", "of={folder}/in", "bs=1M", "count=1"],
    "command": ["dd", "if={folder}/in", "of={folder}/out", "bs=64K"],
    "background": {"processes": 1, "file_size": "1MiB"},
}  # fmt: skip


@built
def test_a_command_of_ones_own_under_two_policies(tmp_path: Path) -> None:
    """It reads 1 MiB and writes it; both are of the server's account."""
    workload = SharingApplicationWorkload.model_validate(OWN)
    found = own_command(workload, ["fifo", "size-fair"], tmp_path, repetitions=1)
    fifo, fair = found["policies"]
    assert [fifo["policy"], fair["policy"]] == ["fifo", "size-fair"]
    for row in (fifo, fair):
        assert row["bytes"] >= 2 << 20
        assert row["beside_s"] / row["alone_s"] - 1 == pytest.approx(row["slowdown"])
    assert fifo["entitled"] is None  # first come, first served entitles nobody
    assert fair["entitled"] == pytest.approx(0.75)  # 3 nodes and 1
    assert list(tmp_path.iterdir()) == []  # nothing is left on the storage


def runs(pid: int) -> bool:
    """Whether a process is there and goes on: one that nobody waited for is neither."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def through_the_layer(tmp_path: Path, script: str, **keys: object) -> dict[str, object]:
    """A shell's script under one policy; {folder} in it."""
    document = {**OWN, "prepare": [], "command": ["sh", "-c", script], **keys}
    workload = SharingApplicationWorkload.model_validate(document)
    row: dict[str, object] = own_command(workload, ["job-fair"], tmp_path, repetitions=1)["policies"][0]
    assert list(tmp_path.iterdir()) == []
    return row


@built
def test_each_run_finds_its_folder_as_the_first_one_did(tmp_path: Path) -> None:
    """The second run of what makes a folder, or uses its input up, failed."""
    row = through_the_layer(
        tmp_path, "mkdir {folder}/made && mv {folder}/in {folder}/made/", prepare=["touch", "{folder}/in"]
    )
    assert row["bytes"] == 0 and row["operations"] > 0  # type: ignore[operator]


@built
def test_what_a_command_leaves_running_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    """It holds the program's output open, so it was waited for, and counted: 3 s in place of none."""
    pids = tmp_path / "pids"
    pids.mkdir()
    storage = tmp_path / "storage"
    storage.mkdir()
    row = through_the_layer(storage, f"sleep 1000 & echo $! >> {pids}/all; echo x > {{folder}}/x", longest=20)
    assert row["beside_s"] < 10  # type: ignore[operator]
    left = [int(pid) for pid in (pids / "all").read_text().split()]
    assert len(left) == 3 and not any(map(runs, left))


@built
def test_a_command_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    pid, storage = tmp_path / "pid", tmp_path / "storage"
    storage.mkdir()
    with pytest.raises(UserError, match=r"not done after 1 s: give it more time \(`longest`\)"):
        through_the_layer(storage, f"sleep 1000 & echo $! > {pid}; wait", longest=1)
    assert not runs(int(pid.read_text()))
    assert list(storage.iterdir()) == []


@built
def test_what_a_command_prints_is_not_kept(tmp_path: Path) -> None:
    """Its last line is, of whichever of both: IOR tells its mistakes on standard output."""
    with pytest.raises(UserError, match=r"application command: cannot write to data set$"):
        through_the_layer(tmp_path, "head -c 30000000 /dev/zero; echo; echo cannot write to data set; exit 1")
    with pytest.raises(UserError, match="application command: was ended by SIGSEGV"):
        through_the_layer(tmp_path, "kill -SEGV $$")
    with pytest.raises(UserError, match=r"application command: its preparation: no input$"):
        through_the_layer(tmp_path, "true", prepare=["sh", "-c", "echo no input; exit 1"])


@built
@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_experiment_leaves_nothing(tmp_path: Path, ask: signal.Signals) -> None:
    pid, storage = tmp_path / "pid", tmp_path / "storage"
    storage.mkdir()
    script = f"echo x > {{folder}}/x; sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait"
    words = ["share", "experiment", "--data", str(storage), "--", "sh", "-c", script]
    experiment = subprocess.Popen(
        [sys.executable, "-m", "tiercel", *words],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not pid.exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(experiment.pid, ask)  # as a terminal does
    _, said = experiment.communicate(timeout=60)
    assert experiment.returncode == 130 and "Traceback" not in said
    assert not runs(int(pid.read_text()))
    assert list(storage.iterdir()) == []


@built
def test_a_command_without_the_shared_folder_is_refused() -> None:
    code, out, err = asked(["share", "experiment", "--", "true"])
    assert (code, out) == (2, "") and "no argument of the command contains {folder}" in err


@built
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "policy fifo: application command: no-such-program: No such file"),
        (["sh", "-c", "echo no field >&2; exit 3"], "policy fifo: application command: no field"),
    ],
)
def test_a_command_that_fails(command: list[str], said: str, tmp_path: Path) -> None:
    workload = SharingApplicationWorkload.model_validate({**OWN, "command": command})
    with pytest.raises(UserError, match=said):
        own_command(workload, ["fifo"], tmp_path, repetitions=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"command": []}, "needs command"),
        ({"data": None}, "needs command .* and data"),
        ({"application": "h5py"}, "are for application: command, not h5py"),
    ],
)
def test_whose_command_it_is(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SharingApplicationWorkload.model_validate({**OWN, **keys})
