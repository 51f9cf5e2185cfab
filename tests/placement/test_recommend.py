"""The model's opinion beside a measurement."""

import numpy as np
import pytest

from tiercel.placement.model import PlacementModel
from tiercel.placement.recommend import agreement, best_model, opinion

from .synthetic import LAWS, observations, saved, seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    path, table = saved(results)
    PlacementModel.train(table).save(path, path)
    return results


def test_the_model_of_any_study_is_found_and_that_of_another_site_is_told(folder):
    model, notes = best_model(folder, "here")
    assert model is not None and notes == []
    model, notes = best_model(folder, "elsewhere")
    assert model is None
    assert "learnt on site here" in notes[0]
    assert best_model(folder / "nothing", "here") == (None, [])


def test_an_opinion_follows_the_law_and_keeps_its_sides(folder):
    model, _ = best_model(folder, "here")
    rows = observations(size=150)
    small = rows[
        (rows["transfer_size"] == 512) & (rows["bytes_per_process"] == 512) & (rows["fsync"] == "none")
    ]
    said = opinion(model, small, "near", "far")
    truth = seconds(LAWS["far"], 512, 1, 0) / seconds(LAWS["near"], 512, 1, 0)
    assert said.outcome == "higher" and said.low <= truth <= said.high and said.outside == ""
    turned = opinion(model, small, "far", "near")
    assert turned.outcome == "lower"
    assert np.isclose(turned.ratio * said.ratio, 1) and np.isclose(turned.low * said.high, 1)
    assert opinion(model, small, "near", "unknown") is None


def test_what_the_model_never_saw_decides_nothing(folder):
    model, _ = best_model(folder, "here")
    odd = observations(size=150).iloc[:1].assign(transfer_size=2**33, bytes_per_process=2**33)
    said = opinion(model, odd, "near", "far")
    assert said.outcome == "undecided" and "transfer_size" in said.outside


@pytest.mark.parametrize(
    ("measured", "expected", "together"),
    [
        ("higher", "higher", "agree"),
        ("higher", "lower", "disagree"),
        ("higher", "undecided", "the measurement alone decides"),
        ("same", "higher", "the measurement alone decides"),
        ("undecided", "lower", "the model alone decides"),
        ("undecided", "undecided", "both undecided"),
    ],
)
def test_how_they_go_together(measured, expected, together):
    assert agreement(measured, expected) == together
