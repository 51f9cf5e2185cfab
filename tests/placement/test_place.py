"""From a trace to a plan: what moves, what stays, what it says, and what its script does to real files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tiercel.errors import UserError
from tiercel.placement.model import PlacementModel
from tiercel.placement.place import plan_of
from tiercel.placement.plan import PlacementPlan
from tiercel.placement.staging import burst_buffer_map, group_rows, script, write_plan
from tiercel.site.model import Site, Storage
from tiercel.traces import IOFrame, open_trace

from .synthetic import saved

HOSTILE = "odd 'name\" $(touch pwned) `x`.log"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PlacementModel:
    return PlacementModel.train(saved(tmp_path_factory.mktemp("sweep"))[1])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """far (home of the files) and near, two folders of the test's."""
    storages = {}
    for name in ("far", "near"):
        (tmp_path / name).mkdir()
        folder = str(tmp_path / name).replace("$", "$$")
        storages[name] = Storage(
            type="x", mount=str(tmp_path / name), scratch=folder, medium="disk", capacity=2**40
        )
    return Site(site="here", storages=storages)


def trace(tmp_path: Path, home: Path) -> IOFrame:
    """A strace of a program: a log synced after each of 64 lines of 4 KiB, and one 4 MiB file read in one
    go; each call takes what the law of `far` says."""
    log, big = home / HOSTILE, home / "big.bin"
    text = str(log).replace("\\", "\\\\").replace('"', '\\"')
    lines, now = [], 1_700_000_000.0

    def call(words: str, took: float) -> None:
        nonlocal now
        now += 0.01
        lines.append(f"7 {now:.6f} {words} <{took:.6f}>")

    call(f'openat(AT_FDCWD, "{text}", O_WRONLY|O_CREAT, 0666) = 3<{log}>', 0.001)
    for _ in range(64):
        call(f'write(3<{log}>, "..."..., 4096) = 4096', 0.000004)
        call(f"fsync(3<{log}>) = 0", 0.005)
    call(f"close(3<{log}>) = 0", 0.0)
    call(f'openat(AT_FDCWD, "{big}", O_RDONLY) = 3<{big}>', 0.001)
    call(f'read(3<{big}>, "..."..., 4194304) = 4194304', 0.001053)
    call(f"close(3<{big}>) = 0", 0.0)
    path = tmp_path / "run.strace"
    path.write_text("\n".join(lines) + "\n")
    return open_trace(path, cache=tmp_path / "cache")


def planned(tmp_path: Path, site: Site, model: PlacementModel, **options: object) -> PlacementPlan:
    # Said, since the machine that runs the test may have no room left by its fill limit.
    options.setdefault("capacity", {"far": 2**40, "near": 2**40})
    return plan_of(trace(tmp_path, tmp_path / "far"), site, model, **options)  # type: ignore[arg-type]


def test_the_synced_log_moves_and_the_large_read_stays(
    tmp_path: Path, site: Site, model: PlacementModel
) -> None:
    plan = planned(tmp_path, site, model)
    assert plan.home == "far"  # the traced files lie under its mount
    where = plan.files["system"].to_dict()
    # On far: 64 syncs of 5 ms = 0.32 s; on near 64 * 10 us. The read: 4 MiB at 4 GB/s + 1 ms against 1 GB/s.
    assert where == {str(tmp_path / "far" / HOSTILE): "near", str(tmp_path / "far" / "big.bin"): "far"}
    row = next(r for r in group_rows(plan) if r["system"] == "near")
    assert row["expected_gain"] > 0.8
    assert row["confidence"] > 0.9
    assert row["expected_seconds"]["far"] == pytest.approx(0.32, rel=0.5)
    assert "near is expected faster" in row["reason"]


def test_no_room_no_move(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model, capacity={"near": 1000})
    assert set(plan.files["system"]) == {"far"}
    assert any("near has no room left" in r["reason"] for r in group_rows(plan))


