"""IOR: command lines, its text, failures that look like success."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.engines import Installation, Task, cold, probing
from tiercel.engines.ior import IOR
from tiercel.engines.ior_text import MIB, IorLog, parse_ior_text
from tiercel.errors import RunFailed

from .conftest import RECORDED, data

VERSIONS = {"3.3": "3.3.0", "4.0": "4.0.0", "main": "4.1.0+dev"}
#: Where github.com/glennklockwood/vast-eval-public's raw outputs lie, if they do.
NERSC = os.environ.get("TIERCEL_NERSC_VAST", "")

HEAD = "-a POSIX {rw} -t 65536 -b 1048576 -s 2 -o /d/data -k"


def recorded(folder: str, case: str) -> str:
    return (RECORDED / folder / f"{case}.txt").read_text(errors="replace")


def only_log(text: str) -> IorLog:
    logs = parse_ior_text(text)
    assert len(logs) == 1
    return logs[0]


def rendered(task: Task, version: str) -> list[str]:
    steps = IOR().steps(task, Installation("ior", version, {"ior": Path("ior")}))
    return [re.sub(" -l (random|incompressible)", "", " ".join(step.argv[1:])) for step in steps]


@pytest.mark.parametrize(
    ("version", "keys", "words"),
    [
        # From 4.0 on "incompressible" repeats eight bytes; 3.3 has no other.
        ("4.0.0", {"operation": "write"}, ["-l", "random"]),
        ("4.1.0+dev", {"operation": "write"}, ["-l", "random"]),
        ("3.3.0", {"operation": "write"}, ["-l", "incompressible"]),
        ("4.0.0", {"operation": "write", "verify": True}, []),  # -G says what is written
    ],
)
def test_what_is_written_neither_compresses_nor_repeats(
    version: str, keys: Any, words: list[str], task: Callable[..., Task]
) -> None:
    (step,) = IOR().steps(task(data(**keys)), Installation("ior", version, {"ior": Path("ior")}))
    place = step.argv.index("-l") if "-l" in step.argv else len(step.argv)
    assert list(step.argv[place : place + 2]) == words


def test_how_far_data_compress_cannot_be_said() -> None:
    for key in ("compressibility", "dedup"):
        assert "cannot say" in str(IOR().unsupported(data(operation="write", **{key: 0.5}), 1))
        assert IOR().unsupported(data(operation="write", **{key: 0.0}), 1) is None


@pytest.fixture(autouse=True)
def no_iokernel(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Rendered steps do not hang on what this machine has."""
    if "really_run" not in request.fixturenames:
        monkeypatch.setattr(cold, "program", lambda name: None)


@pytest.mark.parametrize(
    ("version", "keys", "expected"),
    [
        # The switches of every version, in a workload that needs few.
        ("3.3.0", {}, HEAD.format(rw="-w") + " -F"),
        ("4.1.0+dev", {"layout": "shared"}, HEAD.format(rw="-w")),
        ("3.3.0", {"unique_directories": True, "fsync": "phase"}, HEAD.format(rw="-w") + " -F -u -e"),
        ("3.3.0", {"fsync": "write", "direct": True}, HEAD.format(rw="-w") + " -F -Y --posix.odirect"),
        # Single letters until 3.3, long options since 4.0.
        (
            "3.3.0",
            {"api": "mpiio", "collective": True, "preallocate": True, "file_view": True},
            HEAD.format(rw="-w").replace("POSIX", "MPIIO") + " -c -F -p -V",
        ),
        (
            "4.0.0",
            {"api": "mpiio", "collective": True, "preallocate": True, "file_view": True},
            HEAD.format(rw="-w").replace("POSIX", "MPIIO") + " -c -F --mpiio.preallocate --mpiio.useFileView",
        ),
        # Random order: one block of a process, and a seed where there is an option for it.
        ("3.3.0", {"pattern": "random"}, "-a POSIX -w -t 65536 -b 2097152 -s 1 -o /d/data -k -F -z"),
        (
            "4.0.0",
            {"pattern": "random"},
            "-a POSIX -w -t 65536 -b 2097152 -s 1 -o /d/data -k -F -z --random-offset-seed=7",
        ),
        # One transfer has one order, and 4.0 refuses to shuffle it.
        (
            "4.0.0",
            {"pattern": "random", "block_size": 65536, "segments": 1},
            "-a POSIX -w -t 65536 -b 65536 -s 1 -o /d/data -k -F",
        ),
        ("4.0.0", {"stonewall": 3}, HEAD.format(rw="-w") + " -F -D 3"),
        (
            "4.0.0",
            {"stonewall": 3, "wear_out": True},
            HEAD.format(rw="-w") + " -F -D 3 -O stoneWallingWearOut=1",
        ),
        ("4.0.0", {"verify": True}, HEAD.format(rw="-w") + " -F -W -G 7"),
    ],
)
def test_command_of_a_write(task: Callable[..., Task], version: str, keys: Any, expected: str) -> None:
    assert rendered(task(data(operation="write", **keys)), version) == [expected]


