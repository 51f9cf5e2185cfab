"""A replayed trace does what the traced program did: operations, bytes, order; and a bad recipe does
nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiercel.engines import Task, engines
from tiercel.errors import RunFailed, UserError
from tiercel.placement.compile import compile_trace, write_recipe
from tiercel.placement.engine import check_totals
from tiercel.placement.features import files_of
from tiercel.placement.recipe import common_folder
from tiercel.placement.workload import ReplayWorkload
from tiercel.programs import program
from tiercel.runs.tracing import preload_library, tracing_environment
from tiercel.traces import open_trace

needs_replay = pytest.mark.skipif(
    program("tiercel-replay") is None, reason="tiercel-replay is not built (make setup builds it)"
)

TWO_PROCESSES = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/a.bin", O_WRONLY|O_CREAT, 0666) = 3</d/a.bin> <0.000010>
7 1700000010.001000 write(3</d/a.bin>, ""..., 5000) = 5000 <0.000100>
7 1700000010.002000 close(3</d/a.bin>) = 0 <0.000010>
8 1700000010.003000 openat(AT_FDCWD, "/d/a.bin", O_RDONLY) = 4</d/a.bin> <0.000010>
8 1700000010.004000 read(4</d/a.bin>, ""..., 8192) = 5000 <0.000100>
8 1700000010.005000 read(4</d/a.bin>, "", 8192) = 0 <0.000100>
8 1700000010.006000 close(4</d/a.bin>) = 0 <0.000010>
8 1700000010.007000 openat(AT_FDCWD, "/d/in.bin", O_RDONLY) = 4</d/in.bin> <0.000010>
8 1700000010.008000 pread64(4</d/in.bin>, ""..., 100, 900) = 100 <0.000100>
7 1700000010.009000 unlink("/d/a.bin") = 0 <0.000010>
"""


