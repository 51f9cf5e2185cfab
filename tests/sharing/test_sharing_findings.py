"""The sentences of the report's section Sharing, from hand-made rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd

from tiercel.report.sections.base import Context
from tiercel.sharing.section_findings import findings
from tiercel.sharing.section_labels import told_apart
from tiercel.sharing.section_slowdown import slowdown_pictures

RESULTS = SimpleNamespace(
    name=lambda stack: stack, experiment_title=lambda name: name.upper(), title=lambda _, name: name
)
CONTEXT = cast(Context, SimpleNamespace(results=RESULTS))


def row(stack: str, workload: str, job: str, **numbers: float) -> dict[str, Any]:
    return {
        "experiment": "e", "workload": workload, "stack": stack, "job": job, "share": None,
        "entitled_share": None, "slowdown": None, **numbers,
    }  # fmt: skip


def test_contests_and_applications() -> None:
    rows = pd.DataFrame([
        row("fair", "cycle", "a", share=0.88, entitled_share=0.8),
        row("fair", "cycle", "b", share=0.12, entitled_share=0.2),
        row("plain", "cycle", "a", share=0.5),
        # 12 % where 10 % are allowed and two runs alone differ by 3 %; 40 % and 5 % where 10 % are allowed.
        row("job", "melt", "lammps", share=0.1, entitled_share=0.5, slowdown=0.12, slowdown_allowed=0.10,
            slowdown_noise=0.03),
        row("job", "melt", "background", share=0.9, entitled_share=0.5),
        row("fifo", "melt", "lammps", slowdown=0.40, slowdown_allowed=0.10, slowdown_noise=0.03),
        row("size", "melt", "lammps", slowdown=0.05, slowdown_allowed=0.10, slowdown_noise=0.03),
        row("plain", "melt", "lammps", slowdown=0.5, slowdown_noise=0.03),
    ])  # fmt: skip
    assert findings(CONTEXT, rows) == (
        # 0.08 of 0.8 is 10 %, of 0.2 40 %; the median of both is 25 %.
        "E, cycle: on fair jobs' shares differ by 25.0 % from the policy's (median, each relative to its "
        "own).",
        "E, melt: beside the background job its time changes by +12.0 % on job (within the noise of the "
        "10.0 % that its share allows), +40.0 % on fifo (above the 10.0 % that its share allows), +5.0 % on "
        "size (within the 10.0 % that its share allows), +50.0 % on plain. Two runs alone differ by 3.0 %.",
    )


def test_results_without_applications() -> None:
    rows = pd.DataFrame([
        row("near", "cycle", "a", share=0.5, entitled_share=0.5),
        row("far", "cycle", "a", share=0.7, entitled_share=0.5),
    ])  # fmt: skip
    assert findings(CONTEXT, rows) == (
        "E, cycle: nearest to its policy is near: jobs' shares differ by 0.0 % from the policy's (median, "
        "each relative to its own); farthest far: 40.0 %.",
    )


def test_panels_are_told_apart_by_what_differs() -> None:
    same = "policy=job-fair rate=4MiB"
    found = told_apart([f"{same} scheduler=token", f"{same} scheduler=tbf"])
    assert found == (["scheduler=token", "scheduler=tbf"], same)
    # The plain storage has no options, and one panel needs all of its own.
    assert told_apart(["plain disk", "policy=fifo"]) == (["plain disk", "policy=fifo"], "")
    assert told_apart(["policy=fifo"]) == (["policy=fifo"], "")
    # One that has nothing but what all have keeps its words.
    assert told_apart(["policy=fifo", "policy=fifo rate=1"]) == (["policy=fifo", "policy=fifo rate=1"], "")


def test_slowdowns_are_drawn_by_application_and_policy(tmp_path: Path) -> None:
    """As figures 1 and 13 of the ThemisIO paper: a bar for each policy, and what its share allows."""
    context = cast(Context, SimpleNamespace(results=RESULTS, figures=tmp_path))
    fifo, fair = (f"disk + fairshare policy={policy} rate=1" for policy in ("fifo", "size-fair"))
    at: dict[str, Any] = {"storage": "disk", "storage_label": "a disk", "slowdown_noise": 0.03}
    rows = pd.DataFrame([
        row(fifo, "melt", "lammps", slowdown=0.40, **at),
        row(fifo, "melt", "lammps", slowdown=0.60, **at),
        row(fair, "melt", "lammps", slowdown=0.1, slowdown_allowed=0.2, **at),
        row(fifo, "melt", "background", **{**at, "slowdown_noise": None}),
    ])  # fmt: skip
    (made,) = slowdown_pictures(context, rows)
    assert [(r["layer"], r["repetitions"], r["slowdown"]) for r in made.data] == [
        ("policy=fifo", 2, 0.5), ("policy=size-fair", 1, 0.1),
    ]  # fmt: skip
    assert "a disk" in made.title and "rate=1" in made.title and ">policy=fifo<" in made.svg
    assert not list(slowdown_pictures(context, rows.drop(columns="slowdown_noise")))
