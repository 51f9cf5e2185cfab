"""`tiercel site ceilings` and `whatif` on sites that come with tiercel, against figures computed by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NoReturn

import pytest

from tiercel.ceilings.study import configurations_of, rows_of
from tiercel.engines import engines
from tiercel.layers import layers
from tiercel.site import load_site
from tiercel.study.load import load_study

from ..conftest import CHECKOUT

STUDY = ["--study", "vast-2024"]


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiercel", "site", *words],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def lassen() -> list[dict[str, Any]]:
    found = asked("ceilings", "lassen", *STUDY, "--json")
    assert found.returncode == 0, found.stderr
    rows: list[dict[str, Any]] = json.loads(found.stdout)["ceilings"]
    return rows


def test_lassens_vast_is_bound_by_the_gateway_up_to_128_nodes(lassen: list[dict[str, Any]]) -> None:
    # EDR link 12.5 GB/s a node; the gateway's 2 x 100 Gb/s are 25 GB/s.
    one, most = (
        next(
            row for row in lassen
            if (row["experiment"], row["workload"], row["storage"], row["nodes"])
            == ("scaling", "analytics", "vast", nodes)
        )
        for nodes in (1, 128)
    )  # fmt: skip
    assert (one["stage"], one["ceiling"], one["next_stage"], one["next_ceiling"]) == (
        "client", 12.5e9, "gateway", 25e9,
    )  # fmt: skip
    assert (most["stage"], most["ceiling"], most["next_stage"], most["next_ceiling"]) == (
        "gateway", 25e9, "client", 1600e9,
    )  # fmt: skip


def test_every_experiment_and_scale_of_the_study_has_a_row(lassen: list[dict[str, Any]]) -> None:
    # Three workloads at eight numbers of nodes, two at six numbers of processes, on three storages.
    assert len(lassen) == (3 * 8 + 2 * 6) * 3
    keys = ("experiment", "workload", "storage", "nodes", "processes_per_node")
    assert len({tuple(row[key] for key in keys) for row in lassen}) == len(lassen)


def test_what_has_no_ceiling_says_which_figure_is_missing(lassen: list[dict[str, Any]]) -> None:
    nvme = [row for row in lassen if row["storage"] == "nvme"]
    assert {(row["ceiling"], *row["missing"]) for row in nvme} == {(None, "media")}
    words = asked("ceilings", "lassen", *STUDY)
    assert "node-local NVMe, write and read: no ceiling: no bandwidth is given for media.\n" in words.stdout


def test_sixteen_gateway_links_and_what_binds_then() -> None:
    found = asked("whatif", "lassen", *STUDY, "--set", "gateway.units=16", "--json")
    assert found.returncode == 0, found.stderr
    pairs = json.loads(found.stdout)["ceilings"]
    changed = {
        (row["before"]["nodes"], row["before"]["ceiling"], row["after"]["ceiling"], row["after"]["stage"])
        for row in pairs
        if row["before"] != row["after"] and row["before"]["ceiling"] != row["after"]["ceiling"]
    }
    # 16 x 12.5 GB/s are 200 GB/s: as much as sixteen nodes' links.
    assert changed == {
        (4, 25e9, 50e9, "client"), (8, 25e9, 100e9, "client"), (16, 25e9, 200e9, "client"),
        (32, 25e9, 200e9, "gateway"), (64, 25e9, 200e9, "gateway"), (128, 25e9, 200e9, "gateway"),
    }  # fmt: skip
    words = asked("whatif", "lassen", *STUDY, "--set", "gateway.units=16")
    # Three workloads at six scales, of two storages with 36 ceilings each: the third has none.
    assert "18 of 72 ceilings change.\n" in words.stdout


@pytest.mark.parametrize("study", ["caching", "sharing", "full"])
def test_nothing_that_a_study_needs_has_to_be_here(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> NoReturn:
        raise AssertionError("looked for a program")

    for program in [*map(engines.get, engines), *map(layers.get, layers)]:
        monkeypatch.setattr(program, "find", nothing)
    site = load_site("frontera", CHECKOUT)
    found = rows_of(configurations_of(site, load_study(study, CHECKOUT)), site)
    assert {row.storage for row in found} == {"lustre", "memory"}


def test_a_simulated_site_has_the_ceilings_of_its_machine(lassen: list[dict[str, Any]]) -> None:
    found = asked("ceilings", "lassen-simulated", *STUDY, "--json")
    assert json.loads(found.stdout)["ceilings"] == lassen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ceilings", "nowhere"], "nowhere"),
        (["ceilings", "lassen", "--study", "nowhere"], "nowhere"),
        (["whatif", "lassen"], "--set is needed"),
        (["whatif", "lassen", *STUDY, "--set", "gatway.units=16"], "did you mean gateway?"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    found = asked(*words)
    assert (found.returncode, found.stdout) == (2, "")
    assert said in found.stderr and found.stderr.count("\n") == 1
