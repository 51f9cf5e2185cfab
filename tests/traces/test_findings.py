"""Each rule on traces made by hand, on both sides of its threshold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.tally import tally
from tiercel.traces.findings import (
    Finding,
    Storage,
    explain,
    findings_table,
    mute,
    no_findings,
    rules,
    tellable,
)
from tiercel.traces.findings.base import Case
from tiercel.traces.store import ParquetWriter

KiB, MiB = 1 << 10, 1 << 20
Event = dict[str, Any]
Make = Callable[[list[Event]], IOFrame]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(events: list[Event]) -> IOFrame:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        writer = ParquetWriter(folder / "events.parquet")
        if events:
            names = sorted({name for event in events for name in event})
            writer.write({name: [event.get(name) for event in events] for name in names})
        writer.close()
        return IOFrame.from_parquet(folder)

    return made


def call(kind: str, time: float, duration: float, **more: Any) -> Event:
    function = {"read": "pread64", "write": "pwrite64", "sync": "fsync", "metadata": "open64"}[kind]
    start = {"function": function, "api": "posix", "kind": kind, "rank": 0, "process": 1, "file": "/d/f"}
    return start | {"time": time, "duration": duration} | more


def found(frame: IOFrame, rule: str, storage: Storage | None = None) -> list[str]:
    return [finding.severity for finding in explain(frame, storage, only=[rule])]


def test_an_empty_trace_has_no_findings(make: Make) -> None:
    assert explain(make([])) == []


def test_unknown_rules_are_named(make: Make) -> None:
    with pytest.raises(UserError, match="small-transfers"):
        explain(make([call("read", 0, 1, size=1)]), only=["small-transfer"])


# -- small transfers -----------------------------------------------------------------------------------------


def sizes(small: int, large: int, small_time: float, large_time: float) -> list[Event]:
    """Return `small` writes of 4 KiB and `large` ones of 4 MiB, one each 10 ms; times in sum."""
    little = [call("write", i / 100, small_time / small, size=4 * KiB, offset=0) for i in range(small)]
    return little + [call("write", i / 100, large_time / large, size=4 * MiB, offset=0) for i in range(large)]


@pytest.mark.parametrize(
    ("small", "large", "small_time", "large_time", "said"),
    [
        (100, 100, 1.0, 0.5, ["problem"]),  # 2/3 of the time
        (100, 100, 0.31, 0.69, ["problem"]),  # 31 % of the time
        (100, 100, 0.29, 0.71, []),  # 29 %
        (100, 100, 0.04, 0.02, ["hint"]),  # 2/3 of the time in writes, but 4 % of a second
        (100, 1, 0.0099, 0.01, []),  # less than 10 ms
        (99, 1, 1.0, 0.01, []),  # too few to matter
        (100, 1000, 5.0, 1.0, []),  # one in eleven is below a tenth of the calls
        (100, 900, 5.0, 1.0, ["problem"]),  # exactly a tenth
        (100_000, 1, 0.1, 0.01, []),  # 4 GiB/s: large ones were not quicker
    ],
)
def test_small_transfers(
    make: Make, small: int, large: int, small_time: float, large_time: float, said: list[str]
) -> None:
    assert found(make(sizes(small, large, small_time, large_time)), "small-transfers") == said


def test_small_transfers_say_numbers_and_show_files(make: Make) -> None:
    (finding,) = explain(make(sizes(200, 50, 2.0, 1.0)), only=["small-transfers"])
    # 200 x 4 KiB + 50 x 4 MiB over 250 calls; 2 s in 200 calls are 10 ms each
    assert finding.sentence.startswith("200 of 250 writes move less than 1 MiB")
    assert "67 %" in finding.sentence and "10 ms each" in finding.sentence
    assert finding.evidence.loc[0, "small_writes"] == 200 and finding.evidence.loc[0, "file"] == "/d/f"


def test_small_files_are_not_helped_by_buffers(make: Make) -> None:
    """200 files of 4 KiB, read whole: nothing to gather in a file. One file in 200 pieces: there is."""
    files = [call("read", i / 100, 0.01, size=4 * KiB, offset=0, file=f"/d/{i}") for i in range(200)]
    (finding,) = explain(make(files), only=["small-transfers"])
    assert finding.advice.startswith("Most of these are whole files")
    pieces = [each | {"file": "/d/f", "offset": i * 4 * KiB} for i, each in enumerate(files)]
    (finding,) = explain(make(pieces), only=["small-transfers"])
    assert finding.advice.startswith("Gather them")


def test_a_transfer_of_one_mib_is_not_small(make: Make) -> None:
    events = [call("read", i, 0.1, size=MiB, offset=i * MiB) for i in range(200)]
    assert found(make(events), "small-transfers") == []
    events = [call("read", i, 0.1, size=MiB // 2 - 1, offset=i * MiB) for i in range(200)]
    assert found(make(events), "small-transfers") == ["problem"]


# -- metadata and fsync --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opens", "time", "said"),
    [(10, 0.6, ["hint"]), (10, 0.378, ["note"]), (10, 0.29, []), (9, 0.9, [])],
)
def test_metadata_bound(make: Make, opens: int, time: float, said: list[str]) -> None:
    """`time` of one second of I/O goes to opens; 37.8 % is what paper 003 found. The job takes 20.4 s
    or more: 2.9 % of it, 1.8 %."""
    events = [call("metadata", i, time / opens) for i in range(opens)]
    assert found(make([*events, call("write", 20, 1 - time, size=MiB)]), "metadata-bound") == said


@pytest.mark.parametrize(
    ("syncs", "writes", "sync_time", "said"),
    [
        (10, 10, 0.6, ["problem"]),  # 6 % of 9.5 s
        (10, 100, 0.6, ["note"]),  # 0.6 % of 99 s
        (10, 10, 0.21, ["hint"]),
        (10, 100, 0.19, []),  # cheap syncs
        (10, 101, 0.9, []),  # fewer than one in ten
        (9, 9, 0.9, []),  # few
    ],
)
def test_fsync_storm(make: Make, syncs: int, writes: int, sync_time: float, said: list[str]) -> None:
    events = [call("sync", i, sync_time / syncs) for i in range(syncs)]
    events += [call("write", i, (1 - sync_time) / writes, size=256 * KiB, offset=0) for i in range(writes)]
    assert found(make(events), "fsync-storm") == said


# -- random access -------------------------------------------------------------------------------------------


def test_a_sync_after_a_checkpoint_is_no_storm(make: Make) -> None:
    """One after each 4 MiB is; one after each 32 MiB waits for bytes that have to reach the medium anyway."""

    def syncs(size: int) -> list[Event]:
        pairs = [(call("write", i, 0.1, size=size), call("sync", i + 0.2, 0.5)) for i in range(20)]
        return [event for pair in pairs for event in pair]

    assert found(make(syncs(4 * MiB)), "fsync-storm") == ["problem"]
    assert found(make(syncs(32 * MiB)), "fsync-storm") == []


def jumps(random: int, forward: int, size: int, ranks: int) -> list[Event]:
    """Return reads of `ranks` ranks in turn: each `forward` ones one after the other, then back and back."""
    events = []
    for rank in range(ranks):
        places = [*range(forward), *range(forward + random, forward, -1)]
        events += [
            call(
                "read", i / 10 + rank / 100, 0.01, rank=rank, process=rank, size=size, offset=place * 2 * MiB
            )
            for i, place in enumerate(places)
        ]
    return events


@pytest.mark.parametrize(
    ("random", "forward", "size", "ranks", "said"),
    [
        (101, 100, 4 * KiB, 1, ["hint"]),  # the first of the second run goes forward: 100 jumps
        (100, 100, 4 * KiB, 1, []),  # 99 jumps
        (51, 40, 4 * KiB, 2, ["problem"]),  # 2 x 50, 1 s of 2 x 9.1 s
        (101, 500, 4 * KiB, 1, []),  # 100 of 601: less than a fifth
        (101, 100, MiB, 1, []),  # whole stripes
    ],
)
def test_random_access(make: Make, random: int, forward: int, size: int, ranks: int, said: list[str]) -> None:
    assert found(make(jumps(random, forward, size, ranks)), "random-access") == said


def test_who_opens_a_file_again_begins_anew(make: Make) -> None:
    """300 times: open, read three blocks in a row. Each first read lies before the last one's end."""
    events = []
    for i in range(300):
        events.append(call("metadata", i, 0.001))
        events += [call("read", i + 0.2 * n, 0.1, size=4 * KiB, offset=n * MiB) for n in (1, 2, 3)]
    assert found(make(events), "random-access") == []
    assert found(make([e for e in events if e["kind"] == "read"]), "random-access") == ["problem"]


