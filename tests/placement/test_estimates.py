"""What expectations rest on: synchronisations by the call, the trace's own times, and any study's numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tiercel.errors import UserError
from tiercel.placement.basis import basis_of
from tiercel.placement.features import files_of
from tiercel.placement.model import PlacementModel
from tiercel.placement.nearest import Measurements
from tiercel.placement.place import plan_of
from tiercel.placement.plan import PlacementPlan
from tiercel.placement.spent import FACTOR, spent_on
from tiercel.placement.staging import group_rows, moves_of, write_plan
from tiercel.site.model import Site, Storage
from tiercel.traces import IOFrame, open_trace

from .synthetic import LAWS, observations, saved


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PlacementModel:
    return PlacementModel.train(saved(tmp_path_factory.mktemp("sweep"))[1])


def site_of(tmp_path: Path, medium: str = "disk", nodes: int = 1) -> Site:
    """far (home of the files) and near, two folders of the test's."""
    storages = {}
    for name in ("far", "near"):
        (tmp_path / name).mkdir(exist_ok=True)
        folder = str(tmp_path / name).replace("$", "$$")
        storages[name] = Storage(
            type="x", mount=str(tmp_path / name), scratch=folder, capacity=2**40,
            medium=medium if name == "near" else "disk", shared=name == "far",
        )  # type: ignore[arg-type]  # fmt: skip
    return Site(site="here", storages=storages, nodes=nodes)