def strace(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    path = tmp_path / "t.strace"
    path.write_text(text)
    return open_trace(path, cache=tmp_path / "cache")


def run(recipe: Path, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program("tiercel-replay")), str(recipe), "--root", str(root), *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def replayed(recipe: Path, root: Path) -> dict:  # type: ignore[type-arg]
    root.mkdir()
    assert run(recipe, root, "--prepare").returncode == 0
    done = run(recipe, root)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_a_recipe_keeps_order_between_processes_and_knows_what_was_there_before(tmp_path: Path) -> None:
    recipe = compile_trace(strace(tmp_path, TWO_PROCESSES))
    assert recipe.files == ["/d/a.bin", "/d/in.bin"]
    # a.bin is written before it is read: nothing was there; of in.bin bytes 900 to 1000 are read: 1000 were.
    assert recipe.sizes == [0, 1000]
    assert [[o.kind for o in s] for s in recipe.streams] == [list("OWCU"), list("ORRCOR")]
    # Process 8 begins after process 7 did open, write and close; 7 unlinks a.bin after 8 is over (its 6
    # calls), which ended while 7 was idle.
    assert recipe.begins == [[], [(0, 3)]]
    assert recipe.streams[0][3].waits == [(1, 6)]
    assert recipe.totals == {
        "read": {"operations": 3, "bytes": 5100}, "write": {"operations": 1, "bytes": 5000},
        "sync": {"operations": 0, "bytes": 0}, "metadata": {"operations": 6, "bytes": 0},
    }  # fmt: skip


SEARCH = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/inc/a.h", O_RDONLY) = -1 ENOENT (No such file) <0.000010>
7 1700000010.001000 openat(AT_FDCWD, "/d/src/a.h", O_RDONLY) = 3</d/src/a.h> <0.000010>
7 1700000010.002000 read(3</d/src/a.h>, ""..., 4096) = 100 <0.000100>
7 1700000010.003000 close(3</d/src/a.h>) = 0 <0.000010>
7 1700000010.004000 mkdir("/d/out", 0777) = 0 <0.000010>
7 1700000010.005000 openat(AT_FDCWD, "/d/out/t", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3</d/out/t> <0.000010>
7 1700000010.006000 copy_file_range(4</d/src/b>, NULL, 3</d/out/t>, NULL, 4096, 0) = 700 <0.000100>
7 1700000010.007000 close(3</d/out/t>) = 0 <0.000010>
7 1700000010.008000 rename("/d/out/t", "/d/out/r") = 0 <0.000010>
7 1700000010.009000 newfstatat(AT_FDCWD, "/d/./src//a.h", {...}, 0) = 0 <0.000010>
7 1700000010.019000 openat(AT_FDCWD, "/d/out/r", O_RDONLY) = 3</d/out/r> <0.000010>
7 1700000010.020000 read(3</d/out/r>, ""..., 4096) = 700 <0.000100>
7 1700000010.021000 unlinkat(AT_FDCWD, "/d/empty", AT_REMOVEDIR) = 0 <0.000010>
"""


@needs_replay
def test_what_was_there_before_and_what_was_not(tmp_path: Path) -> None:
    recipe = compile_trace(strace(tmp_path, SEARCH))
    records = {r.name: r for r in recipe.records}
    # A failed open makes no file in the replay: it is a look. Of a copy the source is read.
    assert [o.kind for o in recipe.streams[0]] == list("TORCMORWCNTORX")
    assert {n for n, r in records.items() if r.existed} == {"/d/src/a.h", "/d/src/b", "/d/empty"}
    assert (records["/d/src/a.h"].size, records["/d/src/b"].size, records["/d/out/r"].size) == (100, 700, 0)
    # The program makes /d/out itself, and what it leaves there is r, not t.
    assert records["/d/out/r"].made_folder
    assert records["/d/out/r"].remains
    assert not records["/d/out/t"].remains
    # 10 ms lie between the stat and the open after it: 9.99 from the end of one to the begin of the other.
    assert recipe.streams[0][11].gap == pytest.approx(9_990_000, abs=1000)
    (tmp_path / "r.txt").write_text(recipe.text())
    result = replayed(tmp_path / "r.txt", tmp_path / "root")
    check_totals(result, recipe.totals)
    assert result["absent"] == 1  # the first open
    assert (tmp_path / "root" / "d" / "out" / "r").stat().st_size == 700
    assert not (tmp_path / "root" / "d" / "inc" / "a.h").exists()


@needs_replay
def test_nothing_is_done_in_a_folder_before_it_is_there_or_after_it_went(tmp_path: Path) -> None:
    """Process 7 makes a folder, 8 works in it, 7 renames it and empties it under its new name."""
    text = """\
8 1700000010.000000 newfstatat(AT_FDCWD, "/d", {...}, 0) = 0 <0.000010>
7 1700000010.001000 mkdir("/d/t", 0777) = 0 <0.000010>
8 1700000010.002000 openat(AT_FDCWD, "/d/t/x", O_WRONLY|O_CREAT, 0666) = 3</d/t/x> <0.000010>
8 1700000010.003000 write(3</d/t/x>, ""..., 10) = 10 <0.000010>
7 1700000010.004000 rename("/d/t", "/d/u") = 0 <0.000010>
8 1700000010.004500 newfstatat(AT_FDCWD, "/d", {...}, 0) = 0 <0.000010>
7 1700000010.005000 openat(AT_FDCWD, "/d/u/x", O_RDONLY) = 3</d/u/x> <0.000010>
7 1700000010.006000 read(3</d/u/x>, ""..., 100) = 10 <0.000010>
7 1700000010.007000 unlink("/d/u/x") = 0 <0.000010>
7 1700000010.008000 rmdir("/d/u") = 0 <0.000010>
"""
    recipe = compile_trace(strace(tmp_path, text))
    eight, seven = recipe.streams
    assert (1, 1) in eight[1].waits  # the open comes after the mkdir
    assert seven[1].kind == "N" and (0, 3) in seven[1].waits  # renamed when x was written
    # What is read in /d/u was written in /d/t: nothing was there before.
    assert {r.name for r in recipe.records if r.existed} == {"/d"}
    assert not any(r.remains for r in recipe.records)
    for _ in range(3):
        root = tmp_path / f"root{_}"
        (tmp_path / "r.txt").write_text(recipe.text())
        result = replayed(tmp_path / "r.txt", root)
        check_totals(result, recipe.totals)
        assert result["absent"] == 0
        assert list((root / "d").iterdir()) == []


@needs_replay
def test_what_was_grown_unseen_can_be_read(tmp_path: Path) -> None:
    """A file made in the trace, of which more is read than was written: a call that is left out grew it."""
    text = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</d/a> <0.000010>
7 1700000010.001000 write(3</d/a>, ""..., 10) = 10 <0.000010>
7 1700000010.002000 fallocate(3</d/a>, FALLOC_FL_ZERO_RANGE, 0, 5000) = 0 <0.000010>
7 1700000010.003000 pread64(3</d/a>, ""..., 5000, 0) = 5000 <0.000010>
7 1700000010.004000 ftruncate(3</d/a>, 20) = 0 <0.000010>
7 1700000010.005000 pread64(3</d/a>, ""..., 20, 0) = 20 <0.000010>
"""
    recipe = compile_trace(strace(tmp_path, text))
    assert [(o.kind, o.offset) for o in recipe.streams[0]] == [
        ("O", 0), ("W", 0), ("K", 5000), ("R", 0), ("K", 20), ("R", 0)
    ]  # fmt: skip
    assert recipe.sizes == [0]
    (tmp_path / "r.txt").write_text(recipe.text())
    check_totals(replayed(tmp_path / "r.txt", tmp_path / "root"), recipe.totals)


@needs_replay
def test_thinking_is_kept(tmp_path: Path) -> None:
    frame = strace(tmp_path, SEARCH)
    whole = sum(o.gap for o in compile_trace(frame).streams[0])
    (tmp_path / "r.txt").write_text(compile_trace(frame).text())
    (tmp_path / "root").mkdir()
    assert run(tmp_path / "r.txt", tmp_path / "root", "--prepare").returncode == 0
    thinking = json.loads(run(tmp_path / "r.txt", tmp_path / "root", "--think").stdout)
    assert thinking["wallSeconds"] >= whole / 1e9


@needs_replay
def test_a_helper_that_was_waited_for_is_waited_for_again(tmp_path: Path) -> None:
    """Process 7 starts 8, waits for it, and goes on with another file; 9 runs beside both."""
    text = """\
7 1700000010.000000 newfstatat(AT_FDCWD, "/d/a", {...}, 0) = 0 <0.000010>
9 1700000010.000100 newfstatat(AT_FDCWD, "/d/z", {...}, 0) = 0 <0.000010>
8 1700000010.001000 openat(AT_FDCWD, "/d/b", O_WRONLY|O_CREAT, 0666) = 3</d/b> <0.000010>
8 1700000010.002000 write(3</d/b>, ""..., 10) = 10 <0.000100>
8 1700000010.003000 close(3</d/b>) = 0 <0.000010>
7 1700000010.005000 newfstatat(AT_FDCWD, "/d/c", {...}, 0) = 0 <0.000010>
9 1700000010.006000 newfstatat(AT_FDCWD, "/d/y", {...}, 0) = 0 <0.000010>
"""
    recipe = compile_trace(strace(tmp_path, text))
    seven = recipe.streams[0]
    assert (2, 3) in seven[1].waits  # all three calls of process 8
    assert all(s != 1 for s, _ in seven[1].waits)  # not for 9, which began before and ended after
    # It thinks since 8 ended, at 3.01 ms, not since its own first call.
    assert seven[1].gap == pytest.approx(1_990_000, abs=1000)


@needs_replay
def test_the_replay_has_the_traces_totals(tmp_path: Path) -> None:
    write_recipe(strace(tmp_path, TWO_PROCESSES), tmp_path / "r.txt")
    result = replayed(tmp_path / "r.txt", tmp_path / "root")
    check_totals(result, json.loads((tmp_path / "r.json").read_text())["totals"])
    assert result["implicitOpens"] == 0
    assert not (tmp_path / "root" / "d" / "a.bin").exists()  # unlinked, at the end and not before the read


# Thread 11 fills a table, hands it over and sleeps until 12 has written it out; then it goes on at once.
WORKER = """\
11 1700000010.000000 openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT, 0666) = 3</d/log> <0.000010>
11 1700000010.001000 write(3</d/log>, ""..., 100) = 100 <0.000010>
11 1700000010.001500 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 12 <0.000010>
12 1700000010.002000 openat(AT_FDCWD, "/d/table", O_WRONLY|O_CREAT, 0666) = 4</d/table> <0.000010>
12 1700000010.003000 write(4</d/table>, ""..., 5000) = 5000 <0.000010>
12 1700000010.003100 futex(0x7f00, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
11 1700000010.004000 write(3</d/log>, ""..., 100) = 100 <0.000010>
11 1700000010.005000 futex(0x7f00, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000010>
12 1700000010.005020 <... futex resumed>) = 0 <0.001920>
11 1700000010.005100 futex(0x7f80, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
12 1700000010.005200 fdatasync(4</d/table>) = 0 <0.080000>
12 1700000010.085300 futex(0x7f80, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000010>
11 1700000010.085330 <... futex resumed>) = 0 <0.080230>
11 1700000010.085400 write(3</d/log>, ""..., 100) = 100 <0.000010>
12 1700000010.086000 close(4</d/table>) = 0 <0.000010>
"""


def test_whoever_is_woken_waited_for_what_the_other_had_done(tmp_path: Path) -> None:
    main, worker = compile_trace(strace(tmp_path, WORKER)).streams
    # Open, two writes; then the third, after the worker's open, write and sync: 200 us after that one's end.
    assert [o.kind for o in main] == ["O", "W", "W", "W"] and main[3].waits == [(1, 3)]
    assert main[3].gap == pytest.approx(200_000, abs=1000)
    # The worker's sync came after the main thread's second write; it slept, and thought for 1.19 ms.
    assert worker[2].kind == "D" and worker[2].waits == [(0, 3)]
    assert worker[2].gap == pytest.approx(1_190_000, abs=1000)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FUTEX_WAKE_PRIVATE, 1) = 1", "FUTEX_WAKE_PRIVATE, 1) = 0"),  # nobody slept there
        ("futex(0x7f80, FUTEX_WAKE_PRIVATE", "futex(0x7fff, FUTEX_WAKE_PRIVATE"),  # another futex
        (") = 0 <0.080230>", ") = -1 ETIMEDOUT (Connection timed out) <0.080230>"),  # it woke by itself
    ],
)
def test_whoever_wakes_by_itself_thinks(tmp_path: Path, old: str, new: str) -> None:
    main, _ = compile_trace(strace(tmp_path, WORKER.replace(old, new))).streams
    assert main[3].waits == [] and main[3].gap == pytest.approx(81_390_000, abs=1000)


