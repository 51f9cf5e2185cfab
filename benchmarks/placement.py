"""Placement: features in one pass against one by one, the solver against greedy by hand, plans of many files.

Answers are compared too: both ways must find the same features, and no greedy assignment may be better.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from tests.placement.synthetic import saved

from benchmarks.traces.generate import generate
from tiercel.placement.model import PlacementModel
from tiercel.placement.optimise import assign
from tiercel.placement.place import plan_of
from tiercel.site.model import Site, Storage
from tiercel.traces import IOFrame, open_trace

_ROUNDS = 5

#: Features of Table I as queries of their own, which is how the paper's library gets them (section VIII).
_ONE_BY_ONE = {
    "bytes_read": "sum(size) FILTER (kind = 'read')",
    "bytes_written": "sum(size) FILTER (kind = 'write')",
    "reads": "count(*) FILTER (kind = 'read')",
    "writes": "count(*) FILTER (kind = 'write')",
    "opens": "count(*) FILTER (regexp_matches(function, '^_*(f?open(at)?(64)?|creat(64)?|MPI_File_open)$'))",
    "syncs": "count(*) FILTER (kind = 'sync')",
    "collective": "count(*) FILTER (regexp_matches(function, '^MPI_File_.*(_all|_ordered)(_begin)?$'))",
    "preallocate": "count(*) FILTER (regexp_matches(function, 'fallocate|MPI_File_preallocate'))",
    "use_file_view": "count(*) FILTER (function LIKE '%MPI_File_set_view')",
    "num_ranks": "count(DISTINCT rank)",
}


def main() -> int:
    """Print the three comparisons; return 0."""
    with tempfile.TemporaryDirectory(prefix="tiercel-bench-placement-") as name:
        root = Path(name)
        _features(root)
        _solver()
        _plans(root)
    return 0


def _features(root: Path) -> None:
    generate(root / "trace-1000000", 1_000_000)
    frame = open_trace(root / "trace-1000000", cache=root / "cache")
    frame.extract_features()  # so that both ways find their modules loaded
    ways: dict[str, Callable[[IOFrame], Any]] = {
        "one pass": lambda frame: frame.extract_features(),
        "one by one": _one_by_one,
        "one pass again": lambda frame: frame.extract_features(),
    }
    costs: dict[str, list[float]] = {way: [] for way in ways}
    found: dict[str, Any] = {}
    order = random.Random(1)
    for _ in range(_ROUNDS):
        for way in order.sample(list(ways), len(ways)):
            began = time.process_time()
            found[way] = ways[way](frame)
            costs[way].append(time.process_time() - began)
    _same_features(found["one pass"], found["one by one"])
    print(f"features of {len(found['one pass']):,} files, 1,000,000 events, {_ROUNDS} rounds")
    print(f"{'way':20}{'CPU s':>8}{'x one pass':>12}{'lowest':>9}{'highest':>9}")
    for way, spent in costs.items():
        ratios = [a / b for a, b in zip(spent, costs["one pass"], strict=True)]
        spread = f"{statistics.median(ratios):12.2f}{min(ratios):9.2f}{max(ratios):9.2f}"
        print(f"{way:20}{statistics.median(spent):8.2f}{spread}")


def _one_by_one(frame: IOFrame) -> dict[str, pd.DataFrame]:
    where = "FROM events WHERE file IS NOT NULL AND api <> 'app' GROUP BY file"
    found = {name: frame.query(f"SELECT file, {what} AS value {where}").set_index("file")
             for name, what in _ONE_BY_ONE.items()}  # fmt: skip
    return {**found, "access": frame.access_pattern(), "history": frame.readwrite_pattern()}


def _same_features(table: pd.DataFrame, single: dict[str, pd.DataFrame]) -> None:
    for name in ("bytes_read", "bytes_written", "num_ranks"):
        values = single[name]["value"].reindex(table.index).fillna(0).to_numpy(float)
        assert np.array_equal(values, table[name].to_numpy(float)), f"{name}: the two ways differ"


def _solver() -> None:
    """A fast system with room for a tenth of the bytes: what the solver and greedy save, and their time."""
    print(f"\n{'bundles':>9}{'solver s':>10}{'greedy s':>10}{'saved by greedy / by the solver':>34}")
    for bundles in (100, 1_000, 10_000):
        chance = np.random.default_rng(1)
        size = 2.0 ** chance.uniform(12, 34, bundles)
        home = chance.lognormal(0, 2, bundles)
        cost = np.column_stack([home, home * chance.uniform(0.05, 1.5, bundles)])
        capacity = np.array([np.inf, size.sum() / 10])
        began = time.perf_counter()
        best = assign(cost, size, capacity, np.ones_like(cost, dtype=bool)).system
        solved = time.perf_counter()
        greedy = _greedy(cost, size, capacity[1])
        ended = time.perf_counter()
        saved_by = [float((cost[:, 0] - cost[np.arange(bundles), chosen]).sum()) for chosen in (best, greedy)]
        assert saved_by[1] <= saved_by[0] * (1 + 1e-6), "greedy found a better assignment than the solver"
        share = saved_by[1] / saved_by[0]
        print(f"{bundles:9,}{solved - began:10.3f}{ended - solved:10.3f}{share:34.6f}")


def _greedy(
    cost: npt.NDArray[np.float64], size: npt.NDArray[np.float64], room: float
) -> npt.NDArray[np.int64]:
    """Most time saved for each byte first, while there is room."""
    gain = cost[:, 0] - cost[:, 1]
    chosen = np.zeros(len(cost), dtype=np.int64)
    for bundle in np.argsort(-gain / size):
        if gain[bundle] > 0 and size[bundle] <= room:
            chosen[bundle] = 1
            room -= size[bundle]
    return chosen


def _plans(root: Path) -> None:
    """The whole way from a trace to a plan, its model loaded, by the number of files."""
    _, table = saved(root / "results")
    model = PlacementModel.train(table)
    site = _site(root, model.systems)
    print(f"\n{'files':>9}{'events':>12}{'plan s':>9}{'us/file':>10}   (model of a synthetic sweep)")
    for events in (100_000, 1_000_000):
        if not (root / f"trace-{events}").exists():
            generate(root / f"trace-{events}", events)
        frame = open_trace(root / f"trace-{events}", cache=root / "cache")
        began = time.perf_counter()
        plan = plan_of(frame, site, model, home=model.systems[0], staging=False)
        took = time.perf_counter() - began
        print(f"{len(plan.files):9,}{events:12,}{took:9.2f}{took / len(plan.files) * 1e6:10.0f}")


def _site(root: Path, systems: list[str]) -> Site:
    storages = {}
    for name in systems:
        (root / name).mkdir()
        path = str(root / name)
        storages[name] = Storage(type="x", mount=path, scratch=path, medium="disk", capacity=2**50)
    return Site(site="here", storages=storages)
