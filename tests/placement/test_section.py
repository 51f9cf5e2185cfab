"""The section on placement: its figures hold the sweep's numbers, and say whose they are."""

import json
import math
from types import SimpleNamespace

import pandas as pd
import pytest

from tiercel.placement.applications.score import keep
from tiercel.placement.dataset import KEPT
from tiercel.placement.score import fastest_shares
from tiercel.placement.section import placement
from tiercel.placement.section_figures import by_transfer_size, sweep_pictures
from tiercel.report.sections.base import Context

from .synthetic import observations, saved


def dataset(*configurations):
    """Return a dataset of (operation, transfer size, bytes/s on near, on far, standard error of log2)."""
    table = pd.DataFrame(
        [
            {"workload": f"w{i}", "operation": operation, "transfer_size": size, "bandwidth:near": near,
             "bandwidth:far": far, "error:near": error, "error:far": error}
            for i, (operation, size, near, far, error) in enumerate(configurations)
        ]
    )  # fmt: skip
    table.attrs["systems"] = ["far", "near"]
    return table


def test_throughput_over_transfer_size_is_the_median_of_the_same_configurations():
    table = dataset(
        ("read", 64, 10.0, 1.0, 0.1), ("read", 64, 30.0, 3.0, 0.1), ("read", 64, 50.0, 5.0, 0.1),
        ("write", 64, 7.0, 9.0, 0.1),
    )  # fmt: skip
    found = {(r["operation"], r["system"]): r for r in by_transfer_size(table)}
    near = found["read", "near"]
    # Quartiles of 10, 30, 50 lie half-way between neighbours.
    assert (near["n"], near["low"], near["median"], near["high"]) == (3, 20.0, 30.0, 40.0)
    assert found["read", "far"]["median"] == 3.0
    assert (found["write", "far"]["n"], found["write", "far"]["median"]) == (1, 9.0)


def test_shares_count_what_differs_by_more_than_the_noise():
    # log2(2) = 1 against two standard errors of both, 2 * sqrt(2) * 0.1 = 0.28: differs; log2(1.1) does not.
    table = dataset(
        ("read", 64, 2.0, 1.0, 0.1), ("read", 64, 1.1, 1.0, 0.1), ("read", 64, 1.0, 4.0, 0.1),
        ("read", 64, 4.0, 1.0, 0.1), ("read", 4096, 1.0, 4.0, 0.1),
    )  # fmt: skip
    found = {(r["transfer_size"], r["system"]): (r["n"], r["share"]) for r in fastest_shares(table)}
    assert found == {
        (64, "near"): (4, 0.5), (64, "far"): (4, 0.25), (4096, "near"): (1, 0.0), (4096, "far"): (1, 1.0),
    }  # fmt: skip


def score(accuracy):
    return {
        "count": 60, "accuracy": accuracy, "accuracy_sd": 0.05, "regret": 0.1, "differing": 50,
        "accuracy_where_differ": accuracy, "regret_where_differ": 0.1,
    }  # fmt: skip


#: A card with the keys that `tiercel place train` writes, of figures that were chosen.
CARD = {
    "site": "here", "systems": ["far", "near"], "method": "trees", "features": {}, "scikit_learn": "1",
    "data": {"engine": ["iokernel 1"], "configurations": 60, "origin": ["simulated"]},
    "intervals_90": {"far": [0.5, 2.0]}, "notes": [], "limits": ["a limit"],
    "evaluation": {
        "models": {
            "always-the-same": {"random": score(0.6), "grouped": score(0.6)},
            "decision-tree": {"random": score(0.9), "grouped": score(0.8)},
        },
        "abstention": {"confidence": 0.9, "abstained": 0.5, "decided": score(1.0)},
    },
    "importances": [
        {"feature": "fsync", "permutation": 0.2, "impurity": 0.3},
        {"feature": "random", "permutation": -0.01, "impurity": 0.7},
        {"feature": "RO", "permutation": 0.0, "impurity": 0.0},
    ],
    "elimination": [
        {"features": ["fsync", "random"], "dropped": None, "accuracy": 0.8, "chosen": False},
        {"features": ["fsync"], "dropped": "random", "accuracy": 0.75, "chosen": True},
    ],
}  # fmt: skip