def test_a_full_home_keeps_what_it_has(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    # Every file system is fuller than that.
    full = {n: s.model_copy(update={"fill_limit": 1e-9}) for n, s in site.storages.items()}
    plan = planned(tmp_path, site.model_copy(update={"storages": full}), model, capacity={})
    assert set(plan.files["system"]) == {"far"}
    assert any("near has no room left" in r["reason"] for r in group_rows(plan))


def test_copying_that_costs_more_than_it_gains_is_not_done(
    tmp_path: Path, site: Site, model: PlacementModel
) -> None:
    home = planned(tmp_path, site, model, home="near")
    # From near, where the big read takes 4 ms against 2 ms on far: copying 4 MiB there costs both again.
    assert home.files.loc[str(tmp_path / "far" / "big.bin"), "system"] == "near"


def test_unsure_means_stay(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model, confidence=1.0)
    assert set(plan.files["system"]) == {"far"}
    assert plan.summary["undecided_groups"] >= 1


def test_files_named_together_stay_together(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model, together=["*"])
    assert plan.files["system"].nunique() == 1


def test_what_lies_outside_the_training_data_stays_and_says_so(
    tmp_path: Path, site: Site, model: PlacementModel
) -> None:
    file = tmp_path / "far" / "huge.bin"
    path = tmp_path / "huge.strace"
    path.write_text(
        f'7 1700000001.000000 openat(AT_FDCWD, "{file}", O_WRONLY|O_CREAT, 0666) = 3<{file}> <0.100000>\n'
        f'7 1700000002.000000 write(3<{file}>, ""..., 1073741824) = 1073741824 <0.500000>\n'
    )
    plan = plan_of(open_trace(path, cache=tmp_path / "cache"), site, model)
    assert set(plan.files["system"]) == {"far"}
    assert "outside the training data (transfer_size 1 GiB is outside" in group_rows(plan)[0]["reason"]


def test_unknown_systems_and_empty_traces(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    with pytest.raises(UserError, match="knows no system 'nvme'"):
        planned(tmp_path, site, model, home="nvme")
    path = tmp_path / "idle.strace"
    path.write_text('7 1700000001.000000 stat("/tmp/x", 0x1) = 0 <0.100000>\n')
    with pytest.raises(UserError, match="no reads or writes in this trace"):
        plan_of(open_trace(path, cache=tmp_path / "cache"), site, model)


def test_a_trace_without_file_names_is_refused(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    path = tmp_path / "x.pfw"
    event = {
        "id": 1,
        "name": "write",
        "cat": "POSIX",
        "pid": 1,
        "tid": 1,
        "ts": 5,
        "dur": 2,
        "ph": 1,
        "args": {"ret": 10},
    }
    path.write_text(json.dumps(event) + "\n")
    with pytest.raises(UserError, match="names a file, so files cannot be placed"):
        plan_of(open_trace(path, cache=tmp_path / "cache"), site, model)


def test_the_plan_as_files(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model)
    names = [p.name for p in write_plan(plan, tmp_path / "plan")]
    assert names == ["placement.csv", "plan.json", "stage.py", "burst-buffer.map"]
    written = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert len(written["rows"]) == 2
    table = pd.read_csv(tmp_path / "plan" / "placement.csv", index_col="file")
    log = table.loc[str(tmp_path / "far" / HOSTILE)]
    # 64 writes of 4 KiB, each with its sync; nothing is read back.
    assert (log["transfer_size"], log["accesses_per_open"]) == (4096, 64)
    assert (log["syncs_per_write"], log["WO"], log["RO"], log["shared_file"]) == (1, 1, 0, 0)
    assert table.loc[str(tmp_path / "far" / "big.bin"), "transfer_size"] == 4 << 20
    entry = burst_buffer_map(plan)[0]
    assert (entry["system"], entry["stage_in"], entry["stage_out"]) == ("near", False, True)


def stage(tmp_path: Path, plan: PlacementPlan, verb: str) -> None:
    (tmp_path / "stage.py").write_text(script(plan))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "stage.py"), verb],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_the_script_stages_hostile_names_in_and_out(
    tmp_path: Path, site: Site, model: PlacementModel, times: int
) -> None:
    """Run twice, as after an interruption, it does the same."""
    plan = planned(tmp_path, site, model)
    file = tmp_path / "far" / HOSTILE
    file.write_text("before")
    for _ in range(times):
        stage(tmp_path, plan, "in")
    assert file.is_symlink()
    assert str(file.resolve()).startswith(str(tmp_path / "near"))
    assert file.read_text() == "before"
    file.write_text("after")  # the program
    for _ in range(times):
        stage(tmp_path, plan, "out")
    assert not file.is_symlink()
    assert file.read_text() == "after"
    assert not [p for p in (tmp_path / "near").rglob("*") if p.is_file()]
    assert not list((tmp_path / "far").glob("*.tiercel-home"))


def test_an_interrupted_staging_loses_nothing(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model)
    file = tmp_path / "far" / HOSTILE
    file.write_text("precious")
    stage(tmp_path, plan, "in")
    # As if "in" was killed between moving the original aside and making the link.
    file.unlink()
    stage(tmp_path, plan, "out")
    assert file.read_text() == "precious"


def test_a_file_that_the_program_replaced_is_kept(tmp_path: Path, site: Site, model: PlacementModel) -> None:
    plan = planned(tmp_path, site, model)
    file = tmp_path / "far" / HOSTILE
    file.write_text("before")
    stage(tmp_path, plan, "in")
    file.unlink()
    file.write_text("new")  # rename(2) over the link leaves a plain file
    done = subprocess.run([sys.executable, str(tmp_path / "stage.py"), "out"], check=False)
    assert done.returncode == 1 and file.read_text() == "new"
    assert file.with_name(f"{file.name}.tiercel-home").read_text() == "before"
