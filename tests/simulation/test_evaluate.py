"""A study of a site without its machine, from the command line to the report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tiercel.errors import UserError
from tiercel.results.observations import collect
from tiercel.site import load_site

from ..conftest import CHECKOUT, Project

SITE = """
    site: local
    launcher: jsrun
    scheduler: {name: lsf, walltime: 1h}
    nodes: 64
    processes_per_node: 8
    storages:
      big:
        label: Big
        type: nfs
        mount: /nowhere/big
        scratch: $NOT_SET/big
        medium: network
        topology:
          - {stage: client, bandwidth: 8GB/s, per_node: true}
          - {stage: gateway, bandwidth: 100GB/s}
          - {stage: server, bandwidth: 5GB/s, units: 8, metadata: 1000}
          - {stage: fabric, bandwidth: 100GB/s}
          - {stage: media, bandwidth: 100GB/s}
      half:
        label: Half known
        type: nfs
        mount: /nowhere/half
        scratch: $NOT_SET/half
        medium: network
        topology:
          - {stage: client, bandwidth: 8GB/s, per_node: true}
          - {stage: gateway, bandwidth: 10GB/s}
      dark:
        label: Dark
        type: gpfs
        mount: /nowhere/dark
        scratch: $NOT_SET/dark
        medium: network
        topology:
          - {stage: server, label: nobody knows}
"""
STUDY = """
    study: far
    title: A study of a far machine
    engines: [ior]
    repetitions: {minimum: 4, maximum: 9}
    trace: true
    experiments:
      scaling:
        nodes: [1, 64]
        processes_per_node: [8]
        phase_time: 2s
        workloads:
          writes: {operation: write, transfer_size: 1MiB, data_per_process: 1GiB, fsync: phase}
          again: {operation: read, access: RAW, transfer_size: 1MiB, data_per_process: 1GiB}
      metadata:
        nodes: [1]
        workloads:
          files: {operation: metadata, items_per_process: 100, directories: false}
