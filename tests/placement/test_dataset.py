"""From observations to the dataset: what enters, what does not, and what the table may be trusted for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tiercel.errors import UserError
from tiercel.placement.dataset import errors, load_sweep, of_systems, sweep_of, throughput, vectors

from .synthetic import observations, saved


def test_one_row_for_each_configuration_with_medians(tmp_path: Path) -> None:
    rows = observations(size=100, repetitions=3)
    _, table = saved(tmp_path, rows)
    assert len(table) == 100
    first = table.index[0]
    mine = rows[(rows["workload"] == first.split("/")[1]) & (rows["storage"] == "near")]["bandwidth"]
    assert throughput(table).loc[first, "near"] == pytest.approx(np.median(mine))
    assert table.loc[first, "low:near"] == pytest.approx(mine.min())
    assert table.loc[first, "repetitions:near"] == 3
    # Noise of 0.02 (log2) a value: the standard error of three is about 0.02 / sqrt(3) = 0.0115.
    assert errors(table)["near"].median() == pytest.approx(0.0115, rel=0.3)


def test_features_are_those_of_the_workload(tmp_path: Path) -> None:
    _, table = saved(tmp_path)
    name = next(r for r in table.index if r.split("/")[1].startswith("w") and "-syncs" in r)
    transfer, accesses = table.loc[name, "transfer_size"], int(name.split("-x")[1].split("-")[0])
    x = vectors(table).loc[name]
    assert x["transfer_size"] == np.log2(transfer)
    assert x["accesses_per_open"] == np.log2(accesses)
    assert x["bytes_per_open"] == np.log2(transfer * accesses)
    access = name.split("/")[1].split("-")[0].upper()
    assert (x["fsync"], x["syncs_per_write"], x[access], x["RO"], x["processes"]) == (1, 1, 1, 0, 0)


def test_invalid_numbers_do_not_enter_and_are_counted() -> None:
    rows = observations(size=100, repetitions=3)
    rows.at[0, "flags"] = ["cache-not-cold"]
    table, provenance = sweep_of(rows)
    assert provenance["left_out"]["numbers flagged invalid"] == 1
    assert table.loc[f"e/{rows['workload'][0]}/1", "repetitions:near"] == 2


def test_a_configuration_that_lacks_a_system_is_left_out_and_named() -> None:
    rows = observations(size=100)
    gone = rows["workload"].iloc[0]
    table, provenance = sweep_of(rows[~((rows["workload"] == gone) & (rows["storage"] == "far"))])
    assert len(table) == 99
    assert provenance["left_out"]["configurations that lack a system"] == [f"e/{gone}/1"]


def test_numbers_of_an_older_engine_are_not_mixed_in() -> None:
    rows = observations(size=100)
    older = rows.copy()
    older["engine_version"], older["began"], older["bandwidth"] = "0", -1.0, 1.0
    both = sweep_of(__import__("pandas").concat([older, rows], ignore_index=True))
    assert both[1]["left_out"]["numbers of older engine versions"] == len(older)
    assert both[0]["low:near"].min() > 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[r["storage"] == "near"], "needs two or more"),
        (lambda r: r[r["workload"].isin(r["workload"].unique()[:5])], "only 5 of 5 configurations"),
        (lambda r: r.assign(engine=["ior", "fio"] * (len(r) // 2)), "mixes engines"),
    ],
)
def test_a_sweep_that_teaches_nothing_is_refused(change, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=message):
        sweep_of(change(observations(size=100, repetitions=2)))


def test_a_changed_table_is_refused(tmp_path: Path) -> None:
    folder, table = saved(tmp_path)
    table.iloc[:-1].to_parquet(folder / "sweep.parquet")
    with pytest.raises(UserError, match="is not the table that"):
        load_sweep(folder)
    with pytest.raises(UserError, match="no such file: run `tiercel place sweep`"):
        load_sweep(tmp_path / "nowhere")


def test_some_of_the_systems(tmp_path: Path) -> None:
    _, table = saved(tmp_path)
    with pytest.raises(UserError, match="no system 'nea'"):
        of_systems(table, ["nea", "far"])
    with pytest.raises(UserError, match="two systems or more"):
        of_systems(table, ["near"])
