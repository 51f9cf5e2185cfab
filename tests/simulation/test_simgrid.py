"""The simulation against SimGrid, the standard, on random topologies: when each flow ends."""

from __future__ import annotations

import json
import math
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.simulation.events import Work, simulate
from tiercel.simulation.fair import Flows
from tiercel.simulation.phases import phases
from tiercel.site.model import Storage
from tiercel.study.workloads import DataWorkload

#: Debian's package has no module for other Pythons than the system's.
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def simgrid() -> None:
    try:
        asked = subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True, timeout=60, check=False)
    except OSError:
        pytest.skip(f"there is no {PYTHON}")
    if asked.returncode:
        pytest.skip(f"{PYTHON} has no SimGrid (Debian: apt-get install python3-simgrid)")


def anything(choose: random.Random) -> tuple[dict[str, float], list[Work]]:
    """Return a few links, and classes of flows with starts and limits."""
    links = {f"l{n}": choose.uniform(1e6, 1e9) for n in range(choose.randint(1, 8))}
    works = []
    for _ in range(choose.randint(1, 8)):
        way = choose.sample(sorted(links), choose.randint(1, len(links)))
        limit = choose.uniform(1e5, 5e8) if choose.random() < 0.4 else math.inf
        flows = Flows(choose.randint(1, 6), dict.fromkeys(way, 1.0), limit)
        start = choose.choice([0.0, choose.uniform(0, 5)])
        works.append(Work(flows, choose.randint(10**6, 10**9), start))
    return links, works


def long_chain(choose: random.Random) -> tuple[dict[str, float], list[Work]]:
    """Return twenty links one after the other, on which flows get at different places."""
    links = {f"l{n}": choose.uniform(1e6, 1e9) for n in range(20)}
    ways = [list(links)[choose.randint(0, 10) :] for _ in range(6)]
    return links, [
        Work(Flows(choose.randint(1, 9), dict.fromkeys(way, 1.0)), choose.randint(10**6, 10**9), float(n % 3))
        for n, way in enumerate(ways)
    ]


def ties(choose: random.Random) -> tuple[dict[str, float], list[Work]]:
    """Return links, amounts, starts and limits of which many are the same, so that much happens at once."""
    links = {f"l{n}": 1e8 for n in range(6)}
    works = []
    for _ in range(10):
        way = choose.sample(sorted(links), choose.randint(1, 6))
        flows = Flows(choose.choice([1, 2, 4]), dict.fromkeys(way, 1.0), choose.choice([math.inf, 25e6]))
        works.append(Work(flows, choose.choice([10**8, 2 * 10**8]), choose.choice([0.0, 1.0, 2.0])))
    return links, works


def unlike_nodes(choose: random.Random) -> tuple[dict[str, float], list[Work]]:
    """Return nodes whose links and amounts differ by orders of magnitude; one gateway, three servers."""
    links = {f"n{n}": 10 ** choose.uniform(5, 10) for n in range(12)}
    servers = {f"s{n}": 10 ** choose.uniform(6, 9) for n in range(3)}
    return {**links, **servers, "gateway": 10 ** choose.uniform(7, 10)}, [
        Work(Flows(choose.randint(1, 8), dict.fromkeys((f"n{n}", "gateway", f"s{n % 3}"), 1.0)),
             int(10 ** choose.uniform(4, 9)), choose.choice([0.0, n / 4]))
        for n in range(12)
    ]  # fmt: skip


def ends(links: dict[str, float], flows: list[dict[str, Any]], **more: Any) -> list[float]:
    """Return when SimGrid says that flows end."""
    asked = json.dumps({"links": links, "flows": flows, **more})
    answer = subprocess.run(
        [PYTHON, str(Path(__file__).parent / "simgrid_times.py")],
        input=asked, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found: list[float] = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", [anything, long_chain, ties, unlike_nodes])
def test_the_same_ends(
    simgrid: None, case: Callable[[random.Random], tuple[dict[str, float], list[Work]]], seed: int
) -> None:
    links, works = case(random.Random(seed))
    flows = [
        {"links": list(work.flows.uses), "bytes": work.amount, "start": work.start,
         "limit": None if math.isinf(work.flows.limit) else work.flows.limit}
        for work in works for _ in range(work.flows.count)
    ]  # fmt: skip
    course = simulate(works, links)
    ours = [done.end for work, done in zip(works, course.done, strict=True) for _ in range(work.flows.count)]
    assert ours == pytest.approx(ends(links, flows), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_study_on_a_topology_takes_as_long(simgrid: None, seed: int) -> None:
    """From a site's stages to the time of a phase, with latencies and gateways of two speeds: each process by
    itself in SimGrid."""
    choose = random.Random(seed)
    nodes, each, amount = choose.randint(1, 7), choose.randint(1, 5), 10**9
    kinds = {"client": "stripes", "gateway": "nodes", "server": "processes", "media": "stripes"}
    stages: list[dict[str, Any]] = [
        {"stage": kind, "spread": spread, "units": choose.randint(1, 4), "per_node": kind == "client",
         "bandwidth": choose.uniform(1e8, 1e10), "latency": choose.uniform(1e-4, 1e-1)}
        for kind, spread in kinds.items()
    ]  # fmt: skip
    stages[1]["sizes"] = [choose.choice([1.0, 0.4]) for _ in range(stages[1]["units"])]
    of = Storage.model_validate(
        {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": "network", "topology": stages}
    )
    links: dict[str, float] = {}
    latencies: dict[str, float] = {}
    flows: list[dict[str, Any]] = []
    for process in range(nodes * each):
        node, way = process // each, []
        for s in of.topology:
            turn = {"stripes": 0, "nodes": node, "processes": process}[s.spread] % s.units
            name = f"{s.stage}.{node if s.per_node else '-'}.{turn}"
            sizes = s.sizes or (1.0,) * s.units
            links[name] = (s.bandwidth or 0) * (sum(sizes) if s.spread == "stripes" else sizes[turn])
            latencies[name] = s.latency or 0
            way.append(name)
        flows.append({"links": way, "bytes": amount, "start": 0.0, "limit": None})
    workload = DataWorkload.model_validate(
        {"operation": "write", "transfer_size": 10**6, "data_per_process": amount}
    )
    (found,) = phases(workload, of, nodes, each)
    assert found.seconds == pytest.approx(max(ends(links, flows, latencies=latencies)), rel=0.01)