class Strace:
    """Lines as strace prints them; each call takes what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 1_700_000_000.0

    def call(self, words: str, took: float) -> None:
        self.now += 0.01 + took
        self.lines.append(f"7 {self.now:.6f} {words} <{took:.6f}>")

    def write(self, file: Path, sizes: list[int], sync: float | None, each: float = 4e-6) -> None:
        """A file that is made, written in pieces of `sizes`, each synced (`sync`: seconds; None: not)."""
        self.call(f'openat(AT_FDCWD, "{file}", O_WRONLY|O_CREAT, 0666) = 3<{file}>', 1e-3)
        for size in sizes:
            self.call(f'write(3<{file}>, "x"..., {size}) = {size}', each)
            if sync is not None:
                self.call(f"fdatasync(3<{file}>) = 0", sync)
        self.call(f"close(3<{file}>) = 0", 0)

    def read(self, file: Path, size: int, count: int, each: float) -> None:
        self.call(f'openat(AT_FDCWD, "{file}", O_RDONLY) = 3<{file}>', 1e-3)
        for _ in range(count):
            self.call(f'read(3<{file}>, "x"..., {size}) = {size}', each)
        self.call(f"close(3<{file}>) = 0", 0)

    def open(self, tmp_path: Path, name: str = "run") -> IOFrame:
        path = tmp_path / f"{name}.strace"
        path.write_text("\n".join(self.lines) + "\n")
        return open_trace(path, cache=tmp_path / "cache")


def plan(
    frame: IOFrame, site: Site, model: PlacementModel | Measurements, **options: object
) -> PlacementPlan:
    options.setdefault("capacity", {"far": 2**40, "near": 2**40})
    return plan_of(frame, site, model, **options)  # type: ignore[arg-type]


def row_of(plan: PlacementPlan, name: str) -> dict[str, object]:
    return next(r for r in group_rows(plan) if name in str(r["group"]))


# -- synchronisations -------------------------------------------------------------------------------------


def test_a_synchronisation_costs_its_call_however_few_bytes_it_brings(model: PlacementModel) -> None:
    files = pd.DataFrame({"syncs": [1.0, 1.0, 100.0, 0.0], "bytes_written": [8.0, 4096.0, 13100.0, 4096.0]})
    cost = model.sync_seconds(files)
    # The law: 5 ms each on far, 10 us on near; what the trees are wrong about the writes is in it too.
    for row, calls in ((0, 1), (1, 1), (2, 100)):
        assert cost["far"][row] == pytest.approx(calls * LAWS["far"][2], rel=0.2)
        assert cost["near"][row] < 0.05 * cost["far"][row]
    assert cost["far"][0] == pytest.approx(cost["far"][1], rel=0.2)
    assert cost.loc[3].tolist() == [0, 0]


def test_a_database_of_tiny_synced_files_goes_to_memory(tmp_path: Path, model: PlacementModel) -> None:
    """As RocksDB: a log of 131 bytes a record, each synced, and files of 8 and 36 bytes that are renamed."""
    site, trace = site_of(tmp_path, "memory"), Strace()
    base = tmp_path / "far" / "base"
    trace.write(base / "000004.log", [131] * 64, 5e-3)
    for name, size in (("000001.dbtmp", 16), ("IDENTITY.tmp", 36), ("CURRENT.tmp", 8)):
        trace.write(base / name, [size], 5e-3 if size > 8 else None)
        final = base / name.removesuffix("tmp")
        trace.call(f'rename("{base / name}", "{final}") = 0', 2e-6)
    made = plan(trace.open(tmp_path), site, model)
    assert set(made.files["system"]) == {"near"}
    # 66 syncs of 5 ms; 4 opens of 1 ms: 0.334 s, against 66 * 10 us and 4 * 20 us: 0.75 ms, and to bring 4
    # small files back (an open of 1 ms each on far, and no sync).
    assert made.summary["expected_seconds_at_home"] == pytest.approx(0.334, rel=0.3)
    assert made.summary["expected_gain"] > 0.875  # eight times faster
    tiny = row_of(made, "CURRENT.tmp")
    assert "outside the training data" in str(tiny["outside"])
    # One folder, since a rename over a link would leave the new file at home.
    assert [(m.home, m.folder) for m in moves_of(made)] == [(str(base), True)]


def test_syncs_of_a_folder_count_for_the_files_in_it(tmp_path: Path) -> None:
    trace = Strace()
    file = tmp_path / "far" / "a"
    trace.write(file, [100], 1e-3)
    trace.call(f"fsync(4<{file.parent}>) = 0", 2e-3)
    trace.call("fsync(5</elsewhere>) = 0", 4e-3)
    frame = trace.open(tmp_path)
    files = files_of(frame)
    assert files.loc[str(file), "syncs"] == 2
    spent = spent_on(frame, files)
    assert spent is not None
    assert spent.loc[str(file), "sync"] == pytest.approx(3e-3)


@pytest.mark.parametrize(("second_begins", "processes"), [(0.0, 2), (3.0, 1)])
def test_processes_that_do_io_at_the_same_time_are_counted(
    tmp_path: Path, second_begins: float, processes: int
) -> None:
    """Each has calls over 2 s: 4 s of processes in 2 s are two at once, in 5 s (4 / 5 = 0.8) they are one."""
    lines = [
        (
            begin + second,
            f'{process} {begin + second:.6f} pread64(3</data>, "x"..., 4096, 0) = 4096 <0.500000>',
        )
        for process, begin in ((7, 1_700_000_000.0), (8, 1_700_000_000.0 + second_begins))
        for second in (0.0, 0.5, 1.0, 1.5)
    ]
    trace = Strace()
    trace.lines = [line for _, line in sorted(lines)]
    files = files_of(trace.open(tmp_path))
    assert files.loc["/data", "processes"] == processes


def test_a_program_that_syncs_is_expected_to_take_what_it_took(tmp_path: Path) -> None:
    """os.fsync for real: the calls that the trace shows are those that are counted."""
    if not Path("/usr/bin/strace").exists():
        pytest.skip("strace is not installed")
    file, trace = tmp_path / "log", tmp_path / "run.strace"
    code = (
        "import os,sys\nd=os.open(sys.argv[1],os.O_CREAT|os.O_WRONLY)\n"
        "for i in range(50): os.write(d,b'x'*100); os.fsync(d)\n"
    )
    done = subprocess.run(
        ["strace", "-f", "-ttt", "-T", "-y", "-o", str(trace), sys.executable, "-c", code, str(file)],
        check=False, capture_output=True,
    )  # fmt: skip
    if done.returncode:
        pytest.skip("strace may not trace here")
    frame = open_trace(trace, cache=tmp_path / "cache")
    files = files_of(frame)
    assert files.loc[str(file), "syncs"] == 50
    spent = spent_on(frame, files)
    assert spent is not None
    longest = frame.query("SELECT sum(duration) AS s FROM events WHERE kind = 'sync'")["s"].iloc[0]
    assert 0 < spent.loc[str(file), "sync"] <= longest


# -- held against the trace -------------------------------------------------------------------------------


def test_what_came_from_memory_gains_nothing(tmp_path: Path, model: PlacementModel) -> None:
    """64 KiB reads that near does quicker by the model; in the trace they took a thousandth: cached."""
    file = tmp_path / "far" / "a"
    for took, moved in ((1e-3, True), (1e-7, False)):
        trace = Strace()
        trace.write(file, [4096] * 64, 5e-3 if moved else 1e-6)
        made = plan(trace.open(tmp_path, f"t{took}"), site_of(tmp_path), model)
        assert (made.files["system"].iloc[0] == "near") is moved
        row = row_of(made, "/a")
        assert ("they gain nothing" in str(row["reason"])) is not moved
    # 64 syncs of 5 ms expected, 64 us measured.
    assert made.summary["expected_seconds_before"] == pytest.approx(0.32, rel=0.3)
    assert made.summary["traced_seconds_at_home"] == pytest.approx(64e-6 + 64 * 4e-6 + 1e-3, rel=0.01)
    assert made.summary["corrected_groups"] == 1


def test_a_slower_trace_scales_both_sides_alike(tmp_path: Path, model: PlacementModel) -> None:
    gains, times = [], []
    for factor in (1, 2 * FACTOR):
        trace = Strace()
        trace.write(tmp_path / "far" / "a", [4096] * 64, factor * 5e-3)
        made = plan(trace.open(tmp_path, f"t{factor}"), site_of(tmp_path), model, staging=False)
        gains.append(made.summary["expected_gain"])
        times.append(made.summary["expected_seconds_at_home"])
    assert "scaled" in str(row_of(made, "/a")["held"])
    assert times[1] == pytest.approx(64 * 2 * FACTOR * 5e-3, rel=0.05)  # the trace's own
    assert gains[1] == pytest.approx(gains[0], abs=0.02)


def test_what_took_a_hundred_times_as_long_is_not_decided(tmp_path: Path, model: PlacementModel) -> None:
    trace = Strace()
    trace.write(tmp_path / "far" / "a", [4096] * 64, 100 * 5e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), model)
    assert set(made.files["system"]) == {"far"}
    assert "synchronisations took 32 s in the trace" in str(row_of(made, "/a")["reason"])


def test_time_in_metadata_calls_is_not_decided(tmp_path: Path, model: PlacementModel) -> None:
    trace, file = Strace(), tmp_path / "far" / "a"
    trace.write(file, [4096], 5e-3)
    for _ in range(100):
        trace.call(f'stat("{file}", 0x1) = 0', 1e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), model)
    assert set(made.files["system"]) == {"far"}
    assert "100 ms of 106 ms in the trace are in metadata calls" in str(row_of(made, "/a")["reason"])


def test_files_that_lay_elsewhere_are_not_held_against_the_trace(
    tmp_path: Path, model: PlacementModel
) -> None:
    trace = Strace()
    trace.write(tmp_path / "elsewhere" / "a", [4096] * 64, 1e-6)
    made = plan(trace.open(tmp_path), site_of(tmp_path), model, home="far")
    assert made.summary["traced_seconds_at_home"] is None
    assert made.summary["expected_seconds_at_home"] == pytest.approx(0.32, rel=0.3)
    assert any("did not lie on far" in note for note in made.notes)


def test_the_tracer_s_own_time_is_taken_off(tmp_path: Path) -> None:
    trace, file = Strace(), tmp_path / "far" / "a"
    trace.write(file, [100] * 10, None, each=130e-6)
    for _ in range(5):
        trace.call(f"lseek(3<{file}>, 0, SEEK_SET) = 0", 100e-6)
    frame = trace.open(tmp_path)
    spent = spent_on(frame, files_of(frame))
    assert spent is not None
    # Ten writes of 130 us of which 100 are strace's; the open of 1 ms likewise.
    assert spent.loc[str(file), "data"] == pytest.approx(10 * 30e-6 + 0.9e-3)
    assert spent.loc[str(file), "metadata"] == pytest.approx(0, abs=1e-9)


# -- what takes no time decides nothing -------------------------------------------------------------------


def test_an_unknown_file_that_takes_much_time_holds_what_it_belongs_to(
    tmp_path: Path, model: PlacementModel
) -> None:
    trace = Strace()
    far = tmp_path / "far"
    trace.write(far / "log", [4096] * 16, 5e-3)
    trace.write(far / "huge", [2**30], None, each=2.0)  # 1 GiB transfers: the sweep ends at 4 MiB
    made = plan(trace.open(tmp_path), site_of(tmp_path), model, together=["*"])
    assert set(made.files["system"]) == {"far"}


def test_moves_that_gain_next_to_nothing_are_not_made(tmp_path: Path, model: PlacementModel) -> None:
    trace, far = Strace(), tmp_path / "far"
    trace.read(far / "big", 4 << 20, 200, 2e-3)  # stays: near is slower
    trace.write(far / "tiny", [100], None)  # an open of 1 ms, 20 us on near: 0.25 % of the whole
    made = plan(trace.open(tmp_path), site_of(tmp_path), model, staging=False)
    assert set(made.files["system"]) == {"far"}
    assert "too little to be worth moving" in str(row_of(made, "tiny")["reason"])


# -- lifetime, visibility, room ---------------------------------------------------------------------------


def test_a_plan_says_how_long_files_last_and_who_sees_them(tmp_path: Path, model: PlacementModel) -> None:
    trace = Strace()
    trace.write(tmp_path / "far" / "a", [4096] * 64, 5e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path, "memory", nodes=4), model, capacity={"near": 1 << 20})
    near = made.summary["storages"]["near"]
    assert near == {
        "medium": "memory", "volatile": True, "node_local": True, "bytes": 64 * 4096,
        "capacity_left": (1 << 20) - 64 * 4096, "words": ["gone after a restart", "seen by one node"],
    }  # fmt: skip
    assert made.summary["storages"]["far"]["words"] == []
    assert str(row_of(made, "/a")["reason"]).endswith("(gone after a restart, seen by one node)")
    write_plan(made, tmp_path / "plan")
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["storages"]["near"] == near


def test_what_was_written_after_it_was_removed_is_an_output(tmp_path: Path, model: PlacementModel) -> None:
    for last, output in (("write", True), ("unlink", False)):
        trace, file = Strace(), tmp_path / "far" / "a"
        trace.write(file, [4096] * 64, 5e-3)
        trace.call(f'unlink("{file}") = 0', 1e-6)
        if last == "write":
            trace.write(file, [4096] * 64, 5e-3)
        made = plan(trace.open(tmp_path, last), site_of(tmp_path), model)
        assert bool(made.files["output"].iloc[0]) is output


def test_files_in_a_memory_that_is_mounted_in_a_system_folder_are_placed(
    tmp_path: Path, model: PlacementModel
) -> None:
    trace = Strace()
    trace.write(Path("/dev/shm/job/a"), [4096] * 64, 5e-6)
    trace.write(Path("/dev/null"), [1], None)
    site = site_of(tmp_path)
    near = site.storages["near"].model_copy(update={"mount": "/dev/shm"})
    made = plan(
        trace.open(tmp_path), site.model_copy(update={"storages": {**site.storages, "near": near}}), model
    )
    assert list(made.files.index) == ["/dev/shm/job/a"]
    assert made.home == "near"


# -- folders ----------------------------------------------------------------------------------------------


def test_a_folder_moves_whole_only_when_it_holds_little_else(tmp_path: Path, model: PlacementModel) -> None:
    folder = tmp_path / "far" / "run"
    folder.mkdir(parents=True)
    (folder / "unseen").write_bytes(bytes(1000))
    trace = Strace()
    trace.write(folder / "a.part", [4096] * 64, 5e-3)
    trace.call(f'rename("{folder}/a.part", "{folder}/a") = 0', 1e-6)
    made = plan(trace.open(tmp_path), site_of(tmp_path), model)
    assert [(m.home, m.folder, m.brings_out) for m in moves_of(made)] == [(str(folder), True, True)]
    (folder / "unseen").write_bytes(bytes(65 << 20))
    assert [m.home for m in moves_of(made)] == [str(folder / "a.part")]


def test_a_folder_that_the_program_makes_is_not_there_before_it(
    tmp_path: Path, model: PlacementModel
) -> None:
    work = tmp_path / "far" / "work"
    work.mkdir(parents=True)
    trace = Strace()
    trace.call(f'mkdir("{work}/out", 0777) = 0', 1e-5)
    trace.write(work / "out" / "a", [4096] * 64, 5e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), model)
    assert [m.home for m in moves_of(made)] == [str(work)]


# -- measurements of any study ----------------------------------------------------------------------------


def study(repetitions: int = 5, layer: str = "none") -> pd.DataFrame:
    """A study like `quick`: 1 MiB transfers and synced writes on far and near, with an A/A pair."""
    table = observations(size=60, repetitions=1)
    template = table.iloc[0].to_dict()
    chance, rows = np.random.default_rng(3), []
    configurations = {
        "seq": ("read", "sequential", 2**20, "none"), "ml": ("read", "random", 2**20, "none"),
        "out": ("write", "sequential", 2**20, "none"), "log": ("write", "sequential", 4096, "write"),
    }  # fmt: skip
    for name, (operation, pattern, size, fsync) in configurations.items():
        count = 64
        for storage, (opening, each, sync, rate) in LAWS.items():
            took = opening + count * (each + (sync if fsync == "write" else 0)) + count * size / rate
            for twin in "ab":
                for repetition in range(repetitions):
                    rows.append(
                        {
                            **template, "study": "any", "experiment": "scaling", "workload": name,
                            "storage": storage, "layer": layer if storage == "near" else "none",
                            "operation": operation, "access": "RO" if operation == "read" else "WO",
                            "pattern": pattern, "transfer_size": size, "bytes_per_process": count * size,
                            "fsync": fsync, "api": "posix", "layout": "file-per-process",
                            "unique_directories": False, "repetition": repetition, "origin": "measured",
                            "bandwidth": count * size / took * 2.0 ** chance.normal(0, 0.02),
                            "role": "measured", "twin": twin, "traced": False, "nodes": 1,
                            "processes_per_node": 1, "configuration": name, "operation_rate": np.nan,
                            "samples_per_second": np.nan, "latency_p50": np.nan, "latency_p99": np.nan,
                            "title": name, "run": f"{name}.{storage}.{twin}{repetition}", "direct": False,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def measured() -> Measurements:
    return Measurements.of(complete(study()), "here", None, "here")


def complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Give the table every column that observations have."""
    from tiercel.results.schema import OBSERVATIONS  # noqa: PLC0415

    empty = {"float64": np.nan, "list": None}
    return pd.DataFrame(
        {c.name: rows[c.name] if c.name in rows else empty.get(c.kind) for c in OBSERVATIONS},
        index=rows.index,
    )