@pytest.mark.parametrize(
    ("keys", "nodes", "expected"),
    [
        # On one node "the next node's data" is one's own: no -C, which would only say otherwise.
        ({}, 1, ["-w F -e", "-r -E F"]),
        ({}, 2, ["-w F -e", "-r -E F -C"]),
        ({"reorder": "none"}, 2, ["-w F -e", "-r -E F"]),
        # A distance in processes: -Q counts nodes, so a node must seem to have one process.
        ({"reorder": 1}, 1, ["-w F -e", "-r -E F -C -Q 1 -O numTasksOnNode0=1"]),
        ({"reorder": 2}, 1, ["-w F -e", "-r -E F"]),
        # Only the measured phase is random, cut by time or checked; all of them write the same data.
        ({"pattern": "random"}, 1, ["-w F -e", "-r -E F -z --random-offset-seed=7"]),
        ({"stonewall": 2}, 1, ["-w F -e", "-r -E F -D 2"]),
        ({"verify": True}, 1, ["-w F -e -G 7", "-r -E F -R -G 7"]),
        ({"access": "RAW"}, 1, ["-w F", "-r -E F"]),
        ({"access": "RAR"}, 1, ["-w F", "-r -E F", "-r -E F"]),
        ({"access": "RAW", "cold": True}, 1, ["-w F -e", "-r -E F"]),
    ],
)
def test_commands_of_a_read(task: Callable[..., Task], keys: Any, nodes: int, expected: list[str]) -> None:
    found = rendered(task(data(operation="read", **keys), nodes=nodes), "4.0.0")
    short = [re.sub(r"-a POSIX (-[rw]) -t .* -k\b", r"\1", line).replace("-F", "F") for line in found]
    assert short == expected


def test_a_cold_read_is_prepared_by_iokernel_over_the_same_files(
    task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold, "program", lambda name: Path("/bin") / name)
    made = task(data(operation="read", unique_directories=True))
    steps = IOR().steps(made, Installation("ior", "4.0.0", {"ior": Path("ior")}))
    assert [(s.name, s.launch) for s in steps] == [
        ("write", "parallel"), ("prepare", "once"), ("read", "parallel"),
    ]  # fmt: skip
    assert " ".join(steps[1].argv[:-4]) == (
        "/bin/iokernel -n 2 -a POSIX -t 65536 -b 1048576 -s 2 -o /d/data "
        "-k -E -r --prepare-only --evict --behind -F -u"
    )
    # On several nodes each must evict what it will read: MPI processes, moved as the readers are.
    spread = IOR().steps(
        task(data(operation="read"), nodes=2), Installation("ior", "4.0.0", {"ior": Path("ior")})
    )
    assert spread[1].launch == "parallel" and spread[1].argv[0] == "/bin/iokernel-mpi"
    assert "-C" in spread[1].argv


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"operation": "write", "queue_depth": 4}, "one operation in flight"),
        ({"operation": "write", "direct": True, "api": "mpiio"}, "POSIX only"),
        ({"operation": "write", "direct": True, "api": "hdf5"}, "POSIX only"),
        ({"operation": "read", "api": "hdf5", "pattern": "random"}, "no random order with HDF5"),
        ({"operation": "write", "api": "hdf5", "access": "WAW"}, "cannot write them twice"),
        ({"operation": "write", "stonewall": 0.5}, "whole number of seconds"),
        ({"operation": "write", "transfer_size": 4, "block_size": 4}, "multiples of 8"),
        ({"operation": "read", "layout": "shared", "pattern": "random", "reorder": 1}, "random order"),
    ],
)
def test_what_it_cannot_do(keys: Any, reason: str) -> None:
    assert reason in (IOR().unsupported(data(**keys), 1) or "")