def test_random_access_depends_on_the_stripe(make: Make) -> None:
    frame = make(jumps(101, 100, 4 * KiB, 1))
    assert found(frame, "random-access", Storage(stripe=4 * KiB)) == []


# -- who is slow ---------------------------------------------------------------------------------------------


def machine(slow_host: str = "", factor: float = 1.0, slow_rank: int = -1, more: int = 1) -> list[Event]:
    """Return 4 hosts with 4 ranks: each opens (10 ms) and writes 4 MiB (90 ms) to a file of its own.

    One host, or one rank, is slower by `factor`; rank 5 writes `more` times as often.
    """
    events = []
    for rank in range(16):
        host = f"n{rank // 4}"
        slower = factor if host == slow_host or rank == slow_rank else 1.0
        common = {"host": host, "rank": rank, "process": rank, "file": f"/d/{rank}"}
        events.append(call("metadata", 0, 0.010 * slower, **common))
        for i in range(more if rank == 5 else 1):
            events.append(call("write", 1 + i, 0.090 * slower, size=4 * MiB, offset=i * 4 * MiB, **common))
    return events


def test_the_slow_host_is_found_by_itself(make: Make) -> None:
    (finding,) = explain(make(machine("n2", 1.6)), only=["slow-part"])
    assert finding.severity == "problem" and finding.sentence.startswith("host n2 takes 1.6 times as long")
    assert "reads and writes" in finding.sentence
    assert finding.evidence.set_index("host").loc["n2", "verdict"] == "slow"