def test_a_group_is_as_the_measurement_that_is_most_like_it(tmp_path: Path, measured: Measurements) -> None:
    trace = Strace()
    # 64 reads of 1 MiB: by the law 1 ms, and 0.27 ms each on far, and 1.05 ms on near.
    trace.read(tmp_path / "near" / "big", 2**20, 64, 1.05e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), measured, staging=False)
    row = row_of(made, "big")
    assert row["system"] == "far"
    assert row["rests_on"] == "measured as scaling/seq: sequential read 1 MiB, 1 process"
    assert row["expected_seconds"]["far"] == pytest.approx(1e-3 + 64 * (4e-6 + 2**20 / 4e9), rel=0.05)  # type: ignore[index]
    assert made.summary["basis"] == "measurements of any"
    # The measured ratio is 67 ms against 18 ms: 73 % less.
    low, high = row["gain_interval_90"]  # type: ignore[misc]
    assert low < 0.735 < high


def test_synced_writes_of_a_study_count_by_the_call(tmp_path: Path, measured: Measurements) -> None:
    trace = Strace()
    trace.write(tmp_path / "far" / "log", [100] * 64, 5e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), measured)
    row = row_of(made, "log")
    assert row["system"] == "near"
    assert "scaling/log: sequential write 4 KiB, synced each" in str(row["rests_on"])
    assert "a call for 100 B against 4 KiB" in str(row["rests_on"])
    assert row["expected_seconds"]["far"] == pytest.approx(0.32, rel=0.1)  # type: ignore[index]


