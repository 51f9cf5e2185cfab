"""The simulation against SimGrid, the standard, on random topologies: when each flow ends."""

from __future__ import annotations

import json
import math
import random
import subprocess
from pathlib import Path

import pytest

from tiercel.simulation.events import Work, simulate
from tiercel.simulation.fair import Flows

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


def case(seed: int) -> tuple[dict[str, float], list[Work]]:
    """Return a few links, and classes of flows with starts and limits."""
    choose = random.Random(seed)
    links = {f"l{n}": choose.uniform(1e6, 1e9) for n in range(choose.randint(1, 8))}
    works = []
    for _ in range(choose.randint(1, 8)):
        way = choose.sample(sorted(links), choose.randint(1, len(links)))
        limit = choose.uniform(1e5, 5e8) if choose.random() < 0.4 else math.inf
        flows = Flows(choose.randint(1, 6), dict.fromkeys(way, 1.0), limit)
        start = choose.choice([0.0, choose.uniform(0, 5)])
        works.append(Work(flows, choose.randint(10**6, 10**9), start))
    return links, works


@pytest.mark.parametrize("seed", range(30))
def test_the_same_ends(simgrid: None, seed: int) -> None:
    links, works = case(seed)
    flows = [
        {"links": list(work.flows.uses), "bytes": work.amount, "start": work.start,
         "limit": None if math.isinf(work.flows.limit) else work.flows.limit}
        for work in works for _ in range(work.flows.count)
    ]  # fmt: skip
    answer = subprocess.run(
        [PYTHON, str(Path(__file__).parent / "simgrid_times.py")],
        input=json.dumps({"links": links, "flows": flows}), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    theirs = json.loads(answer.stdout)
    course = simulate(works, links)
    ours = [done.end for work, done in zip(works, course.done, strict=True) for _ in range(work.flows.count)]
    assert ours == pytest.approx(theirs, rel=1e-6)