def test_a_reader_of_an_empty_pipe_waits_for_the_writer(tmp_path: Path) -> None:
    text = """\
21 1700000010.000000 openat(AT_FDCWD, "/d/in", O_RDONLY) = 3</d/in> <0.000010>
22 1700000010.000100 openat(AT_FDCWD, "/d/out", O_WRONLY|O_CREAT, 0666) = 4</d/out> <0.000010>
22 1700000010.000200 read(0<pipe:[77]>,  <unfinished ...>
21 1700000010.000300 read(3</d/in>, ""..., 5000) = 5000 <0.050000>
21 1700000010.050400 write(1<pipe:[77]>, ""..., 5000) = 5000 <0.000010>
22 1700000010.050430 <... read resumed>""..., 8192) = 5000 <0.050230>
22 1700000010.060000 write(4</d/out>, ""..., 5000) = 5000 <0.000010>
21 1700000010.070000 close(3</d/in>) = 0 <0.000010>
"""
    _, second = compile_trace(strace(tmp_path, text)).streams
    # 9.7 ms of thinking since the read of /d/in ended, at 50.3 ms.
    assert second[1].kind == "W" and second[1].waits == [(0, 2)]
    assert second[1].gap == pytest.approx(9_700_000, abs=1000)


def test_a_reader_comes_after_the_writer_of_its_bytes_though_it_never_slept_in_a_read(tmp_path: Path) -> None:
    """As rsync does: it sleeps in a select, which is not traced, and then reads what is there at once.

    Process 22 reads 6 bytes, of which the last came with the second write, at 50.4 ms; the third write is
    not among them. Then it thinks for 9.7 ms, and not for 60.
    """
    text = """\
21 1700000010.000050 openat(AT_FDCWD, "/d/in", O_RDONLY) = 3</d/in> <0.000010>
22 1700000010.000100 openat(AT_FDCWD, "/d/out", O_WRONLY|O_CREAT, 0666) = 5</d/out> <0.000010>
21 1700000010.000300 write(4<UNIX-STREAM:[5->6]>, ""..., 4) = 4 <0.000010>
21 1700000010.000400 read(3</d/in>, ""..., 4096) = 4096 <0.049900>
21 1700000010.050400 write(4<UNIX-STREAM:[5->6]>, ""..., 4) = 4 <0.000010>
21 1700000010.050500 read(3</d/in>, ""..., 4096) = 4096 <0.000100>
21 1700000010.050700 write(4<UNIX-STREAM:[5->6]>, ""..., 4) = 4 <0.000010>
22 1700000010.050800 read(4<UNIX-STREAM:[6->5]>, ""..., 6) = 6 <0.000010>
22 1700000010.060000 write(5</d/out>, ""..., 10) = 10 <0.000100>
21 1700000010.070000 close(3</d/in>) = 0 <0.000010>
"""
    recipe = compile_trace(strace(tmp_path, text))
    reader = next(s for s in recipe.streams if s[-1].kind == "W")
    number = next(i for i, s in enumerate(recipe.streams) if s[-1].kind == "C")
    assert reader[-1].waits == [(number, 2)]  # the open and the first read
    assert reader[-1].gap == pytest.approx(9_700_000, abs=1000)  # since that read ended, at 50.3 ms
    assert recipe.left_out == {}  # what goes through a connection is no file's, and not left out