def test_a_host_little_slower_is_not(make: Make) -> None:
    assert found(make(machine("n2", 1.4)), "slow-part") == []


def test_the_one_fast_host_is_a_hint(make: Make) -> None:
    """Paper 003: one node is much quicker than all others, in metadata; here in everything."""
    (finding,) = explain(make(machine("n2", 0.5)), only=["slow-part"])
    assert finding.severity == "hint"
    assert finding.sentence.startswith(
        "host n2 needs 0.5 of the time that the other 3 need for the same work"
    )
    assert found(make(machine("n2", 0.7)), "slow-part") == []


def test_the_slow_rank_is_found_where_no_host_is(make: Make) -> None:
    (finding,) = explain(make(machine(slow_rank=6, factor=2.0)), only=["slow-part"])
    assert finding.sentence.startswith("rank 6 takes 2 times as long")


def test_more_work_is_not_slowness_but_imbalance(make: Make) -> None:
    frame = make(machine(more=4))
    assert not any("rank 5" in f.sentence for f in explain(frame, only=["slow-part"]))
    (finding,) = explain(frame, only=["imbalance"])
    # 4 against 1 for the other 15: the mean is 19/16 of 4 MiB, and 117 ms of I/O; (370 - 117) ms x 16
    assert (
        finding.severity == "problem"
        and "Rank 5 moves 16 MiB in 5 calls, the mean of 16 ranks 4.75 MiB in 2" in finding.sentence
        and finding.seconds == pytest.approx((0.370 - (15 * 0.1 + 0.370) / 16) * 16)
    )


def test_a_little_more_work_is_balanced(make: Make) -> None:
    """Two ranks, 13 and 8 writes: 1.24 times the mean; 14 and 7: 1.33 times."""
    for counts, said in (((13, 8), []), ((14, 7), ["problem"])):
        events = [
            call("write", i / 50, 0.02, rank=rank, process=rank, size=MiB, offset=i * MiB)
            for rank, count in enumerate(counts)
            for i in range(count)
        ]
        assert found(make(events), "imbalance") == said


