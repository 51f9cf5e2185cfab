"""One run of the real engine: what it leaves, how it fails, what it never touches."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tiercel.launchers import resolve
from tiercel.results.measured import measurements_of
from tiercel.results.observations import collect
from tiercel.results.raw import RawStore, read_json
from tiercel.runs.execute import Equipment, JobBroken, execute, last_line
from tiercel.site.model import Stack
from tiercel.study.plan import Run

from ..single_run import stack_on

NewRun = Callable[..., Run]
NewEquipment = Callable[..., Equipment]
LAUNCHERS = pytest.mark.parametrize("launcher", ["fork", pytest.param("mpiexec", marks=pytest.mark.mpi)])


@LAUNCHERS
def test_a_cold_read(new_run: NewRun, equipment: NewEquipment, stack: Stack, launcher: str) -> None:
    run = new_run(operation="read", reorder=1, launcher=launcher)
    outcome = execute(run, equipment(launcher))
    assert (outcome.status, outcome.reason) == ("ok", "")
    setup, measured = outcome.measurements
    # 2 processes x 1 MiB in transfers of 64 KiB: 32 operations of 65,536 bytes.
    assert (setup.role, setup.operation, setup.bytes_moved, setup.operations) == (
        "setup",
        "write",
        2097152,
        32,
    )
    assert (measured.role, measured.operation, measured.access) == ("measured", "read", "RO")
    assert measured.bytes_moved == 2097152
    assert measured.task_offset == 1  # each process read what the other wrote
    if stack.storage.medium == "memory":
        assert measured.resident_fraction == 1 and measured.memory_backed
    else:
        assert measured.resident_fraction == 0
    assert measured.bandwidth == pytest.approx(2097152 / (measured.total_time or 0))


@LAUNCHERS
@pytest.mark.parametrize(
    ("access", "operations"),
    [
        ("WO", ["write"]), ("WAW", ["write", "write"]), ("WAR", ["write", "read", "write"]),
        ("RAW", ["write", "read"]), ("RAR", ["write", "read", "read"]),
    ],
)  # fmt: skip
def test_access_types(
    new_run: NewRun, equipment: NewEquipment, access: str, operations: list[str], launcher: str
) -> None:
    run = new_run(operation=operations[-1], access=access, launcher=launcher)
    outcome = execute(run, equipment(launcher))
    assert outcome.reason == ""
    assert [m.operation for m in outcome.measurements] == operations
    assert [m.role for m in outcome.measurements] == ["setup"] * (len(operations) - 1) + ["measured"]
    assert outcome.measurements[-1].access == access


@LAUNCHERS
def test_metadata(new_run: NewRun, equipment: NewEquipment, launcher: str) -> None:
    run = new_run(operation="metadata", items_per_process=7, launcher=launcher)
    outcome = execute(run, equipment(launcher))
    assert outcome.reason == ""
    done = {m.operation: m.operations for m in outcome.measurements}
    # 2 processes x 7 items
    for operation in ("file-create", "file-stat", "file-read", "file-remove", "directory-create"):
        assert done[operation] == 14


def test_nothing_is_left_and_nothing_else_is_touched(
    new_run: NewRun, equipment: NewEquipment, stack: Stack
) -> None:
    theirs = stack.storage.scratch_path() / "theirs"
    theirs.write_text("precious")
    execute(new_run(), equipment())
    assert [p.name for p in stack.storage.scratch_path().iterdir()] == ["theirs"]
    assert theirs.read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["with blank", "quote'\"s", "new\nline", "dollar$HOME", "ünï", "-dash", "a;b&c"]
)
def test_odd_paths(new_run: NewRun, equipment: NewEquipment, tmp_path: Path, name: str) -> None:
    stack = stack_on(tmp_path / name)
    outcome = execute(new_run(on=stack), equipment())
    assert (outcome.status, outcome.reason) == ("ok", "")
    assert list(stack.storage.scratch_path().iterdir()) == []


def test_the_record_tells_everything_and_no_secret(
    new_run: NewRun, equipment: NewEquipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    tools = equipment()
    run = new_run()
    outcome = execute(run, tools)
    raw = tools.store.read(run.id)
    assert raw is not None
    assert raw.record["steps"][0]["exit_code"] == 0
    assert raw.record["steps"][0]["argv"][-1]
    assert {"kernel", "free_bytes", "mount_options", "load1_before", "others_cpu"} <= raw.context.keys()
    assert "hunter2" not in "".join(p.read_text() for p in raw.folder.glob("*.*"))
    # What is read back from the disk is what the run itself told: bytes over seconds of its phases.
    read_back = measurements_of(raw)
    assert [(m.operation, m.bandwidth) for m in read_back] == [
        (m.operation, m.bandwidth) for m in outcome.measurements
    ]
    assert read_back[-1].bandwidth == pytest.approx(read_back[-1].bytes_moved / read_back[-1].total_time)


def test_a_killed_engine_is_a_failed_run(new_run: NewRun, equipment: NewEquipment) -> None:
    def kill_the_engine() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):  # ended since it was listed
                    if child.name().startswith("iokernel") and "--summary-file" in child.cmdline():
                        child.kill()
                        return
            time.sleep(0.005)

    tools = equipment("fork")  # starts the engine, too, to ask for its version
    killer = threading.Thread(target=kill_the_engine)
    killer.start()
    run = new_run(operation="write", data_per_process="2GiB", fsync="write", launcher="fork")
    outcome = execute(run, tools)
    killer.join()
    assert outcome.status == "failed"
    assert "kill" in outcome.reason.lower()
    assert outcome.measurements == []
    assert_no_number(tools.store, run)


def test_the_time_limit_ends_every_process(new_run: NewRun, equipment: NewEquipment, stack: Stack) -> None:
    run = new_run(operation="write", data_per_process="8GiB", fsync="write")
    outcome = execute(run, equipment(timeout=0.5))
    assert outcome.status == "failed"
    assert "the study's timeout" in outcome.reason
    assert list(stack.storage.scratch_path().iterdir()) == []
    alive = [
        p for p in psutil.Process().children(recursive=True) if p.name().startswith(("iokernel", "mpiexec"))
    ]
    assert alive == []


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs with room for 8 MiB and 40 inodes."""
    point = tmp_path / "small"
    point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=40", "tmpfs", point]
    if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield point
    subprocess.run(["umount", point], check=True)


