"""What is told of how far predictions were off."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tiercel.simulation import fidelity
from tiercel.simulation.fidelity import Fidelity, errors_of, fidelities, keep


def error(figure: str, storage: str, **more: float) -> Fidelity:
    keys = {"load": 1.0, "predictions": 12, "median": 0.03, "lowest": -0.08, "highest": 0.12, **more}
    return Fidelity(figure=figure, storage=storage, date="2026-01-01", **keys)  # type: ignore[arg-type]


def test_what_is_measured_again_takes_the_place_of_what_was(tmp_path: Path) -> None:
    path = tmp_path / "errors.json"
    keep([error("bandwidth", "disk"), error("operations", "disk"), error("latency", "link")], path)
    keep([error("bandwidth", "disk", median=0.5)], path)
    assert [(e.figure, e.storage, e.median) for e in fidelities(path)] == [
        ("latency", "link", 0.03), ("bandwidth", "disk", 0.5),
    ]  # fmt: skip


def test_each_kind_of_number_has_the_errors_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep([error("bandwidth", "a disk"), error("bandwidth", "a link", predictions=3)], tmp_path / "e.json")
    known = fidelities(tmp_path / "e.json")
    monkeypatch.setattr(fidelity, "fidelities", lambda: known)
    rows = [
        ("simulated", "bandwidth", None), ("simulated", "bandwidth", None), ("simulated", "latency", None),
        ("simulated", "operations", "server"), ("measured", None, None),
    ]  # fmt: skip
    found = errors_of(pd.DataFrame(rows, columns=["origin", "bound_figure", "figures_missing"]))
    # Of the bound (a figure is missing) there is no error, and the measured one is none of them.
    assert found == [
        "2 numbers, bound by bandwidth: predictions like these were off by 3 % in the median (-8 to +12 %) in"
        " 12 for a disk and 3 % in the median (-8 to +12 %) in 3 for a link.",
        "1 number, bound by latency: predictions like these were held against no measurement.",
    ]


def test_what_comes_with_tiercel_was_measured() -> None:
    assert {"bandwidth", "operations"} <= {each.figure for each in fidelities()}
    for each in fidelities():
        assert each.predictions > 0 and each.lowest <= each.highest and each.median >= 0