def test_where_many_are_slow_none_is(make: Make) -> None:
    """Two of four ranks take three times as long: times vary (dirty pages being written), no rank is sick."""
    events = [
        by_rank("write", rank, i, 0.3 if rank < slow else 0.1, size=MiB, file=f"/d/{rank}", offset=i * MiB)
        for slow, i in ((2, i) for i in range(8)) for rank in range(4)
    ]  # fmt: skip
    assert found(make(events), "slow-part") == []
    one = [each | {"duration": 0.3 if each["rank"] == 0 else 0.1} for each in events]
    assert found(make(one), "slow-part") == ["problem"]


def test_the_slow_file_points_at_a_server(make: Make) -> None:
    """One rank writes eight like files; one of them takes twice, or 1.4 times, as long."""
    for factor, said in ((2.0, ["note"]), (1.4, [])):  # 0.1 of 7.1 s lost
        events = [
            call("write", i, 0.1 * (factor if i == 3 else 1), size=MiB, offset=0, file=f"/d/{i}")
            for i in range(8)
        ]
        frame = make(events)
        assert found(frame, "slow-part") == said
        if said:
            (finding,) = explain(frame, only=["slow-part"])
            assert "/d/3" in finding.sentence and "5 MiB/s" in finding.sentence


# -- contention ----------------------------------------------------------------------------------------------


def together(meet: int, apart: int, size: int = 64 * KiB, slower: float = 1.0) -> list[Event]:
    """Return two ranks' writes to one file: `meet` pairs in one stripe at once, `apart` pairs in others."""
    events = []
    for i in range(meet):
        for rank in (0, 1):
            took = 0.5 * slower if rank else 0.5
            events.append(
                call(
                    "write",
                    i * 10 + rank * 0.1,
                    took,
                    rank=rank,
                    process=rank,
                    size=size,
                    offset=i * MiB + rank * size,
                )
            )
    for i in range(apart):
        for rank in (0, 1):
            events.append(
                call(
                    "write",
                    1000 + i,
                    0.5,
                    rank=rank,
                    process=rank,
                    size=size,
                    offset=(1000 + 2 * i + rank) * MiB,
                )
            )
    return events


@pytest.mark.parametrize(
    ("meet", "apart", "slower", "said"),
    [
        (10, 0, 1.0, ["problem"]),  # 10 s of 2 x 91 s, and none to compare with
        (10, 10, 2.0, ["note"]),  # 0.75 s each against 0.5 s: 5 s of 2 x 1,009.5 s
        (10, 10, 1.0, []),  # those that meet take as long as the others
        (9, 0, 2.0, []),  # few
        (10, 41, 2.0, []),  # 10 of 102 writes
        (10, 40, 2.0, ["note"]),  # 10 of 100
    ],
)
def test_contention(make: Make, meet: int, apart: int, slower: float, said: list[str]) -> None:
    assert found(make(together(meet, apart, slower=slower)), "shared-file-contention") == said


def test_contention_depends_on_the_stripe(make: Make) -> None:
    frame = make(together(10, 0, size=64 * KiB))
    assert found(frame, "shared-file-contention", Storage(stripe=64 * KiB)) == []


# -- cache ---------------------------------------------------------------------------------------------------


def reads(fast: int, slow: int, size: int = 64 * KiB) -> list[Event]:
    """Return reads that take 5 µs and reads that take 5 ms."""
    return [
        call("read", i * 0.01, 5e-6 if i < fast else 5e-3, size=size, offset=i * size)
        for i in range(fast + slow)
    ]


@pytest.mark.parametrize(
    ("fast", "slow", "said"), [(50, 50, ["hint"]), (49, 51, []), (15, 0, []), (16, 0, ["note"])]
)
def test_reads_from_memory(make: Make, fast: int, slow: int, said: list[str]) -> None:
    """Half of the bytes; at least 1 MiB (16 x 64 KiB); a hint where reads take 2 % of the run or more."""
    assert found(make(reads(fast, slow)), "cached-reads") == said


