"""Darshan logs against what Darshan's own dxt-parser printed (skipped without the darshan package)."""

from __future__ import annotations

import gzip
import importlib.util
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiercel.traces.readers.darshan
from tiercel.errors import UserError
from tiercel.traces import IOFrame
from tiercel.traces.analysis.tally import processes_time

from .conftest import Kept

DATA = Path(__file__).parents[1] / "data" / "traces" / "darshan"
needs_darshan = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None, reason="the darshan package is not installed"
)
_SEGMENT = re.compile(r" X_(\w+) +(-?\d+) +(\w+) +\d+ +(\d+) +(\d+) +([\d.]+) +([\d.]+)")


def printed(name: str) -> list[tuple[str, int, str, str, int, int, float, float]]:
    """Return dxt-parser's segments: api, rank, kind, file, offset, length, start, end."""
    file, found = "", []
    for line in gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode().splitlines():
        if "file_name: " in line:
            file = line.split("file_name: ")[1]
        elif m := _SEGMENT.match(line):
            found.append(
                (m[1].lower(), int(m[2]), m[3], file, int(m[4]), int(m[5]), float(m[6]), float(m[7]))
            )
    return sorted(found)


@needs_darshan
@pytest.mark.parametrize(("name", "segments"), [("posix-dxt", 64), ("mpiio-dxt", 128)])
def test_every_segment_is_what_dxt_parser_prints(name: str, segments: int) -> None:
    """Two ranks, 16 writes and 16 reads each: 64 segments, and as many again of MPI-IO above POSIX."""
    frame = IOFrame.from_darshan(DATA / f"{name}.darshan")
    theirs = printed(name)
    ours = sorted(
        (row.api, row.rank, row.kind, row.file, row.offset, row.size, row.time, row.time + row.duration)
        for row in frame.events().itertuples()
    )
    assert len(ours) == len(theirs) == segments
    assert [row[:6] for row in ours] == [row[:6] for row in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        # dxt-parser prints four digits
        assert mine[6:] == pytest.approx((other[6], other[7]), abs=2.1e-4)
    assert set(frame.events()["host"]) == {"vm"}


@needs_darshan
def test_counters_are_no_events() -> None:
    frame = IOFrame.from_darshan(DATA / "posix-counters.darshan")
    assert len(frame) == 0
    assert any("no DXT" in sentence and "unknown" in sentence for sentence in frame.warnings)
    totals = frame.metadata["counter_totals"]["POSIX"]
    # each of two ranks: 16 writes and 16 reads of 4 KiB, one fsync
    assert (totals["POSIX_READS"], totals["POSIX_WRITES"], totals["POSIX_FSYNCS"]) == (32, 32, 2)
    assert totals["POSIX_BYTES_READ"] == totals["POSIX_BYTES_WRITTEN"] == 131072
    table = frame.counters("POSIX")
    assert table is not None
    (shared,) = table[table["file"] == "/tmp/study/b"].to_dict("records")
    assert shared["rank"] == -1 and shared["POSIX_WRITES"] == 32
    assert frame.counters("LUSTRE") is None
    with pytest.raises(UserError, match="counters only"):
        frame.select(0)  # they do not say what one rank did with a shared file
    for ask in (frame.bandwidth_over_time, frame.heatmap, frame.overlap_over_time):
        if frame.counters("HEATMAP") is None or ask == frame.overlap_over_time:
            with pytest.raises(UserError, match="counters only"):
                ask()


@needs_darshan
def test_counters_stand_beside_segments() -> None:
    frame = IOFrame.from_darshan(DATA / "posix-dxt.darshan")
    events = frame.events()
    totals = frame.metadata["counter_totals"]["POSIX"]
    for kind, name in (("read", "POSIX_BYTES_READ"), ("write", "POSIX_BYTES_WRITTEN")):
        assert events.loc[events["kind"] == kind, "size"].sum() == totals[name]
    assert frame.metadata["ranks"] == 2 and frame.metadata["epoch"] > 1.7e9


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiercel.traces.readers.darshan.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"tiercel\[darshan\]"):
        IOFrame.from_darshan(DATA / "posix-dxt.darshan")


def test_logs_are_recognised_by_content(tmp_path: Path) -> None:
    reader = tiercel.traces.readers.darshan.Darshan()
    unnamed = tmp_path / "log"
    unnamed.write_bytes((DATA / "posix-dxt.darshan").read_bytes())
    assert reader.recognises(unnamed)
    unnamed.write_bytes(b"3.41 is no log at all")
    assert not reader.recognises(unnamed)


