"""The report's section Sharing: order, axes and times, from hand-made rows and documents."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from tiercel.report.sections.base import Context, Section
from tiercel.sharing.section import _draw, sharing

#: By name 200 ms comes before 50 ms, and `alone` before both.
WORKLOADS = ("lambda-50ms", "lambda-200ms", "alone")


def rows_of(workload: str, times: list[float | None]) -> list[dict[str, Any]]:
    """Return what a run gave for each of `times`, its seconds until all jobs had their share."""
    found = []
    for number, seconds in enumerate(times):
        run = {"run": f"{workload}.{number}", "experiment": "e", "workload": workload, "storage": "disk",
               "storage_label": "a disk", "layer": "none", "traced": False, "repetition": number}  # fmt: skip
        found += [
            {
                **run,
                "operation": "job-a",
                "phase": 0,
                "share": 0.5,
                "entitled_share": 0.5,
                "bandwidth": 1e6,
                "slowdown": None,
            },
            {**run, "operation": "all-jobs", "phase": 1, "seconds_to_share": seconds},
        ]
    return found


def section(folder: Path, rows: list[dict[str, Any]]) -> Section:
    for run in {row["run"] for row in rows}:
        (folder / "raw" / run).mkdir(parents=True)
        (folder / "raw" / run / "sharing.json").write_text(json.dumps(document(1.0)))
    experiment = SimpleNamespace(all_workloads=lambda: dict.fromkeys(WORKLOADS))
    results: Any = SimpleNamespace(
        observations=pd.DataFrame(rows), name=lambda stack: stack, title=lambda _, name: name,
        experiment_title=lambda name: name, stacks={"disk": "disk"},
        study=SimpleNamespace(study="s", experiments={"e": experiment}),
    )  # fmt: skip
    found = sharing(Context(folder, folder / "figures", SimpleNamespace(), results))  # type: ignore[arg-type]
    assert found is not None
    return found


def document(most: float) -> dict[str, Any]:
    jobs = [{"job": "a", "series": [most, most / 2]}]
    return {"unit": "B/s", "interval": 0.1, "contested": [0, 0.2], "jobs": jobs}


def test_never_counts_as_the_longest_and_workloads_stand_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five repetitions without tables one came to its shares, by chance and at once: 0.1 s was told."""
    monkeypatch.setattr("tiercel.sharing.section.full_scale", lambda _: (None, ()))
    found = section(tmp_path, [
        *rows_of("alone", [None, None, 0.1, None, None]), *rows_of("lambda-200ms", [0.4, None, 0.3]),
        *rows_of("lambda-50ms", [0.2, 0.2, 0.3]),
    ])  # fmt: skip
    assert [table.caption for table in found.tables] == [f"e: {name}" for name in WORKLOADS]
    last = [table.rows[0][1][-1].text for table in found.tables]
    assert last == ["0.2 s", "0.4 s", "never"]
    assert [words.split(":")[0] for words in found.paragraphs] == [f"e, {name}" for name in WORKLOADS]
    (picture,) = [p for p in found.pictures if p.name.startswith("sharing-e")]
    places = [picture.svg.index(f">{name}<") for name in WORKLOADS]
    assert places == sorted(places)


def test_panels_of_one_axis_hold_the_highest() -> None:
    """The first panel's end was that of all: what was higher in others was cut."""
    figure = Figure()
    _draw(figure, [("low", document(1e9)), ("high", document(4e9))])
    assert all(ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 4e9 / 1024**3 for ax in figure.axes)