def test_what_was_just_written_is_read_from_memory(make: Make) -> None:
    """16 reads of 80 µs in all matter where the second of writing before them was of the same file."""
    written = [call("write", i, 0.1, size=MiB, offset=i * MiB) for i in range(10)]
    read = [each | {"time": 10 + each["time"]} for each in reads(16, 0)]
    assert found(make(written + read), "cached-reads") == ["hint"]
    assert found(make([each | {"file": "/d/g"} for each in written] + read), "cached-reads") == ["note"]


def test_reads_faster_than_the_storage_are_a_problem(make: Make) -> None:
    """100 x 64 KiB from 0 to 0.99 s + 5 ms: 6.28 MiB/s."""
    frame = make(reads(0, 100))
    assert found(frame, "cached-reads", Storage(read_bandwidth=6.2 * MiB)) == ["problem"]
    assert found(frame, "cached-reads", Storage(read_bandwidth=6.4 * MiB)) == []


def test_the_gravest_come_first_and_make_a_table(make: Make) -> None:
    frame = make(sizes(200, 50, 1.0, 2.0) + [call("metadata", i, 0.5) for i in range(12)])
    table = findings_table(explain(frame))
    assert table["severity"].tolist() == sorted(table["severity"], key=["problem", "hint", "note"].index)
    assert {"metadata-bound", "small-transfers"} <= set(table["rule"])
    assert set(table["rule"]) <= set(rules)


# -- the rest of the rules, from events ----------------------------------------------------------------------


def by_rank(kind: str, rank: int, time: float, duration: float, **more: Any) -> Event:
    return call(kind, time, duration, rank=rank, process=rank, **more)


def test_a_file_opened_in_a_loop(make: Make) -> None:
    """100 opens of one file, 10 ms each in 10 s; failed ones are none, nor 100 files once."""
    loop = [call("metadata", i / 10, 0.01) for i in range(100)]
    assert found(make(loop), "open-storm") == ["problem"]
    assert found(make([each | {"failed": True} for each in loop]), "open-storm") == []
    assert found(make([each | {"file": f"/d/{i}"} for i, each in enumerate(loop)]), "open-storm") == []


def test_bulk_data_through_streams(make: Make) -> None:
    """1,000 fwrites of 4 KiB take 1 s; in pieces of 1 MiB the stream passes them on."""
    stream = {"api": "stdio", "function": "fwrite"}
    events = [call("write", i / 100, 0.001, size=4 * KiB, **stream) for i in range(1000)]
    (finding,) = explain(make(events), only=["stdio"])
    # Beyond what 4,096,000 B take at 4 GiB/s
    assert finding.seconds == pytest.approx(1.0 - 4_096_000 / (4 << 30))
    assert found(make(events), "small-transfers") == []
    assert found(make([each | {"size": MiB} for each in events]), "stdio") == []


