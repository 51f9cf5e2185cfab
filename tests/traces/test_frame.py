from __future__ import annotations

import json
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tiercel.errors import UserError
from tiercel.traces import IOFrame, engine, open_trace
from tiercel.traces.analysis.summary import summarise
from tiercel.traces.page import job_page
from tiercel.traces.readers.dftracer import DFTracer
from tiercel.traces.schema import NAMES, UNITS
from tiercel.traces.store import forget

from .conftest import Event, call, write

Make = Callable[[list[Event]], IOFrame]
EVENTS = [
    call("pread", 0, 10, ret=8, offset=0, fname="/d/a"),
    call("pwrite", 20, 10, ret=9, offset=8, fname="/d/b"),
    call("close", 40, 5, fname="/d/b"),
]  # fmt: skip


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often a trace is really read."""
    counted: list[int] = []
    read = DFTracer.read
    monkeypatch.setattr(DFTracer, "read", lambda *a: (counted.append(1), read(*a))[1])
    return counted


def test_events_have_units(frame_of: Make) -> None:
    table = frame_of(EVENTS).events()
    assert list(table.columns) == list(NAMES)
    assert table.attrs["units"] == UNITS
    assert table["size"].dtype == "Int64"  # whole numbers though one is missing


def test_a_trace_is_read_once(tmp_path: Path, reads: list[int]) -> None:
    path = write(tmp_path / "x.pfw", EVENTS)
    assert len(open_trace(path)) == len(open_trace(path)) == 3
    assert len(reads) == 1
    write(path, EVENTS[:2])  # another size
    assert len(open_trace(path)) == 2
    os.utime(path, ns=(1, 1))  # another time
    open_trace(path)
    assert len(reads) == 3


def test_a_new_file_in_the_folder_is_seen(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.pfw", EVENTS)
    assert len(open_trace(tmp_path / "t")) == 3
    write(tmp_path / "t" / "b.pfw", EVENTS)
    assert len(open_trace(tmp_path / "t")) == 6


def test_a_broken_cache_entry_is_made_again(tmp_path: Path, reads: list[int]) -> None:
    path = write(tmp_path / "x.pfw", EVENTS)
    cache = tmp_path / "c"
    open_trace(path, cache=cache)
    for report in cache.glob("*/report.json"):
        report.write_text("{")
    assert len(open_trace(path, cache=cache)) == 3
    assert len(reads) == 2
    assert len(list(cache.iterdir())) == 1  # and no draft is left


def test_an_unwritable_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = write(tmp_path / "x.pfw", EVENTS)
    frame = open_trace(path, cache=tmp_path / "file" / "below")
    assert len(frame.events()) == 3
    assert "cannot be written" in frame.warnings[0]


def test_folder_and_tar(tmp_path: Path) -> None:
    write(tmp_path / "t" / "deep" / "a.pfw.gz", EVENTS)
    write(tmp_path / "t" / "b.pfw", [call("open", 0, 1, pid=11)])
    (tmp_path / "t" / "notes.txt").write_text("no trace")
    for name, mode in (("t.tar", "w"), ("t.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as tar:  # type: ignore[call-overload]
            tar.add(tmp_path / "t", "t")
        for _ in range(2):  # anew, and from the cache
            assert open_trace(tmp_path / name).events().equals(open_trace(tmp_path / "t").events())


def test_a_tar_that_climbs_out_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "x.pfw", EVENTS)
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(source, "../out.pfw")
    with pytest.raises(UserError, match=r"t.tar: cannot be unpacked"):
        open_trace(tmp_path / "t.tar")
    assert not (tmp_path.parent / "out.pfw").exists()


def test_a_tar_with_links(tmp_path: Path) -> None:
    """What a link leads to counts where it is in the tar."""
    write(tmp_path / "t" / "a.pfw", EVENTS)
    (tmp_path / "t" / "b").symlink_to("a.pfw")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(tmp_path / "t", "t")
    assert len(open_trace(tmp_path / "t.tar")) == 6
    (tmp_path / "t" / "b").unlink()
    (tmp_path / "t" / "b").symlink_to("/etc/hostname")
    with tarfile.open(tmp_path / "u.tar", "w") as tar:
        tar.add(tmp_path / "t" / "b", "b")
    with pytest.raises(UserError, match=r"u.tar: cannot be unpacked: b is a link to what is not in the tar"):
        open_trace(tmp_path / "u.tar")


def test_half_a_tar(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.pfw", EVENTS)
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "t", "t")
    half = (tmp_path / "t.tar.gz").read_bytes()[:-60]
    (tmp_path / "t.tar.gz").write_bytes(half)
    try:
        assert open_trace(tmp_path / "t.tar.gz").warnings
    except UserError as error:
        assert "t.tar.gz" in str(error)


@pytest.mark.parametrize(
    "filter",
    [
        "kind = 'read' AND size < 9",
        lambda x: x["kind"] == "read",  # whole table
        lambda x: x["kind"] == "read" and x["size"] < 9,  # one row: "and" has no meaning for a table
        lambda x: x["I/O_type"] == "read" and x["file_name"].startswith("/d/"),
    ],
)
def test_filters(frame_of: Make, filter: object) -> None:
    chosen = frame_of(EVENTS).select(filter=filter)  # type: ignore[arg-type]
    assert chosen.events()["function"].tolist() == ["pread"]
    assert len(chosen) == 1
    assert chosen.job_time == pytest.approx(45e-6)  # of the whole trace


def test_filters_add_up(frame_of: Make) -> None:
    frame = frame_of(EVENTS)
    assert len(frame.select(rank=0, filter="size > 0").select(filter=lambda x: x["size"] > 8)) == 1
    assert len(frame.select(rank=[])) == 0
    assert len(frame.select(filter=lambda x: x["size"] > 100)) == 0


@pytest.mark.parametrize(
    "expression",
    [
        "size >",
        "sise > 4",
        "1; DROP TABLE x",
        "read_text('/etc/passwd') = ''",
        "",
        "'a",
        "count(*) > 1",
        "sum(size) OVER () > 1",
    ],
)
def test_a_filter_that_is_none(frame_of: Make, expression: str) -> None:
    with pytest.raises(UserError, match="filter"):
        frame_of(EVENTS).select(filter=expression)


def test_a_filter_may_end_in_a_comment(frame_of: Make) -> None:
    assert len(frame_of(EVENTS).select(filter="size >= 0 -- all that moves bytes")) > 0


def test_times_count_from_the_first_event(frame_of: Make) -> None:
    # Spans are written at their end: the first line is not the first event.
    frame = frame_of([call("close", 500, 10), call("run", 0, 900, "app")])
    assert frame.events()["time"].tolist() == [0.0, pytest.approx(500e-6)]
    assert frame.job_time == pytest.approx(900e-6)


def test_parquet_and_back(frame_of: Make, tmp_path: Path) -> None:
    frame = frame_of(EVENTS)
    path = frame.to_parquet(tmp_path / "x.parquet")
    again = open_trace(path)
    pd.testing.assert_frame_equal(again.events(), frame.events())
    assert again.job_time == pytest.approx(frame.job_time)
    assert IOFrame.from_parquet(tmp_path).overlap().equals(frame.overlap())


def test_parquet_of_something_else(tmp_path: Path) -> None:
    pd.DataFrame({"time": [1.0]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(UserError, match="no column duration"):
        open_trace(tmp_path / "x.parquet")
    (tmp_path / "y.parquet").write_text("no")
    with pytest.raises(UserError, match="not a Parquet file"):
        open_trace(tmp_path / "y.parquet")


def test_parquet_with_extra_columns(frame_of: Make, tmp_path: Path) -> None:
    table = pq.read_table(frame_of(EVENTS).to_parquet(tmp_path / "x.parquet"))
    pq.write_table(table.append_column("mine", [[1, 2, 3]]), tmp_path / "y.parquet")
    assert list(open_trace(tmp_path / "y.parquet").events().columns) == list(NAMES)


def test_frames_can_be_sent_to_other_processes(frame_of: Make) -> None:
    frame = frame_of(EVENTS).select(filter="size > 0")
    assert pickle.loads(pickle.dumps(frame)).events().equals(frame.events())


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean dftracer"):
        open_trace(write(tmp_path / "x.pfw", EVENTS), format="dftraser")


def test_a_path_with_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / 'it\'s "x" %d' / "a.pfw", EVENTS)
    assert len(open_trace(path, cache=tmp_path / "c'c")) == 3
    assert len(open_trace(path, cache=tmp_path / "c'c").events()) == 3


def test_numbers_that_cannot_be_are_missing_and_counted(tmp_path: Path) -> None:
    """One garbled duration would be the length of the job, one size more than all disks hold. Without them
    the reads' bytes are not known, and are not those of the others."""
    good = call("read", 0, 10, ret=4096, fname="/d/f")
    events = [
        good,
        call("read", 20, 10**17, fname="/d/f", ret=1),
        call("read", 30, -5, fname="/d/f", ret=1),
        call("read", 40, 5, fname="/d/f", ret=2**62),
        call("write", 50, 5, fname="/d/f", ret=10),
    ]
    frame = open_trace(write(tmp_path / "t.pfw", events))
    assert len(frame) == 5 and frame.job_time < 1
    told = [sentence.split()[:3] for sentence in frame.warnings]
    assert told == [
        ["1", "impossible", "duration"],
        ["1", "impossible", "size"],
        ["1", "of", "5"],
        ["2", "of", "5"],
    ]
    (layer,) = summarise(frame)["layers"]
    assert (layer["bytes_read"], layer["bytes_written"], layer["data_s"]) == (None, 10, None)


