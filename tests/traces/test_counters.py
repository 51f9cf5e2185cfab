"""Answers from counters: Darshan's logs without DXT, which is how sites keep them."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.traces import IOFrame
from tiercel.traces.analysis.counters import MODULES, counted, files_counted, only_counters
from tiercel.traces.analysis.summary import files_table, summarise
from tiercel.traces.findings import explain, rules
from tiercel.traces.findings.base import Case, Storage

LOG = Path(__file__).parents[1] / "data" / "traces" / "darshan" / "posix-counters.darshan"
needs_darshan = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None, reason="the darshan package is not installed"
)
MIB = 1 << 20


@dataclasses.dataclass
class Frame:
    """A frame of counters that the tests make."""

    tables: dict[str, pd.DataFrame]
    metadata: dict[str, Any]
    events: int = 0
    chosen: tuple[str, ...] = ()

    def counters(self, module: str) -> pd.DataFrame | None:
        return self.tables.get(module)

    def counted_modules(self) -> frozenset[str]:
        return frozenset(self.tables)

    def __len__(self) -> int:
        return self.events


def posix(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return POSIX counters; what a row does not name is 0 (of alignment 1 MiB)."""
    names = [
        "READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN", "OPENS", "STATS", "SEEKS", "FSYNCS", "FDSYNCS",
        "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "FILE_NOT_ALIGNED", "RW_SWITCHES",
        "MMAPS", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "SLOWEST_RANK", "FASTEST_RANK", "SLOWEST_RANK_BYTES",
        "FASTEST_RANK_BYTES", "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "F_SLOWEST_RANK_TIME",
        "F_FASTEST_RANK_TIME", "F_VARIANCE_RANK_BYTES", "ACCESS1_ACCESS", "ACCESS1_COUNT",
        *(f"SIZE_{kind}_{size}" for kind in ("READ", "WRITE") for size in
          ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G",
           "1G_PLUS")),
    ]  # fmt: skip
    made = []
    for row in rows:
        counters = {f"POSIX_{n}": row.get(n, 0) for n in names}
        made.append({"file": row["file"], "rank": row.get("rank", -1), **counters,
                     "POSIX_FILE_ALIGNMENT": row.get("FILE_ALIGNMENT", MIB)})  # fmt: skip
    return pd.DataFrame(made)


def found(
    rule: str, *rows: dict[str, Any], ranks: int = 4, run: float = 10.0, **more: pd.DataFrame
) -> list[Any]:
    tables = {"POSIX": posix(*rows), **{name.replace("_", "-"): table for name, table in more.items()}}
    frame: Any = Frame(tables, {"ranks": ranks, "run_time": run})
    return [f for f in explain(frame) if f.rule == rule]


def test_small_transfers_and_what_they_cost() -> None:
    """900 of 1,000 reads are small; a tenth of 4 x 10 s is 4 s. At 100 us a call and 1 GiB/s all take 0.1 s
    and 7.6 ms, the small ones (whose bytes the large ones may have moved) 0.09 s: 84 % of the 4 s."""
    row = {
        "file": "/p/f", "READS": 1000, "SIZE_READ_1K_10K": 900, "SIZE_READ_1M_4M": 100,
        "BYTES_READ": 1000 * 8192, "F_READ_TIME": 4.0, "SEQ_READS": 996, "MAX_BYTE_READ": 8192000 - 1,
    }  # fmt: skip
    [finding] = found("small-transfers", row)
    assert finding.severity == "problem"
    assert finding.sentence == (
        "900 of 1,000 reads move less than 1 MiB (on average 8 KiB) and take 84 % of the time in reads, "
        "3.72 ms each: 3.34 s in calls, 8.4 % of the processes' time at most."
    )
    # The same in a job of an hour is no problem; in a millisecond it is not worth a word.
    assert found("small-transfers", row, run=3600.0)[0].severity == "note"
    assert found("small-transfers", {**row, "F_READ_TIME": 0.001}) == []


