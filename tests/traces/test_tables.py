"""The tables of paper 003 and their like, counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tiercel.errors import UserError
from tiercel.traces import IOFrame

from .conftest import Event, call, hashed

Make = Callable[[list[Event]], IOFrame]


def moved(name: str, at: int, took: int, size: int, file: str, pid: int = 10, offset: int = 0) -> Event:
    return call(name, at, took, pid=pid, ret=size, count=size, offset=offset, fname=file)


@pytest.fixture
def two_ranks(frame_of: Make) -> IOFrame:
    """Rank 0: open 1 s, write 100 B in 2 s, fsync 1 s on /d/a.

    Rank 1: read 60 B in 3 s from /d/a, 40 B in 1 s from /d/b.
    """
    s = 1_000_000
    return frame_of([
        call("open", 0, s, fname="/d/a", flags=65), moved("pwrite", s, 2 * s, 100, "/d/a"),
        call("fsync", 3 * s, s, fname="/d/a"),
        moved("pread", 4 * s, 3 * s, 60, "/d/a", pid=11), moved("pread", 7 * s, s, 40, "/d/b", pid=11),
    ])  # fmt: skip


def test_io_bandwidth(two_ranks: IOFrame) -> None:
    table = two_ranks.io_bandwidth()
    assert table["io_bandwidth"].to_dict() == {(0, "/d/a"): 50.0, (1, "/d/a"): 20.0, (1, "/d/b"): 40.0}
    assert table.attrs["units"] == {"bytes": "B", "io_time": "s", "io_bandwidth": "B/s"}
    assert two_ranks.io_bandwidth(rank=[1], filter=lambda x: x["kind"] == "read").index.tolist() == [
        (1, "/d/a"),
        (1, "/d/b"),
    ]
    # The filter of paper 003, figure 2, as it stands there.
    assert two_ranks.io_bandwidth(rank=[0, 1], filter=lambda x: x["I/O_type"] == "write").index.tolist() == [
        (0, "/d/a")
    ]


def test_units_of_bandwidth(two_ranks: IOFrame) -> None:
    table = two_ranks.io_bandwidth(unit="KiB/s")
    assert table.loc[(0, "/d/a"), "io_bandwidth"] == 50 / 1024
    assert table.attrs["units"]["io_bandwidth"] == "KiB/s"
    assert two_ranks.io_bandwidth(unit="auto").attrs["units"]["io_bandwidth"] == "B/s"
    with pytest.raises(UserError, match="MB/s"):
        two_ranks.io_bandwidth(unit="MB/s")


def test_io_time(two_ranks: IOFrame) -> None:
    # Rank 0 spends 4 s in I/O, 2 of them in metadata and sync calls (paper 003, figure 3).
    table = two_ranks.io_time(filter=lambda x: x["I/O_type"] == "meta")
    assert table.loc[("/d/a", 0)].to_dict() == {"io_time": 2.0, "calls": 2, "rank_time": 4.0, "share": 0.5}
    assert len(table) == 1
    assert two_ranks.io_time().loc[("/d/b", 1), "share"] == 0.25


def test_shared_files(two_ranks: IOFrame) -> None:
    table = two_ranks.shared_files()
    assert table["ranks"].to_dict() == {"/d/a": [0, 1], "/d/b": [1]}
    assert table["num_ranks"].tolist() == [2, 1]


def test_shared_files_without_a_file(frame_of: Make) -> None:
    frame = frame_of([call("dirfd", 0, 1), moved("pread", 1, 1, 5, "/d/a")])
    assert len(frame.shared_files()) == 2
    assert frame.shared_files(dropna=True).index.tolist() == ["/d/a"]


def test_metadata_share(two_ranks: IOFrame) -> None:
    table = two_ranks.metadata_share()
    # Job: 6 s data, 1 s metadata, 1 s sync.
    assert table.loc["all", ["data_time", "metadata_time", "sync_time"]].tolist() == [6, 1, 1]
    assert table["share"].tolist() == [0.5, 0.0, 0.25]
    assert table.loc[0, ["data_calls", "metadata_calls", "sync_calls"]].tolist() == [1, 1, 1]


def test_transfer_sizes(two_ranks: IOFrame) -> None:
    # 40 and 60 are both in [32, 64); 100 is in [64, 128).
    table = two_ranks.transfer_sizes()
    assert table.loc[("read", 32), ["calls", "bytes", "time", "bandwidth"]].tolist() == [2, 100, 4, 25]
    assert table.loc[("write", 64), "calls"] == 1
    assert len(table) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 1 << 20, (1 << 20) - 1, (1 << 50) + 1])
def test_transfer_size_bins_at_their_edges(frame_of: Make, size: int) -> None:
    low = frame_of([moved("pread", 0, 1, size, "/d/a")]).transfer_sizes().index[0][1]
    assert low <= size < 2 * low


def test_bandwidth_over_time(frame_of: Make) -> None:
    # 4 s, four bins. 30 B are read evenly in [0, 3): 10 B in each of three bins. 8 B are written in an
    # instant at 3.5 s: all in the last bin.
    s = 1_000_000
    frame = frame_of(
        [
            moved("pread", 0, 3 * s, 30, "/d/a"),
            moved("pwrite", 3 * s + s // 2, 0, 8, "/d/a"),
            call("close", 4 * s, 0),
        ]
    )
    table = frame.bandwidth_over_time(bins=4)
    assert table["read_bytes"].round(9).tolist() == [10, 10, 10, 0]
    assert table["write_bandwidth"].round(9).tolist() == [0, 0, 0, 8]
    assert table.index.tolist() == [0, 1, 2, 3]
    whole = frame.bandwidth_over_time(bins=7)
    assert whole["read_bytes"].sum() == pytest.approx(30)


def test_one_slow_host_is_found(frame_of: Make) -> None:
    # Four hosts of two ranks; on node2 each call takes 3 times as long (paper 003, figure 12).
    events = []
    for rank in range(8):
        host = f"node{rank // 2}"
        took = 3000 if host == "node2" else 1000 + rank
        events += [
            hashed(f"h{host}", host, "HH", 10 + rank),
            call("open", 10 * rank, took, pid=10 + rank, hhash=f"h{host}", fname=f"/d/{rank}"),
        ]
    frame = frame_of(events)
    hosts = frame.load_imbalance(by="host")
    assert hosts.attrs["slow"] == ["node2"]
    assert hosts.attrs["fast"] == []
    assert hosts.loc["node2", ["ranks", "calls"]].tolist() == [2, 2]
    assert frame.load_imbalance().attrs["slow"] == [4, 5]
    with pytest.raises(UserError, match="rank or host"):
        frame.load_imbalance(by="node")


def test_balanced_load(frame_of: Make) -> None:
    table = frame_of(
        [moved("pread", 0, 1000 + pid, 1, "/d/a", pid=pid) for pid in range(10, 18)]
    ).load_imbalance()
    assert table.attrs["slow"] == [] and table.attrs["fast"] == []
    assert table.attrs["imbalance"] == pytest.approx(1.0, abs=0.01)


def test_features(frame_of: Make) -> None:
    # /a/out by rank 0: allocated, three writes in one open, fsync after each; the third goes back: random.
    # /b/in by ranks 1 and 2: each opens it and reads it once from 0: for the second reader, read after read.
    frame = frame_of(
        [
            call("open", 0, 1, fname="/a/out", flags=65),
            call("posix_fallocate", 1, 1, fname="/a/out"),
            *(
                e
                for i, offset in enumerate([0, 100, 50])
                for e in (
                    moved("pwrite", 10 * i + 5, 1, 100, "/a/out", offset=offset),
                    call("fsync", 10 * i + 6, 1, fname="/a/out"),
                )
            ),
            *(
                e
                for pid in (11, 12)
                for e in (
                    call("open64", 100 + pid, 1, pid=pid, fname="/b/in", flags=0),
                    moved("pread", 120 + pid, 1, 64, "/b/in", pid=pid),
                )
            ),
        ]
    )
    table = frame.extract_features()
    out, source = table.loc["/a/out"], table.loc["/b/in"]
    assert out[
        ["interface", "fsync", "fsync_per_write", "preallocate", "unique_dir", "file_per_process"]
    ].tolist() == [
        "posix",
        True,
        True,
        True,
        True,
        True,
    ]
    assert out[["transfer_size", "writes_per_open", "reads_per_open", "accesses_per_open"]].tolist() == [
        100,
        3,
        0,
        3,
    ]
    assert out["random_share"] == pytest.approx(1 / 3)
    assert not out["random_access"]
    # Bytes [50, 150) were written before: 100 of 300.
    assert out["WAW"] == pytest.approx(1 / 3)
    assert out["WO"] == pytest.approx(2 / 3)
    assert source[["unique_dir", "file_per_process", "num_ranks", "fsync"]].tolist() == [
        False,
        False,
        2,
        False,
    ]
    assert source[["RAR", "RO", "reads_per_open"]].tolist() == [0.5, 0.5, 1]


def test_features_of_mpiio(frame_of: Make) -> None:
    # The program writes 1000 B in one collective call; the library does it in two POSIX calls. The interface
    # is MPI-IO, and the transfer size is the program's.
    frame = frame_of(
        [
            call("MPI_File_open", 0, 1, "MPIIO", fname="/d/f"),
            call("MPI_File_set_view", 1, 1, "MPIIO", fname="/d/f"),
            call("MPI_File_write_at_all", 2, 10, "MPIIO", fname="/d/f", ret=1000, offset=0),
            moved("pwrite", 3, 1, 500, "/d/f"),
            moved("pwrite", 5, 1, 500, "/d/f", offset=500),
        ]
    )
    row = frame.extract_features().loc["/d/f"]
    assert row[
        ["interface", "interface_mpiio", "interface_posix", "collective", "use_file_view"]
    ].tolist() == [
        "mpiio",
        True,
        False,
        True,
        True,
    ]
    assert row["transfer_size"] == 1000
    assert frame.overlap().loc["all", "bytes"] == 1000  # not 2000


def test_features_of_nothing(frame_of: Make) -> None:
    frame = frame_of([call("open", 0, 1, fname="/d/f")])
    assert frame.extract_features().empty