"""


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """Return a project whose simulated study was evaluated, and what was said."""
    project = Project(tmp_path_factory.mktemp("far"))
    project.site(SITE)
    project.study("far", STUDY)
    done = project.tiercel("evaluate", "--site", "local", "--study", "far", "--simulate")
    assert done.returncode == 0, done.stderr
    return project, done.stdout + done.stderr


def observations(project: Project) -> pd.DataFrame:
    return pd.read_parquet(project.root / "results" / "local-simulated" / "observations.parquet")


def test_numbers_by_hand(far: tuple[Project, str]) -> None:
    found = observations(far[0])
    rates = found.set_index(["storage", "workload", "operation", "nodes"])
    # One link of 8 GB/s; eight servers of 5 GB/s.
    assert rates.loc[("big", "writes", "write", 1), "bandwidth"] == pytest.approx(8e9)
    assert rates.loc[("big", "writes", "write", 64), "bandwidth"] == pytest.approx(40e9)
    # Eight servers of 1,000 a second.
    assert rates.loc[("big", "files", "file-create", 1), "operation_rate"] == pytest.approx(8000)


def test_every_record_says_that_it_is_simulated(far: tuple[Project, str]) -> None:
    project, said = far
    results = project.root / "results" / "local-simulated"
    runs = [json.loads(path.read_text()) for path in results.glob("raw/*/run.json")]
    # Two storages x two scales of writes, and the files on one: one run each, whatever is repeated.
    assert [run["origin"] for run in runs] == ["simulated"] * 5
    for table in ("observations", "runs"):
        assert set(pd.read_parquet(results / f"{table}.parquet")["origin"]) == {"simulated"}
    assert b"simulated" in (results / "dataset.nc").read_bytes()
    page = (results / "report" / "index.html").read_text()
    assert "simulated, not measured" in page and "(simulated)</h1>" in page
    assert "local-simulated: simulated by its topology" in said
    shown = project.tiercel("show", "--site", "local-simulated", "--study", "far", "--json")
    answer = json.loads(shown.stdout)
    assert answer["origin"] == "simulated"
    assert {number["origin"] for number in answer["numbers"]} == {"simulated"}
    assert not (project.root / "results" / "local").exists()


def test_what_is_not_known_is_told_by_name_and_counts_for_nothing(far: tuple[Project, str]) -> None:
    project, said = far
    found = observations(project)
    assert "Dark, write: not simulated: the topology gives no bandwidth of server (nobody knows)" in said
    assert "Half known, metadata: not simulated" in said
    assert "again is left out" in said and "page cache" in said
    assert set(found["storage"]) == {"big", "half"}
    half = found[found["storage"] == "half"]
    assert set(half["figures_missing"]) == {"server, fabric, media"}
    assert all("figures-missing" in flags for flags in half["flags"])
    assert [list(flags) for flags in found[found["storage"] == "big"]["flags"] if len(flags)] == []
    page = (project.root / "results" / "local-simulated" / "report" / "index.html").read_text()
    assert "at most 8" in page or "at most 7" in page  # GB/s or GiB/s
    assert "Dark, write: not simulated" in page
    # Of one run each, which a model would only repeat.
    words = re.sub(r"</?(abbr|a)\b[^>]*>", "", page)  # terms that are explained where they are pointed at
    assert "neither noise nor an interval" in words and "fewer than 6 repetitions" not in words


def test_nothing_measured_comes_among_what_is_simulated(far: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = far
    mixed = tmp_path / "results"
    shutil.copytree(project.root / "results" / "local-simulated", mixed)
    some = sorted(mixed.glob("raw/*"))[0] / "run.json"
    some.write_text(some.read_text().replace('"origin": "simulated"', '"origin": "measured"'))
    for table in mixed.glob("*.parquet"):
        table.unlink()
    with pytest.raises(UserError, match=r"is simulated and .* is not"):
        collect(mixed)


def test_again_nothing_is_left_to_do_and_other_figures_are_other_runs(far: tuple[Project, str]) -> None:
    project, _ = far
    again = project.tiercel("evaluate", "--site", "local-simulated", "--study", "far")
    assert again.returncode == 0, again.stderr
    raw = project.root / "results" / "local-simulated" / "raw"
    assert len(list(raw.glob("*/run.json"))) == 5
    before = json.loads(
        project.tiercel("plan", "--site", "local-simulated", "--study", "far", "--json").stdout
    )
    project.site(SITE.replace("units: 8", "units: 9"))
    after = json.loads(
        project.tiercel("plan", "--site", "local-simulated", "--study", "far", "--json").stdout
    )
    project.site(SITE)
    assert not {run["run"] for run in before} & {run["run"] for run in after}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evaluate", "--study", "far", "--simulate", "--decide"], "--decide is for what is measured"),
        (["site", "new", "x-simulated"], "of simulated sites"),
        (["plan", "--site", "nowhere-simulated"], "no site named 'nowhere'"),
    ],
)
def test_mistakes_are_one_line(far: tuple[Project, str], words: list[str], says: str) -> None:
    done = far[0].tiercel(*words)
    assert done.returncode == 2
    assert says in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_engine_is_for_simulated_sites_alone(far: tuple[Project, str]) -> None:
    project, _ = far
    project.study("wrong", STUDY.replace("study: far", "study: wrong").replace("[ior]", "[simulation]"))
    done = project.tiercel("plan", "--site", "local", "--study", "wrong")
    assert done.returncode == 2 and "is for simulated sites" in done.stderr


def test_trainings_are_left_out_by_name() -> None:
    done = Project(CHECKOUT).tiercel("plan", "--site", "wombat-simulated", "--study", "vast-2024-dl")
    assert done.returncode == 2
    assert "nothing of study vast-2024-dl can be simulated" in done.stderr and "deep-learning" in done.stderr


def test_lassens_vast_levels_off_at_its_gateway() -> None:
    site = load_site("lassen-simulated", CHECKOUT)
    assert (site.site, site.nodes, site.scheduler) == ("lassen-simulated", 795, None)