def test_what_no_measurement_is_like_is_never_decided(tmp_path: Path, measured: Measurements) -> None:
    trace = Strace()
    trace.read(tmp_path / "near" / "small", 64, 64, 2e-6)
    made = plan(trace.open(tmp_path), site_of(tmp_path), measured, staging=False)
    row = row_of(made, "small")
    assert not row["decided"]
    assert row["system"] == "near"
    assert "any measured nothing like it (transfers of 64 B against 1 MiB" in str(row["reason"])


def test_three_repetitions_prove_nothing(tmp_path: Path) -> None:
    few = Measurements.of(complete(study(repetitions=3)), "here", None, "here")
    trace = Strace()
    trace.read(tmp_path / "near" / "big", 2**20, 64, 1.05e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), few, staging=False)
    assert made.files["system"].iloc[0] == "near"
    assert "3 of 4 repetitions" in str(row_of(made, "big")["reason"])


def test_a_layer_is_a_system_of_its_own(tmp_path: Path) -> None:
    layered = Measurements.of(complete(study(layer="cachevol")), "here", "any", "here")
    assert layered.systems == ["far", "near+cachevol"]
    trace = Strace()
    trace.write(tmp_path / "far" / "log", [100] * 64, 5e-3)
    made = plan(trace.open(tmp_path), site_of(tmp_path), layered, capacity={"near+cachevol": 2**30})
    assert made.files["system"].iloc[0] == "near+cachevol"
    assert any("run the program through that layer" in note for note in made.notes)


