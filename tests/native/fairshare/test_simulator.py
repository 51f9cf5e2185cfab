"""The simulator: its crate's tests, and what users get of it in Python and on the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tiercel.errors import UserError
from tiercel.sharing.calibrate import Measurement, Measurements, calibrate, read_measurements
from tiercel.sharing.commands_simulate import register
from tiercel.sharing.scenario import Scenario, SimulatedJob, read_scenario, to_simulator
from tiercel.sharing.simulate import shares_frame, simulate, simulate_document
from tiercel.sharing.simulate_figure import plot_throughput
from tiercel.sharing.simulator import NOT_BUILT, available, run_simulator

from .test_policy import run_crate_tests

needs_simulator = pytest.mark.skipif(not available(), reason=NOT_BUILT)

SCENARIO = """
server: {bandwidth: 2.0e+9, overhead: 0.05ms}
jobs:
  - {name: solver, user: ana, group: physics, nodes: 4, stop: 2s}
  - {name: reader, user: bo, operation: read, transfer_size: 256KiB, start: 500ms}
"""


def run(*words: str) -> Any:
    app = typer.Typer()
    register(app)
    answer = CliRunner().invoke(app, list(words))
    if answer.exception and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_simulator_crate() -> None:
    run_crate_tests("fairshare-sim")


@needs_simulator
def test_frame_and_metadata_are_of_the_same_simulation() -> None:
    frame, document = simulate(policy="size-fair", duration=2, interval=0.5)
    assert set(frame["origin"]) == {"simulated"} and document["origin"] == "simulated"
    assert list(frame["job"].unique()) == ["large", "small"]
    assert len(frame) == 2 * 4  # jobs times intervals
    (phase,) = document["phases"]
    # 4 nodes and 1 node.
    assert [job["entitled"] for job in phase["jobs"]] == [0.8, 0.2]
    assert phase["jobs"][0]["share"] == pytest.approx(0.8, abs=0.01)
    moved = frame["throughput"].sum() * 0.5
    assert moved == pytest.approx(sum(job["bytes"] for job in document["jobs"]), rel=0.01)


@needs_simulator
def test_shares_frame_holds_every_phase_and_job() -> None:
    jobs = [
        SimulatedJob(name="one", nodes=3),
        SimulatedJob(name="two", nodes=1, start=1.0, stop=2.0),
    ]
    documents = [
        simulate_document(Scenario(jobs=jobs), scheduler=kind, duration=3, interval=0.25)
        for kind in ("stride", "token")
    ]
    table = shares_frame(documents)
    # Alone, together, alone: four rows for each of the two simulations.
    assert len(table) == 8
    together = table[(table["begin"] == 1) & (table["job"] == "two")].set_index("scheduler")
    assert together["share"].tolist() == pytest.approx([0.25, 0.25], abs=0.02)
    assert together.loc["stride", "share_deviation"] < together.loc["token", "share_deviation"]


@needs_simulator
def test_command_line_prints_json_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SCENARIO)
    picture = tmp_path / "sharing.svg"
    answer = json.loads(
        run(
            "simulate", "--jobs", str(path), "--policy", "size-fair", "--policy", "user-fair", "--duration",
            "3s", "--figure", str(picture), "--json",
        )
    )  # fmt: skip
    assert answer["origin"] == "simulated"
    assert [each["policy"] for each in answer["simulations"]] == ["size-fair", "user-fair"]
    assert all(each["origin"] == "simulated" for each in answer["simulations"])
    assert "simulated" in picture.read_text()
    assert "80.00 %" in run("simulate", "--duration", "1s")


@needs_simulator
def test_jobs_on_the_command_line() -> None:
    output = run(
        "simulate", "--job", "name=a,user=ana,nodes=1", "--job", "name=b,user=ana,nodes=3", "--job",
        "name=c,user=bo,servers=0+1", "--servers", "2", "--policy", "user-then-size-fair", "--duration", "1s",
        "--lambda", "100ms", "--json",
    )  # fmt: skip
    (phase,) = json.loads(output)["simulations"][0]["phases"]
    # Half for each user; ana's half in quarters.
    assert [job["entitled"] for job in phase["jobs"]] == [0.125, 0.375, 0.5]


@needs_simulator
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--policy", "sise-fair"], "did you mean size-fair?"),
        (["--scheduler", "strid"], "token"),
        (["--duration", "ten"], "--duration"),
        (["--job", "nodes"], "KEY=VALUE"),
        (["--job", "nodes=1,nodes=2"], "twice"),
        (["--job", "node=1"], "did you mean nodes?"),
        (["--job", "nodes=0"], "nodes"),
        (["--job", "servers=5"], "servers"),
        (["--job", "servers=a"], "servers"),
        (["--jobs", "/nowhere.yaml"], "no such file"),
        (["--jobs", "x.yaml", "--job", "nodes=1"], "one way"),
        (["--figure", "picture.doc"], ".png"),
        (["--interval", "1ms", "--duration", "1e9"], "duration"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], part: str) -> None:
    with pytest.raises(UserError) as caught:
        run("simulate", *words)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_simulator_it_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiercel.sharing.simulator.program", lambda _: None)
    with pytest.raises(UserError, match="make layers"):
        run_simulator("run", {})


def test_scenario_reads_units_and_names(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SCENARIO)
    document = to_simulator(read_scenario(path), servers=1)
    solver, reader = document["jobs"]
    assert document["server"]["overhead_s"] == pytest.approx(5e-5)
    assert (solver["user"], reader["user"]) == (0, 1)  # two names, two users
    assert (reader["size"], reader["start_s"]) == (256 * 1024, 0.5)
    path.write_text("jobs: [{nodes: 2, sise: 3}]")
    with pytest.raises(UserError, match="sise"):
        read_scenario(path)


JOBS = st.builds(
    SimulatedJob,
    name=st.none(),
    user=st.integers(0, 2),
    group=st.integers(0, 1),
    nodes=st.integers(1, 3),
    processes_per_node=st.integers(1, 12),
    start=st.sampled_from([0.0, 0.05]),
    operation=st.sampled_from(["write", "read", "write-read", "stat"]),
    transfer_size=st.sampled_from([4096, 1 << 20]),
    depth=st.integers(1, 3),
    pieces=st.integers(1, 3),
)


@needs_simulator
@settings(max_examples=25)
@given(
    jobs=st.lists(JOBS, min_size=1, max_size=4),
    servers=st.integers(1, 3),
    policy=st.sampled_from(["job-fair", "user-then-size-fair", "group-user-size-fair", "fifo"]),
    scheduler=st.sampled_from(["stride", "token", "gift", "gift-published", "tbf", "fifo"]),
    lambda_=st.sampled_from([None, 0.02]),
    per_request=st.booleans(),
)
def test_any_scenario_gives_shares_that_sum_to_one(
    jobs: list[SimulatedJob], servers: int, policy: str, scheduler: str, lambda_: float | None,
    per_request: bool,
) -> None:  # fmt: skip
    document = simulate_document(
        Scenario(jobs=jobs), servers=servers, policy=policy, scheduler=scheduler, duration=0.1,
        interval=0.01, lambda_=lambda_, per_request=per_request,
    )  # fmt: skip
    for phase in document["phases"]:
        entitled = [job["entitled"] for job in phase["jobs"]]
        # First in, first out promises nothing.
        assert set(entitled) == {None} if policy == "fifo" else math.fsum(entitled) == pytest.approx(1)
        shares = math.fsum(job["share"] for job in phase["jobs"])
        assert shares == pytest.approx(1) or phase["throughput"] == 0
    # Two directions of 11.7 GB/s on each server, and what was on the way at the end.
    assert document["throughput"] < 1.1 * servers * 2 * 11.7e9


@needs_simulator
def test_calibration_of_own_measurements(tmp_path: Path) -> None:
    known = Measurements(
        measurements=[
            Measurement(processes_per_node=4, data_per_process=100 << 20, throughput=3e9),
            Measurement(processes_per_node=1, data_per_process=4 << 20, transfer_size=4096, throughput=5e7),
        ]
    )
    answer = calibrate(known, [2])
    assert answer["origin"] == "simulated"
    assert answer["server"]["bandwidth"] == pytest.approx(3e9, rel=0.05)
    # One process, one request at a time: 4096 bytes in 82 us, of which 6 us are the way there and back.
    assert answer["server"]["overhead_s"] == pytest.approx(4096 / 5e7 - 6e-6, rel=0.1)
    assert answer["predictions"][0]["servers"] == 2
    path = tmp_path / "measured.json"
    path.write_text(known.model_dump_json())
    assert read_measurements(path) == known
    assert "5" in run("calibrate", str(path), "--predict", "2")


def test_measurements_without_a_number_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "measured.yaml"
    path.write_text("measurements: [{servers: 1}]")
    with pytest.raises(UserError, match="throughput"):
        read_measurements(path)


@needs_simulator
def test_the_figure_says_that_it_is_simulated(close_figures: Callable[[], None]) -> None:
    frame, document = simulate(duration=1)
    figure = plot_throughput(frame, [document])
    assert "simulated" in figure.axes[0].get_title()
    close_figures()


@pytest.fixture
def close_figures() -> Callable[[], None]:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return lambda: plt.close("all")
