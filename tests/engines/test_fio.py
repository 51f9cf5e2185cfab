"""fio: command lines, its JSON, failures that look like success."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.engines import Installation, Task, cold
from tiercel.engines.base import Measurement
from tiercel.engines.fio import Fio, _result
from tiercel.errors import RunFailed

from .conftest import RECORDED, data, metadata

FIO = Installation("fio", "3.33", {"fio": Path("fio")})
KIB, MIB = 1024, 1024**2


@pytest.fixture(autouse=True)
def no_iokernel(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Rendered steps do not hang on what this machine has."""
    if "really_run" not in request.fixturenames:
        monkeypatch.setattr(cold, "program", lambda name: None)


def options(task: Task, step: int = -1) -> tuple[dict[str, str], list[list[str]]]:
    """Return the options of all jobs, and those of each job."""
    argv = Fio().steps(task, FIO)[step].argv[1:]
    starts = [i for i, a in enumerate(argv) if a.startswith("--name=")]
    common = dict(a[2:].partition("=")[::2] for a in argv[: starts[0]])
    jobs = [list(argv[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return common, jobs


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # What IOR does by default: no preallocation, no hints; data that storage cannot store once.
        (
            {"operation": "write"},
            {
                "rw": "write", "bs": "65536", "ioengine": "psync", "fallocate": "none", "fadvise_hint": "0",
                "scramble_buffers": "1", "refill_buffers": "0", "create_on_open": "1", "overwrite": "0",
                "invalidate": "0",
                "fsync": None, "end_fsync": None, "directory": "/d",
            },
        ),
        # fio syncs before a write: N-1 times, and once more at the end.
        ({"operation": "write", "fsync": "write"}, {"fsync": "1", "end_fsync": "1"}),
        ({"operation": "write", "fsync": "phase"}, {"fsync": None, "end_fsync": "1"}),
        ({"operation": "write", "direct": True}, {"direct": "1"}),
        (
            {"operation": "write", "compressibility": 0.5, "dedup": 0.25},
            {"buffer_compress_percentage": "50", "dedupe_percentage": "25", "refill_buffers": "1"},
        ),
        ({"operation": "write", "refill": True}, {"refill_buffers": "1", "dedupe_percentage": None}),
        ({"operation": "write", "access": "WAW"}, {"overwrite": "1"}),
        ({"operation": "write", "stonewall": "250ms"}, {"runtime": "250ms"}),
        ({"operation": "write", "queue_depth": 8}, {"ioengine": "io_uring", "iodepth": "8"}),
        # A read that finds no data must fail: fio would make the file, and measure that.
        ({"operation": "read"}, {"rw": "read", "allow_file_create": "0", "invalidate": "1"}),
        ({"operation": "read", "access": "RAW"}, {"invalidate": "0"}),
        ({"operation": "read", "pattern": "random"}, {"rw": "randread", "randseed": "8"}),
    ],
)  # fmt: skip
def test_options_of_the_measured_step(task: Callable[..., Task], keys: Any, expected: Any) -> None:
    common, jobs = options(task(data(**keys)))
    assert {k: common.get(k) for k in expected} == expected
    assert "group_reporting" in common and len(jobs) == 2


def test_setup_is_sequential_whole_and_safe_on_disk(task: Callable[..., Task]) -> None:
    workload = data(operation="read", pattern="random", stonewall=1, fsync="write")
    common, _ = options(task(workload), 0)
    assert (common["rw"], common.get("runtime"), common["end_fsync"]) == ("write", None, "1")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {},
            [["--filename=data.00000000", "--size=2097152"], ["--filename=data.00000001", "--size=2097152"]],
        ),
        (
            {"unique_directories": True},
            [
                ["--filename=0/data.00000000", "--size=2097152"],
                ["--filename=1/data.00000001", "--size=2097152"],
            ],
        ),
        (
            {"reorder": 1},
            [["--filename=data.00000001", "--size=2097152"], ["--filename=data.00000000", "--size=2097152"]],
        ),
        (
            {"layout": "shared", "segments": 1},
            [
                ["--filename=data", "--offset=0", "--size=1048576"],
                ["--filename=data", "--offset=1048576", "--size=1048576"],
            ],
        ),
    ],
)
def test_files_are_those_of_ior(task: Callable[..., Task], keys: Any, expected: Any) -> None:
    _, jobs = options(task(data(operation="read", **keys)))
    assert [job[1:] for job in jobs] == expected


def test_a_colon_in_a_path_is_no_separator(task: Callable[..., Task]) -> None:
    made = task(data(operation="write"))
    odd = Task(made.workload, 1, 2, Path("/d:e"), made.output, 7, "mpiexec")
    assert "--directory=/d\\:e" in Fio().steps(odd, FIO)[0].argv


