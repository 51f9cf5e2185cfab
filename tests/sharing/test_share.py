"""The layer fairshare around a run, the experiments of competing jobs, and `tiercel share`."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.errors import RunFailed, UserError
from tiercel.layers import layers
from tiercel.layers.fairshare import programs as fairshare_programs
from tiercel.layers.fairshare.policies import check_policy
from tiercel.layers.fairshare.programs import find_programs, required_programs
from tiercel.layers.fairshare.server import running_server
from tiercel.sharing.engine import Sharing
from tiercel.sharing.experiment import experiment, summary, time_to_share
from tiercel.sharing.jobs import Throughput
from tiercel.sharing.workload import SharingWorkload

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
built = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)

WORKLOAD = SharingWorkload.model_validate({
    "operation": "sharing", "alone": "0.5s",
    "jobs": [
        {"name": "a", "size": 3, "processes": 2, "seconds": "2s", "file_size": "1MiB"},
        {"name": "b", "processes": 2, "start": "0.5s", "seconds": "1.5s", "file_size": "1MiB"},
    ],
})  # fmt: skip


@pytest.mark.parametrize(
    "name", ["fifo", "size-fair", "user-then-size-fair", "group-user-size-fair", "group-fair"]
)
def test_policies(name: str) -> None:
    assert check_policy(name) == name


@pytest.mark.parametrize("name", ["sise-fair", "size", "fair", "", "user-then-", "-fair"])
def test_misspelt_policies(name: str) -> None:
    with pytest.raises(UserError, match="policy"):
        check_policy(name)


def test_jobs_that_never_meet_are_refused() -> None:
    apart = {
        "operation": "sharing",
        "jobs": [{"name": "a", "seconds": 1}, {"name": "b", "start": 2, "seconds": 1}],
    }
    with pytest.raises(ValueError, match="run together for 0 s only"):
        SharingWorkload.model_validate(apart)
    same = {"operation": "sharing", "jobs": [{"name": "a", "seconds": 1}, {"name": "a", "seconds": 1}]}
    with pytest.raises(ValueError, match="a name of its own"):
        SharingWorkload.model_validate(same)


def throughput(job: str, values: list[float]) -> Throughput:
    return Throughput(job, 0.1, np.array(values), np.array(values) / 10, None, None)


def test_shares_deviation_and_slowdown_by_hand() -> None:
    """Job a gets 300 and b 100 from 0.5 s on; before that a has 400 for itself."""
    a, b = throughput("a", [400.0] * 5 + [300.0] * 15), throughput("b", [0.0] * 5 + [100.0] * 15)
    alone = throughput("a", [400.0] * 5)
    found = summary(WORKLOAD, alone, [a, b], {"a": 0.6, "b": 0.2, "other": 0.2})
    first, second = found["jobs"]
    assert (first["share"], second["share"]) == (0.75, 0.25)  # 300 and 100 of 400
    assert (first["entitled"], second["entitled"]) == (pytest.approx(0.75), pytest.approx(0.25))  # 0.6 : 0.2
    assert first["slowdown"] == pytest.approx(1 / 3)  # 400 / 300 - 1
    assert first["deviation"] == 0
    assert found["total"]["seconds_to_share"] == pytest.approx(0.1)  # the first interval is right


def test_time_to_share_by_hand() -> None:
    """Half a second all for a, then halves: over the last second, a's part falls from 1 to 0.5.

    After n intervals of halves beside 5 of a alone: a has (5 + n / 2) of 5 + n. It is within 10 % of one
    half (0.55) when n >= 45, but after 10 intervals the window of a second lets go of the first ones:
    with k of the 5 left, a has (k + (10 - k) / 2) / 10 = 0.5 + k / 20, so k = 1 is 0.55: 14 intervals.
    """
    a = throughput("a", [2.0] * 5 + [1.0] * 20)
    b = throughput("b", [0.0] * 5 + [1.0] * 20)
    assert time_to_share([a, b], {"a": 0.5, "b": 0.5}, 0, 2.5) == pytest.approx(1.4)
    assert time_to_share([a, b], {"a": None, "b": None}, 0, 2.5) is None
    assert time_to_share([a, b], {"a": 0.9, "b": 0.1}, 0, 0.4) is None


@built
def test_competing_jobs_on_a_plain_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRSHARE_SERVER", raising=False)
    programs = find_programs()
    assert programs
    found = experiment(programs.load, tmp_path / "data", WORKLOAD)
    assert sum(job["share"] for job in found["jobs"]) == pytest.approx(1)
    assert all(job["entitled"] is None for job in found["jobs"])
    (tmp_path / "sharing.json").write_text(json.dumps(found))
    rows = Sharing().parse(None, tmp_path)  # type: ignore[arg-type]
    assert [row.operation for row in rows] == ["job-a", "job-b", "all-jobs"]
    assert rows[0].metrics["share"] == found["jobs"][0]["share"]


def test_half_a_result_is_none(tmp_path: Path) -> None:
    (tmp_path / "sharing.json").write_text('{"jobs": [{"job": "a"')
    with pytest.raises(RunFailed, match="not a complete result"):
        Sharing().parse(None, tmp_path)  # type: ignore[arg-type]


@built
def test_options_of_the_layer_are_checked() -> None:
    layer = layers.get("fairshare")()
    site = None
    layer.check_options(
        {"policy": "user-fair", "scheduler": "token", "charge": "4KiB", "rate": "400MiB"}, site
    )  # type: ignore[arg-type]
    for wrong in ({"polcy": "fifo"}, {"policy": "fare"}, {"scheduler": "lottery"}, {"parallel": 0},
                  {"rate": "fast"}):  # fmt: skip
        with pytest.raises(UserError):
            layer.check_options(wrong, site)  # type: ignore[arg-type]


@built
def test_run_gives_the_command_the_files_and_its_exit_code(tmp_path: Path) -> None:
    script = "echo hello > /fairshare/f; cd /fairshare; cat f > g; exit 7"
    done = CliRunner().invoke(
        app,
        [
            "share",
            "run",
            "--data",
            str(tmp_path / "d"),
            "--job",
            "j",
            "--size",
            "3",
            "--",
            "bash",
            "-c",
            script,
        ],
    )
    assert done.exit_code == 7, done.output
    assert (tmp_path / "d" / "tree" / "g").read_text() == "hello\n"


@built
def test_run_refuses_a_prefix_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = CliRunner().invoke(app, ["share", "run", "--prefix", str(tmp_path), "--", "true"])
    assert isinstance(done.exception, UserError)
    assert "nothing is there yet" in str(done.exception)


@built
@pytest.mark.parametrize("there", [False, True])
def test_a_socket_that_nobody_answers_at_is_refused_before_the_program_starts(
    tmp_path: Path, there: bool
) -> None:
    """A file in the server's place, or none: the program would see no files, and would not say why."""
    socket, ran = tmp_path / "s.socket", tmp_path / "ran"
    if there:
        socket.touch()
    done = CliRunner().invoke(app, ["share", "run", "--socket", str(socket), "--", "touch", str(ran)])
    assert done.exit_code != 0 and not ran.exists()
    assert "no fairshare server answers there" in str(done.exception)


