"""A survey of many traces: rows recounted by hand, what breaks a reader, and what an interruption leaves."""

from __future__ import annotations

import errno
import importlib.util
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import tiercel.traces.survey.table as tables
from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.locked import FileLock
from tiercel.traces.analysis.counters import counted
from tiercel.traces.analysis.tally import topmost
from tiercel.traces.child import Child, Lost
from tiercel.traces.frame import IOFrame
from tiercel.traces.readers.darshan import NEEDED, one_child
from tiercel.traces.store import ParquetWriter
from tiercel.traces.survey import answers, load_findings, load_survey, survey
from tiercel.traces.survey.journal import Journal
from tiercel.traces.survey.kinds import KINDS, kind_of
from tiercel.traces.survey.numbers import _by_file, mounts_of
from tiercel.traces.survey.row import DEFECT, empty_row
from tiercel.traces.survey.schema import JOBS

from .conftest import call, write

LOGS = Path(__file__).parents[1] / "data" / "traces" / "darshan"
needs_darshan = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None, reason="the darshan package is not installed"
)
HOUR = 3600.0

#: A package of Darshan's name whose library does what damaged logs make the real one do.
FAKE = """
import os, sys, time
class ffi: NULL = None
def log_open(path):
    what = open(path).read()
    if what == "kill":
        os.kill(os.getpid(), 11)
    if what == "hang":
        time.sleep(600)
    print("error: no such thing", file=sys.stderr, flush=True)
    return {"handle": None}
"""


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def broken_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the fake package before the real one, for child processes and for who asks whether it is there."""
    package = tmp_path / "fake" / "darshan" / "backend"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "cffi_backend.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))


def trace(folder: Path, name: str, size: int = 40) -> Path:
    """Write a DFTracer trace in a folder of its own: one read of 2 s, one write of 1 s, an open of 1 s."""
    return write(folder / name / "x.pfw", [
        call("open64", 0, 1_000_000, ret=3, fname="/d/a"),
        call("pread", 1_000_000, 2_000_000, ret=size, offset=0, fname="/d/a"),
        call("pwrite", 3_000_000, 1_000_000, ret=8, offset=0, fname="/d/b"),
    ])  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", "survey", *map(str, arguments)])


def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that names, from now on, the traces that are read."""
    names: list[str] = []
    real = tables.read_here

    def read_here(traces: Any, *others: Any) -> Any:
        names.extend(Path(each.path).name for each in traces)
        return real(traces, *others)

    monkeypatch.setattr(tables, "read_here", read_here)
    return names


# -- rows ----------------------------------------------------------------------------------------------------


@needs_darshan
def test_a_row_of_counters(tmp_path: Path) -> None:
    """The log: each of two ranks writes and reads 16 times 4 KiB of a shared file (test_darshan)."""
    shutil.copy(LOGS / "posix-counters.darshan", tmp_path / "alice_iokernel_id77-1_x.darshan")
    (row,) = survey(tmp_path, tmp_path / "s.parquet").to_dict("records")
    frame = IOFrame.from_darshan(LOGS / "posix-counters.darshan")
    assert (row["reason"], row["format"], row["source"]) == ("", "darshan", "counters")
    assert (row["ranks"], row["reads"], row["writes"], row["files"]) == (2, 32, 32, 1)
    assert row["bytes_read"] == row["bytes_written"] == 131072
    assert row["read_size"] == row["write_size"] == 4096 and row["small_share"] == 1.0
    # 4 KiB is in Darshan's class 1K_10K, which begins at 1025.
    assert row["read_p50"] == row["write_p50"] == 1025
    assert row["shared_files"] == 1
    assert pd.isna(row["hosts"])  # counters do not tell
    assert row["executable"] == Path(frame.metadata["command"].split()[0]).name
    assert row["job"] == str(frame.metadata["job"])
    assert row["run_s"] == frame.metadata["run_time"] and row["core_s"] == 2 * row["run_s"]
    assert row["start"] == frame.metadata["epoch"] and row["end"] == row["start"] + row["run_s"]
    posix = frame.counters("POSIX")
    assert posix is not None
    assert row["read_s"] == pytest.approx(posix["POSIX_F_READ_TIME"].sum())
    assert row["io_s"] == pytest.approx(row["read_s"] + row["write_s"] + row["metadata_s"])
    assert row["io_share"] == pytest.approx(row["io_s"] / row["core_s"])
    assert row["read_bandwidth"] == pytest.approx(row["bytes_read"] / row["read_s"])
    (mount,) = row["mounts"]
    assert (mount["bytes_read"], mount["bytes_written"], mount["files"]) == (131072, 131072, 1)
    assert mount["io_s"] == pytest.approx(row["io_s"])