def test_a_writer_of_a_full_pipe_comes_after_the_reader(tmp_path: Path) -> None:
    """21 has written 40 kB when 22 reads; its next write, after a select, comes after what 22 did before."""
    text = """\
21 1700000010.000050 openat(AT_FDCWD, "/d/in", O_RDONLY) = 3</d/in> <0.000010>
22 1700000010.000100 openat(AT_FDCWD, "/d/out", O_WRONLY|O_CREAT, 0666) = 5</d/out> <0.000010>
21 1700000010.000300 write(4<UNIX-STREAM:[5->6]>, ""..., 40000) = 40000 <0.000010>
22 1700000010.000400 write(5</d/out>, ""..., 4096) = 4096 <0.049600>
22 1700000010.050400 read(4<UNIX-STREAM:[6->5]>, ""..., 40000) = 40000 <0.000010>
21 1700000010.050500 write(4<UNIX-STREAM:[5->6]>, ""..., 40000) = 40000 <0.000010>
21 1700000010.051000 read(3</d/in>, ""..., 4096) = 4096 <0.000100>
22 1700000010.070000 close(5</d/out>) = 0 <0.000010>
"""
    recipe = compile_trace(strace(tmp_path, text))
    writer = next(s for s in recipe.streams if s[-1].kind == "R")
    number = next(i for i, s in enumerate(recipe.streams) if s[-1].kind == "C")
    assert writer[-1].waits == [(number, 2)]
    assert writer[-1].gap == pytest.approx(1_000_000, abs=1000)