def test_two_logs_are_two_programs() -> None:
    with pytest.raises(UserError, match="name one"):
        IOFrame.from_darshan(DATA)


@needs_darshan
@pytest.mark.parametrize("content", [b"", b"3.41\0\0\0\0", b"hello" * 100])
def test_no_log_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.darshan"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a readable Darshan log"):
        IOFrame.from_darshan(path)


@needs_darshan
@pytest.mark.nightly  # each example starts a process
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_gives_warnings_or_one_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(["posix-dxt", "mpiio-dxt", "posix-counters"]))
    raw = bytearray((DATA / f"{name}.darshan").read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        del raw[at:]
    else:
        raw[at : at + 4] = data.draw(st.binary(min_size=4, max_size=4))
    path = tmp_path_factory.mktemp("damaged") / "x.darshan"
    path.write_bytes(raw)
    try:
        tiercel.traces.readers.darshan.Darshan().read([path], Kept())
    except UserError as error:
        assert "\n" not in str(error)


def test_segments_without_an_offset_are_kept() -> None:
    """DXT of MPI-IO before 3.2.0 writes -1 for every offset: bytes and times count, places are missing."""
    kept = Seen()
    warnings: list[str] = []
    segments = pa.table({
        "time": [0.5, 1.5], "duration": [0.25, 0.25], "offset": [-1, -2], "size": [4096, 4096],
        "rank": pa.array([0, 1], pa.int32()), "module": ["DXT_MPIIO"] * 2, "kind": ["write", "read"],
        "host": ["n1"] * 2, "file": ["/p/f"] * 2,
    })  # fmt: skip
    assert tiercel.traces.readers.darshan._write(segments, kept, 2.0, warnings) == 2
    # -2 is left to the writer, which counts what cannot be.
    assert kept.columns["offset"].to_pylist() == [None, -2]
    assert kept.columns["size"].to_pylist() == [4096, 4096] and not warnings


def test_dxt_that_lacks_bytes_is_a_part() -> None:
    """DXT ends where its memory does: 3 of 4 MiB of POSIX are there, all of MPI-IO but half a hundredth."""
    mib = 1 << 20
    totals = {
        "POSIX": {"POSIX_BYTES_READ": 1.0 * mib, "POSIX_BYTES_WRITTEN": 3.0 * mib},
        "MPI-IO": {"MPIIO_BYTES_READ": 200.0 * mib, "MPIIO_BYTES_WRITTEN": 0.0},
    }
    cut = tiercel.traces.readers.darshan._cut({"DXT_POSIX": 3 * mib, "DXT_MPIIO": 199 * mib}, totals)
    assert list(cut) == ["DXT_POSIX"]
    assert cut["DXT_POSIX"].startswith("DXT_POSIX holds 3 MiB of the 4 MiB that moved")
    assert tiercel.traces.readers.darshan._cut({}, totals) == {}  # no DXT at all


class Seen(Kept):
    """A writer that keeps what it is given."""

    def write(self, columns: dict[str, Any]) -> None:
        super().write(columns)
        self.columns = columns


@needs_darshan
def test_the_job_is_as_long_as_darshan_says() -> None:
    """Not as the span of its segments: what lies before the first and after the last is the job's too."""
    frame = IOFrame.from_darshan(DATA / "posix-dxt.darshan")
    ends = frame.events().eval("time + duration")
    assert frame.job_time == frame.metadata["run_time"] > ends.max()
    over = frame.bandwidth_over_time(bins=10)
    assert over["read_bytes"].sum() + over["write_bytes"].sum() == pytest.approx(2 * 131072)
    assert over.index[1] == pytest.approx(frame.job_time / 10)


@needs_darshan
def test_shares_are_of_the_whole_job_however_it_was_opened(tmp_path: Path) -> None:
    """A part of a log, and a converted one, are told against the time of all processes."""
    log = IOFrame.from_darshan(DATA / "posix-dxt.darshan")
    whole = processes_time(log)
    assert whole == (log.metadata["run_time"] * 2, 2)
    assert processes_time(log.select(filter="size > 0")) == whole
    assert processes_time(IOFrame.from_parquet(log.to_parquet(tmp_path / "x.parquet"))) == whole


@needs_darshan
@pytest.mark.parametrize(
    "ask",
    [
        "overlap",
        "metadata_share",
        "io_bandwidth",
        "io_time",
        "access_pattern",
        "transfer_sizes",
        "load_imbalance",
    ],
)
def test_analyses_of_calls_refuse_counters(ask: str) -> None:
    with pytest.raises(UserError, match="counters only"):
        getattr(IOFrame.from_darshan(DATA / "posix-counters.darshan"), ask)()
