"""Limits of cells: what decides the use of an advice stands in its cell."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from tiercel.placement.copying import Amount, Staging
from tiercel.report.cell_limits import cell_limits
from tiercel.report.recommend.model import Recommendation

KEY = ("scaling", "scientific", "write", "measured")


def recommendation(seconds_in: float, seconds_out: float, saved: float) -> Recommendation:
    of = SimpleNamespace(key=KEY, operation="write")
    stage = Staging("nvme", "shm", seconds_in, seconds_out, saved)
    return Recommendation(of, {}, "nvme", True, "shm", stage, Amount(1, 0, 1, 2**30), False, None, True, True)  # type: ignore[arg-type]


def number(*, cold: bool = True, held_back: bool = False) -> SimpleNamespace:
    return SimpleNamespace(cold=cold, held_back=held_back)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ((0.0, 0.0, 1.0), ()),  # pays with the first use: no limit
        ((5.0, 0.0, 2.0), ("copying pays from use 3",)),  # 5 s are saved after 2.5 uses
        (
            (0.0, 2.0, 1.0),
            ("pays only if results are not kept",),
        ),  # bringing them back costs more than is saved
        ((1.0, 0.0, -1.0), ("copying never pays",)),
    ],
)
def test_copying_limits_the_advice_for_memory(tmp_path, stage, expected):
    results = SimpleNamespace(memory={"shm"}, study=SimpleNamespace(study="s"))
    found = [SimpleNamespace(key=KEY, operation="write", numbers={"nvme": number(), "shm": number()})]
    limits = cell_limits(results, tmp_path, found, [recommendation(*stage)])  # type: ignore[arg-type]
    assert limits.get((KEY, "shm"), ()) == expected
    assert (KEY, "nvme") not in limits


def test_unknown_costs_are_no_limit(tmp_path):
    results = SimpleNamespace(memory={"shm"}, study=SimpleNamespace(study="s"))
    found = [SimpleNamespace(key=KEY, operation="write", numbers={"shm": number()})]
    made = recommendation(math.nan, 0.0, math.nan)
    assert made.copying == "unknown"
    assert not cell_limits(results, tmp_path, found, [made])  # type: ignore[arg-type]


def test_flags_of_a_number_stand_in_its_cell(tmp_path):
    results = SimpleNamespace(memory={"shm"}, study=SimpleNamespace(study="s"))
    numbers = {"nvme": number(cold=False, held_back=True), "shm": number(cold=False)}
    found = [SimpleNamespace(key=KEY, operation="read", numbers=numbers)]
    limits = cell_limits(results, tmp_path, found, [])  # type: ignore[arg-type]
    assert limits == {(KEY, "nvme"): ("possibly from a cache", "slowed by earlier deletions")}
