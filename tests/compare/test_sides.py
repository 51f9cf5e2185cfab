"""One side: dates, layers and studies; unfinished, failed, damaged or older results give a sentence each."""

import tarfile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compare.sides import DAY, NOVEMBER, compared, failed, later, pair, read, runs_of, together, write
from tiercel.compare.judging import Outcome
from tiercel.errors import UserError
from tiercel.report.comparison.sentences import equal, unknown


def outcomes(answer) -> list[Outcome]:
    return [row.outcome for row in answer.rows]


def test_two_dates_of_one_site_are_two_sides(tmp_path):
    """The later configuration of the same names replaces the earlier one, unless dates ask for that."""
    both = pair() + pair(factor=0.5, began=NOVEMBER + 20 * DAY, version="later")
    both["run"] = both["run"] + both["configuration"]
    write(tmp_path / "results" / "local", both)
    (whole,) = read("local", root=tmp_path)
    assert whole.observations["bandwidth"].max() == 51.0
    assert "10 runs of configurations that later ones replaced are left out" in whole.notes[0]
    answer = compared("local@2026-11-01", "local@2026-11-21", root=tmp_path)
    assert outcomes(answer) == ["slower"]
    assert answer.rows[0].comparison.ratio == pytest.approx(0.5)
    assert not answer.pairs[0].interleaved


def test_dates_without_runs_name_those_with_some(tmp_path):
    write(tmp_path / "results" / "local", pair())
    with pytest.raises(UserError, match=r"no run began then; runs began on 2026-11-01 \(10\)"):
        read("local@2025", root=tmp_path)


def test_storages_and_layers_of_one_site_are_one_session(tmp_path):
    both = pair() + pair(factor=0.5, storage="slow") + pair(factor=2.0, layer="fairshare policy=fifo")
    write(tmp_path / "results" / "local", both)
    slow = compared("local:storage=fast+none", "local:storage=slow+none", root=tmp_path)
    assert outcomes(slow) == ["slower"]
    assert slow.pairs[0].interleaved
    layered = compared("local:storage=fast+none", "local+fairshare", root=tmp_path)
    assert [(row.outcome, row.comparison.ratio) for row in layered.rows] == [("faster", pytest.approx(2.0))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local:study=quik", r"no study 'quik': did you mean quick\?"),
        ("local:storage=none-such", "no storage 'none-such'.*fast"),
        ("local+cachevol", "no layer 'cachevol'.*none"),
    ],
)
def test_what_the_side_does_not_have_is_said(tmp_path, text, said):
    write(tmp_path / "results" / "local", pair())
    with pytest.raises(UserError, match=said):
        read(text, root=tmp_path)


def test_a_layer_with_several_options_wants_one_of_them(tmp_path):
    write(tmp_path / "results" / "local", pair(layer="f a=1") + pair(layer="f a=2"))
    with pytest.raises(UserError, match="ran with several options: name one"):
        read("local+f", root=tmp_path)
    assert read("local+f a=2", root=tmp_path)[0].names("layer") == ["f a=2"]


def test_failed_and_few_runs_are_noted(tmp_path):
    few = pair(values=(100.0, 101.0), workload="few", flags=["too-few-repetitions"])
    few["flags"] = [["too-few-repetitions"]] * len(few)
    broken = failed(pair(workload="broken"))
    observations = pair() + few
    write(tmp_path / "results" / "local", observations, pd.concat([runs_of(observations), broken]))
    (side,) = read("local", root=tmp_path)
    assert side.notes[0] == "10 runs failed: no space left"
    assert side.notes[1].startswith("1 configuration with fewer than three repetitions")


def test_a_side_of_failures_only_says_why(tmp_path):
    write(tmp_path / "results" / "local", pair().iloc[:0], failed(pair()))
    with pytest.raises(UserError, match=r"no run has a result \(10 runs failed: no space left"):
        read("local", root=tmp_path)


def test_an_unfinished_side_is_noted(tmp_path):
    folder = write(tmp_path / "results" / "local", pair())
    (folder / "raw" / "cut-off").mkdir(parents=True)
    (folder / "raw" / "later").mkdir()
    (folder / "raw" / "later" / "record.json").write_text("{}")
    (folder / "raw" / "interrupted").mkdir()
    notes = read("local", root=tmp_path)[0].notes
    assert notes == (
        "unfinished: 1 run was cut off or goes on",
        "1 run finished since its tables were made: run `tiercel collect`",
    )


@pytest.mark.parametrize("name", ["observations.parquet", "runs.parquet"])
def test_damaged_tables_are_named(tmp_path, name):
    folder = write(tmp_path / "results" / "local", pair())
    whole = (folder / name).read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:100] + bytes(200) + whole[300:]):
        (folder / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name} is damaged"):
            read("local", root=tmp_path)


