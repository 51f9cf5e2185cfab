"""Recorder's format against what Recorder's own tool printed, and against damage."""

from __future__ import annotations

import gzip
import re
import shutil
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiercel.traces.readers.recorder  # registers the format
from tiercel.errors import UserError
from tiercel.traces import IOFrame
from tiercel.traces.readers.recorder_format import expand, open_recorder

from .conftest import Kept

DATA = Path(__file__).parents[1] / "data" / "traces" / "recorder"
TRACES = (
    "ranks-posix", "ranks-mpiio", "ranks-2.3", "ranks-shared-grammar", "merged-posix", "merged-mpiio",
    "merged-times-only",
)  # fmt: skip
SECTIONS = {"recorder.ts": 1, "recorder.cst": 2, "ug.cfg": 3, "ug.mt": 4}


def printed(name: str) -> list[tuple[float, float, str, int, str]]:
    """Return what recorder2text printed, rank after rank: start, end, function, depth, arguments."""
    rows = []
    for line in gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode().splitlines():
        start, end, function, depth, _, rest = line.split(" ", 5)
        rows.append((float(start), float(end), function, int(depth), rest.strip("()").strip()))
    return rows


@pytest.mark.parametrize("name", TRACES)
def test_every_event_is_what_recorder_prints(name: str) -> None:
    trace = open_recorder(DATA / name)
    step = trace.header.resolution
    ours = []
    for rank in trace:
        for call, start, took in zip(rank.calls, rank.starts, rank.durations, strict=True):
            signature = rank.signatures[int(call)]
            function = re.sub("^PMPI_", "MPI_", trace.header.functions[signature.function])
            arguments = " ".join(signature.arguments).strip()
            ours.append((start * step, (start + took) * step, function, signature.depth, arguments))
    theirs = printed(name)
    assert trace.warnings == []
    assert [row[2:] for row in ours] == [row[2:] for row in theirs]
    # recorder2text adds up floats that it prints with seven digits
    assert np.allclose([row[:2] for row in ours], [row[:2] for row in theirs], atol=1.1e-6)


def test_totals_are_those_of_the_program() -> None:
    """iokernel -F -t 4k -b 64k on two ranks: each writes 16 x 4 KiB to its own file and reads them again."""
    for name in ("ranks-2.3", "ranks-posix", "merged-posix"):
        events = IOFrame.from_recorder(DATA / name).events()
        data = events[events["kind"].isin(["read", "write"]) & events["file"].str.startswith("/tmp/study")]
        counted = data.groupby(["rank", "file", "kind"], observed=True)["size"].agg(["count", "sum"])
        files = {(rank, f"/tmp/study/b.{rank:08}", kind) for rank in (0, 1) for kind in ("read", "write")}
        assert set(counted.index) == files
        assert (counted["count"] == 16).all() and (counted["sum"] == 65536).all()
        for _, one in data.groupby(["rank", "kind"], observed=True):
            assert one["offset"].tolist() == list(range(0, 65536, 4096))


def test_mpiio_events_have_file_offset_and_size() -> None:
    """-a MPIIO -z: each rank writes and reads its 16 pieces of a shared file of 32, in random order."""
    events = IOFrame.from_recorder(DATA / "merged-mpiio").events()
    mpiio = events[(events["api"] == "mpiio") & events["kind"].isin(["read", "write"])]
    assert Counter(mpiio["function"]) == {"MPI_File_write_at": 32, "MPI_File_read_at": 32}
    assert set(mpiio["file"]) == {"/tmp/study/c"} and set(mpiio["size"]) == {4096}
    for kind in ("write", "read"):
        offsets = mpiio.loc[mpiio["kind"] == kind, "offset"].tolist()
        assert sorted(offsets) == list(range(0, 131072, 4096)) and offsets != sorted(offsets)


def test_sizes_asked_for_are_said_to_be() -> None:
    frame = IOFrame.from_recorder(DATA / "merged-posix")
    assert any("asked for" in sentence for sentence in frame.warnings)
    assert frame.metadata["ranks"] == 2 and frame.metadata["recorder_version"] == "2.5.0"


def test_rules_repeat_rules() -> None:
    """-1 -> 7 -2^2 8; -2 -> 1^3 -3; -3 -> 2: spelled 7 1112 1112 8."""
    rules = {-1: [(7, 1), (-2, 2), (8, 1)], -2: [(1, 3), (-3, 1)], -3: [(2, 1)]}
    calls, stopped = expand(rules, 100)
    assert calls.tolist() == [7, 1, 1, 1, 2, 1, 1, 1, 2, 8] and stopped == ""
    calls, stopped = expand(rules, 5)
    assert calls.tolist() == [7, 1, 1, 1, 2] and "more calls" in stopped


@pytest.mark.parametrize(
    "rules",
    [
        {-1: [(-1, 1)]},
        {-1: [(-2, 5)], -2: [(-1, 5)]},
        {-1: [(-9, 1)]},
        {-1: [(3, -4)]},
        {-1: [(3, 1 << 31)]},
        {-1: [(-2, 1 << 31)], -2: []},
        {},
    ],
)
def test_a_grammar_that_lies_does_not_run_away(rules: dict[int, list[tuple[int, int]]]) -> None:
    calls, _ = expand(rules, 1000)
    assert len(calls) <= 1000


