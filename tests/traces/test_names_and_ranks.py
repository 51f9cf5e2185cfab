"""What DFTracer's traces say of ranks and of files, however late or often; and what is no storage."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.summary import summarise
from tiercel.traces.findings import explain
from tiercel.traces.pseudo import is_pseudo
from tiercel.traces.readers import native
from tiercel.traces.readers.text import LONGEST_LINE, Lines

from .conftest import Event, call, hashed, write


@pytest.fixture(params=["native", "python"])
def _scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(native, "load_library", lambda: None)
    elif native.load_library() is None:
        pytest.skip("native/tracescan is not built (make setup)")


def tells_rank(pid: int, rank: int | str) -> Event:
    """Return the line by which DFTracer tells a process's rank, when MPI has been initialised."""
    return {
        "name": "PR", "cat": "dftracer", "pid": pid, "tid": pid, "ph": 4,
        "args": {"hhash": "h", "name": "rank", "value": rank},
    }  # fmt: skip


def reads(pid: int, at: int, count: int = 1, **more: Any) -> list[Event]:
    return [call("read", at + n, 1, pid=pid, ret=1, **more) for n in range(count)]


@pytest.mark.usefixtures("_scanner")
@pytest.mark.parametrize("kind", [int, str])
def test_a_told_rank_counts_wherever_it_stands(tmp_path: Path, kind: type) -> None:
    """The process that appears first is rank 2; each says so after its events."""
    for pid, at, rank in ((10, 0, 2), (11, 5, 0), (12, 9, 1)):
        write(tmp_path / "t" / f"run-{pid}.pfw.gz", [*reads(pid, at, 300), tells_rank(pid, kind(rank))])
    frame = open_trace(tmp_path / "t")
    events = frame.events()
    assert dict(zip(events["process"], events["rank"], strict=True)) == {10: 2, 11: 0, 12: 1}
    assert frame.metadata["ranks_from"] == "trace"
    assert not any("order of appearance" in note for note in summarise(frame)["notes"])


@pytest.mark.usefixtures("_scanner")
def test_told_ranks_of_several_processes_in_one_file(tmp_path: Path) -> None:
    events = [*reads(10, 0), *reads(11, 1), tells_rank(11, 0), tells_rank(10, 1)]
    frame = open_trace(write(tmp_path / "t.pfw", events))
    assert frame.events()["rank"].tolist() == [1, 0]


def test_a_forked_worker_has_the_told_rank_of_its_parent(tmp_path: Path) -> None:
    start = {"ppid": 1, "cmd_hash": "c"}
    write(tmp_path / "t" / "a.pfw", [call("start", 0, 0, "dftracer", 10, **start), tells_rank(10, 7)])
    worker = [call("start", 3, 0, "dftracer", 11, ppid=10, cmd_hash="c"), *reads(11, 4)]
    write(tmp_path / "t" / "b-fork.pfw", worker)
    events = open_trace(tmp_path / "t").events()
    assert set(events["rank"]) == {7}


def test_numbered_ranks_say_so(tmp_path: Path) -> None:
    for pid in (10, 11):
        write(tmp_path / "t" / f"run-{pid}.pfw", reads(pid, pid))
    frame = open_trace(tmp_path / "t")
    assert frame.metadata["ranks_from"] == "order of appearance"
    assert any("order of appearance" in note for note in summarise(frame)["notes"])


def test_ranks_told_by_some_say_so(tmp_path: Path) -> None:
    write(tmp_path / "t" / "run-10.pfw", [*reads(10, 0), tells_rank(10, 3)])
    write(tmp_path / "t" / "run-11.pfw", reads(11, 5))
    frame = open_trace(tmp_path / "t")
    assert frame.events()["rank"].tolist() == [3, 4]
    assert frame.metadata["ranks_from"] == "some are told"


@pytest.mark.parametrize("value", ["x", -1, 2**40, None, [1]])
def test_a_rank_that_cannot_be_is_not_taken(tmp_path: Path, value: Any) -> None:
    frame = open_trace(write(tmp_path / "t.pfw", [*reads(10, 0), tells_rank(10, value)]))
    assert frame.events()["rank"].tolist() == [0]


@pytest.mark.usefixtures("_scanner")
def test_one_hash_of_two_processes(tmp_path: Path) -> None:
    for pid in (10, 11):
        write(
            tmp_path / "t" / f"{pid}.pfw",
            [hashed("ab", f"/p/{pid}", pid=pid), *reads(pid, pid, 3, fhash="ab")],
        )
    frame = open_trace(tmp_path / "t")
    events = frame.events()
    assert [f"/p/{pid}" for pid in events["process"]] == events["file"].tolist()
    assert not frame.warnings


@pytest.mark.usefixtures("_scanner")
def test_a_hash_bound_anew(tmp_path: Path) -> None:
    """Within one block of lines: what comes before the second line is of the first file."""
    lines = [
        hashed("ab", "/p/one"), *reads(10, 0, 2, fhash="ab"), *reads(10, 2, 1, fhash="cd"),
        hashed("ab", "/p/two"), hashed("cd", "/p/other"), *reads(10, 5, 2, fhash="ab"),
    ]  # fmt: skip
    frame = open_trace(write(tmp_path / "t.pfw", lines))
    assert frame.events()["file"].tolist() == ["/p/one", "/p/one", "/p/other", "/p/two", "/p/two"]