FAMILY = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/make", O_RDONLY) = 3</d/make> <0.000010>
7 1700000010.010000 vfork() = 8 <0.000500>
8 1700000010.010300 openat(AT_FDCWD, "/d/a.c", O_RDONLY) = 3</d/a.c> <0.000010>
7 1700000010.011000 vfork() = 9 <0.000500>
8 1700000010.020000 close(3</d/a.c>) = 0 <0.000010>
9 1700000010.020300 openat(AT_FDCWD, "/d/b.c", O_RDONLY) = 3</d/b.c> <0.000010>
9 1700000010.030000 close(3</d/b.c>) = 0 <0.000010>
7 1700000010.011600 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8 <0.010000>
7 1700000010.021700 wait4(-1, 0x7fff, WNOHANG, NULL) = 0 <0.000010>
7 1700000010.022000 openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT, 0644) = 4</d/log> <0.000010>
7 1700000010.022100 waitid(P_ALL, 0, {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=9, si_uid=0, si_status=0}, WEXITED, NULL) = 0 <0.008000>
7 1700000010.031000 write(4</d/log>, ""..., 10) = 10 <0.000010>
"""  # noqa: E501


def test_processes_wait_for_those_that_they_wait_for(tmp_path: Path) -> None:
    """9 began after 8 had ended, and waited for nothing: its starter had started it before."""
    recipe = compile_trace(strace(tmp_path, FAMILY))
    assert recipe.begins == [[], [(0, 1)], [(0, 1)]]
    make = recipe.streams[0]
    assert [(o.kind, o.waits) for o in make] == [("O", []), ("O", [(1, 2)]), ("W", [(2, 2)])]
    # From the end of 8, at 20.01 ms, to the open; the vforks, waits and stops of its birth are not its own.
    assert make[1].gap == pytest.approx(1_990_000, abs=1000)


LOCKS = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/base.db", O_RDWR|O_CREAT, 0666) = 3</d/base.db> <0.000010>
7 1700000010.001000 fcntl(3</d/base.db>, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=1073741824, l_len=1}) = 0 <0.0001>
7 1700000010.002000 fcntl(3</d/base.db>, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=1073741826, l_len=510}) = 0 <0.0001>
7 1700000010.003000 write(3</d/base.db>, ""..., 5000) = 5000 <0.000100>
7 1700000010.004000 fcntl(3</d/base.db>, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0 <0.0001>
7 1700000010.005000 fcntl(3</d/base.db>, F_GETFL) = 0x2 (flags O_RDWR) <0.000010>
7 1700000010.006000 flock(3</d/base.db>, LOCK_EX|LOCK_NB) = 0 <0.000100>
7 1700000010.007000 close(3</d/base.db>) = 0 <0.000010>
"""  # noqa: E501