def test_a_row_of_events(tmp_path: Path) -> None:
    trace(tmp_path, "job")
    (row,) = survey(tmp_path, tmp_path / "s.parquet").to_dict("records")
    assert (row["path"], row["format"], row["source"]) == (str(tmp_path / "job"), "dftracer", "events")
    assert (row["reads"], row["writes"], row["files"], row["shared_files"]) == (1, 1, 2, 0)
    assert (row["bytes_read"], row["bytes_written"]) == (40, 8)
    assert (row["read_s"], row["write_s"], row["metadata_s"], row["io_s"]) == (2.0, 1.0, 1.0, 4.0)
    assert (row["run_s"], row["ranks"], row["core_s"], row["io_share"]) == (4.0, 1, 4.0, 1.0)
    assert (row["metadata_share"], row["read_bandwidth"], row["write_bandwidth"]) == (0.25, 20.0, 8.0)
    assert (row["read_p50"], row["write_p50"], row["small_share"]) == (40, 8, 1.0)
    assert row["mounts"] is None and pd.isna(row["user"])  # the trace does not tell
    assert row["kind"] == "small"


def test_files_of_one_folder_are_one_job_and_each_log_is_one(tmp_path: Path) -> None:
    trace(tmp_path, "job")
    write(tmp_path / "job" / "y.pfw", [call("pread", 0, 10, pid=11, ret=2, offset=0, fname="/d/c")])
    text = '7 1700000000.000000 pread64(3</d/x>, ""..., 8, 0) = 8 <0.500000>\n'
    (tmp_path / "job" / "inner").mkdir()
    (tmp_path / "job" / "inner" / "out.strace").write_text(text)
    (tmp_path / "job" / "notes.txt").write_text("no trace\n")
    table = survey(tmp_path, tmp_path / "s.parquet").set_index("format")
    assert table["reason"].to_dict() == {"dftracer": "", "strace": ""}
    assert table["bytes_read"].to_dict() == {"dftracer": 42, "strace": 8}
    assert table["start"]["strace"] == 1700000000.0
    assert table["read_s"]["strace"] == pytest.approx(0.5 - 100e-6)  # less strace's own


def test_columns_carry_units_and_meanings(tmp_path: Path) -> None:
    trace(tmp_path, "job")
    table = survey(tmp_path, tmp_path / "s.parquet")
    schema = pq.read_schema(tmp_path / "s.parquet")
    assert schema.names == [column.name for column in JOBS]
    for column in JOBS:
        assert schema.field(column.name).metadata[b"meaning"].decode() == column.meaning
    assert table.attrs["units"]["read_bandwidth"] == "B/s"


def test_a_record_whose_name_is_lost_counts(tmp_path: Path) -> None:
    """Darshan keeps names in a memory of its own, which may be full: then a number stands for a name."""
    writer = ParquetWriter(tmp_path / "events.parquet")
    names = ["/d/a", "<record 0x7>", "/d/b"]
    calls = {"POSIX_READS": [1, 2, 4], "POSIX_BYTES_READ": [10, 20, 40]}
    writer.keep("POSIX", pa.table({"file": names, "rank": [0, 0, 0], **calls}))
    writer.close()
    frame = IOFrame(paths=(tmp_path / "events.parquet",), _counters=tmp_path)
    raw = frame.counters("POSIX")
    assert raw is not None and raw["file"].tolist() == names
    table = counted(frame)
    assert (table["file"].tolist(), table["reads"].tolist()) == (names, [1, 2, 4])