def test_transfers_of_exactly_a_mebibyte_are_not_small() -> None:
    """Darshan counts them in its class 100K_1M; its commonest sizes tell them."""
    row = {"file": "/p/f", "WRITES": 1000, "SIZE_WRITE_100K_1M": 1000, "BYTES_WRITTEN": 1000 * MIB,
           "ACCESS1_ACCESS": MIB, "ACCESS1_COUNT": 1000, "F_WRITE_TIME": 4.0, "SEQ_WRITES": 1000}  # fmt: skip
    assert found("small-transfers", row) == []
    assert found("small-transfers", {**row, "ACCESS1_ACCESS": MIB - 1}) == []  # nearly
    halves = {**row, "ACCESS1_ACCESS": MIB // 4, "BYTES_WRITTEN": 250 * MIB}
    assert len(found("small-transfers", halves)) == 1


def test_who_opens_a_file_again_begins_anew() -> None:
    """1,000 reads of which 300 follow nothing: opened 300 times they are no jumps, opened 4 times 296 are."""
    row = {"file": "/p/f", "READS": 1000, "SEQ_READS": 700, "F_READ_TIME": 4.0, "BYTES_READ": 4096000}
    assert found("random-access", {**row, "OPENS": 300}) == []
    assert "296 of 1,000 reads" in found("random-access", {**row, "OPENS": 4})[0].sentence


def test_a_file_read_by_all_ranks_is_read_again() -> None:
    [finding] = found("read-again", {"file": "/p/in", "READS": 4, "BYTES_READ": 400 * MIB,
                                     "MAX_BYTE_READ": 100 * MIB - 1, "F_READ_TIME": 8.0})  # fmt: skip
    assert finding.severity == "problem"
    assert "400 MiB of 100 MiB (4 times /p/in): 6 s in calls, 15 %" in finding.sentence
    assert "300 MiB need not come" in finding.advice


@pytest.mark.parametrize(
    ("rule", "row"),
    [
        ("misaligned", {"WRITES": 1000, "FILE_NOT_ALIGNED": 999, "F_WRITE_TIME": 4.0, "SEQ_WRITES": 1000}),
        ("random-access", {"READS": 1000, "SEQ_READS": 100, "F_READ_TIME": 4.0, "BYTES_READ": 4096000}),
        ("metadata-bound", {"OPENS": 400, "STATS": 300, "F_META_TIME": 4.0}),
        ("open-storm", {"OPENS": 400, "F_META_TIME": 4.0}),
        ("fsync-storm", {"WRITES": 100, "FSYNCS": 100, "BYTES_WRITTEN": 100, "F_WRITE_TIME": 4.0}),
        ("no-mpiio", {"WRITES": 64, "BYTES_WRITTEN": 4 * MIB, "SEQ_WRITES": 60, "F_WRITE_TIME": 4.0}),
        ("imbalance", {"WRITES": 4, "F_WRITE_TIME": 4.0, "F_SLOWEST_RANK_TIME": 3.0,
                       "F_FASTEST_RANK_TIME": 1.0, "SLOWEST_RANK_BYTES": 3, "FASTEST_RANK_BYTES": 1}),
        ("slow-part", {"WRITES": 4, "F_WRITE_TIME": 4.0, "F_SLOWEST_RANK_TIME": 3.0,
                       "F_FASTEST_RANK_TIME": 1.0, "SLOWEST_RANK_BYTES": 1, "FASTEST_RANK_BYTES": 1}),
        ("shared-file-contention", {"WRITES": 40, "BYTES_WRITTEN": 40 * MIB // 2, "SEQ_WRITES": 40,
                                    "CONSEC_WRITES": 0, "F_WRITE_TIME": 4.0}),
        ("read-after-write", {"rank": 2, "READS": 4, "BYTES_READ": 4 * MIB, "F_READ_TIME": 4.0}),
        ("imbalance", {"rank": 2, "WRITES": 4, "F_WRITE_TIME": 4.0}),
        ("single-writer", {"rank": 2, "WRITES": 4, "BYTES_WRITTEN": 4 * MIB, "F_WRITE_TIME": 4.0}),
        ("mapped", {"MMAPS": 1, "OPENS": 1}),
    ],
)  # fmt: skip
def test_each_rule_fires_on_its_pattern(rule: str, row: dict[str, Any]) -> None:
    before = {"file": "/p/f", "rank": 0, "BYTES_WRITTEN": 4 * MIB, "WRITES": 4}
    [finding] = found(rule, {"file": "/p/f", **row}, *([before] if rule == "read-after-write" else []))
    assert "/p/f" in str(finding.evidence.to_dict()) or rule == "imbalance"
    # Who met whom, counters do not tell.
    severities = {"mapped": "note", "shared-file-contention": "hint"}
    assert finding.severity == severities.get(rule, "problem")


def test_gaps_that_nobody_fills_are_no_turns() -> None:
    """64 writes of 64 KiB, forward and never one behind the other: over 4 MiB others lie between them; over
    8 MiB half of the file is empty, and each rank may have gone its own way."""
    row = {"file": "/p/f", "WRITES": 64, "BYTES_WRITTEN": 4 * MIB, "SEQ_WRITES": 60, "F_WRITE_TIME": 4.0}
    for end, said in ((4 * MIB, 1), (8 * MIB, 0)):
        for rule in ("no-mpiio", "shared-file-contention"):
            assert len(found(rule, {**row, "MAX_BYTE_WRITTEN": end - 1})) == said


def test_ranks_with_the_same_to_do_differ_by_chance() -> None:
    row = {"file": "/p/f", "WRITES": 4, "F_WRITE_TIME": 4.0, "F_SLOWEST_RANK_TIME": 1.9,
           "F_FASTEST_RANK_TIME": 0.7, "SLOWEST_RANK_BYTES": 100, "FASTEST_RANK_BYTES": 100}  # fmt: skip
    assert found("imbalance", row) == []
    [more] = found("imbalance", {**row, "SLOWEST_RANK_BYTES": 190})
    assert more.advice == "Give every rank as much to do."
    assert found("slow-part", row) == []
    [slower] = found("slow-part", {**row, "F_SLOWEST_RANK_TIME": 2.1})
    assert "slow rank's node" in slower.advice
    assert found("imbalance", {**row, "F_SLOWEST_RANK_TIME": 2.1}) == []


def test_a_plain_job_has_no_findings() -> None:
    """Four ranks with a file each, written in large, aligned pieces, one after the other."""
    rows = [
        {"file": f"/p/f{rank}", "rank": rank, "OPENS": 1, "WRITES": 64, "BYTES_WRITTEN": 64 * 4 * MIB,
         "SIZE_WRITE_1M_4M": 64, "SEQ_WRITES": 63, "CONSEC_WRITES": 63, "F_WRITE_TIME": 2.0,
         "F_META_TIME": 0.001, "MAX_BYTE_WRITTEN": 256 * MIB - 1}
        for rank in range(4)
    ]  # fmt: skip
    frame: Any = Frame({"POSIX": posix(*rows)}, {"ranks": 4, "run_time": 10.0})
    assert explain(frame) == []


def test_independent_calls_on_a_shared_file() -> None:
    mpiio = pd.DataFrame([{
        "file": "/p/f", "rank": -1, "MPIIO_INDEP_WRITES": 400, "MPIIO_COLL_WRITES": 0,
        "MPIIO_BYTES_WRITTEN": 400, "MPIIO_BYTES_READ": 0,
        "MPIIO_F_WRITE_TIME": 4.0, "MPIIO_F_READ_TIME": 0.0, "MPIIO_F_META_TIME": 0.0,
    }])  # fmt: skip
    row = {"file": "/p/f", "WRITES": 400, "BYTES_WRITTEN": 4 * MIB, "F_WRITE_TIME": 4.0, "SEQ_WRITES": 400}
    [finding] = found("independent-io", row, MPI_IO=mpiio)
    assert finding.sentence.startswith("400 of 400 MPI-IO calls on shared files are independent")
    assert found("no-mpiio", row, MPI_IO=mpiio) == []
    together = mpiio.assign(MPIIO_INDEP_WRITES=0, MPIIO_COLL_WRITES=400)
    assert found("independent-io", row, MPI_IO=together) == []


def test_pseudo_files_are_no_io() -> None:
    rows = [{"file": "/proc/meminfo", "READS": 1000, "SIZE_READ_100_1K": 1000, "F_READ_TIME": 4.0}]
    assert found("small-transfers", *rows) == []


def test_calls_of_stdio_are_of_no_pattern() -> None:
    """Darshan does not count how STDIO's accesses follow each other: they are not random for that."""
    stdio = pd.DataFrame([{
        "file": "/p/log", "rank": 0, "STDIO_WRITES": 500, "STDIO_BYTES_WRITTEN": 5000, "STDIO_READS": 0,
        "STDIO_BYTES_READ": 0, "STDIO_F_WRITE_TIME": 1.0, "STDIO_F_READ_TIME": 0.0, "STDIO_F_META_TIME": 0.0,
    }])  # fmt: skip
    frame: Any = Frame({"STDIO": stdio}, {"ranks": 1, "run_time": 10.0})
    row = files_counted(frame).loc["/p/log"]
    assert (row["calls"], row["random"], row["pattern"]) == (500, 0, "")


def test_times_of_nothing_are_no_shares() -> None:
    """A log whose clock did not move (seen in copies that were damaged): 900 small reads, 0 s."""
    row = {"file": "/p/f", "READS": 1000, "SIZE_READ_1K_10K": 900, "FSYNCS": 100, "BYTES_READ": 8 * MIB}
    frame: Any = Frame({"POSIX": posix(row)}, {"ranks": 4, "run_time": 10.0})
    assert [f.rule for f in explain(frame)] == []


def test_who_says_and_who_cannot_say() -> None:
    """An unknown length of the job: the cost is told in seconds, and nothing is called a problem."""
    row = {"file": "/p/f", "OPENS": 400, "F_META_TIME": 4.0}
    frame: Any = Frame({"POSIX": posix(row)}, {})
    findings = {f.rule: f for f in explain(frame)}
    assert findings["open-storm"].severity == "hint"
    assert "4 s in calls" in findings["open-storm"].sentence and "%" not in findings["open-storm"].sentence
    with pytest.raises(UserError, match="no finding rule named 'open-strom': did you mean open-storm"):
        explain(frame, only=["open-strom"])


def test_rules_never_divide_by_nothing() -> None:
    """A table of zeros, and one of missing numbers, give no findings and no warnings."""
    frame: Any = Frame({"POSIX": posix({"file": "/p/f"})}, {"ranks": 4, "run_time": 10.0})
    table = counted(frame)
    for each in (table, table.iloc[:0]):
        case = Case(frame, "posix", Storage(), each, each, 4, 40.0)
        for name in rules.names():
            assert list(rules.get(name)(case)) == []


# -- a real log ----------------------------------------------------------------------------------------------


@needs_darshan
def test_a_log_without_dxt_answers_from_its_counters() -> None:
    """iokernel: two ranks write and read 64 KiB each in 4 KiB pieces, with a sync, in one shared file."""
    frame = IOFrame.from_darshan(LOG)
    assert only_counters(frame)
    answer = summarise(frame)
    assert (answer["from"], answer["ranks"]) == ("counters", 2)
    layer = next(row for row in answer["layers"] if row["api"] == "posix")
    assert (layer["bytes_read"], layer["bytes_written"]) == (2 << 16, 2 << 16)
    assert answer["io_s"] is None and answer["app_throughput_bytes_s"] is None
    files = files_table(frame)
    shared = files.loc["/tmp/study/b"]
    assert (shared["bytes_written"], shared["num_ranks"], shared["random"]) == (2 << 16, 2, 0)
    assert files_counted(frame).equals(files)


@needs_darshan
def test_beside_dxt_counters_tell_what_dxt_leaves_out() -> None:
    """DXT has reads and writes alone: calls, metadata and their times are the counters'."""
    frame = IOFrame.from_darshan(LOG.with_name("posix-dxt.darshan"))
    raw = frame.counters("POSIX")
    assert raw is not None and len(frame)
    answer = summarise(frame)
    assert answer["from"] == "counters and events"
    # Time in calls is shared by all ranks of the job, also by those without a read or a write.
    idle = summarise(dataclasses.replace(frame, metadata={**frame.metadata, "ranks": 8}))
    assert (answer["ranks"], idle["ranks"], idle["processes"]) == (2, 8, 8)
    (layer,) = [row for row in answer["layers"] if row["api"] == "posix"]
    metadata = float(raw["POSIX_F_META_TIME"].clip(lower=0).sum())
    assert metadata > 0 and layer["metadata_s"] == pytest.approx(metadata)
    assert layer["sync_s"] is None  # Darshan counts it as writing
    assert layer["calls"] > len(frame)
    assert answer["compute_s"] is None and answer["overlapped_io_s"] is None
    assert any("reads and writes alone" in said for said in answer["warnings"])
    files = files_table(frame)
    assert files["metadata_time"].sum() == pytest.approx(metadata)
    # How accesses follow each other, and upon what, is DXT's.
    assert files["history"].ne("").any()


@needs_darshan
def test_on_the_command_line() -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["trace", "explain", str(LOG), "--json"])
    assert json.loads(done.stdout)["from"] == "counters"
    done = runner.invoke(app, ["trace", "summary", str(LOG)])
    assert "counters alone" in done.stdout and "128 KiB" in done.stdout
    done = runner.invoke(app, ["trace", "files", str(LOG), "--json"])
    assert "/tmp/study/b" in [row["file"] for row in json.loads(done.stdout)["files"]]
    for words in (["overlap"], ["timeline"], ["summary", "--rank", "0"]):
        done = runner.invoke(app, ["trace", words[0], str(LOG), *words[1:]])
        assert isinstance(done.exception, UserError) and "counters only" in str(done.exception)