def test_a_full_file_system_is_a_failed_run(
    new_run: NewRun, equipment: NewEquipment, small_file_system: Path
) -> None:
    stack = stack_on(small_file_system, fill_limit=1.0)
    tools = equipment()
    # 2 x 10 files and folders of 8 KiB fit by the count of bytes; 40 inodes are fewer than 2 x 100.
    run = new_run(on=stack, operation="metadata", items_per_process=100, directories=False)
    outcome = execute(run, tools)
    assert outcome.status == "failed"
    assert re.search("No space left on device|do not fit", outcome.reason)
    assert_no_number(tools.store, run)
    assert list(small_file_system.iterdir()) == []


def test_too_little_space_is_refused_before_anything_is_written(
    new_run: NewRun, equipment: NewEquipment, small_file_system: Path
) -> None:
    stack = stack_on(small_file_system, fill_limit=0.5)
    for size, words in (("64MiB", "a run needs 128 MiB"), ("3MiB", "beyond 50 % (fill_limit) of 8 MiB")):
        outcome = execute(new_run(on=stack, data_per_process=size), equipment())
        assert outcome.status == "failed"
        assert words in outcome.reason


def test_a_half_written_result_is_never_a_number(new_run: NewRun, equipment: NewEquipment) -> None:
    tools = equipment()
    run = new_run()
    execute(run, tools)
    result = tools.store.path(run.id) / "main.json"
    whole = result.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 3):
        result.write_bytes(whole[:size])
        (tools.store.path(run.id) / "record.json").touch()
        observations, runs = collect(tools.store.folder.parent)
        assert len(observations) == 0
        assert runs["status"].tolist() == ["failed"]
        assert "not a complete result" in runs["reason"][0]


def test_an_interrupted_attempt_is_kept(new_run: NewRun, equipment: NewEquipment) -> None:
    tools = equipment()
    run = new_run()
    cut_off, attempt = tools.store.begin(run.id, run.row())
    (cut_off / "main.stdout").write_text("half a")
    assert attempt == 1
    assert execute(run, tools).status == "ok"
    assert read_json(tools.store.path(run.id) / "record.json")["attempts"] == 2
    kept = list((tools.store.folder / "interrupted").iterdir())
    assert [(k / "main.stdout").read_text() for k in kept] == ["half a"]


def assert_no_number(store: RawStore, run: Run) -> None:
    """Assert that the tables list the run as failed, with its reason, and hold no number of it."""
    observations, runs = collect(store.folder.parent)
    assert run.id not in set(observations["run"])
    row = runs[runs["run"] == run.id].iloc[0]
    assert row["status"] == "failed"
    assert row["reason"]


def test_what_slurm_could_not_start_is_no_result(
    new_run: NewRun, equipment: NewEquipment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its controller was away: recorded as failed, that would be said of the storage."""
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    # Whether it gives up itself, or waits for a step that ended unseen until the study's time is over.
    for body in (
        "echo 'srun: error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
        "trap 'echo srun: Cancelled pending job step with signal 15 >&2; exit 1' TERM; sleep 60 & wait",
    ):
        srun.write_text(f"#!/bin/sh\n{body}\n")
        srun.chmod(0o755)
        equipped = replace(equipment("fork"), launcher=resolve("srun"), timeout=1.0)
        with pytest.raises(JobBroken, match="the scheduler did not answer"):
            execute(new_run(), equipped)
        assert equipped.store.ids() == []


def test_the_telling_line_of_a_traceback() -> None:
    said = """
    Error executing job with overrides: ['~workload']
    Traceback (most recent call last):
      File "reader.py", line 40, in get_sample
    KeyError: "object 'records' doesn't exist"
    Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.
    Abort(1) on node 0
    """
    assert last_line(said) == "KeyError: \"object 'records' doesn't exist\""
    assert (
        last_line("tensorflow.errors.NotFoundError: no file\nbye")
        == "tensorflow.errors.NotFoundError: no file"
    )
    assert last_line("slurm: error: no such partition\nbye") == "slurm: error: no such partition"
    assert last_line("one\ntwo") == "two"


@pytest.mark.mpi
def test_one_node_reads_what_another_wrote(
    new_run: NewRun, equipment: NewEquipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of one node and two of another (pretended) one: in each step only two do anything."""
    monkeypatch.setenv("IOR_FAKE_TASK_PER_NODES", "2")
    run = new_run(launcher="mpiexec", operation="read", another_client=True)
    outcome = execute(run, equipment("mpiexec"))
    assert outcome.reason == ""
    (read,) = [m for m in outcome.measurements if m.role == "measured"]
    assert (read.bytes_moved, read.cross_node_fraction, read.access) == (2 * 2**20, 1.0, "RO")