def test_mounts_by_the_longest_point() -> None:
    low = {
        "bytes_read": pd.Series([1, 2, 4, 8]).to_numpy(), "bytes_written": pd.Series([0, 0, 0, 1]).to_numpy(),
    }  # fmt: skip
    codes = pd.Series([0, 1, 1, 2]).to_numpy()
    files = ["/scratch/a", "/scratchy/b", "<STDOUT>"]
    spent = pd.Series([1.0, 5.0, 4.0]).to_numpy()
    found = mounts_of(low, codes, files, [("/", "ext4"), ("/scratch", "lustre")], spent)
    assert found == [
        {"mount": "/", "type": "ext4", "files": 1, "bytes_read": 6, "bytes_written": 0, "io_s": 5.0},
        {"mount": "/scratch", "type": "lustre", "files": 1, "bytes_read": 1, "bytes_written": 0, "io_s": 1.0},
    ]
    assert mounts_of(low, codes, files, [], spent) is None


def test_time_is_what_ranks_spend_in_mpiio() -> None:
    """A file through MPI-IO counts by its calls there (8 s, below it 2 s), another by its own (1 s)."""
    rows = pd.DataFrame({
        "file": ["/p/f", "/p/f", "/p/g"], "read_time": [2.0, 8.0, 1.0], "write_time": [0.0] * 3,
        "metadata_time": [0.0] * 3, "sync_time": [math.nan] * 3, "api": ["posix", "mpiio", "posix"],
    })  # fmt: skip
    top = topmost(rows, rows[rows["api"] == "posix"])
    assert _by_file(top, ["/p/g", "/p/f"]).tolist() == [1.0, 8.0]


# -- what breaks a reader ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("broken_library")
@needs_darshan
def test_logs_that_kill_or_hang_the_library_cost_only_themselves(tmp_path: Path) -> None:
    for name in ("kill", "hang", "other"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / f"{name}.darshan").write_text(name)
    trace(tmp_path / "logs", "zz-good")
    table = survey(tmp_path / "logs", tmp_path / "s.parquet", jobs=1, seconds=8)
    reasons = {Path(path).name: reason for path, reason in zip(table["path"], table["reason"], strict=True)}
    assert reasons == {
        "kill.darshan": "not a readable Darshan log: Darshan's library ended with signal 11",
        "hang.darshan": "not done after 8 s",
        "other.darshan": "not a readable Darshan log: error: no such thing",
        "zz-good": "",
    }
    assert table.set_index("path")["bytes_read"][str(tmp_path / "logs" / "zz-good")] == 40
    lost = answers(table)["unreadable"]
    assert sum(each["jobs"] for each in lost) == 3


@needs_darshan
def test_damaged_logs_have_a_reason_or_a_warning(tmp_path: Path) -> None:
    whole = (LOGS / "posix-counters.darshan").read_bytes()
    (tmp_path / "empty.darshan").write_bytes(b"")
    (tmp_path / "short.darshan").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "good.darshan").write_bytes(whole)
    table = survey(tmp_path, tmp_path / "s.parquet", jobs=1)
    rows = {Path(row["path"]).name: row for row in table.to_dict("records")}
    assert "not a readable Darshan log" in rows["empty.darshan"]["reason"]
    assert rows["short.darshan"]["reason"] or len(rows["short.darshan"]["warnings"])
    assert rows["good.darshan"]["reason"] == "" and not len(rows["good.darshan"]["warnings"])
    for name in ("bytes_read", "io_s", "kind", "findings"):  # missing, not zero
        assert pd.isna(rows["empty.darshan"][name])


@needs_darshan
def test_one_child_takes_many_logs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    real = subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> Any:
        started.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr("tiercel.traces.child.subprocess.Popen", popen)
    (tmp_path / "bad.darshan").write_bytes(b"3.41\0\0\0\0")
    with one_child():
        first = IOFrame.from_darshan(LOGS / "posix-counters.darshan", cache=tmp_path / "1")
        with pytest.raises(UserError, match="not a readable Darshan log"):
            IOFrame.from_darshan(tmp_path / "bad.darshan", cache=tmp_path / "2")
        second = IOFrame.from_darshan(LOGS / "posix-dxt.darshan", cache=tmp_path / "3")
    assert len(started) == 1
    assert (len(first), len(second)) == (0, 64)
    alone = IOFrame.from_darshan(LOGS / "posix-counters.darshan", cache=tmp_path / "4")
    assert len(started) == 2
    pd.testing.assert_frame_equal(first.counters("POSIX"), alone.counters("POSIX"))  # type: ignore[arg-type]