def test_modules_are_told_apart_by_their_prefix() -> None:
    assert [prefix for _, prefix, _ in MODULES] == ["POSIX_", "STDIO_", "MPIIO_"]


# -- what ranks wait for -------------------------------------------------------------------------------------


def collective(ranks: int, seconds: float, moved: int) -> pd.DataFrame:
    """Return MPI-IO counters of collective writes to /p/f; seconds summed over the ranks."""
    return pd.DataFrame([{
        "file": "/p/f", "rank": -1, "MPIIO_INDEP_WRITES": 0, "MPIIO_COLL_WRITES": ranks,
        "MPIIO_BYTES_WRITTEN": moved, "MPIIO_BYTES_READ": 0, "MPIIO_F_WRITE_TIME": seconds,
        "MPIIO_F_READ_TIME": 0.0, "MPIIO_F_META_TIME": 0.0,
    }])  # fmt: skip


def test_ranks_wait_for_their_aggregator() -> None:
    """512 ranks are 4 s each in collective writes of 2 GiB, which one of them does in 4 s: 512 x 4 s of
    512 x 40 s, a tenth, though the calls on the storage take 4 s."""
    row = {"file": "/p/f", "WRITES": 2048, "BYTES_WRITTEN": 2 << 30, "F_WRITE_TIME": 4.0, "SEQ_WRITES": 2048,
           "CONSEC_WRITES": 2047, "SLOWEST_RANK_BYTES": 2 << 30, "SLOWEST_RANK": 0,
           "F_SLOWEST_RANK_TIME": 4.0}  # fmt: skip
    mpiio = collective(512, 2048.0, 2 << 30)
    [finding] = found("few-aggregators", row, ranks=512, run=40.0, MPI_IO=mpiio)
    assert finding.seconds == pytest.approx(2048.0) and finding.share == pytest.approx(0.1)
    assert finding.severity == "problem"
    # On one node one aggregator is what MPI-IO takes; two that share the work are no lone one.
    assert found("few-aggregators", row, ranks=64, run=40.0, MPI_IO=mpiio) == []
    half = {**row, "SLOWEST_RANK_BYTES": 1 << 30}
    assert found("few-aggregators", half, ranks=512, run=40.0, MPI_IO=mpiio) == []
    # A rank that writes for others because MPI-IO made it an aggregator is no single writer.
    assert found("single-writer", row, ranks=512, run=40.0, MPI_IO=mpiio) == []
    assert found("imbalance", row, ranks=512, run=40.0, MPI_IO=mpiio) == []


