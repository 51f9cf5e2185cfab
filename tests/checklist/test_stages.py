"""`tiercel site calibrate`: real runs on a folder of the test's, and what becomes of their figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiercel.ceilings import ceiling_of
from tiercel.checklist.stages import Bench, passed, unsteady
from tiercel.errors import UserError
from tiercel.site import load_site
from tiercel.site.calibrated import Calibration, read_calibration, with_calibration, write_calibration
from tiercel.site.model import Site, Stack, Storage
from tiercel.site.topology import Stage

from ..conftest import CHECKOUT, Project, needs_iokernel


@needs_iokernel
def test_this_machine_is_measured_and_known_from_then_on(project: Project) -> None:
    done = project.tiercel("site", "calibrate", "--seconds", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    memory, media = answer["storages"]["main"]
    assert (memory["stage"], media["stage"], media["whole"]) == ("client", "media", True)
    assert answer["date"] in media["source"] and "measured here" in media["source"]
    assert all(media[f"{d}_{figure}"] > 0 for d in ("read", "write") for figure in
               ("bandwidth", "operations", "latency"))  # fmt: skip
    assert media["metadata"].keys() == {"create", "stat", "read", "rename", "remove"}
    # The site is loaded with it, so what it carries is known; and a study can go without the machine.
    storage = load_site("local", project.root).storages["main"]
    ceiling = ceiling_of(storage, "write", 1)
    assert ceiling is not None and ceiling.unknown == ()
    assert ceiling.rate == pytest.approx(media["write_bandwidth"], rel=1e-6)
    plan = project.tiercel("plan", "--site", "local-simulated", "--study", "tiny")
    assert plan.returncode == 0 and "unknown" not in plan.stdout + plan.stderr
    # Nothing stays behind.
    assert not list(storage.scratch_path().iterdir())


def test_no_stage_carries_less_than_what_came_through_it() -> None:
    whole = {"read_bandwidth": 5e9, "write_bandwidth": 1e9}
    # One connection of loopback, or a busy minute: the storage gave more from end to end.
    assert passed({"stage": "client", "bandwidth": 3e9}, whole) == {
        "stage": "client", "read_bandwidth": 5e9, "write_bandwidth": 3e9,
    }  # fmt: skip
    memory = {"read_bandwidth": 9e9, "write_bandwidth": 2e8, "read_cache": 7}
    assert passed(memory, whole) == {"read_bandwidth": 9e9, "write_bandwidth": 1e9, "read_cache": 7}


def test_what_lies_far_apart_is_named() -> None:
    disk = Storage.model_validate({"type": "xfs", "mount": "/s", "scratch": "/s/x"})
    bench = Bench(site(), Stack("disk", disk), Path("/nowhere"), 1.0)
    bench.steady("create of files", 2, [100, 150, 190])
    assert unsteady(bench) == []
    bench.steady("create of files", 1, [500, 520, 36_000])
    (said,) = unsteady(bench)
    assert said.startswith("disk: unsteady, so of little use: create of files by 1 process (72 times)")


def site(*stages: dict[str, object], **keys: object) -> Site:
    storage = {"type": "xfs", "mount": "/s", "scratch": "/s/x", "topology": list(stages), **keys}
    return Site.model_validate({"site": "here", "storages": {"disk": storage}})


def test_what_somebody_wrote_down_wins(tmp_path: Path) -> None:
    found = Calibration(
        site="here", date="2026-01-01",
        storages={"disk": [Stage(stage=s, bandwidth=1e9) for s in ("client", "media")]},
    )  # fmt: skip
    write_calibration(found, tmp_path)
    assert read_calibration("here", tmp_path) == found
    told = site({"stage": "client"}, {"stage": "media", "label": "told", "write_bandwidth": "3GB/s"})
    stages = with_calibration(told, tmp_path).storages["disk"].topology
    # The client had no figure, so it is the measured one; the media keeps its own.
    assert [(s.stage, s.label, s.one_carries("write")) for s in stages] == [
        ("client", "", 1e9), ("media", "told", 3e9),
    ]  # fmt: skip


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "site-configs" / "here").mkdir(parents=True)
    (tmp_path / "site-configs" / "here" / "calibration.yaml").write_text("site: here\nstorages: 3\n")
    with pytest.raises(UserError, match=r"calibration\.yaml"):
        with_calibration(site(), tmp_path)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lassen"], "all nodes share it, and one node"),
        (["lassen-simulated"], "a simulated site cannot be measured"),
        (["local", "--storage", "nope"], "no storage 'nope'"),
    ],
)
def test_what_cannot_be_calibrated_is_told_in_a_line(words: list[str], says: str) -> None:
    done = Project(CHECKOUT).tiercel("site", "calibrate", *words)
    assert done.returncode == 2 and says in done.stderr