def test_a_table_of_another_kind_is_refused(tmp_path):
    folder = write(tmp_path / "results" / "local", pair())
    pq.write_table(pa.table({"a": [1, 2]}), folder / "observations.parquet")
    with pytest.raises(UserError, match="no column run: not a table of tiercel's"):
        read("local", root=tmp_path)
    write(folder, pair(), origin="guessed")
    with pytest.raises(UserError, match="origin 'guessed': allowed: imported, measured, simulated"):
        read("local", root=tmp_path)
    write(folder, pair().astype({"nodes": object}), nodes="many")
    with pytest.raises(UserError, match="a column holds what does not belong there"):
        read("local", root=tmp_path)


def test_an_older_table_is_matched_by_the_columns_that_it_has(tmp_path):
    """`queue_depth` came later: the older side cannot say it, so nothing is told apart by it."""
    write(tmp_path / "results" / "new", pair(queue_depth=1))
    write(
        tmp_path / "results" / "old",
        later(factor=0.5).drop(columns=["queue_depth", "host", "seconds_to_share"]),
    )
    answer = compared("old", "new", root=tmp_path)
    assert [row.comparison.ratio for row in answer.rows] == [pytest.approx(2.0)]
    assert "which has no queue_depth, seconds_to_share, host" in answer.sides[0].notes[0]


def test_observations_alone_are_a_side(tmp_path):
    folder = write(tmp_path / "results" / "local", pair())
    (folder / "runs.parquet").unlink()
    (side,) = read("local", root=tmp_path)
    assert len(side.runs) == 10
    assert side.notes[0].startswith("has no runs.parquet")


def test_the_same_runs_twice_are_refused(tmp_path):
    write(tmp_path / "results" / "one", pair())
    write(tmp_path / "copy", pair())
    with pytest.raises(UserError, match="one and copy are the same 10 runs"):
        compared("one", tmp_path / "copy", root=tmp_path)


def test_unknown_is_not_equal(tmp_path):
    write(tmp_path / "results" / "one", pair(), kernel="6.1", cores=8)
    write(tmp_path / "results" / "two", later(), cores=8)
    found = compared("one", "two", root=tmp_path)
    assert "kernel 6.1" not in equal(found) and "cores 8" in equal(found)
    assert "kernel (6.1, unknown)" in unknown(found)


def test_overlapping_times_are_no_turns(tmp_path):
    """A storage measured between the two halves of another: A A A B B B A A A changes sides twice."""
    halves = together([pair(storage="a"), pair(storage="b", began=NOVEMBER + DAY)])
    resumed = halves.assign(began=halves["began"].where(halves["repetition"] < 3, halves["began"] + 9 * DAY))
    resumed.loc[halves["storage"] == "b", "began"] = halves["began"]
    write(tmp_path / "results" / "one", resumed)
    (part,) = compared("one:storage=a", "one:storage=b", root=tmp_path).pairs
    assert not part.interleaved
    turns = together([pair(storage="a"), pair(storage="b", began=NOVEMBER + 30)])
    write(tmp_path / "results" / "one", turns)
    (part,) = compared("one:storage=a", "one:storage=b", root=tmp_path).pairs
    assert part.interleaved


def test_runs_of_unknown_time_are_not_shared(tmp_path):
    """The same measured twice has the same names: only the times tell them apart."""
    for name, factor in (("one", 1.0), ("two", 0.5)):
        write(tmp_path / "results" / name, pair(factor=factor).assign(began=float("nan")))
    (part,) = compared("one", "two", root=tmp_path).pairs
    assert part.shared_runs == 0 and len(part.rows) == 1


def test_runs_are_counted_and_not_their_rows(tmp_path):
    """Ten runs, each with a write and a read."""
    both = together([pair(), pair(operation="read").assign(run=list(pair()["run"]))])
    both["began"] = [NOVEMBER + i for i in range(20)]
    for name in ("one", "two"):
        write(tmp_path / "results" / name, both)
    with pytest.raises(UserError, match="are the same 10 runs"):
        compared("one", "two", root=tmp_path)


def test_rows_without_a_layer_have_none(tmp_path):
    write(tmp_path / "results" / "one", pair())
    write(tmp_path / "results" / "two", later().assign(layer=None))
    (row,) = compared("one+none", "two+none", root=tmp_path).rows
    assert row.match.other["layer"] == "none"


def test_simulated_numbers_displace_no_measured_ones(tmp_path):
    """Simulated later, under the same names: the measured ones stay on the side."""
    simulated = later(origin="simulated", factor=0.2)
    simulated["configuration"] += "-sim"
    write(tmp_path / "results" / "one", together([pair(), simulated]))
    (side,) = read("one", root=tmp_path)
    assert side.names("origin") == ["measured", "simulated"]


def test_a_damaged_table_in_an_archive_names_the_archive(tmp_path):
    folder = write(tmp_path / "theirs", pair())
    (folder / "observations.parquet").write_bytes(b"hello")
    with tarfile.open(tmp_path / "theirs.tar.gz", "w:gz") as packed:
        packed.add(folder, "theirs")
    with pytest.raises(UserError) as said:
        read(tmp_path / "theirs.tar.gz", root=tmp_path)
    assert str(said.value).startswith(f"{tmp_path}/theirs.tar.gz: observations.parquet is damaged (")
    assert "scratch" not in str(said.value) and "tiercel collect" not in str(said.value)