@pytest.fixture
def swept(tmp_path):
    """A sweep on two systems, saved, and its folder."""
    folder, table = saved(tmp_path / "results", observations(size=60, repetitions=3))
    return tmp_path / "results", folder, table


def test_a_sweep_has_three_figures_with_their_numbers(swept, tmp_path):
    _, _, table = swept
    found = {p.name: p for p in sweep_pictures(tmp_path, table)}
    assert list(found) == ["placement-sweep", "placement-transfer-sizes", "placement-shares"]
    assert all((tmp_path / f"{name}.svg").exists() for name in found)
    assert len(found["placement-sweep"].data) == len(table)
    for row in found["placement-shares"].data:
        assert 0 <= row["share"] <= 1
    # Each configuration is in one bar.
    counted = {(r["operation"], r["transfer_size"]): r["n"] for r in found["placement-shares"].data}
    assert sum(counted.values()) == len(table)


def test_the_caption_says_what_a_line_is(swept, tmp_path):
    """Of one configuration for each size no size can be said to decide little: it is all that differs."""
    _, _, table = swept
    many = {p.name: p for p in sweep_pictures(tmp_path, table)}["placement-transfer-sizes"]
    assert "medians over the configurations" in many.caption
    single = table.drop_duplicates(["operation", "transfer_size"])
    one = {p.name: p for p in sweep_pictures(tmp_path, single)}["placement-transfer-sizes"]
    assert "nothing but the size differs" in one.caption and "bands" not in one.caption


def section(root, tmp_path):
    """Return the section: of the results it asks for the name of the study, and for those of systems."""
    results = SimpleNamespace(study=SimpleNamespace(study="sweep"), name=lambda system: f"the {system}")
    return placement(Context(root, tmp_path, SimpleNamespace(), results))


def test_the_section_says_what_was_learnt(swept, tmp_path):
    root, folder, _ = swept
    made = section(root, tmp_path)
    assert [p.name for p in made.pictures] == [
        "placement-sweep",
        "placement-transfer-sizes",
        "placement-shares",
    ]
    assert any("tiercel place train" in note for note in made.notes)
    (folder / "model.json").write_text(json.dumps(CARD))
    made = section(root, tmp_path)
    accuracy, importance = made.pictures[3:]
    # The best comes first.
    assert [(row["model"], row["random accuracy"]) for row in accuracy.data] == [
        ("decision tree", 0.9), ("always the same", 0.6),
    ]  # fmt: skip
    # The figure leaves out what decides nothing; its numbers have it.
    assert "fsync" in importance.svg and "RO<" not in importance.svg and len(importance.data) == 3
    assert (
        "Learnt anew on 1 of 2 features (fsync), a decision tree names the fastest system in 75.0 % of the "
        "configurations held back in groups; on all of them in 80.0 %."
    ) in made.paragraphs


def test_real_applications_are_shown_with_the_sweep_that_judged_them(swept, tmp_path):
    root, folder, table = swept

    def totals(count, right, differing, right_there):
        found = score(right) | {
            "count": count, "differing": differing, "accuracy_where_differ": right_there,
        }  # fmt: skip
        return {"chosen": found, "decided": found, "abstained": 0.25}

    # Of git no sample differs, so that it has no accuracy there.
    scored = {
        "applications": {"sqlite": totals(8, 0.75, 4, 0.5), "git": totals(2, 1.0, 0, math.nan)},
        "total": totals(10, 0.8, 4, 0.5), "notes": ["hdf5 left out"], "rows": [], "home": "far",
    }  # fmt: skip
    keep(folder, scored, table)
    made = section(root, tmp_path)
    assert made.pictures[-1].name == "placement-applications"
    assert [(r["application"], r["count"]) for r in made.pictures[-1].data] == [
        ("sqlite", 8), ("git", 2), ("all", 10),
    ]  # fmt: skip
    assert "hdf5 left out" in made.notes and not any("older sweep" in note for note in made.notes)
    kept = json.loads((folder / KEPT).read_text())
    (folder / KEPT).write_text(json.dumps(kept | {"sweep": "another"}))
    assert any("older sweep" in note for note in section(root, tmp_path).notes)
