"""A study of a site without its machine, from the command line to the report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tiercel.engines.simulation import Simulation
from tiercel.errors import UserError
from tiercel.results.observations import collect
from tiercel.site import load_site
from tiercel.site.model import Storage

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
          - {stage: server, bandwidth: 5GB/s, units: 8, metadata: 1000, metadata_latency: 1us}
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
    # Two storages x two scales of writes, the larger scale of reads (of what another node wrote), and the
    # files on one: one run each, whatever is repeated.
    assert [run["origin"] for run in runs] == ["simulated"] * 7
    for table in ("observations", "runs"):
        assert set(pd.read_parquet(results / f"{table}.parquet")["origin"]) == {"simulated"}
    assert b"simulated" in (results / "dataset.nc").read_bytes()
    page = (results / "report" / "index.html").read_text()
    assert "simulated, not measured" in page and "(simulated)</h1>" in page
    assert ">measured</span>" not in page and "<li></li>" not in page
    assert "local-simulated: simulated from its topology" in said
    shown = project.tiercel("show", "--site", "local-simulated", "--study", "far", "--json")
    answer = json.loads(shown.stdout)
    assert answer["origin"] == "simulated"
    assert {number["origin"] for number in answer["numbers"]} == {"simulated"}
    # Of a model nothing is undecided for want of repetitions: 8 GB/s on one node, 40 on 64.
    said = {finding["sentence"]: finding["severity"] for finding in answer["findings"]}
    assert "open" not in said.values()
    assert any("from 1 to 64 nodes: 5.0× on Big" in one for one in said)
    # How far predictions like these were off where somebody measured.
    assert any("bound by bandwidth: predictions like these were off by" in sentence for sentence in said)
    assert not (project.root / "results" / "local").exists()


def test_what_is_not_known_is_told_by_name_and_counts_for_nothing(far: tuple[Project, str]) -> None:
    project, said = far
    found = observations(project)
    assert "Dark, write: not simulated: the topology gives no bandwidth of server (nobody knows)" in said
    assert "Half known, metadata: not simulated" in said
    # On one node the page cache may serve what it wrote.
    assert "Big, read: not simulated: the topology gives no cache of client (the page cache may" in said
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
    assert "A simulation has no noise" in words and "fewer than 6 repetitions" not in words


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
    assert len(list(raw.glob("*/run.json"))) == 7
    before = json.loads(
        project.tiercel("plan", "--site", "local-simulated", "--study", "far", "--json").stdout
    )
    project.site(SITE.replace("units: 8", "units: 9"))
    after = json.loads(
        project.tiercel("plan", "--site", "local-simulated", "--study", "far", "--json").stdout
    )
    project.site(SITE)
    assert not {run["run"] for run in before} & {run["run"] for run in after}


def test_other_hardware_is_a_simulated_site_of_its_own(far: tuple[Project, str]) -> None:
    project, _ = far
    asked = ["evaluate", "--site", "local", "--study", "far", "--simulate", "--set", "big.server.units=4"]
    done = project.tiercel(*asked, "--set", "big.media.latency=1us")
    assert done.returncode == 0, done.stderr
    (folder,) = (project.root / "results").glob("local-*-simulated")
    assert f"local with big.server.units=4, big.media.latency=1us: site {folder.name}\n" in done.stderr
    found = pd.read_parquet(folder / "observations.parquet")
    rates = found.set_index(["storage", "workload", "operation", "nodes"])["bandwidth"]
    # Four servers of 5 GB/s, where eight were; and the machine as it is has its own folder still.
    assert rates["big", "writes", "write", 64] == pytest.approx(20e9)
    assert set(found["origin"]) == {"simulated"} and set(found["site"]) == {folder.name}
    old = observations(project).set_index(["storage", "workload", "operation", "nodes"])["bandwidth"]
    assert old["big", "writes", "write", 64] == pytest.approx(40e9)
    # Every command takes the name, and says what is supposed.
    shown = project.tiercel("site", "show", folder.name)
    assert "big.server.units=4, big.media.latency=1us" in " ".join(shown.stdout.split())
    ceilings = project.tiercel("site", "ceilings", folder.name, "--study", "far", "--json")
    assert 20e9 in {row["ceiling"] for row in json.loads(ceilings.stdout)["ceilings"]}
    (folder / "supposed.yaml").write_text("site: local\n")
    torn = project.tiercel("show", "--site", folder.name, "--study", "far")
    assert (torn.returncode, "supposed.yaml: set: is required" in torn.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evaluate", "--study", "far", "--set", "big.server.units=4"], "add --simulate"),
        (["evaluate", "--study", "far", "--simulate", "--set", "big.servr.units=4"], "did you mean server?"),
        (
            ["evaluate", "--study", "far", "--simulate", "--decide"],
            "--decide: a simulation returns the same number",
        ),
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


def test_a_machine_as_it_is_found_is_the_same_in_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)  # Snakemake sets it in jobs, where nobody did
    project = Project(tmp_path)
    project.site("""
        site: local
        launcher: auto
        discover: true
    """)
    project.study("writes", """
        study: writes
        title: Writes
        engines: [iokernel]
        experiments:
          scaling:
            workloads:
              writes: {operation: write, data_per_process: 1GiB, fsync: phase}
    """)  # fmt: skip
    shown = json.loads(project.tiercel("site", "show", "local", "--json").stdout)
    scratch = {name: storage["scratch"] for name, storage in shown["storages"].items()}
    stage = {"stage": "media", "bandwidth": "1GB/s", "whole": True}
    calibration = {"site": "local", "date": "2026-01-01", "storages": {name: [stage] for name in scratch}}
    (project.root / "site-configs" / "local" / "calibration.yaml").write_text(json.dumps(calibration))
    done = project.tiercel("evaluate", "--study", "writes", "--simulate")
    assert done.returncode == 0, done.stderr
    results = project.root / "results" / "local-simulated"
    runs = [json.loads(path.read_text()) for path in results.glob("raw/*/run.json")]
    assert {run["storage"]["name"]: run["storage"]["scratch"] for run in runs} == scratch


def test_only_what_the_model_goes_by_makes_other_runs() -> None:
    stage = {"stage": "media", "bandwidth": "1GB/s", "source": "a page"}
    first = {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network", "topology": [stage]}
    same = {**first, "scratch": "/v/y", "label": "V", "capacity": "1TiB",
            "topology": [{**stage, "source": "a better page"}]}  # fmt: skip
    others = [{**first, "medium": "disk"}, {**first, "topology": [{**stage, "units": 2}]}]

    def version(content: dict[str, Any]) -> str:
        return Simulation().of_storages([Storage.model_validate(content)]).version

    assert version(same) == version(first)
    assert version(first) not in [version(other) for other in others]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "--simulate", "--site", "lassen-simulated-simulated"], "is simulated already"),
        (["site", "check", "lassen-simulated"], "a simulated site cannot be checked"),
        (["clean", "--site", "lassen-simulated"], "a simulated site has no scratch folders"),
    ],
)
def test_what_only_a_machine_has(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", *words],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1