@pytest.mark.parametrize(
    ("keys", "nodes", "reason"),
    [
        ({}, 2, "one node"),
        ({"api": "mpiio"}, 1, "no MPI-IO"),
        ({"verify": True}, 1, "format of its own"),
        ({"stonewall": 1, "wear_out": True}, 1, "wear-out"),
    ],
)
def test_what_it_cannot_do(keys: Any, nodes: int, reason: str) -> None:
    assert reason in (Fio().unsupported(data(operation="write", **keys), nodes) or "")
    assert Fio().unsupported(metadata(), 1)


def parsed(
    task: Callable[..., Task], folder: Path, case: str, processes: int = 1, **keys: Any
) -> Measurement:
    text = (RECORDED / "fio-3.33" / f"{case}.json").read_text()
    workload = data(**{"block_size": None, **keys})
    for step in ("write", "read"):  # the setup moved the same amount
        other = json.loads(text)
        job = other["jobs"][0]
        if not job[step]["io_bytes"]:
            job[step] = job["read" if step == "write" else "write"]
        (folder / f"{step}.json").write_text(json.dumps(other))
    return Fio().parse(task(workload, processes=processes), folder)[-1]


def test_a_finished_run(task: Callable[..., Task], tmp_path: Path) -> None:
    """direct_randread_n2: two jobs read 2 MiB each in 1024 operations of 4 KiB, in 27 ms rounded up."""
    m = parsed(
        task, tmp_path, "direct_randread_n2", 2, operation="read", pattern="random", direct=True,
        transfer_size=4 * KIB, segments=512,
    )  # fmt: skip
    assert (m.operation, m.role, m.access, m.phase) == ("read", "measured", "RO", 1)
    assert (m.bytes_moved, m.bytes_expected, m.operations) == (4 * MIB, 4 * MIB, 1024)
    assert m.total_time == pytest.approx(0.0265)
    assert m.bandwidth == pytest.approx(4 * MIB / 0.0265)
    assert m.operation_rate == pytest.approx(1024 / 0.0265)
    assert m.latency_mean is not None and 1e-6 < m.latency_mean < 1e-3
    assert m.cpu_user == 0.0  # 0 % of 51 ms
    assert m.stonewall_hit is None


def test_a_run_cut_by_time(task: Callable[..., Task], tmp_path: Path) -> None:
    """time_based_n1 wrote 4202430464 bytes in 1001 ms; taken for a run of more than that."""
    keys = {"operation": "write", "transfer_size": 256 * KIB, "segments": 20000, "stonewall": 1}
    m = parsed(task, tmp_path, "time_based_n1", **keys)
    assert (m.bytes_moved, m.operations, m.stonewall_hit) == (4202430464, 16031, True)
    assert m.cpu_user == pytest.approx(0.039)  # 3.9 % of 1000 ms
    with pytest.raises(RunFailed, match="moved 4202430464 of 5242880000"):
        parsed(task, tmp_path, "time_based_n1", **{**keys, "stonewall": None})


@pytest.mark.parametrize(
    ("case", "transfer", "says"),
    [
        ("write_n1", 256 * KIB, "took 5 ms which fio cannot time"),
        ("err_nospace", 256 * KIB, "fio: File too large"),
        ("write_n2_nogroup", 256 * KIB, "has 2 results"),
        ("create_only_n1", 256 * KIB, "moved 0 of"),
    ],
)
def test_what_is_no_whole_result_fails(
    case: str, transfer: int, says: str, task: Callable[..., Task], tmp_path: Path
) -> None:
    with pytest.raises(RunFailed, match=says):
        parsed(task, tmp_path, case, operation="write", transfer_size=transfer, segments=64)


@pytest.mark.parametrize("case", ["write_n2_group", "fsync1_n1", "randrw_n1", "write_jsonplus_n1"])
def test_recorded_output_is_one_group(case: str) -> None:
    assert _result(RECORDED / "fio-3.33" / f"{case}.json")["error"] == 0


def test_a_message_before_the_result_is_passed_over(tmp_path: Path) -> None:
    text = (RECORDED / "fio-3.33" / "write_n1.json").read_text()
    (tmp_path / "write.json").write_text("fio: this platform does not support x\n" + text)
    assert _result(tmp_path / "write.json")["write"]["io_bytes"] == 16 * MIB


