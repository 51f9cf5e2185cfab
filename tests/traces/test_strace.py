"""strace's lines: descriptors and positions counted by hand, and damage."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiercel.traces.readers.strace
from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace

from .conftest import Kept

DATA = Path(__file__).parents[1] / "data" / "traces" / "strace"


def made(tmp_path: Path, *lines: str, name: str = "x.strace") -> IOFrame:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return IOFrame.from_strace(path)


def data_of(frame: IOFrame, folder: str = "/tmp/study") -> pd.DataFrame:
    events = frame.events()
    return events[events["kind"].isin(["read", "write"]) & events["file"].str.startswith(folder, na=False)]


def rows(frame: IOFrame) -> list[tuple[object, ...]]:
    events = data_of(frame, "/")
    return [
        (row.function, row.file, None if pd.isna(row.offset) else int(row.offset), int(row.size))
        for row in events.itertuples()
    ]


def test_positions_follow_the_program() -> None:
    """strace/prog.py line by line: a dup and a fork share one position, a thread too, append has none."""
    frame = IOFrame.from_strace(DATA / "python.strace")
    p, q = "/tmp/study/p", "/tmp/study/q"
    assert rows(frame) == [
        ("write", p, 0, 10000),
        ("read", p, 100, 50),  # after lseek to 100
        ("read", p, 150, 25),  # through the dup
        ("pwrite64", p, 4096, 7),
        ("preadv2", p, 9990, 10),  # asked for 30, the file ends at 10000
        ("read", p, 175, 1),
        ("read", p, 176, 5),  # the child
        ("read", p, 181, 3),  # the parent again, after the child moved it
        ("write", p, 184, 2),  # a thread
        ("write", p, None, 3),  # O_APPEND: wherever the file ends
        ("copy_file_range", p, 0, 64),  # opened anew
        ("copy_file_range", q, 0, 64),
        ("sendfile", p, 10, 6),  # where it was told to
        ("sendfile", q, 64, 6),
        ("write", q, 70, 1),
    ]
    threads = data_of(frame).groupby("process")["thread"].nunique()
    assert sorted(threads) == [1, 2]  # the child has one, the parent also a thread that wrote
    assert frame.warnings == ()


def test_totals_are_those_of_the_program() -> None:
    """iokernel -n 2 -t 4k -b 64k -e: 16 writes and 16 reads of 4 KiB by each process, and one fsync each."""
    frame = IOFrame.from_strace(DATA / "iokernel.strace")
    events = data_of(frame, "/tmp/study/e")
    counted = events.groupby(["process", "kind"], observed=True)["size"].agg(["count", "sum"])
    assert counted["count"].tolist() == [16] * 4 and counted["sum"].tolist() == [65536] * 4
    for _, one in events.groupby("kind", observed=True):
        assert sorted(one["offset"]) == list(range(0, 131072, 4096))
    syncs = frame.events().query("kind == 'sync' and file == '/tmp/study/e'")
    assert len(syncs) == 2


def test_dup2_and_times_of_day_without_y() -> None:
    """dd duplicates its files onto 0 and 1; seek=1 of 16 KiB; the ninth read is the end of the file."""
    frame = IOFrame.from_strace(DATA / "dd.strace")
    events = data_of(frame)
    reads, writes = (events[events["kind"] == kind] for kind in ("read", "write"))
    assert reads["offset"].tolist() == list(range(0, 131073, 16384)) and reads["size"].tolist()[-1] == 0
    assert writes["offset"].tolist() == list(range(16384, 131073, 16384))
    assert "epoch" not in frame.metadata  # -tt names no day


def test_unfinished_calls_are_put_together(tmp_path: Path) -> None:
    frame = made(
        tmp_path,
        '[pid 7] 1700000000.000000 openat(AT_FDCWD</home>, "a b", O_RDWR) = 3</home/a b> <0.000010>',
        "[pid 7] 1700000000.100000 read(3</home/a b>,  <unfinished ...>",
        "[pid 8] 1700000000.200000 getpid() = 8 <0.000001>",
        '[pid 7] 1700000000.600000 <... read resumed>"x) = 1", 100) = 100 <0.500000>',
        '[pid 7] 1700000000.700000 write(3</home/a b>, "y", 1 <unfinished ...>',
    )
    (row,) = data_of(frame, "/home").itertuples()
    assert (row.function, row.file, row.offset, row.size) == ("read", "/home/a b", 0, 100)
    assert row.time == pytest.approx(0.1) and row.duration == pytest.approx(0.5)
    assert frame.warnings == ("1 calls lost: they never returned in the trace (write)",)


def test_failed_calls_move_nothing(tmp_path: Path) -> None:
    frame = made(
        tmp_path,
        '7 1700000000.000000 open("/d/x", O_RDWR) = 3 <0.000010>',
        "7 1700000000.100000 read(3, 0x7ff, 10) = -1 EIO (Input/output error) <0.000010>",
        '7 1700000000.200000 read(3, "abc", 10) = 3 <0.000010>',
        "7 1700000000.300000 close(3) = 0 <0.000010>",
        '7 1700000000.400000 open("/d/y", O_RDONLY) = 3 <0.000010>',
        '7 1700000000.500000 read(3, "abc", 10) = 3 <0.000010>',
    )
    events = frame.events().query("kind == 'read'")
    assert events["file"].tolist() == ["/d/x", "/d/x", "/d/y"]
    assert events["offset"].tolist() == [0, 0, 0]
    assert events["size"].isna().tolist() == [True, False, False]


def test_what_is_no_file_is_no_io(tmp_path: Path) -> None:
    frame = made(
        tmp_path,
        '7 1700000000.000000 write(1<pipe:[123]>, "abc", 3) = 3 <0.000010>',
        '7 1700000000.100000 read(5<socket:[77]>, "abc", 3) = 3 <0.000010>',
        "7 1700000000.150000 socket(AF_INET, SOCK_STREAM, 0) = 6 <0.000010>",
        '7 1700000000.200000 write(6, "abc", 3) = 3 <0.000010>',
        '7 1700000000.300000 write(2</dev/pts/0<char 136:0>>, "abc", 3) = 3 <0.000010>',
        '7 1700000000.400000 write(9</memfd:j>(deleted), "abc", 3) = 3 <0.000010>',
    )
    kinds = frame.events()[["function", "kind", "file"]].values.tolist()
    assert [kind for _, kind, _ in kinds] == ["other", "other", "other", "other", "pseudo", "other"]
    assert kinds[4][2] == "/dev/pts/0"


def test_midnight_and_no_durations(tmp_path: Path) -> None:
    frame = made(
        tmp_path,
        '23:59:59.500000 open("/d/x", O_RDONLY) = 3',
        '00:00:00.250000 read(3, "", 10) = 0',
    )
    assert frame.events()["time"].tolist() == pytest.approx([0.0, 0.75])
    assert frame.events()["duration"].isna().all()
    assert [sentence.split()[:3] for sentence in frame.warnings] == [["2", "of", "2"]]


def test_asynchronous_io_is_said_to_be_missing(tmp_path: Path) -> None:
    frame = made(
        tmp_path,
        "7 1700000000.000000 io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_PREAD}]) = 1 <0.000010>",
        "7 1700000000.100000 io_uring_enter(4, 8, 8, IORING_ENTER_GETEVENTS, NULL, 8) = 8 <0.000010>",
    )
    assert [sentence.split(":")[0] for sentence in frame.warnings] == [
        "1 calls of Linux AIO",
        "1 calls of io_uring",
    ]


def test_files_of_single_processes(tmp_path: Path) -> None:
    """strace -ff -o t writes t.PID without numbers in the lines."""
    for pid in (41, 42):
        (tmp_path / f"t.{pid}").write_text(
            f'1700000000.{pid}0000 openat(AT_FDCWD, "/d/{pid}", O_RDONLY) = 3 <0.000010>\n'
            f'1700000001.{pid}0000 read(3, "", 10) = {pid} <0.000010>\n'
        )
    frame = IOFrame.from_strace(tmp_path)
    assert rows(frame) == [("read", "/d/41", 0, 41), ("read", "/d/42", 0, 42)]
    assert frame.events()["process"].tolist() == [41, 42, 41, 42]


def test_garbled_lines_are_counted(tmp_path: Path) -> None:
    good = '7 1700000000.000000 read(3</d/x>, "", 10) = 10 <0.000010>'
    frame = made(tmp_path, good, "what", "\x00\x01", good)
    assert len(frame) == 2
    assert frame.warnings == ("x.strace: 2 of 4 lines are not strace's (first: line 2)",)
    path = tmp_path / "cut.strace"
    path.write_text(good + "\n" + good[:30])
    assert IOFrame.from_strace(path).warnings == ("cut.strace: the last line is cut: one call lost",)


def test_no_times_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="-ttt"):
        made(tmp_path, 'read(3, "", 10) = 10')


def test_octal_names(tmp_path: Path) -> None:
    frame = made(tmp_path, '7 1700000000.000000 read(3</d/\\303\\244\\76b>, "", 10) = 10 <0.000010>')
    assert frame.events()["file"].tolist() == ["/d/ä>b"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_trace_made_now(tmp_path: Path) -> None:
    target, trace = tmp_path / "target", tmp_path / "now.strace"
    command = ["dd", "if=/dev/zero", f"of={target}", "bs=1000", "count=7"]
    done = subprocess.run(
        ["strace", "-f", "-ttt", "-T", "-y", "-o", trace, *command], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"strace cannot trace here: {done.stderr.decode()[:100]}")
    events = open_trace(trace).events()
    writes = events[(events["kind"] == "write") & (events["file"] == str(target))]
    assert writes["offset"].tolist() == [1000 * i for i in range(7)] and set(writes["size"]) == {1000}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_gives_warnings_or_one_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(["python.strace", "dd.strace", "iokernel.strace"]))
    raw = bytearray((DATA / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(raw)))
        change = data.draw(st.sampled_from(["cut", "bytes", "text", "drop"]))
        if change == "cut":
            del raw[at:]
        elif change == "bytes":
            raw[at : at + 4] = data.draw(st.binary(min_size=1, max_size=8))
        elif change == "text":
            raw[at:at] = data.draw(st.text('0123456789<>=()"\\, -.NULL\n[]', max_size=40)).encode()
        else:
            del raw[at : at + data.draw(st.integers(1, 200))]
    path = tmp_path_factory.mktemp("damaged") / "x.strace"
    path.write_bytes(raw)
    reader = tiercel.traces.readers.strace.Strace()
    reader.recognises(path)
    try:
        reader.read([path], Kept())
    except UserError as error:
        assert "\n" not in str(error)


def test_the_process_that_strace_names_late_is_one_process(tmp_path: Path) -> None:
    """`strace -f 2>log` names a process only while there are several, and the first one only then. Both use
    the same descriptor, whose position they share: 10 + 20 bytes, then the child's 5 behind them. When the
    parent has ended, lines without a name are the child's."""
    frame = made(
        tmp_path,
        '1700000000.000000 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000010>',
        '1700000000.100000 write(3, "x", 10) = 10 <0.000010>',
        "1700000000.200000 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 71 attached",
        " <unfinished ...>",
        "[pid    71] 1700000000.210000 getpid() = 71 <0.000010>",
        "[pid    70] 1700000000.220000 <... clone resumed>) = 71 <0.020000>",
        '[pid    70] 1700000000.300000 write(3, "x", 20) = 20 <0.000010>',
        '[pid    71] 1700000000.400000 write(3, "x", 5) = 5 <0.000010>',
        "[pid    70] 1700000000.500000 exit_group(0) = ?",
        "[pid    70] 1700000000.500000 +++ exited with 0 +++",
        '1700000000.600000 write(3, "x", 1) = 1 <0.000010>',
    )
    assert rows(frame) == [("write", "/d/a", 0, 10), ("write", "/d/a", 10, 20), ("write", "/d/a", 30, 5),
                           ("write", "/d/a", 35, 1)]  # fmt: skip
    assert data_of(frame, "/d")["process"].tolist() == [70, 70, 71, 71]
    assert set(frame.events()["process"]) == {70, 71} and not frame.warnings