def test_one_system_or_another_site_is_nothing_to_rest_on(tmp_path: Path) -> None:
    rows = complete(study())
    with pytest.raises(UserError, match="no measurements of any study on two storage systems or more"):
        Measurements.of(rows[rows["storage"] == "far"], "here", None, "here")
    with pytest.raises(UserError, match="no measurements of study other"):
        Measurements.of(rows, "here", "other", "here")
    with pytest.raises(UserError, match="no measurements of any study"):
        Measurements.of(rows, "elsewhere", None, "elsewhere")


def test_simulated_numbers_are_no_measurements() -> None:
    rows = complete(study())
    with pytest.raises(UserError, match="no measurements"):
        Measurements.of(rows.assign(origin="simulated"), "here", None, "here")


def test_a_model_comes_before_a_sweep_and_a_sweep_before_any_study(tmp_path: Path) -> None:
    complete(study()).to_parquet(tmp_path / "observations.parquet")
    assert basis_of(tmp_path, "here").basis == "measurements of any"
    folder, table = saved(tmp_path)
    found = basis_of(tmp_path, "here")
    assert found.basis == "model of sweep"
    assert any("learnt from the sweep sweep just now" in note for note in found.notes)
    PlacementModel.train(table).save(folder, folder)
    assert not any("just now" in note for note in basis_of(tmp_path, "here").notes)
    assert basis_of(tmp_path, "here", "any").basis == "measurements of any"