@pytest.mark.parametrize(
    "message",
    [
        "fio: end_fsync failed for file data.00000000",  # the job's error stays 0
        "fio: pid=123, got signal=9",
        "fio: pid=123 disappeared 5",
        "fio: the file system does not seem to support direct IO",
    ],
)
def test_data_or_a_process_lost_fails(message: str, task: Callable[..., Task], tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "operation": "write",
        "transfer_size": 256 * KIB,
        "segments": 20000,
        "stonewall": 1,
    }
    (tmp_path / "write.stderr").write_text("note: both iodepth >= 1 and synchronous I/O engine\n")
    parsed(task, tmp_path, "time_based_n1", **keys)
    (tmp_path / "write.stderr").write_text(f"note: something\n{message}\n")
    with pytest.raises(RunFailed, match=re.escape(message)):
        parsed(task, tmp_path, "time_based_n1", **keys)


def test_a_printed_rate_that_its_own_bytes_contradict_fails(
    task: Callable[..., Task], tmp_path: Path
) -> None:
    content = json.loads((RECORDED / "fio-3.33" / "time_based_n1.json").read_text())
    content["jobs"][0]["write"]["bw_bytes"] *= 2
    (tmp_path / "write.json").write_text(json.dumps(content))
    workload = data(operation="write", transfer_size=256 * KIB, segments=20000, stonewall=1, block_size=None)
    with pytest.raises(RunFailed, match=r"the engine reports 8\.39"):
        Fio().parse(task(workload, processes=1), tmp_path)


@given(st.data())
def test_a_truncated_result_is_none(tmp_path_factory: pytest.TempPathFactory, source: st.DataObject) -> None:
    text = (RECORDED / "fio-3.33" / "write_n2_group.json").read_text().rstrip()
    path = tmp_path_factory.getbasetemp() / "write.json"
    path.write_text(text[: source.draw(st.integers(0, len(text) - 1))])
    with pytest.raises(RunFailed, match="not a complete result"):
        _result(path)


def test_no_result_file(task: Callable[..., Task], tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="wrote no result"):
        Fio().parse(task(data(operation="write")), tmp_path)


# Large enough for fio's clock of milliseconds: 128 MiB in 4 KiB transfers take more than 20 ms anywhere.
ENOUGH = {"transfer_size": 4 * KIB, "block_size": MIB, "segments": 128}


@pytest.mark.parametrize(
    "keys",
    [
        {"operation": "write"},
        {"operation": "write", "layout": "shared", "access": "WAW"},
        {"operation": "write", "unique_directories": True},
        {"operation": "read"},
        {"operation": "read", "pattern": "random", "access": "RAW"},
        {"operation": "read", "layout": "shared", "reorder": 1},
        {"operation": "write", "fsync": "write", "segments": 1},
    ],
)
def test_it_moves_what_iokernel_moves(keys: Any, really_run: Callable[..., Any]) -> None:
    workload = data(**{**ENOUGH, **keys})
    theirs, ours = really_run("fio", workload), really_run("iokernel", workload)
    if "which fio cannot time" in theirs.reason:
        pytest.skip(theirs.reason)
    assert (theirs.reason, ours.reason) == ("", "")

    def facts(outcome: Any) -> list[Any]:
        return [
            (m.operation, m.role, m.phase, m.access, m.bytes_moved, m.operations, m.task_offset or 0)
            for m in outcome.measurements
        ]

    assert facts(theirs) == facts(ours)
    if workload.wants_cold:
        theirs_read, ours_read = theirs.measurements[-1], ours.measurements[-1]
        assert theirs_read.resident_method == ours_read.resident_method
        assert theirs_read.memory_backed == ours_read.memory_backed


@pytest.mark.parametrize("layout", ["file-per-process", "shared"])
def test_every_byte_lies_where_ior_puts_it(tmp_path: Path, layout: str) -> None:
    """The first process alone leaves holes where the other would have written."""
    installation = Fio().find()
    if installation is None:
        pytest.skip("fio is not installed")
    folder = tmp_path / "data"
    folder.mkdir()
    made = Task(data(operation="write", layout=layout, segments=3), 1, 2, folder, tmp_path, 7, "fork")
    (step,) = Fio().steps(made, installation)
    jobs = [i for i, a in enumerate(step.argv) if a.startswith("--name=")]
    first_only = [*step.argv[: jobs[1]]]
    assert subprocess.run(first_only, cwd=tmp_path, check=False).returncode == 0
    if layout == "shared":
        # Blocks 0, 2 and 4 of six: the file ends after the fifth, and its odd blocks are holes.
        file = folder / "data"
        assert file.stat().st_size == 5 * MIB
        content = file.read_bytes()
        empty = [not any(content[i * MIB : (i + 1) * MIB]) for i in range(5)]
        assert empty == [False, True, False, True, False]
    else:
        assert [(p.name, p.stat().st_size) for p in folder.iterdir()] == [("data.00000000", 3 * MIB)]