def test_files_of_processes_are_merged_by_time(tmp_path: Path) -> None:
    """-ff: the child's file comes first by its name, and shares the parent's descriptor and its position: its
    7 bytes lie between the parent's 10 and 20."""
    (tmp_path / "run.90").write_text(
        '1700000000.000000 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000010>\n'
        '1700000000.100000 write(3, "x", 10) = 10 <0.000010>\n'
        "1700000000.200000 clone(child_stack=NULL, flags=SIGCHLD) = 12 <0.000010>\n"
        '1700000000.400000 write(3, "x", 20) = 20 <0.000010>\n'
    )
    (tmp_path / "run.12").write_text('1700000000.300000 write(3, "x", 7) = 7 <0.000010>\n')
    assert rows(IOFrame.from_strace(tmp_path)) == [
        ("write", "/d/a", 0, 10), ("write", "/d/a", 10, 7), ("write", "/d/a", 17, 20),
    ]  # fmt: skip


@pytest.mark.parametrize(("start", "end", "child", "length"), [
    ("01:00:00", "14:00:00", "01:30:00", 13 * 3600), ("23:00:00", "01:00:00", "00:30:00", 2 * 3600),
])  # fmt: skip
def test_each_file_has_its_own_midnight(
    tmp_path: Path, start: str, end: str, child: str, length: int
) -> None:
    """-ff -tt: 13 hours of two processes are 13 hours, and a child that begins after midnight began then."""
    (tmp_path / "run.1").write_text(
        f"{start} clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000000>\n{end} getpid() = 1 <0.000000>\n"
    )
    (tmp_path / "run.2").write_text(f"{child} getpid() = 2 <0.000000>\n{end} getpid() = 2 <0.000000>\n")
    frame = IOFrame.from_strace(tmp_path)
    assert frame.job_time == pytest.approx(length)
    assert sorted(frame.events()["time"])[1] == pytest.approx(30 * 60 if length > 7200 else 90 * 60)