@pytest.mark.parametrize(("version", "refused"), [("3.3.0", True), ("4.0.0", False)])
def test_random_verified_reads_need_4_0(version: str, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IOR, "find", lambda self: Installation("ior", version, {}))
    reason = IOR().unsupported(data(operation="read", verify=True, pattern="random"), 1)
    assert (reason is not None) == refused


# --- the text -----------------------------------------------------------------------------------------

#: Rows, bytes and operations of each row, counted by hand from the command lines: fpp_n2 is 2 tasks
#: times 4 MiB in transfers of 256 KiB, so 8 MiB and 32 operations; -i 2 with -w -r makes 4 rows.
CASES = {
    "fpp_n1": (4, 4 * MIB, 16), "fpp_n2": (4, 8 * MIB, 32),
    "shared_n1": (2, 4 * MIB, 16), "shared_n2": (2, 8 * MIB, 32),
    "fsyncperwrite_n1": (1, 1 * MIB, 16), "fsyncperwrite_n2": (1, 2 * MIB, 32),
    "mpiio_coll_n1": (2, 2 * MIB, 8), "mpiio_coll_n2": (2, 4 * MIB, 16),
    "odirect_n1": (2, 4 * MIB, 4), "odirect_n2": (2, 8 * MIB, 8),
    "phases_script_n2": (2, 2 * MIB, 8), "prealloc_view_n1": (2, 2 * MIB, 8),
    "prealloc_view_n2": (2, 4 * MIB, 16), "randread_n1": (2, 1 * MIB, 256),
    "randread_n2": (2, 2 * MIB, 512), "verbose_n2": (2, 2 * MIB, 8),
}  # fmt: skip


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_recorded_output(folder: str, case: str) -> None:
    log = only_log(recorded(f"ior-{folder}", case))
    count, size, operations = CASES[case]
    assert (log.version, log.finished, log.problems) == (VERSIONS[folder], True, [])
    assert [(r.bytes_moved, r.bytes_expected, r.operations) for r in log.rows] == [
        (size, size, operations)
    ] * count
    for row in log.rows:
        assert 0 < row.transfer_time <= row.total_time * 1.001
        assert row.bandwidth == pytest.approx(size / row.total_time)


def test_numbers_of_one_recorded_output() -> None:
    """ior-3.3/fpp_n2: each number as printed, or more exact where another column tells more digits."""
    rows = only_log(recorded("ior-3.3", "fpp_n2")).rows
    assert [(r.access, r.iteration) for r in rows] == [("write", 0), ("read", 0), ("write", 1), ("read", 1)]
    assert (rows[0].open_time, rows[0].close_time) == (0.000023, 0.000164)
    assert rows[0].bandwidth == pytest.approx(4178 * MIB, abs=0.5 * MIB)
    # 32 operations at 16864 a second; the printed time is 0.001898.
    assert rows[0].transfer_time == pytest.approx(32 / 16864, rel=1e-9)


def test_one_repetition_takes_digits_from_the_summary() -> None:
    """ior-3.3/randread_n2 prints 3483.19 MiB/s in both; the read is 6922 in its row and 6922.21 below."""
    rows = only_log(recorded("ior-3.3", "randread_n2")).rows
    assert rows[1].bandwidth / MIB == pytest.approx(6922.21, abs=0.005)


@pytest.mark.parametrize(
    ("folder", "moved", "total"), [("3.3", 171540480, 1.00475), ("4.0", 148897792, 1.05638)]
)
def test_stonewalled_write(folder: str, moved: int, total: float) -> None:
    """The bytes are those of the warning, the time the summary's (the row has two decimals only)."""
    log = only_log(recorded(f"ior-{folder}", "stonewall_n2"))
    (row,) = log.rows
    assert log.problems == []
    assert (row.bytes_moved, row.bytes_expected, row.operations) == (moved, 1024**3, moved // 16384)
    assert row.total_time == pytest.approx(total, abs=5e-6)


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("datacheck_bad_n1", "incorrect data"),
        ("datacheck_wrap_n1", "incorrect data"),
        ("err_missing_dir_n1", "ERROR|FAILED"),
        ("err_missing_dir_n2", "ERROR|FAILED"),
        ("err_read_missing_n2", "ERROR|FAILED"),
        ("err_short_read_n1", "ERROR"),
        ("err_second_rep_n1", "ERROR"),
        ("dryrun_n1", "dry run|FAILED"),
    ],
)
def test_failures_are_problems(folder: str, case: str, says: str) -> None:
    """Most of these end with exit code 0 in one version or another."""
    log = only_log(recorded(f"ior-{folder}", case))
    assert re.search(says, " ".join(log.problems), re.IGNORECASE)


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("case", ["err_bad_option", "err_summary_unwritable", "json_stdout_n2", "csv_n2"])
def test_other_output_is_no_log(folder: str, case: str) -> None:
    assert parse_ior_text(recorded(f"ior-{folder}", case)) == []