@pytest.mark.usefixtures("_scanner")
def test_a_worker_means_what_its_parent_said(tmp_path: Path) -> None:
    """Two parents use one hash for two files; the worker of the second says nothing of it."""
    for pid in (10, 20):
        start = call("start", pid, 0, "dftracer", pid, ppid=1, cmd_hash="c")
        write(tmp_path / "t" / f"{pid}.pfw", [start, hashed("ab", f"/p/{pid}", pid=pid)])
    worker = [call("start", 30, 0, "dftracer", 21, ppid=20, cmd_hash="c"), *reads(21, 31, fhash="ab")]
    write(tmp_path / "t" / "21-fork.pfw", worker)
    frame = open_trace(tmp_path / "t")
    assert frame.events().query("function == 'read'")["file"].tolist() == ["/p/20"]
    assert not frame.warnings


def test_a_process_that_does_not_say_which_is_told_of(tmp_path: Path) -> None:
    write(tmp_path / "t" / "1.pfw", [hashed("ab", "/p/one", pid=10), *reads(10, 0)])
    write(tmp_path / "t" / "2.pfw", [hashed("ab", "/p/two", pid=11), *reads(11, 1)])
    write(tmp_path / "t" / "3.pfw", reads(12, 2, 4, fhash="ab"))
    frame = open_trace(tmp_path / "t")
    assert any(warning.startswith("4 events may name a wrong file") for warning in frame.warnings)


# -- what is no storage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/proc/self/maps", "/proc", "/sys/devices/system/cpu/online", "/dev/null", "/dev/infiniband/uverbs0",
     "/dev/shm/mpich_shar_tmp1a2b", "/dev/shm/vader_segment.node.1", "/dev/shm/psm2_shm.0", "/dev/stdout",
     "/dev/hugepages/x", "/dev/shm/sem.lock", "/dev/shm/nccl-Ab3"],
)  # fmt: skip
def test_pseudo_files(path: str) -> None:
    assert is_pseudo(path)


@pytest.mark.parametrize(
    "path",
    ["/process/x", "/sysroot/x", "/p/proc/x", "/dev/shm", "/dev/shm/results.h5", "/dev/shm/tiercel-0/a",
     "/dev/sda1", "/dev/nvme0n1p2", "/dev/mapper/scratch", "/devel/x", "x", ""],
)  # fmt: skip
def test_storage(path: str) -> None:
    assert not is_pseudo(path)


def mixed(tmp_path: Path, order: int = 1) -> IOFrame:
    """One read of a file, and 100 of the kernel's answers, by a hash explained before it or at the end."""
    lines = [
        hashed("ab", "/p/f"), call("read", 0, 1, ret=7, fhash="ab"),
        *(call("read", 1 + n, 20_000, ret=64, fhash="cd") for n in range(100)), hashed("cd", "/proc/meminfo"),
    ]  # fmt: skip
    return open_trace(write(tmp_path / "t.pfw", lines[::order]))


@pytest.mark.parametrize("order", [1, -1])
def test_pseudo_files_are_no_io(tmp_path: Path, order: int) -> None:
    frame = mixed(tmp_path, order)
    assert frame.events()["kind"].value_counts().to_dict() == {"pseudo": 100, "read": 1}
    table = frame.io_bandwidth()
    assert table["bytes"].tolist() == [7]
    assert not any("/proc" in finding.sentence for finding in explain(frame))
    answer = summarise(frame)
    assert answer["pseudo"] == [{"of": "/proc", "calls": 100, "bytes": 6400, "seconds": pytest.approx(2.0)}]
    assert any(note.startswith("100 calls on /proc") for note in answer["notes"])


# -- bounds --------------------------------------------------------------------------------------------------


def test_a_line_without_end_is_left_out(tmp_path: Path) -> None:
    """Its place is told; the lines before and after it are read."""
    path = tmp_path / "t"
    path.write_bytes(gzip.compress(b"one\n" + b"\0" * (LONGEST_LINE * 2) + b"\ntwo\n", 1))
    lines = Lines(path)
    assert b"".join(lines) == b"one\ntwo\n"
    assert lines.overlong == 1
    assert lines.warnings == [
        f"t: {2 * LONGEST_LINE + 1} bytes from byte 4 of its text on are left out: one line of more than "
        "16 MiB"
    ]


def test_a_file_of_zeros_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(gzip.compress(b"\0" * (3 * LONGEST_LINE), 1))
    with pytest.raises(UserError, match=r"no line can be read; t\.pfw\.gz: 50331648 bytes from byte 0"):
        open_trace(path)


def test_bandwidth_over_time_of_each_rank(tmp_path: Path) -> None:
    """Rank 0 reads 100 B in the first half of 2 ms, rank 1 300 B in the second."""
    for pid, at, size in ((10, 0, 100), (11, 1000, 300)):
        write(tmp_path / "t" / f"{pid}.pfw", [call("read", at, 1000, pid=pid, ret=size)])
    table = open_trace(tmp_path / "t").bandwidth_over_time(bins=2, by="rank")
    assert table.index.names == ["rank", "time"]
    assert table["read_bytes"].tolist() == pytest.approx([100, 0, 0, 300])
    assert table.attrs["units"]["read_bandwidth"] == "B/s"
    with pytest.raises(UserError, match="no parts named"):
        open_trace(tmp_path / "t").bandwidth_over_time(by="node")


def test_both_spellings_of_the_read_write_pattern(tmp_path: Path) -> None:
    frame = open_trace(write(tmp_path / "t.pfw", [call("pread", 0, 1, ret=5, offset=0, fname="/p/f")]))
    assert frame.read_write_pattern().equals(frame.readwrite_pattern())