def test_locks_are_asked_for_again(tmp_path: Path) -> None:
    """A file server is asked for each: with SQLite on GlusterFS that is a quarter of the time."""
    recipe = compile_trace(strace(tmp_path, LOCKS))
    locks = [(o.kind, o.offset, o.size) for o in recipe.streams[0] if o.kind in "EHV"]
    assert locks == [("H", 1 << 30, 1), ("E", (1 << 30) + 2, 510), ("V", 0, 0), ("E", 0, 0)]
    assert recipe.left_out == {"fcntl": 1}  # F_GETFL asks nobody
    assert recipe.totals["metadata"]["operations"] == 6  # with open and close


@needs_replay
@pytest.mark.skipif(which("strace") is None, reason="strace is not installed")
def test_the_kernel_sees_the_locks(tmp_path: Path) -> None:
    write_recipe(strace(tmp_path, LOCKS), tmp_path / "r.txt")
    root = tmp_path / "root"
    root.mkdir()
    assert run(tmp_path / "r.txt", root, "--prepare").returncode == 0
    command = [str(program("tiercel-replay")), str(tmp_path / "r.txt"), "--root", str(root)]
    witness = ["strace", "-f", "-qq", "-e", "trace=fcntl", "-o", str(tmp_path / "seen"), *command]
    done = subprocess.run(witness, capture_output=True, text=True, timeout=60, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["absent"] == 0
    seen = [line for line in (tmp_path / "seen").read_text().splitlines() if "F_SETLK" in line]
    assert [line.partition("l_type=")[2].partition("}")[0] for line in seen] == [
        "F_RDLCK, l_whence=SEEK_SET, l_start=1073741824, l_len=1",
        "F_WRLCK, l_whence=SEEK_SET, l_start=1073741826, l_len=510",
        "F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0",
        "F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0",
    ]


HELD = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/in", O_RDONLY) = 3</d/in> <0.000010>
7 1700000010.001000 newfstatat(3</d/in>, "", {st_mode=S_IFREG|0644, ...}, AT_EMPTY_PATH) = 0 <0.00001>
7 1700000010.002000 newfstatat(AT_FDCWD, "/d/in", {st_mode=S_IFREG|0644, ...}, 0) = 0 <0.000010>
7 1700000010.003000 read(3</d/in>, ""..., 100) = 9 <0.000100>
7 1700000010.004000 openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT, 0644) = 4</d/log> <0.000010>
7 1700000010.005000 fallocate(4</d/log>, FALLOC_FL_KEEP_SIZE, 0, 65536) = 0 <0.000010>
7 1700000010.006000 write(4</d/log>, ""..., 10) = 10 <0.000100>
7 1700000010.007000 fallocate(4</d/log>, 0, 10, 90) = 0 <0.000010>
7 1700000010.008000 fallocate(4</d/log>, FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE, 0, 10) = 0 <0.000010>
7 1700000010.009000 ftruncate(4</d/log>, 50) = 0 <0.000010>
7 1700000010.010000 fchmod(4</d/log>, 0600) = 0 <0.000010>
7 1700000010.011000 fallocate(4</d/log>, 0, 0, 999) = -1 ENOSPC (No space left on device) <0.000010>
"""


def test_an_open_file_is_asked_of_itself_and_room_is_allocated(tmp_path: Path) -> None:
    recipe = compile_trace(strace(tmp_path, HELD))
    # An open that makes nothing has how 16, one for reading 1 more; size 1 of T, K, A: by the descriptor.
    assert [(o.kind, o.offset, o.size) for o in recipe.streams[0]] == [
        ("O", 0, 17), ("T", 0, 1), ("T", 0, 0), ("R", 0, 9), ("O", 0, 0), ("Q", 0, 65536), ("W", 0, 10),
        ("P", 10, 90), ("K", 50, 1), ("A", 0, 1), ("T", 0, 0),
    ]  # fmt: skip
    assert recipe.left_out == {"fallocate": 1}  # a hole
    log = next(r for r in recipe.records if r.name == "/d/log")
    assert log.largest == 100  # what is allocated beyond the end is no content


@needs_replay
@pytest.mark.skipif(which("strace") is None, reason="strace is not installed")
def test_the_kernel_sees_the_same_calls(tmp_path: Path) -> None:
    write_recipe(strace(tmp_path, HELD), tmp_path / "r.txt")
    root = tmp_path / "root"
    root.mkdir()
    assert run(tmp_path / "r.txt", root, "--prepare").returncode == 0
    command = [str(program("tiercel-replay")), str(tmp_path / "r.txt"), "--root", str(root)]
    calls = "openat,newfstatat,fstat,fallocate,ftruncate,utimensat"
    witness = ["strace", "-f", "-y", "-qq", "-e", f"trace={calls}", "-o", str(tmp_path / "seen"), *command]
    done = subprocess.run(witness, capture_output=True, text=True, timeout=60, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    seen = [
        line.partition(" ")[2].strip()
        for line in (tmp_path / "seen").read_text().splitlines()
        if "/d/" in line
    ]
    opens = [line for line in seen if line.startswith("openat")]
    assert [("O_CREAT" in line, "O_RDONLY" in line) for line in opens] == [(False, True), (True, False)]
    stats = [line for line in seen if "stat" in line.split("(")[0]]
    assert ["AT_EMPTY_PATH" in line or line.startswith("fstat(") for line in stats] == [True, False, False]
    allocated = [line.partition(">, ")[2].partition(")")[0] for line in seen if line.startswith("fallocate")]
    assert allocated == ["FALLOC_FL_KEEP_SIZE, 0, 65536", "0, 10, 90"]
    assert any(line.startswith("ftruncate") for line in seen)
    assert (root / "d" / "log").stat().st_size == 50


def test_names_are_as_deep_as_below_their_common_folder(tmp_path: Path) -> None:
    """Of the files of each storage; what lies above or elsewhere keeps all of its name."""
    recipe = compile_trace(strace(tmp_path, HELD))
    recipe.bases = ("/n/user/job", "/d")
    assert [recipe.place(n) for n in ("/n/user/job/a/b", "/d/in", "/n/user", "/x")] == [
        "0/a/b", "1/in", "n/user", "x",
    ]  # fmt: skip
    recipe.bases = ("/d",)
    assert recipe.place("/d/in") == "in"
    assert "f 0 9 e in\n" in recipe.text()


@pytest.mark.parametrize(
    ("names", "folder"),
    [(["/a/b/c", "/a/b/d/e"], "/a/b"), (["/a/b", "/a/b/c"], "/a"), (["/a", "/a/b", "/a/b/c/d"], "/a/b/c"),
     (["/a/b/c", "/x/y"], ""), (["/a"], ""), ([], ""), (["a/b"], "")],
)  # fmt: skip
def test_the_common_folder(names: list[str], folder: str) -> None:
    assert common_folder(names) == folder


@needs_replay
@pytest.mark.skipif(preload_library() is None, reason="DFTracer is not installed")
def test_the_trace_of_a_replay_has_the_features_of_the_original(tmp_path: Path) -> None:
    """Trace a real program (SQLite), replay it under the tracer too, and compare what both traces show."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    code = (
        f"import sqlite3; c = sqlite3.connect({str(one / 't.db')!r}); c.execute('create table t (x)')\n"
        "for n in range(10): c.execute('insert into t values (?)', ('x' * 3000,)); c.commit()\n"
    )
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        argv = [sys.executable, "-c", code]
        if name == "b":
            write_recipe(
                open_trace(tmp_path / "a" / "trace", cache=tmp_path / "cache"),
                tmp_path / "r.txt",
                data=str(one),
            )
            two.mkdir()
            assert run(tmp_path / "r.txt", two, "--prepare").returncode == 0
            argv = [str(program("tiercel-replay")), str(tmp_path / "r.txt"), "--root", str(two)]
        words = [f"{k}={v}" for k, v in tracing_environment(tmp_path / name, tmp_path).items()]
        subprocess.run(["env", *words, *argv], check=True, capture_output=True, timeout=60)
    first, second = (files_of(open_trace(tmp_path / n / "trace", cache=tmp_path / "cache")) for n in "ab")
    first.index = first.index.str.removeprefix(str(one))
    second.index = second.index.str.removeprefix(f"{two}{one}")
    same = [
        "bytes_read",
        "bytes_written",
        "transfer_size",
        "WO",
        "WAW",
        "RAW",
        "random_share",
        "syncs_per_write",
    ]
    assert set(first.index) <= set(second.index)
    for column in same:
        assert second.loc[first.index, column].tolist() == pytest.approx(first[column].tolist()), column