TOOK = "<0.002000>"
APPEND = 'pwritev2(3, [{iov_base="x", iov_len=5}], 1, 0, RWF_APPEND) = 5'
IN_PLACE = 'pwritev2(3, [{iov_base="x", iov_len=5}], 1, 9, RWF_DSYNC) = 5'
FAR = "_llseek(3, 4294967296, [4294967296], SEEK_SET) = 0 <0.000010>\n1700000003.000000 "
CUT = "read(3, 5) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"


@pytest.mark.parametrize(("line", "told"), [
    # A file to a socket is read, nothing is written to a file; the whole time is the read's.
    ("sendfile(9<TCP:[1.2.3.4:5->6.7.8.9:1]>, 3, NULL, 4096) = 4096", [("read", 100, 4096, 0.002)]),
    ("splice(3, NULL, 9<pipe:[7]>, NULL, 4096, 0) = 4096", [("read", 100, 4096, 0.002)]),
    ("splice(9<pipe:[7]>, NULL, 3, NULL, 50, 0) = 50", [("write", 100, 50, 0.002)]),
    ("copy_file_range(3, [7], 3, NULL, 8, 0) = 8", [("read", 7, 8, 0.001), ("write", 100, 8, 0.001)]),
    # The answer of _llseek is 0 for well; the position stands in brackets.
    (f'{FAR}read(3, "x", 5) = 5', [("read", 4294967296, 5, 0.002)]),
    # Appending, whatever the offset says.
    (APPEND, [("write", None, 5, 0.002)]),
    (IN_PLACE, [("write", 9, 5, 0.002)]),
    # A call that the end of its process interrupts moved nothing that the program knows of.
    (CUT, [("read", 100, None, 0.002)]),
])  # fmt: skip
def test_special_calls_are_not_their_plain_form(
    tmp_path: Path, line: str, told: list[tuple[object, ...]]
) -> None:
    frame = made(
        tmp_path,
        '1700000000.000000 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0644) = 3 <0.000010>',
        "1700000001.000000 lseek(3, 100, SEEK_SET) = 100 <0.000010>",
        f"1700000002.000000 {line} {TOOK}",
    )
    data = data_of(frame, "/d")
    found = [
        (row.kind, None if pd.isna(row.offset) else row.offset,
         None if pd.isna(row.size) else row.size, pytest.approx(row.duration)) for row in data.itertuples()
    ]  # fmt: skip
    assert found == told


@pytest.mark.parametrize("head", [
    "700<cat> 1700000000.123", "[pid 700<a b>>] 12:00:00.123", "700 1700000000", "700 12:00:00",
    "1700000000.123456789", "700 1700000000.123",
])  # fmt: skip
def test_program_names_and_any_precision_of_times(tmp_path: Path, head: str) -> None:
    """-Y adds the program's name to each process; --absolute-timestamps has four precisions, -T too."""
    frame = made(tmp_path, f'{head} write(1</d/a>, "x", 3) = 3 <0.250>', f"{head} close(1</d/a>) = 0 <1>")
    assert frame.events()["duration"].tolist() == [0.25, 1.0]
    assert rows(frame) == [("write", "/d/a", None, 3)] and not frame.warnings
