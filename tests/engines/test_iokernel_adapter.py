"""The iokernel adapter: command lines, and results that must not become numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.engines import Installation, Task
from tiercel.engines.hdf5_library import HDF5Library
from tiercel.engines.iokernel import IOKernel
from tiercel.errors import RunFailed

from .conftest import data, metadata

INSTALLATION = Installation("iokernel", "1", {"fork": Path("iokernel"), "mpi": Path("iokernel-mpi")})


def rendered(task: Task) -> list[str]:
    return [" ".join(step.argv) for step in IOKernel().steps(task, INSTALLATION)]


@pytest.mark.parametrize(
    ("keys", "phases"),
    [
        ({"operation": "write"}, ["w"]),
        ({"operation": "write", "access": "WAW"}, ["w,w"]),
        ({"operation": "write", "access": "WAR"}, ["w,r,w"]),
        ({"operation": "read", "access": "RAW"}, ["w,r"]),
        ({"operation": "read", "access": "RAR"}, ["w,r,r"]),
        # RO reads what another program start wrote.
        ({"operation": "read"}, ["w", "r"]),
    ],
)
def test_phases_of_an_access_type(task: Callable[..., Task], keys: Any, phases: list[str]) -> None:
    lines = [line.split() for line in rendered(task(data(**keys)))]
    assert [words[words.index("--phases") + 1] for words in lines] == phases


def test_a_cold_read_is_of_synced_data(task: Callable[..., Task]) -> None:
    write, read = rendered(task(data(operation="read")))
    assert " -e" in write and "--evict" not in write
    assert "--evict" in read and " -E" in read and " -e" not in read


def test_it_forks_its_processes_where_there_is_no_mpi(task: Callable[..., Task]) -> None:
    assert rendered(task(data(operation="write"), launcher="fork"))[0].startswith("iokernel -n 2 ")
    assert rendered(task(data(operation="write")))[0].startswith("iokernel-mpi -a POSIX ")
    # -n is items to the metadata part.
    (line,) = rendered(task(metadata(), launcher="fork"))
    assert line.startswith("iokernel md --processes 2 -n 20 ")


@pytest.mark.parametrize(
    ("library", "forked", "by_mpi"),
    [
        (None, "finds no HDF5 library", "finds no HDF5 library"),
        (HDF5Library("/l/libhdf5.so", "2.0.0", False), None, "HDF5 2.0.0 is serial"),
        (HDF5Library("/l/libhdf5.so", "1.14.6", True), None, None),
    ],
)
def test_hdf5_needs_a_library_and_under_mpi_a_parallel_one(
    task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch, library: HDF5Library | None,
    forked: str | None, by_mpi: str | None,
) -> None:  # fmt: skip
    monkeypatch.setattr("tiercel.engines.iokernel.hdf5_library", lambda: library)
    workload = data(operation="write", api="hdf5")
    for launcher, says in (("fork", forked), ("mpiexec", by_mpi)):
        engine = IOKernel()
        why = engine.unsupported(workload, 1) or engine.unsupported_started_by(workload, launcher)
        assert (why is None) == (says is None) and (says or "") in (why or "")
        assert engine.unsupported_started_by(data(operation="write"), launcher) is None
    (line,) = rendered(task(workload))
    assert "-a HDF5 " in line and ("--hdf5.library /l/libhdf5.so" in line) == (library is not None)


def test_one_node_reads_what_another_wrote(task: Callable[..., Task], tmp_path: Path) -> None:
    workload = data(operation="read", another_client=True)
    write, read = rendered(task(workload))
    assert "--on-node 0" in write and "--on-node 1" in read
    # On several nodes readers are moved away from writers, and nobody waits.
    assert not any("--on-node" in line for line in rendered(task(workload, nodes=2)))
    for name in ("write", "read"):
        (tmp_path / f"{name}.json").write_text(document(result(name)))
    assert [m.cross_node_fraction for m in IOKernel().parse(task(workload), tmp_path)] == [None, 1.0]


def result(access: str, **keys: Any) -> dict[str, Any]:
    return {
        "access": access, "accessHistory": "WO", "bytesMoved": 100, "bytesExpected": 100, "operations": 10,
        "totalTime": 2.0, "openTime": 0.1, "wrRdTime": 1.8, "closeTime": 0.1, **keys,
    }  # fmt: skip


def document(*results: dict[str, Any], **keys: Any) -> str:
    return json.dumps({"status": "ok", "tests": [{"Results": list(results)}], **keys})


def test_a_finished_run(task: Callable[..., Task], tmp_path: Path) -> None:
    cpu = {"userSeconds": 0.5, "systemSeconds": 0.25}
    latency = {"count": 10, "mean": 0.18, "p50": 0.1, "p90": 0.2, "p99": 0.3, "p999": 0.4, "max": 0.5}
    told = {"cpu": cpu, "transferLatency": latency, "sessionLayout": "shared"}
    (tmp_path / "main.json").write_text(document(result("write", **told)))
    (m,) = IOKernel().parse(task(data(operation="write")), tmp_path)
    assert m.session_layout == "shared"
    assert (m.bandwidth, m.operation_rate, m.cpu_user, m.cpu_system) == (50.0, 5.0, 0.5, 0.25)
    assert (m.latency_mean, m.latency_p999, m.latency_max) == (0.18, 0.4, 0.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "missing"),
        ("", "not a complete result"),
        (document(result("write"))[:-20], "not a complete result"),
        (document(status="failed", error={"message": "No space left"}), "No space left"),
        (document(status="failed", error=None), "without saying why"),
        (document(), "0 phases where 1"),
        (document(result("write"), result("read")), "2 phases where 1"),
        (document(result("write", totalTime=0)), "division by zero"),
        (document({"access": "write"}), "bytesMoved"),
        (document(result("write", verifyErrors=3)), "verification found 3"),
    ],
)
def test_what_is_no_whole_result_fails(
    text: str | None, says: str, task: Callable[..., Task], tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "main.json").write_text(text)
    with pytest.raises(RunFailed, match=says):
        IOKernel().parse(task(data(operation="write")), tmp_path)


@pytest.mark.parametrize("access", ["WO", "WAW", "WAR"])
def test_every_phase_moves_all_its_bytes(access: str, really_run: Callable[..., Any]) -> None:
    """2 processes times 2 segments of 1 MiB in transfers of 64 KiB: 4 MiB and 64 operations a phase."""
    outcome = really_run("iokernel", data(operation="write", access=access))
    assert outcome.reason == ""
    assert {(m.bytes_moved, m.operations) for m in outcome.measurements} == {(4 * 1024**2, 64)}
    assert outcome.measurements[-1].access == access