def test_what_storage_takes_and_what_ranks_pass_on() -> None:
    """Two aggregators move 1 GiB each in 1 s; 512 ranks are 4 s each in the call: 3 of 4 s are exchange."""
    row = {"file": "/p/f", "WRITES": 2048, "BYTES_WRITTEN": 2 << 30, "F_WRITE_TIME": 2.0,
           "SLOWEST_RANK_BYTES": 1 << 30, "F_SLOWEST_RANK_TIME": 1.0}  # fmt: skip
    [finding] = found("exchange", row, ranks=512, run=40.0, MPI_IO=collective(512, 2048.0, 2 << 30))
    assert finding.seconds == pytest.approx(512 * 3.0)
    assert "take 4 s a rank, their aggregators' reads and writes 1 s" in finding.sentence
    quick = collective(512, 512 * 1.9, 2 << 30)  # 0.9 of 1.9 s: less than half
    assert found("exchange", row, ranks=512, run=40.0, MPI_IO=quick) == []


def test_what_mpiio_moves_beyond_what_was_asked() -> None:
    """16 MiB written for 4 that ranks asked for, in 4 s: 3 of 4 s for the rest; 5 MiB for 4 is alignment."""
    row = {"file": "/p/f", "WRITES": 16, "BYTES_WRITTEN": 16 * MIB, "F_WRITE_TIME": 4.0}
    [finding] = found("sieving", row, MPI_IO=collective(4, 4.0, 4 * MIB))
    assert finding.seconds == pytest.approx(3.0)
    assert finding.sentence.startswith("16 MiB are written on the storage for 4 MiB that ranks asked")
    assert found("sieving", {**row, "BYTES_WRITTEN": 5 * MIB}, MPI_IO=collective(4, 4.0, 4 * MIB)) == []