def test_several_starts_in_one_file() -> None:
    text = recorded("ior-3.3", "fpp_n1") + "between\n" + recorded("ior-4.0", "shared_n2")
    assert [(log.version, len(log.rows)) for log in parse_ior_text(text)] == [("3.3.0", 4), ("4.0.0", 2)]


def test_a_row_that_contradicts_itself_is_left_out() -> None:
    text = recorded("ior-3.3", "shared_n2")
    row = next(line for line in text.splitlines() if line.startswith("read"))
    torn = text.replace(row, row.replace(row.split()[1], "123456", 1))
    log = only_log(torn)
    assert [r.access for r in log.rows] == ["write"]
    assert any("total time is" in p for p in log.problems)


def test_a_header_without_iops_as_in_3_1() -> None:
    text = """IOR-3.1.0: MPI Coordinated Test of Parallel I/O
Began               : Mon Jan  1 00:00:00 2018
Command line        : ior -w
TestID              : 0
Options:
api                 : POSIX
segments            : 2
tasks               : 2
repetitions         : 1
xfersize            : 262144 bytes
blocksize           : 1 MiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     40.00      1024.00    256.00     0.010000   0.080000   0.010000   0.100000   0
Finished            : Mon Jan  1 00:00:01 2018
"""
    log = only_log(text)
    assert log.problems == []
    (row,) = log.rows
    assert (row.bytes_moved, row.operations, row.total_time) == (4 * MIB, 16, 0.1)


WHOLE = [recorded(f"ior-{v}", case) for v in VERSIONS for case in ("fpp_n2", "stonewall_n2", "shared_n1")]


@given(st.data())
def test_truncation_never_gives_a_wrong_number(source: st.DataObject) -> None:
    text = source.draw(st.sampled_from(WHOLE))
    cut = source.draw(st.integers(0, len(text) - 1))
    whole = {(r.test, r.access, r.iteration): r for r in only_log(text).rows}
    for log in parse_ior_text(text[:cut]):
        assert log.problems or text[cut:].strip() == "" or not text[cut:].count("Finished")
        for row in log.rows:
            same = whole[row.test, row.access, row.iteration]
            assert (row.bytes_moved, row.operations) == (same.bytes_moved, same.operations)
            # Without the summary a long time has two decimals only.
            assert row.total_time == pytest.approx(same.total_time, rel=6e-3)
        if len(log.rows) < len(whole):
            assert log.problems


@given(st.data())
def test_noise_within_the_text_never_raises(source: st.DataObject) -> None:
    text = source.draw(st.sampled_from(WHOLE))
    at = source.draw(st.integers(0, len(text)))
    parse_ior_text(text[:at] + source.draw(st.text(max_size=40)) + text[at:])


@pytest.mark.skipif(not NERSC, reason="TIERCEL_NERSC_VAST does not name NERSC's raw outputs")
@pytest.mark.parametrize(
    "archive", ["ior-scaling-rdma.vast.v4/ior-out.tgz", "randio.odirect/ior-out-T45.tgz"]
)
def test_outputs_that_others_measured(archive: str) -> None:
    with tarfile.open(Path(NERSC) / archive) as tar:
        for member in [m for m in tar if m.isfile()][:100]:
            file = tar.extractfile(member)
            assert file is not None
            for log in parse_ior_text(file.read().decode(errors="replace")):
                assert (log.problems, len(log.rows)) == ([], 1), member.name


# --- runs ---------------------------------------------------------------------------------------------


def left_behind(folder: Path, **files: str) -> None:
    for name, case in files.items():
        (folder / f"{name.replace('_', '-')}.stdout").write_text(case)


