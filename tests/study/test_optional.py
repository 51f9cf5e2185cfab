"""Experiments that go without what a site lacks, and the shipped studies on the shipped sites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tiercel.errors import UserError
from tiercel.runs.planning import _repeated, make_plan
from tiercel.study.expand import Capabilities, expand
from tiercel.study.plan import order_runs

from .test_plan import site, study

LAYERED = [{"storage": "all"}, {"storage": "all", "layers": ["cache"]}]
LOCAL = {"type": "xfs", "mount": "/", "scratch": "/tmp/x", "medium": "disk"}
WRITE = {"w": {"operation": "write", "segments": 3}}


def expanded(experiment: dict[str, Any], layers: dict[str, str] | None = None) -> tuple[list[Any], list[str]]:
    s = study(experiments={"e": {"workloads": WRITE, **experiment}})
    return expand(s, site(), Capabilities("mpiexec", {"iokernel": "1"}, layers or {}))


def test_more_nodes_and_processes_than_there_are() -> None:
    found, notes = expanded({"optional": True, "nodes": [1, 4, 8], "processes_per_node": [1, 16, 32]})
    assert {(c.nodes, c.processes_per_node) for c in found} == {(1, 1), (4, 1)}  # the site has 4 nodes of 8
    assert notes == [
        "e goes on without 8 nodes: the site has fewer",
        "e goes on without 16, 32 processes on a node: the site has fewer",
    ]


def test_an_experiment_of_which_nothing_is_left_is_left_out() -> None:
    """It was said to go on, and none of it stood in the table."""
    found, notes = expanded({"optional": True, "nodes": [8, 16]})
    assert found == [] and notes == ["e is left out: it needs 8, 16 nodes: the site has fewer"]
    found, notes = expanded({"optional": True, "processes_per_node": [16]})
    assert found == [] and notes == ["e is left out: it needs 16 processes on a node: the site has fewer"]


def test_what_an_engine_cannot_do_beside_another_is_told() -> None:
    """Of two engines one does no random writes, and no metadata at all, which is another engine's work."""
    work = {
        **WRITE,
        "r": {**WRITE["w"], "pattern": "random"},
        "m": {"operation": "metadata", "items_per_process": 9},
    }
    s = study(engines_where_found=["ior"], experiments={"e": {"workloads": work}})

    class Two(Capabilities):
        def unsupported(self, engine: str, workload: Any, *_: Any) -> str | None:
            if engine == "iokernel":
                return None
            if workload.operation == "metadata":
                return "ior does data"
            return "no random writes" if workload.pattern == "random" else None

    _, notes = expand(s, site(), Two("mpiexec", {"iokernel": "1", "ior": "1"}))
    assert notes == ["e/r: without ior (no random writes)"]


def test_numbers_that_double_up_to_what_the_site_has() -> None:
    """The site has 4 nodes of 8 cores."""
    found, notes = expanded({"nodes": "doubling to 16", "processes_per_node": ["max"]})
    assert sorted({c.nodes for c in found}) == [1, 2, 4]
    assert notes == ["e goes on without 8, 16 nodes: the site has fewer"]
    found, notes = expanded({"nodes": "doubling", "processes_per_node": "doubling to 3"})
    assert {(c.nodes, c.processes_per_node) for c in found} == {(n, p) for n in (1, 2, 4) for p in (1, 2)}
    assert notes == []
    # Numbers of a list are wanted as they stand.
    with pytest.raises(UserError, match="8 is more than the 4 of site"):
        expanded({"nodes": [1, 8]})
    for wrong in ("doubling to 0", "doubling to many", "all"):
        with pytest.raises(UserError, match="nodes: must be a list of numbers, doubling"):
            expanded({"nodes": wrong})


def test_a_papers_scales_on_a_smaller_site(checkout: Path) -> None:
    found = make_plan("slurm-virtual", "vast-2024", checkout)
    scales = {(c.experiment, c.nodes, c.processes_per_node) for c in found.plan.configurations}
    assert {n for e, n, _ in scales if e == "scaling"} == {1, 2, 4}
    assert {p for e, _, p in scales if e == "fsync"} == {1, 2, 4}
    assert "scaling goes on without 8, 16, 32, 64, 128 nodes: the site has fewer" in found.notes
    assert "fsync goes on without 8, 16, 32 processes on a node: the site has fewer" in found.notes


def test_a_training_without_a_step_for_each_process() -> None:
    """1,120 records in batches of 20: 56 processes have one each, and 57 none. The site has 4 nodes of 32."""
    s = study(experiments={"e": {"nodes": [1, 2], "processes_per_node": [28, 32], "workloads": {
        "candle": {"operation": "deep-learning", "workload": "candle"}}}})  # fmt: skip
    found, notes = expand(s, site(processes_per_node=32), Capabilities("mpiexec", {"dlkernel": "1"}))
    assert {(c.nodes, c.processes_per_node) for c in found} == {(1, 28), (1, 32), (2, 28)}
    assert notes == [
        "e: candle is left out on 2 x 32 processes "
        "(1,120 samples give 64 processes less than one batch of 20 each)"
    ]