def test_alignment_matters_where_ranks_share_or_jump(make: Make) -> None:
    """Blocks of 5,000 B: one after the other in a file of one's own the kernel gathers them."""

    def blocks(ranks: int, file: str) -> list[Event]:
        return [
            by_rank("write", r, i / 10, 0.01, size=5000, offset=(r + ranks * i) * 5000, file=file.format(r))
            for i in range(110) for r in range(ranks)
        ]  # fmt: skip

    assert found(make(blocks(2, "/d/shared")), "misaligned") == ["problem"]
    assert found(make(blocks(1, "/d/{}")), "misaligned") == []
    large = [each | {"size": MiB, "offset": 100 + i * MiB} for i, each in enumerate(blocks(1, "/d/{}"))]
    assert found(make(large), "misaligned") == ["problem"]  # a header before large blocks: none is gathered
    even = [each | {"offset": each["offset"] // 5000 * 8192, "size": 8192} for each in blocks(2, "/d/shared")]
    assert found(make(even), "misaligned") == []
    tiny = [each | {"size": 100} for each in blocks(2, "/d/shared")]  # small is what is wrong with these
    assert found(make(tiny), "misaligned") == []


def test_what_is_read_more_often_than_once(make: Make) -> None:
    """4 MiB read three times over by one rank: 8 of 12 s are needless; half of it again: not worth a word."""
    whole = [call("read", i, 1.0, size=MiB, offset=i % 4 * MiB) for i in range(12)]
    (finding,) = explain(make(whole), only=["read-again"])
    assert finding.seconds == pytest.approx(8.0) and "(3 times /d/f)" in finding.sentence
    assert found(make(whole[:5]), "read-again") == []


def test_what_another_rank_has_just_written(make: Make) -> None:
    """Rank 0 writes 4 MiB, rank 1 reads them; what it has written itself is another matter."""
    written = [by_rank("write", 0, i, 1.0, size=MiB, offset=i * MiB) for i in range(4)]
    read = [by_rank("read", 1, 10 + i, 1.0, size=MiB, offset=i * MiB) for i in range(4)]
    (finding,) = explain(make(written + read), only=["read-after-write"])
    assert finding.seconds == pytest.approx(4.0) and finding.sentence.startswith(
        "4 MiB (100 % of what is read)"
    )
    own = [each | {"rank": 1, "process": 1} for each in written]
    assert (
        found(make([*own, *read, by_rank("write", 0, 0, 1.0, size=MiB, file="/d/g")]), "read-after-write")
        == []
    )


def test_one_rank_writes_for_all(make: Make) -> None:
    """Rank 0 writes 9 of 10 MiB in 9 s, while three others wait: 36 of 4 x 10 s; and once is enough said."""
    events = [by_rank("write", 0, i, 1.0, size=MiB, offset=i * MiB) for i in range(9)]
    events += [by_rank("write", r, 9, 1.0 / 3, size=MiB // 3, file=f"/d/{r}", offset=0) for r in (1, 2, 3)]
    (finding,) = explain(make(events), only=["single-writer", "imbalance"])
    assert finding.rule == "single-writer" and finding.seconds == pytest.approx(36.0)
    fair = [each | {"rank": i % 4, "process": i % 4} for i, each in enumerate(events)]
    assert found(make(fair), "single-writer") == []


def test_a_file_that_is_handed_on_is_not_shared(make: Make) -> None:
    """One rank writes it, another reads it later; read by two by turns it is shared."""
    piece = 64 * KiB
    events = [by_rank("write", 0, i, 1.0, size=piece, offset=i * piece) for i in range(40)]
    events += [by_rank("read", 1, 50 + i, 1.0, size=piece, offset=i * piece) for i in range(40)]
    assert found(make(events), "no-mpiio") == []
    by_turns = [each | {"rank": 1 + i % 2, "process": 1 + i % 2} for i, each in enumerate(events[40:])]
    assert found(make(events[:40] + by_turns), "no-mpiio") == ["problem"]


def test_what_ranks_do_not_take_turns_in_is_nothing_to_gather(make: Make) -> None:
    """Two ranks write one file: a half each in a row, whole stripes by turns, pieces of 64 KiB by turns."""
    piece = 64 * KiB
    halves = [by_rank("write", i % 2, i, 1.0, size=piece, offset=(i % 2 * 20 + i // 2) * piece)
              for i in range(40)]  # fmt: skip
    assert found(make(halves), "no-mpiio") == []
    stripes = [by_rank("write", i % 2, i, 1.0, size=MiB, offset=i * MiB) for i in range(40)]
    assert found(make(stripes), "no-mpiio") == []
    pieces = [by_rank("write", i % 2, i, 1.0, size=piece, offset=i * piece) for i in range(40)]
    assert found(make(pieces), "no-mpiio") == ["problem"]
    # A half each, with gaps that nobody fills: forward, not one behind the other, and still nobody's turn.
    gaps = [each | {"offset": each["offset"] * 2} for each in halves]
    assert found(make(gaps), "no-mpiio") == []


def test_shared_without_mpiio_and_with_independent_calls(make: Make) -> None:
    """Two ranks, a shared file, 64 KiB each time: POSIX alone; independent; collective; in whole stripes."""
    posix = [by_rank("write", i % 2, i, 0.5, size=64 * KiB, offset=i * 64 * KiB) for i in range(40)]
    assert found(make(posix), "no-mpiio") == ["problem"]

    def through(function: str, size: int = 64 * KiB) -> IOFrame:
        return make(posix + [each | {"api": "mpiio", "function": function, "size": size} for each in posix])

    assert found(through("MPI_File_write_at"), "no-mpiio") == []
    assert found(through("MPI_File_write_at"), "independent-io") == ["problem"]
    assert found(through("MPI_File_write_at_all"), "independent-io") == []
    assert found(through("MPI_File_write_at", MiB), "independent-io") == []


def test_hidden_by_computation_costs_nothing(make: Make) -> None:
    """100 small reads of 100 ms while the rank computes: all of it hidden, a tenth of it, none."""
    reads = [call("read", i, 0.1, size=4 * KiB, offset=i * 4 * KiB) for i in range(100)]

    def computing(seconds: float) -> Event:
        more = {"function": "compute", "api": "app", "kind": "compute", "file": None}
        return call("read", 0, seconds) | more

    assert found(make([*reads, computing(100.0)]), "small-transfers") == ["note"]
    (finding,) = explain(make([*reads, computing(10.0)]), only=["small-transfers"])
    assert finding.severity == "problem" and "that computation does not hide" in finding.sentence
    assert finding.share == pytest.approx(0.9 * (10 - 409_600 / (4 << 30)) / 99.1, rel=1e-6)


def test_processes_of_a_script_have_their_own_lives(tmp_path: Path) -> None:
    """Two of 40 quick processes matter: 20 syncs of 50 ms in a life of 1.2 s, beside others of 1 ms."""
    opened = 'openat(AT_FDCWD, "/d/x", O_RDONLY) = 3</d/x> <0.001000>'
    lines = [f"{100 + n} {1_700_000_000 + n / 40:.6f} {opened}" for n in range(40)]
    for n in range(20):
        lines.append(f'99 {1_700_000_000 + n * 0.06:.6f} write(3</d/f>, "x", 4096) = 4096 <0.000200>')
        lines.append(f"99 {1_700_000_000 + n * 0.06 + 0.001:.6f} fsync(3</d/f>) = 0 <0.050000>")
    (tmp_path / "x.strace").write_text("\n".join(lines) + "\n")
    (finding,) = explain(open_trace(tmp_path / "x.strace"), only=["fsync-storm"])
    # About 1 s of syncs in 1.19 s + 40 x 1 ms of lives; of 41 x 1.19 s it would be 2 %.
    assert finding.share is not None and finding.share > 0.7


def test_writes_of_a_file_opened_with_o_sync_are_syncs(tmp_path: Path) -> None:
    """20 writes of 4 KiB, 50 ms each, with no fsync: O_DSYNC makes each of them one."""

    def told(flags: str) -> list[Finding]:
        lines = [f'9 1700000000.000000 openat(AT_FDCWD, "/d/f", {flags}, 0644) = 3</d/f> <0.001000>']
        lines += [
            f'9 {1_700_000_000.01 + n * 0.06:.6f} pwrite64(3</d/f>, "x", 4096, {n * 4096}) = 4096 <0.050000>'
            for n in range(20)
        ]
        path = tmp_path / f"{len(flags)}.strace"
        path.write_text("\n".join(lines) + "\n")
        return explain(open_trace(path), only=["fsync-storm"])

    (finding,) = told("O_WRONLY|O_CREAT|O_DSYNC")
    assert finding.severity == "problem" and "20 syncs for 20 writes (20 are" in finding.sentence
    # 1 s of writes in a life of 1.2 s, less what strace adds to a call
    assert finding.seconds == pytest.approx(1.0, abs=0.01)
    assert told("O_WRONLY|O_CREAT") == []


def test_an_open_without_o_sync_ends_it(tmp_path: Path) -> None:
    """20 writes after an open with O_SYNC, 5,000 quick ones after an open without: 20 syncs, not 5,020."""
    lines, at = [], 1_700_000_000.0

    def note(call: str, took: float) -> None:
        nonlocal at
        lines.append(f"9 {at:.6f} {call} <{took:.6f}>")
        at += took + 0.0001

    for flags, count, took in (("O_WRONLY|O_SYNC", 20, 0.05), ("O_WRONLY", 5000, 0.00001)):
        note(f'openat(AT_FDCWD, "/d/f", {flags}) = 3</d/f>', 0.001)
        for n in range(count):
            note(f'pwrite64(3</d/f>, "x", 4096, {n * 4096}) = 4096', took)
    (tmp_path / "x.strace").write_text("\n".join(lines) + "\n")
    (row,) = tally(open_trace(tmp_path / "x.strace")).to_dict("records")
    assert (row["writes"], row["synced_writes"]) == (5020, 20)
    assert row["synced_write_time"] == pytest.approx(20 * 0.05, rel=1e-3)


def test_one_process_shares_no_file(make: Make) -> None:
    """Darshan's rank -1 is all ranks of the job, and one of one."""
    table = pd.DataFrame({"api": ["posix"], "file": ["/f"], "rank": [-1]})
    frame = make([call("read", 0, 1.0, size=KiB, offset=0)])
    alone, several = (Case(frame, "posix", Storage(), table, table, ranks) for ranks in (1, 2))
    assert alone.shared.empty and len(several.shared) == 1


def test_rules_that_a_tracer_leaves_mute_are_named(tmp_path: Path, make: Make) -> None:
    """strace tells processes: what ranks do together is not judged, and no jump is "of one rank each"."""
    lines = ['9 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDONLY) = 3</d/f> <0.001000>']
    for n in range(400):
        place = (n * 7919 % 400) * 65536
        at = 1_700_000_000.01 + n * 0.006
        lines.append(f'9 {at:.6f} pread64(3</d/f>, "x", 4096, {place}) = 4096 <0.005000>')
    (tmp_path / "x.strace").write_text("\n".join(lines) + "\n")
    frame = open_trace(tmp_path / "x.strace")
    silent = mute(frame)
    ranks = {name for name, reason in silent.items() if reason == "the tracer records processes, not ranks"}
    assert {"imbalance", "single-writer", "no-mpiio", "shared-file-contention", "read-after-write"} <= ranks
    assert tellable(frame) == set(rules.names()) - silent.keys() and "random-access" in tellable(frame)
    (finding,) = explain(frame, only=["random-access"])
    assert "rank" not in finding.sentence
    assert "imbalance" not in mute(make([by_rank("read", n, n, 1.0, size=1) for n in (0, 1)]))
    done = CliRunner().invoke(app, ["trace", "explain", str(tmp_path / "x.strace"), "--json"])
    assert json.loads(done.stdout)["not_judged"] == silent


def test_no_findings_claims_no_more_than_was_checked(make: Make) -> None:
    """One read of 1 KiB costs nothing. This trace has no stripes and no memory maps. Without sizes only the
    three rules on metadata calls and program files are left. Without durations none is (no memory maps)."""
    every = len(rules.names())
    whole = make([call("read", 0, 0.001, size=KiB, offset=0)])
    assert not explain(whole) and sorted(mute(whole)) == ["mapped", "narrow-stripes"]
    assert no_findings(whole) == f"no findings: {every - 2} of {every} rules were checked, 2 could not be"
    unsized = make([call("read", 0, 0.001, offset=0)])
    said = no_findings(unsized)
    assert not explain(unsized) and f"3 of {every} rules were checked" in said
    assert "warnings about this trace" in said
    untimed = make([call("read", 0, 0, size=KiB, offset=0) | {"duration": None}])
    assert no_findings(untimed) == f"none of the {every} rules could be checked"
    assert no_findings(whole.where("FALSE")) == "nothing to check: the trace has no events and no counters"