@built
def test_a_ticket_is_made_out_to_whom_the_administrator_names(tmp_path: Path) -> None:
    programs = required_programs()
    with running_server(programs, tmp_path / "data") as server:
        argv = ["share", "ticket", "--socket", str(server.socket), "--job", "climate", "--size", "16"]
        done = CliRunner().invoke(app, [*argv, "--for", "54321:54400"])
        assert done.exit_code == 0, done.output
        said = bytes.fromhex(done.output.strip())
        # holder and whom it is accounted to (user, group each), size, priority; by the administrator
        assert struct.unpack_from("<6I", said) == (54321, 54400, 54321, 54400, 16, 1)
        assert struct.unpack_from("<I", said, 44) == (1,)
        wrong = CliRunner().invoke(app, [*argv, "--for", "somebody"])
        assert wrong.exit_code != 0
        assert "UID:GID" in str(wrong.exception or "") + wrong.output


def test_without_the_layer_every_command_names_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairshare_programs, "program", lambda _: None)
    for command in (["run", "--", "true"], ["serve", "--data", "x"], ["bench", "--quick"]):
        done = CliRunner().invoke(app, ["share", *command])
        assert isinstance(done.exception, UserError)
        assert "make layers" in str(done.exception)


@built
@pytest.mark.nightly
def test_bench_measures_everything() -> None:
    done = CliRunner().invoke(app, ["share", "bench", "--quick", "--json", "--rounds", "1"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["solo"]["latency_ratio"] > 0
    for contest in found["sharing"]:
        assert sum(job["measured"] for job in contest["jobs"]) == pytest.approx(1, abs=1e-6)