def test_a_child_that_dies_or_sleeps_is_replaced() -> None:
    code = (
        "import sys, os, time\n"
        "for line in sys.stdin:\n"
        "    line = line.strip()\n"
        "    if line == 'die': os._exit(3)\n"
        "    if line == 'sleep': time.sleep(600)\n"
        "    print(line, os.getpid(), flush=True)\n"
    )
    with Child([sys.executable, "-c", code], group=True) as child:
        first = child.ask("a", 60)
        assert child.ask("b", 60).split()[1] == first.split()[1] and child.answered == 2
        with pytest.raises(Lost, match="ended with exit code 3"):
            child.ask("die", 60)
        second = child.ask("c", 60)
        assert second.startswith("c ") and second.split()[1] != first.split()[1]
        with pytest.raises(Lost, match=r"not done after 0\.5 s"):
            child.ask("sleep", 0.5)
        assert child.ask("d", 60).startswith("d ")
        last = int(child.ask("e", 60).split()[1])
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


# -- again, and after an interruption ------------------------------------------------------------------------


def test_only_what_is_new_or_changed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = tmp_path / "logs", tmp_path / "s.parquet"
    for name in ("a", "b", "c"):
        trace(logs, name)
    names = made(monkeypatch)
    first = survey(logs, output)
    assert sorted(names) == ["a", "b", "c"]
    names.clear()
    pd.testing.assert_frame_equal(survey(logs, output), first)
    assert names == []
    trace(logs, "b", size=41)
    trace(logs, "d")
    shutil.rmtree(logs / "c")
    table = survey(logs, output)
    assert sorted(names) == ["b", "d"]
    found = {Path(path).name: moved for path, moved in zip(table["path"], table["bytes_read"], strict=True)}
    assert found == {"a": 40, "b": 41, "d": 40}
    assert not list(tmp_path.glob(".s.parquet.rows"))