def test_a_large_shared_file_on_one_target() -> None:
    row = {"file": "/p/f", "WRITES": 2048, "BYTES_WRITTEN": 2 << 30, "F_WRITE_TIME": 8.0}
    frame: Any = Frame({"POSIX": posix(row)}, {"ranks": 4, "run_time": 10.0,
                                               "stripes": {"/p/f": {"size": MIB, "width": 1}}})  # fmt: skip
    [finding] = [f for f in explain(frame) if f.rule == "narrow-stripes"]
    assert finding.seconds == pytest.approx(8.0) and "one storage target" in finding.sentence
    frame.metadata["stripes"]["/p/f"]["width"] = 2
    assert not [f for f in explain(frame) if f.rule == "narrow-stripes"]


def test_standard_streams_are_no_files() -> None:
    """All ranks have one; who prints most is nobody's trouble."""
    names = {"file": "<STDOUT>", "WRITES": 1000, "SIZE_WRITE_0_100": 1000, "BYTES_WRITTEN": 4 * MIB}
    frame: Any = Frame({"POSIX": posix({**names, "F_WRITE_TIME": 9.0})}, {"ranks": 4, "run_time": 10.0})
    assert explain(frame) == []


def test_one_target_holds_up_ranks_no_longer_than_it_is_busy() -> None:
    """512 ranks are 8 s each in the call, the storage is busy for 4 s of it: 512 x 4 s, and the rest is
    exchange: 512 x 4 s of 8, at its threshold."""
    row = {"file": "/p/f", "WRITES": 2048, "BYTES_WRITTEN": 2 << 30, "F_WRITE_TIME": 4.0,
           "SLOWEST_RANK_BYTES": 2 << 30, "F_SLOWEST_RANK_TIME": 4.0}  # fmt: skip
    mpiio = collective(512, 512 * 8.0, 2 << 30)
    [finding] = found("few-aggregators", row, ranks=512, run=40.0, MPI_IO=mpiio)
    assert finding.seconds == pytest.approx(512 * 4.0)
    [rest] = found("exchange", row, ranks=512, run=40.0, MPI_IO=mpiio)
    assert rest.seconds == pytest.approx(512 * 4.0)