@needs_replay
def test_as_an_engine(tmp_path: Path) -> None:
    (tmp_path / "t.strace").write_text(TWO_PROCESSES)
    data, output = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    output.mkdir()
    task = Task(
        ReplayWorkload(operation="replay", trace=str(tmp_path / "t.strace")), 1, 1, data, output, 1, "fork"
    )
    engine = engines.get("replay")()
    installation = engine.find()
    assert installation is not None
    for step in engine.steps(task, installation):
        subprocess.run(step.argv, check=True, timeout=60, cwd=output)
    (measured,) = engine.parse(task, output)
    assert (measured.bytes_moved, measured.bytes_expected, measured.operations) == (10100, 10100, 10)
    content = json.loads((output / "replay.json").read_text())
    content["total"]["read"]["bytes"] -= 1
    (output / "replay.json").write_text(json.dumps(content))
    with pytest.raises(RunFailed, match="replayed 5,099 read bytes where the trace has 5,100"):
        engine.parse(task, output)


def test_larger_than_allowed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="need 6,000 bytes and the workload allows 1,000"):
        write_recipe(strace(tmp_path, TWO_PROCESSES), tmp_path / "r.txt", limit=1000)


@needs_replay
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f 0 0 - ../out", "leads out of its root"),
        ("f 0 0 - /etc/passwd", "leads out of its root"),
        ("f 0 0 - a%2F..%2F..%2Fb", "leads out of its root"),
        ("f 3 0 - a", "names more roots"),
        ("f 0 -1 - a", "is no file"),
    ],
)
def test_recipes_cannot_reach_out(tmp_path: Path, line: str, message: str) -> None:
    recipe = tmp_path / "r.txt"
    recipe.write_text(
        f"tiercel-replay 2\nfiles 1 streams 1 operations 1 waits 0\n{line}\ns 1 0\no O 0 0 0 0 0\n"
    )
    done = run(recipe, tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


@needs_replay
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_recipes_are_told_and_nothing_crashes(tmp_path: Path, data: st.DataObject) -> None:
    text = compile_trace(strace(tmp_path, TWO_PROCESSES)).text()
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at]
        + data.draw(st.text(st.characters(max_codepoint=126), max_size=8))
        + text[at + data.draw(st.integers(0, 8)) :]
    )
    (tmp_path / "bad.txt").write_text(damaged)
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    done = run(tmp_path / "bad.txt", root, "--prepare")
    assert done.returncode in (0, 1, 2), done.stderr
    assert done.returncode == 0 or done.stderr.startswith("tiercel-replay: ")