def test_killed_in_the_middle_nothing_is_lost_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "s.parquet"
    for number in range(40):
        trace(logs, f"job-{number:02}", size=100 + number)
    command = [
        sys.executable,
        "-m",
        "tiercel",
        "trace",
        "survey",
        str(logs),
        "-o",
        str(output),
        "--jobs",
        "1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / ".s.parquet.rows"
    deadline = time.monotonic() + 300
    try:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not output.exists()
    with journal.open("ab") as file:  # as if it had been killed in the middle of a line
        file.write(b'{"log": "half of a')
    kept = {json.loads(line.partition(b" ")[2])["path"] for line in journal.read_bytes().split(b"\n")[1:-1]}
    assert 4 <= len(kept) < 40
    names = made(monkeypatch)
    table = survey(logs, output)
    assert sorted(names) == sorted({f"job-{n:02}" for n in range(40)} - {Path(path).name for path in kept})
    assert table["bytes_read"].tolist() == [100 + number for number in range(40)]
    assert table["log"].is_unique and not journal.exists()


def test_a_row_that_is_not_as_it_was_written_is_read_again(tmp_path: Path) -> None:
    """Zeros, a key renamed, an older row's mark: none becomes a row, none ends the survey."""
    with Journal(tmp_path / "s.parquet", "code 1") as journal:
        for number in range(4):
            journal.add({"log": f"job-{number}", "log_bytes": number, "log_stamp": 1.0, "reason": ""})
    lines = journal.path.read_bytes().split(b"\n")
    lines[1] = b"\0" * len(lines[1])
    lines[2] = lines[2].replace(b"log_bytes", b"log_butes")
    lines[3] = lines[4].partition(b" ")[0] + b" " + lines[3].partition(b" ")[2]
    journal.path.write_bytes(b"\n".join(lines))
    assert list(Journal(tmp_path / "s.parquet", "code 1").rows()) == [
        {"log": "job-3", "log_bytes": 3, "log_stamp": 1.0, "reason": ""}
    ]
    assert list(Journal(tmp_path / "s.parquet", "code 2").rows()) == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_under_the_journals_name_is_a_mistake(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Opened, a pipe would wait for a writer for ever."""
    make(tmp_path / ".s.parquet.rows")
    with pytest.raises(UserError, match=r"s\.parquet\.rows: not a file"):
        Journal(tmp_path / "s.parquet", "code")


def test_the_kind_of_a_job_does_not_depend_on_the_tracer(tmp_path: Path) -> None:
    """20 writes and syncs, 2.5 ms and 47.5 ms: Darshan tells 1 s of writing, strace tells both apart."""
    lines = ['9 1700000000.000000 openat(AT_FDCWD, "/d/f", O_WRONLY|O_CREAT, 0644) = 3</d/f> <0.001000>']
    for n in range(20):
        at = 1_700_000_000.01 + n * 0.06
        lines.append(f'9 {at:.6f} pwrite64(3</d/f>, "x", 4096, {n * 4096}) = 4096 <0.002500>')
        lines.append(f"9 {at + 0.003:.6f} fsync(3</d/f>) = 0 <0.047500>")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "x.strace").write_text("\n".join(lines) + "\n")
    (row,) = survey(tmp_path / "logs", tmp_path / "s.parquet").to_dict("records")
    # Less what strace adds to a call, at most 100 us.
    assert row["write_s"] == pytest.approx(1.0, abs=0.005)
    assert row["metadata_s"] < 0.002 and row["kind"] == "small"


def test_a_full_disk_keeps_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = tmp_path / "logs", tmp_path / "s.parquet"
    for name in "abcd":
        trace(logs, name)
    real = Journal.add

    def full(self: Journal, row: dict[str, Any]) -> None:
        if row["path"].endswith("c"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, row)

    monkeypatch.setattr(Journal, "add", full)
    with pytest.raises(UserError, match="No space left on device"):
        survey(logs, output, jobs=1)
    monkeypatch.setattr(Journal, "add", real)
    names = made(monkeypatch)
    assert len(survey(logs, output)) == 4
    assert names == ["c", "d"]


def test_interrupted_it_leaves_a_table_of_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "s.parquet"
    for name in "abc":
        trace(logs, name)

    def stop(done: int, whole: int) -> None:
        assert whole == 3
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey(logs, output, jobs=1, progress=stop)
    assert len(load_survey(output)) == 2
    names = made(monkeypatch)
    assert len(survey(logs, output)) == 3 and names == ["c"]


def test_a_second_survey_of_one_table_is_refused(tmp_path: Path) -> None:
    trace(tmp_path / "logs", "a")
    with FileLock(tmp_path / ".s.parquet.lock", "held"):
        result = run(tmp_path / "logs", "-o", tmp_path / "s.parquet")
    assert isinstance(result.exception, UserError)
    assert "another `tiercel trace survey` fills this table" in str(result.exception)
    assert len(survey(tmp_path / "logs", tmp_path / "s.parquet")) == 1


# -- mistakes ------------------------------------------------------------------------------------------------


def test_mistakes_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, logs = tmp_path / "empty", tmp_path / "logs"
    empty.mkdir()
    trace(logs, "a")
    file = tmp_path / "file"
    file.write_text("x")

    def said(*arguments: object) -> str:
        result = run(*arguments)
        assert isinstance(result.exception, UserError), result.output
        return str(result.exception)

    assert "no trace in this folder" in said(empty)
    assert "not a folder" in said(file)
    assert "no such folder" in said(tmp_path / "absent")
    assert "is a .parquet file" in said(logs, "-o", tmp_path / "s.csv")
    assert "no such folder" in said(logs, "-o", tmp_path / "absent" / "s.parquet")
    other = tmp_path / "other.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(other)
    before = other.read_bytes()
    assert "is no survey" in said(logs, "-o", other) and other.read_bytes() == before
    output = tmp_path / "s.parquet"
    survey(logs, output)
    trace(tmp_path / "logs2", "b")
    assert "survey of another folder" in said(tmp_path / "logs2", "-o", output)
    assert "--by nobody" in said(logs, "-o", output, "--by", "nobody")
    assert "--since soon" in said(logs, "-o", output, "--since", "soon")
    for since in ("2026-12-01", "2026-12-02"):  # no job: as the last day is not in it
        assert "is not before" in said(logs, "-o", output, "--since", since, "--until", "2026-12-01")
    assert "columns:" in said(logs, "-o", output, "--filter", "size > 3")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name in {"a", "logs2"}:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "logs2: Permission denied" in said(tmp_path / "logs2", "-o", tmp_path / "t.parquet")
    trace(logs, "b")
    result = run(logs, "-o", output)  # one folder below it: the others count, and a sentence names it
    assert result.exit_code == 0 and f"{logs / 'a'}: Permission denied" in result.stderr


# -- without names -------------------------------------------------------------------------------------------


@needs_darshan
def test_an_anonymous_table_names_nobody(tmp_path: Path) -> None:
    with one_child():
        command = IOFrame.from_darshan(LOGS / "posix-counters.darshan").metadata["command"]
    program = Path(command.split()[0]).name
    for name in ("1", "2"):
        shutil.copy(LOGS / "posix-counters.darshan", tmp_path / f"zaphod_{program}_id1-{name}_x.darshan")
    (tmp_path / f"zaphod_{program}_id3-4_x.darshan").write_bytes(b"")
    named = survey(tmp_path, tmp_path / "named.parquet")
    assert set(named["user"].dropna()) == {"zaphod"}
    output = tmp_path / "anonymous.parquet"
    table = survey(tmp_path, output, anonymous=True)
    (stands,) = set(table["user"].dropna())
    assert stands.startswith("user-")
    held = json.dumps(pq.read_table(output).to_pylist()) + str(pq.read_schema(output).metadata)
    assert "zaphod" not in held and str(tmp_path) not in held and "/tmp/study" not in held
    for name in ("path", "command", "job", "worst_sentence"):
        assert table[name].isna().all()
    # Names cannot be tried out: logs are named with the key, so that a plain table's names are others.
    assert not set(table["log"]) & set(named["log"])
    again = survey(tmp_path, tmp_path / "again.parquet", anonymous=True)
    assert set(again["user"].dropna()) == {stands} and set(again["log"]) == set(table["log"])
    (key,) = (tmp_path / "config").rglob("survey.key")
    assert key.stat().st_mode & 0o77 == 0


def test_warnings_of_an_anonymous_table_name_no_member(tmp_path: Path) -> None:
    """A trace of several files is named by its folder; what is lost in one of them names that file."""
    folder = tmp_path / "logs" / "run"
    for name in ("bobjones_secret-1.pfw", "bobjones_secret-2.pfw"):
        write(folder / name, [call("read", 0, 10, ret=4096, fname="/d/f")])
    with (folder / "bobjones_secret-2.pfw").open("a") as file:
        file.write("{garbage\n")
    table = survey(tmp_path / "logs", tmp_path / "s.parquet", anonymous=True)
    assert len(table) == 1 and len(table["warnings"].iloc[0])
    held = json.dumps(pq.read_table(tmp_path / "s.parquet").to_pylist())
    assert "bobjones" not in held and "secret" not in held


# -- what the rows say ---------------------------------------------------------------------------------------


def job(number: int, **numbers: Any) -> dict[str, Any]:
    """Return a row that the tests make: 2 ranks, 1000 s, 1 GiB written in 20 s of calls."""
    from tiercel.traces.survey.find import Found  # noqa: PLC0415

    row = empty_row(Found(f"{number:016x}", f"/logs/{number}.darshan", "darshan", (), 1, 1))
    row |= {
        "source": "counters",
        "user": "u", "executable": "sim", "job": str(number), "ranks": 2, "run_s": 1000.0, "core_s": 2000.0,
        "bytes_read": 0, "bytes_written": 1 << 30, "reads": 0, "writes": 1024, "read_s": 0.0, "write_s": 20.0,
        "metadata_s": 0.0, "io_s": 20.0, "io_share": 0.01, "metadata_share": 0.0, "start": 1e9 + number,
        "end": 1e9 + number + 1000, "findings": [],
    }  # fmt: skip
    row |= numbers
    row["kind"], row["kind_reason"] = kind_of(row)
    return row


def table_of(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def finding(rule: str, severity: str, seconds: float | None) -> dict[str, Any]:
    share = None if seconds is None else seconds / 2000
    return {"rule": rule, "severity": severity, "seconds": seconds, "share": share,
            "sentence": f"{rule} for {seconds} s", "advice": "-"}  # fmt: skip


def test_slow_jobs_are_told_from_like_ones() -> None:
    like = [job(n, write_s=20.0 + n, io_s=20.0 + n) for n in range(5)]
    slow = job(9, write_s=200.0, io_s=210.0, metadata_s=10.0)
    elsewhere = [
        job(10, executable="other", io_s=900.0), job(11, ranks=64, io_s=900.0),
        job(12, bytes_written=1 << 40, io_s=900.0), job(13, reason="broken", io_s=None),
    ]  # fmt: skip
    (found,) = answers(table_of(*like, slow, *elsewhere))["slow"]
    # 210 s over 2 ranks against the median 22 s over 2.
    assert (found["job"], found["io_s_each"], found["median_s"]) == ("9", 105.0, pytest.approx(11.0))
    assert found["lost_core_hours"] == pytest.approx((210 - 22) / HOUR) and found["like_jobs"] == 5
    assert found["part"] == "write" and found["why"].startswith(
        "writes take 100 s a process, the others' 11 s"
    )
    assert answers(table_of(*like[:3], slow))["slow"] == []  # three others are too few to tell


def test_gains_take_the_costliest_finding_of_each_job() -> None:
    rows = [
        job(1, user="a", gain_rule="small-transfers", gain_core_s=400.0,
            findings=[finding("small-transfers", "problem", 400.0), finding("misaligned", "hint", 100.0)]),
        job(2, user="a", gain_rule="small-transfers", gain_core_s=300.0,
            findings=[finding("small-transfers", "problem", 300.0)]),
        job(3, user="b", executable="reader", gain_rule="imbalance", gain_core_s=500.0,
            findings=[finding("imbalance", "problem", 50_000.0), finding("mapped", "note", None)]),
        job(4, user="b"),
    ]  # fmt: skip
    page = answers(table_of(*rows))
    users = [(each["user"], each["jobs"], each["gain_core_hours"], each["rule"]) for each in page["users"]]
    assert users == [("a", 2, pytest.approx(700 / HOUR), "small-transfers"),
                     ("b", 2, pytest.approx(500 / HOUR), "imbalance")]  # fmt: skip
    assert page["users"][0]["sentence"] == "small-transfers for 400.0 s"
    assert [each["executable"] for each in page["executables"]] == ["sim", "reader"]
    by_rule = {each["rule"]: each for each in page["rules"]}
    assert list(by_rule) == ["imbalance", "small-transfers", "misaligned", "mapped"]
    assert by_rule["imbalance"]["core_hours"] == pytest.approx(2000 / HOUR)  # no more than the job had
    assert by_rule["small-transfers"]["jobs"] == 2 and by_rule["small-transfers"]["most"] == "sim"
    assert by_rule["small-transfers"]["share"] == pytest.approx(700 / 8000)
    assert by_rule["mapped"]["core_hours"] is None
    assert (page["core_hours"], page["io_core_hours"]) == (
        pytest.approx(8000 / HOUR),
        pytest.approx(80 / HOUR),
    )
    assert page["io_share"] == pytest.approx(0.01)
    assert set(answers(table_of(*rows), by="user", limit=1)) >= {"users"}
    assert len(answers(table_of(*rows), by="user", limit=1)["users"]) == 1


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ({}, "writer"),
        ({"io_share": 0.004}, "quiet"),
        # One process is in I/O and the others wait: no quiet job.
        ({"io_share": 0.004, "gain_core_s": 1000.0}, "writer"),
        ({"metadata_share": 0.3}, "metadata"),
        ({"writes": 1 << 15}, "small"),
        ({"writes": 1 << 14}, "writer"),
        ({"bytes_read": 1 << 30, "reads": 1024}, "mixed"),
        ({"bytes_read": 4 << 30, "reads": 4096}, "reader"),
        ({"bytes_written": 0, "io_s": 0.0}, "none"),
        ({"source": None}, "none"),
        ({"bytes_read": None}, "unknown"),
        ({"bytes_read": None, "metadata_share": 0.3}, "metadata"),
        ({"reason": "broken"}, None),
        ({"io_share": None}, "writer"),
    ],
)
def test_kinds_of_io(numbers: dict[str, Any], kind: str | None) -> None:
    row = job(1, **numbers)
    assert row["kind"] == kind and (kind is None) == (row["kind_reason"] is None)
    assert kind is None or kind in KINDS


def test_reasons_are_grouped() -> None:
    rows = [job(n, reason=f"ended with signal {n}") for n in (6, 11)] + [job(3, reason="torn"), job(4)]
    page = answers(table_of(*rows))
    assert [(each["reason"], each["jobs"]) for each in page["unreadable"]] == [
        ("ended with signal 6", 2),
        ("torn", 1),
    ]
    assert (page["jobs"], page["read"]) == (4, 1)


# -- the command ---------------------------------------------------------------------------------------------


def test_the_page_and_its_json(tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "s.parquet"
    for number in range(3):
        trace(logs, f"job-{number}", size=40 + number)
    result = run(logs, "-o", output)
    assert result.exit_code == 0, result.output
    assert "3 jobs" in result.stdout and "small" in result.stdout and str(output.name) in result.stdout
    page = json.loads(run(logs, "-o", output, "--json", "--filter", "bytes_read > 40").stdout)
    assert (page["jobs"], page["bytes_read"], page["bytes_written"]) == (2, 83, 16)
    assert page["kinds"][0]["kind"] == "small" and page["kinds"][0]["jobs"] == 2
    assert json.loads(run(logs, "-o", output, "--json", "--since", "2100-01-01").stdout)["jobs"] == 0
    assert run(logs, "-o", output, "--since", "2100-01-01").exit_code == 0  # nobody: still a page
    assert load_findings(output).columns.tolist()[:3] == ["log", "path", "user"]


def test_times_choose_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for day in (1, 2):
        (tmp_path / "logs" / str(day)).mkdir(parents=True)
        at = 1_762_000_000 + 86_400 * day  # 2025-11-02 and 2025-11-03, 12:26
        (tmp_path / "logs" / str(day) / "t.strace").write_text(
            f'7 {at}.000000 pread64(3</d/x>, ""..., {day}, 0) = {day} <0.500000>\n'
        )
    output = tmp_path / "s.parquet"

    def moved(*options: str) -> int:
        found: int = json.loads(run(tmp_path / "logs", "-o", output, "--json", *options).stdout)["bytes_read"]
        return found

    assert (moved(), moved("--since", "2025-11-03"), moved("--until", "2025-11-03")) == (3, 2, 1)
    assert moved("--since", "2025-11-02T12:26:41", "--until", "2025-11-04") == 2


# -- on a cluster --------------------------------------------------------------------------------------------


def test_the_same_rows_on_dask(tmp_path: Path, client: Any) -> None:
    logs = tmp_path / "logs"
    for number in range(5):
        trace(logs, f"job-{number}", size=40 + number)
    here = survey(logs, tmp_path / "here.parquet")
    there = survey(logs, tmp_path / "there.parquet", client=client)
    pd.testing.assert_frame_equal(here, there)


def test_jobs_without_a_program_are_not_left_out() -> None:
    """Darshan logs of version 2 and traces of other tools do not always tell what ran."""
    page = answers(table_of(job(1), job(2, executable=None, user=None)))
    assert [each["executable"] for each in page["executables"]] == ["sim", "(not told)"]
    assert sum(each["jobs"] for each in page["users"]) == 2


def test_a_torn_table_or_journal_is_said(tmp_path: Path) -> None:
    trace(tmp_path / "logs", "a.pfw")
    table = tmp_path / "survey.parquet"
    table.write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match="damaged, or no table"):
        survey(tmp_path / "logs", table)
    table.unlink()
    survey(tmp_path / "logs", table, jobs=1)
    # Lines that are JSON and no rows, as another program might leave, cost only themselves.
    signature = pq.read_schema(table).metadata[b"tiercel"].decode()
    (tmp_path / ".survey.parquet.rows").write_text(json.dumps({"tiercel": signature}) + "\n[1]\n7\n{}\n")
    assert len(survey(tmp_path / "logs", table, jobs=1)) == 1


def test_what_was_not_the_logs_fault_is_tried_again(tmp_path: Path) -> None:
    """A package that was missing is there the next time; a log that is broken stays broken."""
    path, table = trace(tmp_path / "logs", "a.pfw"), tmp_path / "s.parquet"
    survey(path.parent, table, jobs=1)
    for reason, read in ((NEEDED, True), (f"{DEFECT}: KeyError: 'x'", True), ("not a readable log", False)):
        rows = pq.read_table(table).to_pylist()
        written = pa.Table.from_pylist([{**rows[0], "reason": reason}], pq.read_schema(table))
        pq.write_table(written, table)
        assert (survey(path.parent, table, jobs=1)["reason"].iloc[0] == "") == read