def repacked(source: Path, target: Path) -> Path:
    """Write a merged trace as the one file ``recorder.dat`` of later versions: same parts, in sections."""
    header = open_recorder(source).header
    flags = struct.pack("<8B", *([1] * 8))
    metadata = struct.pack("<5i", 3, 1, 0, header.ranks, len(header.functions)) + flags + bytes(4)
    metadata += struct.pack("<ddi4B", header.start, header.resolution, 0, header.deflated_times, 1, 0, 0)
    metadata += b"".join(name.encode().ljust(64, b"\0") for name in header.functions)
    parts = [(0, metadata)] + [(kind, (source / name).read_bytes()) for name, kind in SECTIONS.items()]
    at = 16 + 24 * len(parts)
    table = body = b""
    for kind, part in parts:
        table += struct.pack("<IiQQ", kind, -1, at + len(body), len(part))
        body += part
    target.mkdir()
    (target / "recorder.dat").write_bytes(b"RECORDER" + struct.pack("<II", 1, len(parts)) + table + body)
    return target


@pytest.mark.parametrize("name", ["merged-posix", "merged-mpiio"])
def test_one_file_with_sections_reads_the_same(name: str, tmp_path: Path) -> None:
    before = IOFrame.from_recorder(DATA / name).events()
    after = IOFrame.from_recorder(repacked(DATA / name, tmp_path / "dat")).events()
    assert after.equals(before)


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / name, tmp_path / name))


def test_a_missing_rank_is_said(tmp_path: Path) -> None:
    folder = copied("ranks-posix", tmp_path)
    for part in folder.glob("1.*"):
        part.unlink()
    frame = IOFrame.from_recorder(folder)
    assert set(frame.events()["rank"]) == {0}
    assert "1 of 2 ranks lost: they have no files" in frame.warnings


def test_cut_timestamps_lose_the_end_only(tmp_path: Path) -> None:
    folder = copied("ranks-posix", tmp_path)
    stamps = folder / "0.ts"
    stamps.write_bytes(stamps.read_bytes()[: 8 * 40 + 3])
    frame = IOFrame.from_recorder(folder)
    whole = IOFrame.from_recorder(DATA / "ranks-posix").events()
    assert (frame.events()["rank"] == 0).sum() == 40
    assert (frame.events()["rank"] == 1).sum() == (whole["rank"] == 1).sum()
    assert any("rank 0" in sentence and "more calls" in sentence for sentence in frame.warnings)


@pytest.mark.parametrize(
    ("version", "told"),
    [("2.2.1", "before 2.3 are not read"), ("4.0.0", "2.3 to 3.x"), ("", "VERSION"), ("x", "VERSION")],
)
def test_other_versions_are_refused(version: str, told: str, tmp_path: Path) -> None:
    folder = copied("ranks-posix", tmp_path)
    (folder / "VERSION").write_text(version)
    with pytest.raises(UserError, match=told):
        IOFrame.from_recorder(folder)


def test_two_traces_are_two_programs(tmp_path: Path) -> None:
    copied("ranks-posix", tmp_path)
    copied("merged-posix", tmp_path)
    with pytest.raises(UserError, match="name one"):
        IOFrame.from_recorder(tmp_path)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_gives_warnings_or_one_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(TRACES))
    folder = tmp_path_factory.mktemp("damaged") / "t"
    shutil.copytree(DATA / name, folder)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(folder.iterdir())))
        raw = bytearray(path.read_bytes())
        change = data.draw(st.sampled_from(["cut", "flip", "number", "insert", "empty"]))
        at = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        if change == "cut":
            del raw[at:]
        elif change == "flip" and raw:
            raw[at] ^= data.draw(st.integers(1, 255))
        elif change == "number":
            number = data.draw(st.sampled_from([0, -1, 1, 1 << 30, -(1 << 31), (1 << 31) - 1]))
            raw[at // 4 * 4 : at // 4 * 4 + 4] = struct.pack("<i", number)
        elif change == "insert":
            raw[at:at] = data.draw(st.binary(max_size=64))
        else:
            raw.clear()
        path.write_bytes(raw)
    reader = tiercel.traces.readers.recorder.Recorder()
    reader.recognises(folder)
    kept = Kept()
    try:
        reader.read([folder], kept)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert kept.rows >= 0
    shutil.rmtree(folder)


def test_a_merged_trace_without_its_list_of_calls_is_refused_by_name(tmp_path: Path) -> None:
    folder = copied("merged-posix", tmp_path)
    for name in ("recorder.cst", "0.cst"):
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(UserError, match="list of calls"):
        IOFrame.from_recorder(folder)


def test_a_call_that_ends_before_it_starts_has_no_duration(tmp_path: Path) -> None:
    """The second call of rank 0 starts 100 steps after the first and ends 40 steps before that."""
    folder = copied("ranks-2.3", tmp_path)
    stamps = bytearray((folder / "0.ts").read_bytes())
    stamps[8:16] = struct.pack("<II", 100, 60)
    (folder / "0.ts").write_bytes(stamps)
    frame = IOFrame.from_recorder(folder)
    assert any("1 impossible duration" in warning for warning in frame.warnings)
    assert frame.rows("SELECT count(*) FILTER (duration IS NULL) FROM events") == [(1,)]