def test_a_converted_trace_keeps_what_was_told_of_it(
    frame_of: Callable[[list[Event]], IOFrame], tmp_path: Path
) -> None:
    """strace's cost of a call is taken off only where the format is known; ranks are said to be numbered."""
    frame = frame_of([call("read", 0, 100, fname="/d/f", ret=10), {"pid": 10, "broken": 1}])
    assert frame.warnings and frame.ranks_are_numbered
    again = open_trace(frame.to_parquet(tmp_path / "x.parquet"))
    assert again.warnings == frame.warnings and again.ranks_are_numbered == frame.ranks_are_numbered
    assert again.metadata["format"] == "dftracer" and again.metadata["path"].endswith("x.parquet")
    assert again.began == frame.began
    # Metadata that another program left there is no reason to fail.
    table = pq.read_table(tmp_path / "x.parquet").replace_schema_metadata({"tiercel.trace": "[1"})
    pq.write_table(table, tmp_path / "y.parquet")
    assert open_trace(tmp_path / "y.parquet").metadata["format"] == "parquet"


@pytest.mark.parametrize(
    "told",
    [
        {"run_time": "abc"}, {"run_time": [1]}, {"run_time": float("inf")}, {"run_time": 1e300},
        {"run_time": -5}, {"ranks": "many"}, {"ranks": 10**12}, {"partial": 5}, {"epoch": "x"},
        {"epoch": 1e300}, {"commands": 7}, {"mounts": "x"}, {"stripes": [1]}, {"chosen": "x"},
        {"command": ["x"]}, [1], "x", 7,
    ],
    ids=str,
)  # fmt: skip
def test_metadata_of_a_stranger_is_believed_only_where_it_can_be(
    told: object, frame_of: Callable[[list[Event]], IOFrame], tmp_path: Path
) -> None:
    path = frame_of([call("read", 0, 100, fname="/d/f", ret=10)]).to_parquet(tmp_path / "x.parquet")
    table = pq.read_table(path)
    said = json.dumps({"metadata": told})
    pq.write_table(table.replace_schema_metadata({"tiercel.trace": said}), path)
    frame = open_trace(path)
    assert frame.metadata == {"format": "parquet", "path": str(path)} and frame.job_time == pytest.approx(
        1e-4
    )
    assert "10\u00a0B" in job_page(frame)


