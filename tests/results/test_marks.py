"""Flags that hang on other rows, set on rows written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.results import schema
from tiercel.results.observations import (
    Gathered,
    _check_origins,
    _mark_behind,
    _mark_too_few,
    identity_of,
)
from tiercel.results.table import load_table
from tiercel.results.validity import CACHE_BEHIND, TOO_FEW

ROW: dict[str, Any] = {
    **dict.fromkeys(c.name for c in schema.OBSERVATIONS),
    "run": "r", "configuration": "c", "operation": "read", "role": "measured", "access": "RO", "twin": "a",
    "traced": False, "origin": "measured", "site": "s", "storage": "main", "layer": "none", "nodes": 1,
    "medium": "network", "memory_backed": False, "direct": False, "resident_fraction": 0.0, "flags": [],
}  # fmt: skip


def rows(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**ROW, "flags": [], **change} for change in changes]


@pytest.mark.parametrize(
    ("changes", "few"),
    [
        ([{}, {}, {}], [False] * 3),
        ([{}, {}], [True] * 2),
        # Neither the second half of an A/A pair nor a traced run is a repetition.
        ([{}, {}, {"twin": "b"}], [True] * 3),
        ([{}, {}, {"traced": True}], [True, True, False]),
        ([{}, {}, {}, {"twin": "b"}, {"traced": True}], [False] * 5),
        # Another phase or role, or another configuration, counts for itself.
        ([{}, {}, {"operation": "write"}], [True] * 3),
        ([{}, {}, {"role": "setup"}], [True] * 3),
        ([{}, {}, {}, {"configuration": "d"}], [False] * 3 + [True]),
        ([{"origin": "simulated"}], [False]),  # a model gives the same again
        ([{"origin": "imported"}], [True]),
    ],
)
def test_too_few(changes: list[dict[str, Any]], few: list[bool]) -> None:
    table = rows(*changes)
    _mark_too_few(table)
    assert [TOO_FEW in row["flags"] for row in table] == few


def test_the_flag_of_too_few_comes_and_goes_and_others_stay() -> None:
    table = rows({"flags": ["short-data"]}, {"flags": ["short-data", TOO_FEW]})
    _mark_too_few(table)
    assert [row["flags"] for row in table] == [["short-data", TOO_FEW]] * 2
    table += rows({})
    _mark_too_few(table)
    assert [row["flags"] for row in table] == [["short-data"], ["short-data"], []]


def touched(hit: float, miss: float | None = None, **more: Any) -> dict[str, Any]:
    return {"behind_alike": 1.0, "behind_hit_time": hit, "behind_miss_time": miss, **more}


def test_a_miss_elsewhere_on_the_storage_tells_hits() -> None:
    """The quicker of two misses took 400 us: a touch below 200 us was a hit, one of 200 us may be none."""
    table = rows(
        touched(50e-6, 400e-6), touched(50e-6, 900e-6), touched(199e-6), touched(200e-6),
        touched(199e-6, storage="other"), touched(199e-6, layer="fairshare"), touched(199e-6, site="t"),
        touched(199e-6, nodes=2), touched(199e-6, origin="imported"),
    )  # fmt: skip
    _mark_behind(table)
    assert [row["behind_share"] for row in table] == [1.0, 1.0, 1.0, *[None] * 6]
    assert [CACHE_BEHIND in row["flags"] for row in table] == [True] * 3 + [False] * 6


def test_a_cache_behind_that_is_no_longer_seen_loses_its_flag_alone() -> None:
    table = rows({**touched(300e-6), "flags": [CACHE_BEHIND, "short-data"]})
    _mark_behind(table)
    assert table[0]["flags"] == ["short-data"]


def test_simulated_and_measured_runs_do_not_lie_together() -> None:
    simulated, measured = {"run": "one", "origin": "simulated"}, {"run": "two", "origin": "measured"}
    with pytest.raises(UserError, match=r"^/r/raw: one is simulated and two is not: move one of them away"):
        _check_origins([measured, simulated], Path("/r/raw"))
    _check_origins([simulated, simulated], Path("/r/raw"))
    _check_origins([measured, {"run": "three", "origin": "imported"}], Path("/r/raw"))


def test_what_a_run_is() -> None:
    run = {
        "run": "r", "configuration": "c", "site": "s", "study": "q", "experiment": "e", "name": "w",
        "workload": {"title": "Dump"}, "engine": "fio", "engine_version": "3", "launcher": "fork", "nodes": 3,
        "processes_per_node": 4, "repetition": 2, "twin": "b", "traced": True,
        "storage": {"name": "main", "label": "The disk", "type": "ext4", "medium": "disk"},
        "layers": [{"label": "cachevol"}, {"label": "fairshare policy=fair"}],
    }  # fmt: skip
    whole = {
        "run": "r", "configuration": "c", "origin": "measured", "site": "s", "study": "q", "experiment": "e",
        "workload": "w", "title": "Dump", "storage": "main", "storage_label": "The disk",
        "storage_type": "ext4", "medium": "disk", "layer": "cachevol+fairshare policy=fair", "engine": "fio",
        "engine_version": "3", "launcher": "fork", "nodes": 3, "processes_per_node": 4, "processes": 12,
        "repetition": 2, "twin": "b", "look": 0, "traced": True,
    }  # fmt: skip
    assert identity_of(run) == whole
    bare = {
        **run, "origin": "simulated", "workload": {}, "layers": [], "look": 1,
        "storage": {"name": "main", "label": "", "type": "ext4", "medium": "disk"},
    }  # fmt: skip
    changed = {"origin": "simulated", "title": "w", "storage_label": "main", "layer": "none", "look": 1}
    assert identity_of(bare) == whole | changed


def test_rows_at_hand_are_tables_like_those_that_are_loaded() -> None:
    run = {**dict.fromkeys(c.name for c in schema.RUNS), "run": "r", "record_stamp": 7, "record_code": "x"}
    observations, runs = Gathered(rows({"bandwidth": 2.5}), [run]).frames()
    assert list(observations.columns) == [c.name for c in schema.OBSERVATIONS]
    assert observations["bandwidth"].tolist() == [2.5] and str(observations["nodes"].dtype) == "Int64"
    assert runs["run"].tolist() == ["r"] and runs["record_stamp"].tolist() == [7]


def test_a_table_that_is_not_there_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"t\.parquet: no such file: run `tiercel collect`"):
        load_table(tmp_path / "t.parquet", "tiercel collect")
