"""`tiercel show --json`: the numbers of the page as plain values."""

from __future__ import annotations

import json

import pytest
from tests.report.synthetic import Synthetic, site, study

from tiercel.report.data import Results
from tiercel.report.document import _RATIO, _ratio, document
from tiercel.results.validity import FLAGS


def test_numbers_and_verdict_are_those_of_the_page(whole):
    told = document(whole.folder, site(), study())
    json.dumps(told, allow_nan=False)
    results = Results.from_folder(whole.folder, study(), FLAGS)
    assert len(told["numbers"]) == len(results.named().numbers)
    for mine, shown in zip(told["numbers"], results.named().numbers, strict=True):
        assert mine["median"] == pytest.approx(shown.median, nan_ok=True)
        assert mine["valid"] == (not shown.invalid)
    assert told["runs"] == {"ok": results.ok, "traced": results.traced, "failed": len(results.failed)}
    assert told["report"] == str(whole.path)
    advised = [s["advice"] for of in told["verdict"] for s in of["storages"].values()]
    assert advised and set(advised) <= {"use", "avoid", "undecided", "fastest", "no gain", "only", "nothing"}
    # A ratio stands with its interval and with the noise that it is held against.
    ratios = [r for of in told["verdict"] for s in of["storages"].values() for r in s["ratios"]]
    assert ratios and all(r["low"] <= r["ratio"] <= r["high"] and r["verdict"] for r in ratios)
    for sentence in told["sentences"]:
        assert sentence in whole.page.text


def test_what_is_surely_within_the_margin_is_the_same() -> None:
    row = dict.fromkeys(_RATIO) | {"verdict": "undecided", "reason": "chance", "needed": 9, "outcome": "same"}
    told = _ratio(row)
    assert (told["verdict"], told["reason"], told["needed"]) == ("same", "", None)
    assert _ratio(row | {"outcome": "not decided"})["verdict"] == "undecided"


def test_without_a_page_there_is_none(tmp_path):
    assert document(Synthetic().whole().write(tmp_path), site(), study())["report"] is None


def test_what_was_taken_out_of_the_study_has_no_rows() -> None:
    """A workload and an experiment; what was imported is not of the study's plan, and stays."""
    data = Synthetic(processes=(1,))
    for workload in ("scientific", "gone"):
        data.data("scaling", workload, workload, "write", "sequential", 3)
    data.data("other", "scientific", "Other", "write", "sequential", 3)
    found = Results.of_study(study(), *data.frames(), FLAGS)
    assert set(zip(found.runs["experiment"], found.runs["workload"], strict=True)) == {
        ("scaling", "scientific")
    }
    assert {number.workload for number in found.numbers} == {"scientific"}
