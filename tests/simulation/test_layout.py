"""Who goes over which units: processes that nothing tells apart are one class."""

from __future__ import annotations

import random

import pytest

from tiercel.simulation.fair import Flows, fair_rates
from tiercel.simulation.layout import layout
from tiercel.site.topology import Stage


def stage(kind: str = "server", **keys: object) -> Stage:
    return Stage.model_validate({"stage": kind, **keys})


def test_all_are_alike_where_everything_is_striped() -> None:
    found = layout([stage(per_node=True, units=2), stage(units=16)], 128, 44)
    assert [group.count for group in found.groups] == [128 * 44]
    assert found.sizes == {(0, 0): 256, (1, 0): 16}  # two links on each of 128 nodes, 16 servers


def test_three_nodes_on_two_gateways() -> None:
    # Nodes 0 and 2 share gateway 0, node 1 has gateway 1: two classes of 2 x 4 and 1 x 4 processes.
    found = layout([stage("client", per_node=True), stage("gateway", units=2, spread="nodes")], 3, 4)
    assert sorted(group.count for group in found.groups) == [4, 8]
    assert sorted(found.sizes.values()) == [1, 1, 1, 2]


def test_as_many_on_each_unit_are_one_class() -> None:
    found = layout([stage("client", per_node=True), stage("gateway", units=8, spread="nodes")], 128, 44)
    assert [group.count for group in found.groups] == [5632]
    assert sorted(found.sizes.values()) == [8, 128]


@pytest.mark.parametrize("seed", range(40))
def test_classes_have_the_rates_of_their_processes(seed: int) -> None:
    """Each process by itself, on units by themselves, gets what its class gets."""
    choose = random.Random(seed)
    stages = []
    for kind in ("client", "gateway", "server", "media"):
        own = choose.random() < 0.3
        spread = choose.choice(["stripes", "processes"] if own else ["stripes", "nodes", "processes"])
        rate = f"{choose.randint(1, 100)}GB/s"
        units = choose.randint(1, 5)
        # Of two sizes, so that some units are alike.
        sizes = [choose.choice([1.0, 0.4]) for _ in range(units)] if choose.random() < 0.5 else None
        stages.append(stage(kind, units=units, sizes=sizes, per_node=own, spread=spread, bandwidth=rate))
    nodes, each = choose.randint(1, 7), choose.randint(1, 6)
    found = layout(stages, nodes, each)
    capacities = {f"{n}.{u}": size * (stages[n].bandwidth or 0) for (n, u), size in found.sizes.items()}
    classes = [Flows(g.count, {f"{n}.{u}": 1.0 for n, u in g.units.items()}) for g in found.groups]
    together = fair_rates(classes, capacities)
    single, free = [], {}
    for node in range(nodes):
        for process in range(each):
            uses = {}
            for n, s in enumerate(stages):
                turn = process if s.per_node else node * each + process
                at = {"stripes": 0, "nodes": node % s.units, "processes": turn % s.units}[s.spread]
                name = f"{n}/{node if s.per_node else '-'}/{at}"
                sizes = s.sizes or (1.0,) * s.units
                free[name] = (s.bandwidth or 0) * (sum(sizes) if s.spread == "stripes" else sizes[at])
                uses[name] = 1.0
            single.append(Flows(1, uses))
    apart = sorted(fair_rates(single, free))
    assert sorted(r for g, r in zip(found.groups, together, strict=True) for _ in range(g.count)) == (
        pytest.approx(apart)
    )