def test_a_converted_choice_says_so(frame_of: Callable[[list[Event]], IOFrame], tmp_path: Path) -> None:
    frame = frame_of([call("read", n, 100, fname="/d/f", ret=10) for n in (0, 200)])
    again = open_trace(frame.select(filter="time > 0").to_parquet(tmp_path / "x.parquet"))
    assert again.chosen == ("time > 0",) and "time > 0" in repr(again)
    assert again.select(filter="size > 1").chosen == ("time > 0", "size > 1")


def test_a_rank_that_is_not_there_is_a_mistake(frame_of: Make) -> None:
    frame = frame_of([call("read", 0, 1, pid=10, ret=1), call("read", 2, 1, pid=11, ret=1)])
    with pytest.raises(UserError, match="no rank 7: its ranks are 0 to 1"):
        frame.select(7)
    for none in (1.5, "1", [0, True]):
        with pytest.raises(UserError, match="ranks are whole numbers"):
            frame.select(none)  # type: ignore[arg-type]
    # One without a call under a filter is there.
    assert len(frame.select(filter="time > 1e-6").select(0)) == 0


def test_the_cache_forgets_what_nobody_asks_for(tmp_path: Path) -> None:
    """Entries after 30 days, drafts of killed readers after a day; what is not surely the cache's stays."""
    day, now = 86400.0, 1_800_000_000.0

    def folder(name: str, days: float, *files: str, report: str = "{}") -> Path:
        made = tmp_path / name
        made.mkdir()
        for file in files:
            (made / file).write_text(report if file == "report.json" else "x")
        os.utime(made, (now - days * day, now - days * day))
        return made

    ours = json.dumps({"rows": 0, "warnings": [], "metadata": {}})
    entry = ("report.json", "events.parquet")
    gone = [
        folder("b" * 32, 31, *entry, report=ours),
        folder(".tiercel-draft-dddddddd-x1y2", 1.1, "half.parquet"),
    ]
    kept = [
        folder("a" * 32, 29, *entry, report=ours), folder(".tiercel-draft-cccccccc-x1y2", 0.9),
        # A user's own: a backup by its date, a run by its digest, an entry that somebody put a file in.
        folder(".20261101-backup", 99, "thesis.tex"), folder("e" * 32, 99, "report.json", "mydata.h5"),
        folder("f" * 32, 99, *entry, "notes.txt", report=ours), folder("0" * 32, 99, "events.parquet"),
        folder("mine", 99, *entry, report=ours),
    ]  # fmt: skip
    (tmp_path / ("9" * 32)).symlink_to(folder("elsewhere", 99, *entry, report=ours))
    forget(tmp_path, now)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept) and (tmp_path / ("9" * 32) / "report.json").exists()


def test_a_filter_that_raises_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that it had chosen stayed in the temporary folder for ever."""
    frame = open_trace(
        Path(__file__).parents[1] / "data" / "traces" / "strace" / "dd.strace", cache=tmp_path / "cache"
    )
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def wrong(_row: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        frame.select(filter=wrong)
    assert not list((tmp_path / "temporary").glob("tiercel-filter-*"))


@pytest.mark.parametrize(
    ("memory", "cores", "threads"), [(512, 64, 4), (256, 64, 2), (64, 64, 1), (512, 2, 2)]
)
def test_no_more_cores_compute_than_the_memory_feeds(
    monkeypatch: pytest.MonkeyPatch, memory: int, cores: int, threads: int
) -> None:
    """All 16 cores of a node at once did not get through a trace of 16 processes with 256 MiB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    engine._database.cache_clear()
    try:
        with engine.connection(memory << 20) as database:
            assert database.execute("SELECT current_setting('threads')").fetchone() == (threads,)
    finally:
        engine._database.cache_clear()