def test_a_dataset_that_grows_with_the_nodes_has_a_step_for_each_process() -> None:
    """1,120 records for each node: four nodes of 32 have 4,480, 35 a process."""
    s = study(experiments={"e": {"nodes": [4], "processes_per_node": [32], "workloads": {
        "candle": {"operation": "deep-learning", "workload": "candle", "grow_with": "nodes"}}}})  # fmt: skip
    found = expand(s, site(processes_per_node=32), Capabilities("mpiexec", {"dlkernel": "1"}))[0]
    assert {(c.nodes, c.processes_per_node) for c in found} == {(4, 32)}


def test_a_layer_that_is_not_there() -> None:
    found, notes = expanded({"optional": True, "stacks": LAYERED})
    # What a layer costs or gains is the experiment's question: without any, there is nothing to run.
    assert found == []
    assert notes == ["e is left out without layer cache: not installed (make layers)"]
    found, notes = expanded({"optional": True, "stacks": LAYERED}, {"cache": "1"})
    assert len(found) == 4 and notes == []  # two storages, plain and through the layer
    other = [*LAYERED, {"storage": "all", "layers": ["other"]}]
    found, notes = expanded({"optional": True, "stacks": other}, {"cache": "1"})
    assert len(found) == 4 and notes == ["e goes on without layer other: not installed (make layers)"]


def test_an_engine_that_is_not_there() -> None:
    def of(optional: bool) -> tuple[list[Any], list[str]]:
        e = {"workloads": WRITE, "engines": ["h5kernel"], "optional": optional}
        s = study(engines_where_found=["h5kernel"], experiments={"e": e})
        return expand(s, site(), Capabilities("mpiexec", {"iokernel": "1"}))

    assert of(True) == ([], ["e: w is left out (no engine is installed)"])
    with pytest.raises(UserError, match=r"experiments.e.engines: none of h5kernel is installed"):
        of(False)
    with pytest.raises(UserError, match="is none of the study's engines"):
        study(experiments={"e": {"workloads": WRITE, "engines": ["ior"]}})


def test_one_node_reads_what_another_wrote_where_there_is_another() -> None:
    """The site has 4 nodes; the job of the read has two, and its numbers are of one."""
    reads = {"r": {"operation": "read", "segments": 3, "another_client": True}}
    found, notes = expanded({"nodes": [1, 2], "workloads": {**WRITE, **reads}})
    jobs = {(c.name, c.nodes): c.job_nodes for c in found}
    assert jobs == {("w", 1): 1, ("w", 2): 2, ("r", 1): 2, ("r", 2): 2} and notes == []
    s = study(twins=False, experiments={"e": {"workloads": reads}})
    (batch, *_), at = order_runs(site(), s, [c for c in found if c.name == "r"], 1000).batches, site()
    assert batch.nodes == 2
    alone = "no other node takes part, so a node reads what it wrote itself, evicted before"
    for experiment, where, said in (
        ({"launcher": "fork"}, at, "site s"),
        ({}, site(nodes=1), "site s"),
        ({"stacks": ["n"]}, site(storages={"n": LOCAL, "b": LOCAL}, scheduler={"name": "slurm"}), "n"),
    ):
        s = study(experiments={"e": {"workloads": reads, **experiment}})
        (one, *_), notes = expand(s, where, Capabilities("mpiexec", {"iokernel": "1"}))
        assert one.job_nodes == 1 and one.workload.another_client is None
        assert notes == [f"r on {said}: {alone}"]


def test_twins_and_traces_of_one_experiment() -> None:
    s = study(
        trace=True,
        experiments={
            "whole": {"workloads": WRITE},
            "sweep": {"workloads": WRITE, "twins": False, "trace": False},
        },
    )
    configurations = expand(s, site(), Capabilities("mpiexec", {"iokernel": "1"}))[0]
    runs = order_runs(site(), s, configurations, 1000).runs
    assert {r.configuration.experiment for r in runs if r.twin == "b"} == {"whole"}
    assert {r.configuration.experiment for r in runs if r.traced} == {"whole"}


@pytest.mark.parametrize("name", ["quick", "full"])
@pytest.mark.parametrize("where", ["lassen", "wombat", "thetagpu", "slurm-virtual"])
def test_shipped_studies_plan_on_shipped_sites(checkout: Path, name: str, where: str) -> None:
    found = make_plan(where, name, checkout).plan
    assert {"scaling", "fsync", "metadata", "training"} <= {c.experiment for c in found.configurations}


def test_what_further_engines_measure_again_is_counted() -> None:
    s = study(engines_where_found=["ior"], experiments={"e": {"workloads": WRITE}})
    both = expand(s, site(), Capabilities("mpiexec", {"iokernel": "1", "ior": "1"}))[0]
    (said,) = _repeated(both, s)
    assert said.startswith(f"ior: installed here, so {len(both) // 2} of {len(both)} configurations")
    alone = expand(s, site(), Capabilities("mpiexec", {"iokernel": "1"}))[0]
    assert list(_repeated(alone, s)) == []