def test_a_finished_run(task: Callable[..., Task], tmp_path: Path) -> None:
    """shared_n2 is written and read by one start; cut in two it is what our two steps leave."""
    text = recorded("ior-4.0", "shared_n2")
    write = "".join(line for line in text.splitlines(True) if not line.startswith("read"))
    read = "".join(line for line in text.splitlines(True) if not line.startswith("write"))
    left_behind(tmp_path, write=write, read=read)
    workload = data(operation="read", layout="shared", transfer_size=262144, block_size=2 * MIB, reorder=1)
    first, second = IOR().parse(task(workload), tmp_path)
    assert (first.operation, first.role, first.access, first.phase) == ("write", "setup", "WO", 0)
    assert (second.operation, second.role, second.access, second.phase) == ("read", "measured", "RO", 1)
    assert (second.bytes_moved, second.operations, second.task_offset) == (8 * MIB, 32, 1)
    assert second.cross_node_fraction == 0
    assert second.resident_fraction is None  # nobody looked


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "wrote no result"),
        ("", "no result of IOR: nothing"),
        ("Synopsis ior\n", "no result of IOR: Synopsis"),
        (recorded("ior-3.3", "datacheck_bad_n1"), "incorrect data"),
        (recorded("ior-3.3", "shared_n2")[:2000], "torn|Finished"),
        (recorded("ior-3.3", "shared_n2"), "one write row"),
        (recorded("ior-3.3", "fsyncperwrite_n1"), "set out for 1048576"),
        (recorded("ior-3.3", "err_missing_dir_n1"), "ERROR"),
    ],
)
def test_what_is_no_whole_result_fails(
    text: str | None, says: str, task: Callable[..., Task], tmp_path: Path
) -> None:
    if text is not None:
        left_behind(tmp_path, write=text)
    with pytest.raises(RunFailed, match=says):
        IOR().parse(task(data(operation="write")), tmp_path)


def test_a_program_of_that_name_that_is_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "ior"
    fake.write_text("#!/bin/sh\necho InterOperable Object Reference parser\n")
    fake.chmod(0o755)
    monkeypatch.setattr(probing, "program", lambda name: fake)
    engine = IOR()
    assert engine.find() is None
    assert "is not IOR: it answers 'InterOperable Object Reference parser'" in engine.note
    # Replaced by the real thing, it is asked again.
    fake.write_text("#!/bin/sh\necho 'IOR-4.0.0: MPI Coordinated Test of Parallel I/O'\n")
    found = engine.find()
    assert found is not None and found.version == "4.0.0" and engine.note == ""


@pytest.mark.parametrize(
    "keys",
    [
        {"operation": "write"},
        {"operation": "write", "access": "WAW"},
        {"operation": "write", "access": "WAR", "unique_directories": True},
        {"operation": "read"},
        {"operation": "read", "access": "RAR", "layout": "shared"},
        {"operation": "read", "pattern": "random", "transfer_size": 4096},
        {"operation": "read", "reorder": 1, "fsync": "phase"},
    ],
)
def test_it_moves_what_iokernel_moves(keys: Any, really_run: Callable[..., Any]) -> None:
    workload = data(**keys)
    theirs, ours = really_run("ior", workload), really_run("iokernel", workload)
    assert (theirs.reason, ours.reason) == ("", "")

    def facts(outcome: Any) -> list[Any]:
        return [
            (m.operation, m.role, m.phase, m.access, m.bytes_moved, m.operations, m.task_offset or 0)
            for m in outcome.measurements
        ]

    assert facts(theirs) == facts(ours)
    if workload.wants_cold:
        assert theirs.measurements[-1].resident_method == ours.measurements[-1].resident_method


@pytest.mark.parametrize(
    ("apis", "reason"), [("POSIX|MPIIO|MMAP", "IOR is built without HDF5"), ("POSIX|HDF5|MPIIO", None)]
)
def test_whether_it_was_built_with_hdf5_it_says_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apis: str, reason: str | None
) -> None:
    program = tmp_path / "ior"
    program.write_text(f"#!/bin/sh\necho '  -a=POSIX                      API for I/O [{apis}]'\n")
    program.chmod(0o755)
    monkeypatch.setattr("tiercel.engines.probing.program", lambda _name: program)
    assert IOR().unsupported(data(operation="write", api="hdf5"), 1) == reason