def test_the_command_needs_no_sweep_and_says_what_it_rests_on(tmp_path: Path) -> None:
    site_of(tmp_path)
    (tmp_path / "Snakefile").touch()
    folder = tmp_path / "site-configs" / "here"
    folder.mkdir(parents=True)
    storage = "{{type: x, mount: {0}/{1}, scratch: {0}/{1}, medium: {2}}}"
    (folder / "site.yaml").write_text(
        "site: here\nstorages:\n"
        + "".join(
            f"  {name}: {storage.format(tmp_path, name, medium)}\n"
            for name, medium in (("far", "disk"), ("near", "memory"))
        )
    )
    (tmp_path / "results" / "here").mkdir(parents=True)
    complete(study()).to_parquet(tmp_path / "results" / "here" / "observations.parquet")
    trace = Strace()
    trace.write(tmp_path / "far" / "log", [100] * 64, 5e-3)
    trace.open(tmp_path)
    words = ["place", "plan", str(tmp_path / "run.strace"), "--site", "here", "--capacity", "near=1GiB"]
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "1 of 1 files leave far" in said
    assert "by the measurements of any" in said
    assert "no model and no sweep: expected times are the nearest of 4 measured configurations" in said
    # 64 syncs of 5 ms and an open of 1 ms.
    assert "on far the trace itself took 321 ms" in said
    assert re.search(r"near: 6.25 KiB used, 1\S* \wiB left, gone after a restart", said)
