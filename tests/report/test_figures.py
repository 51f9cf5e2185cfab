"""Which figures a report draws of a study with more workloads than a page has room for."""

import pytest
from tests.report.synthetic import Synthetic, study

from tiercel.report import figures
from tiercel.report.data import Results
from tiercel.report.packing import BARS, first_of
from tiercel.results.validity import FLAGS


@pytest.fixture
def results() -> Results:
    """Three workloads of one experiment and one of another, each with one panel."""
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme",))
    for workload in ("w1", "w2", "w3"):
        data.data("scaling", workload, workload, "write", "sequential", 3)
    data.data("fsync", "synced-write", "Synced", "write", "sequential", 3, fsync="write")
    return Results(study(), *data.frames(), FLAGS)


def test_a_report_draws_all_figures_that_it_has_room_for(results: Results) -> None:
    assert figures.left_out(results) == {}


def test_each_experiment_has_its_share_of_too_many_figures(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "PANELS", 3)
    # The first of each experiment, then the second of the one that has several; in the order of the study.
    shown = [group[0].workload for group in figures._shown(results)]
    assert shown == ["w1", "w2", "synced-write"]
    assert figures.left_out(results) == {"scaling": 1}


def test_a_caption_says_how_many_rows_are_not_drawn() -> None:
    assert first_of([0] * BARS) == ""
    assert f"{BARS} of {BARS + 1}" in first_of([0] * (BARS + 1))
