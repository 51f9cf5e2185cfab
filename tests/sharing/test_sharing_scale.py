"""The report's table of a study's policies at full scale."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.sharing import section_scale as sharing_scale
from tiercel.sharing.section_scale import full_scale
from tiercel.sharing.simulator import NOT_BUILT, available
from tiercel.study.model import Study

JOBS = [{"name": "large", "size": 4, "seconds": 3}, {"name": "small", "size": 1, "seconds": 3}]


def study(workload: dict[str, Any], *layers: dict[str, Any]) -> Study:
    return Study.model_validate({
        "study": "s", "title": "S", "stacks": ["disk", *({"storage": "disk", "layers": [x]} for x in layers)],
        "experiments": {"e": {"workloads": {"w": workload}}},
    })  # fmt: skip


def fairshare(**options: object) -> dict[str, Any]:
    return {"layer": "fairshare", "options": options}


@pytest.mark.skipif(not available(), reason=NOT_BUILT)
def test_each_policy_once_marked_as_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of 4 and 1 nodes a server: size-fair gives 80 : 20, and fifo promises nothing."""
    monkeypatch.setattr(sharing_scale, "SERVERS", 2)
    monkeypatch.setattr(sharing_scale, "SECONDS", 0.1)
    layers = (fairshare(policy="fifo"), fairshare(rate="1MiB"), fairshare(policy="size-fair"))
    found, notes = full_scale(study({"operation": "sharing", "jobs": JOBS}, *layers))
    assert found is not None
    assert len(notes) == 1
    assert found.caption.startswith("Simulated")
    rows = [[cell.text for cell in cells] for _, cells in found.rows]
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("fifo", "large", ""),
        ("fifo", "small", ""),
        ("size-fair, stride", "large", "80.0 %"),
        ("size-fair, stride", "small", "20.0 %"),
    ]
    assert all(row[2].endswith("iB/s") for row in rows)  # the page's units


@pytest.mark.skipif(not available(), reason=NOT_BUILT)
def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_scale, "SERVERS", 2)
    monkeypatch.setattr(sharing_scale, "SECONDS", 0.05)
    names = ("fifo", "job-fair", "user-fair", "size-fair", "priority-fair")
    layers = (fairshare(policy="size-fair", scheduler="later"), *(fairshare(policy=name) for name in names))
    found, notes = full_scale(study({"operation": "sharing", "jobs": JOBS}, *layers))
    assert found is not None
    assert len(found.rows) == 3 * len(JOBS)
    assert notes[1].startswith("Not simulated: size-fair with scheduler later: simulation: scheduler: ")
    assert notes[2] == "Not simulated, since 4 are shown: size-fair, priority-fair."


def test_a_study_without_a_contest_or_without_the_layer_has_none() -> None:
    application = {"operation": "sharing-application", "application": "h5py"}
    assert full_scale(study(application, fairshare(policy="size-fair"))) == (None, ())
    assert full_scale(study({"operation": "sharing", "jobs": JOBS})) == (None, ())
