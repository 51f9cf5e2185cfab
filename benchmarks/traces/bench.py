"""Trace analysis against its peers, on generated traces: CPU time, memory, equal answers.

Each way runs in a process of its own, its CPU time (user and system, all threads) and peak memory taken from
the operating system. Peers that are not installed are named and left out. ``dftracer-analyzer`` needs an
environment of its own: set TIERCEL_BENCH_ANALYZER to the path of its `dfanalyzer` program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from benchmarks.cost import Cost, measure
from benchmarks.traces.generate import generate
from tiercel.traces import open_trace

_WAYS = ("tiercel", "duckdb", "pyarrow", "polars", "pandas")
_NEEDS = {"duckdb": "duckdb", "pyarrow": "pyarrow", "polars": "polars", "pandas": "pandas"}


#: Stands for a folder of its own in the command line of a tool that keeps an index.
_INDEX = "<index>"


def peer(name: str, folder: Path, schema: str, *options: str) -> Cost:
    return measure([sys.executable, "-m", "benchmarks.traces.peers", name, str(folder), schema, *options])


def gunzip(folder: Path) -> float:
    """Return CPU seconds to inflate all files with zlib: the floor under every reader."""
    before = _own_cpu()
    for path in folder.glob("*.gz"):
        zlib.decompress(path.read_bytes(), 31)
    return _own_cpu() - before


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def compare(folder: Path, schema: str, rounds: int) -> None:
    """Print the table of all ways on one trace; raise when two of them answer differently.

    The ways are interleaved in random order, round after round, and tiercel runs twice in each: the
    spread of its two halves is the noise floor. Figures are medians of the rounds' ratios.
    """
    floor = statistics.median(gunzip(folder) for _ in range(rounds))
    ways: dict[str, Callable[[], Cost]] = {}
    for name in _WAYS:
        if name in _NEEDS and importlib.util.find_spec(_NEEDS[name]) is None:
            print(f"{name:34}not installed")
        else:
            ways[name] = lambda name=name: peer(name, folder, schema)
    ways["tiercel again"] = lambda: peer("tiercel", folder, schema)
    kept = folder.parent / f"kept-{schema}"
    _summary(folder, kept)
    ways["trace summary, a new trace"] = lambda: _anew(_summary_of(folder, _INDEX))
    ways["trace summary, the second time"] = lambda: _summary(folder, kept)
    for name, command in _others(folder):
        ways[name] = lambda command=command: _anew(command)
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    order = random.Random(1)
    for _ in range(rounds):
        for name in order.sample(list(ways), len(ways)):
            try:
                costs[name].append(ways[name]())
            except (RuntimeError, OSError) as error:
                print(f"{name:34}failed: {str(error).splitlines()[-1][:100]}")
    _check_answers(costs)
    print(f"\nschema {schema}, {rounds} rounds: gunzip alone {floor:.2f} s CPU")
    print(
        "x tiercel, x duckdb: median of the rounds' ratios (lowest to highest); 'tiercel again' is the floor"
    )
    print(f"{'way':34}{'CPU s':>8}{'x tiercel':>24}{'x duckdb':>24}{'x gunzip':>10}{'peak MB':>9}")
    for name, found in costs.items():
        if len(found) == rounds:
            _row(name, found, [costs["tiercel"], costs.get("duckdb", [])], floor)


def _anew(command: list[str]) -> Cost:
    """Measure a tool that leaves an index beside the traces as if it were the first time."""
    with tempfile.TemporaryDirectory(prefix="tiercel-bench-index-") as index:
        return measure([word.replace(_INDEX, index) for word in command])


def _check_answers(costs: dict[str, list[Cost]]) -> None:
    answers = {n: json.loads(c.output.splitlines()[-1]) for n in _WAYS for c in costs.get(n, [])}
    for name, answer in answers.items():
        if answer != answers["tiercel"]:
            raise AssertionError(f"{name} answers {answer}, tiercel {answers['tiercel']}")


def _summary_of(folder: Path, cache: Path | str) -> list[str]:
    return [sys.executable, "-m", "tiercel", "trace", "summary", str(folder), "--cache", str(cache)]


def _summary(folder: Path, cache: Path) -> Cost:
    return measure(_summary_of(folder, cache))


def _row(name: str, costs: list[Cost], bases: list[list[Cost]], floor: float) -> None:
    cpu = statistics.median(c.cpu for c in costs)
    shown = f"{name:34}{cpu:8.2f}"
    for base in bases:
        ratios = [one.cpu / other.cpu for one, other in zip(costs, base, strict=False)]
        middle = (
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
        )
        shown += f"{middle:>24}"
    memory = max(c.memory for c in costs) / 1e6
    print(f"{shown}{cpu / floor:10.1f}{memory:9.0f}", flush=True)


def _others(folder: Path) -> list[tuple[str, list[str]]]:
    """Return the tools that do less or something else with the same files, where they are installed."""
    found = []
    binaries = Path(sys.executable).parent
    for tool, options in (("dftracer_event_count", []), ("dftracer_stats", ["--json"])):
        program = shutil.which(tool, path=str(binaries))
        if program:
            found.append((tool, [program, "-d", str(folder), "--index-dir", _INDEX, *options]))
    analyzer = os.environ.get("TIERCEL_BENCH_ANALYZER")
    if analyzer:
        options = [f"hydra.run.dir={folder.parent / 'analyzer'}", "view_types=[time_range,proc_name]"]
        found.append(("dftracer-analyzer", [analyzer, f"trace_path={folder}", "analyzer=dftracer", *options]))
    else:
        print("dftracer-analyzer: not compared (TIERCEL_BENCH_ANALYZER names its program)")
    return found


def growth(root: Path, small: int, large: int) -> None:
    """Print how cost grows with the number of events, the memory under a cap, and a second load."""
    print(f"\n{'events':>12}{'CPU s':>8}{'us/event':>10}{'peak MB':>9}{'cached CPU s':>14}")
    for events in (small, large):
        folder, cache = root / f"growth-{events}", root / f"cache-{events}"
        generate(folder, events)
        first = peer("tiercel", folder, "new", "--cache", str(cache), "--memory", str(256 << 20))
        second = peer("tiercel", folder, "new", "--cache", str(cache), "--memory", str(256 << 20))
        assert first.output == second.output
        peak = max(first.memory, second.memory) / 1e6
        each = first.cpu / events * 1e6
        print(f"{events:12,}{first.cpu:8.2f}{each:10.2f}{peak:9.0f}{second.cpu:14.2f}", flush=True)
        shutil.rmtree(folder)
        shutil.rmtree(cache)


def load_twice(folder: Path, root: Path) -> None:
    """Print the first and the second load of the same trace, without analysis, within one process."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        open_trace(folder, cache=root / "twice")
        times.append(time.perf_counter() - began)
    ratio = times[0] / times[1]
    print(f"\nload {times[0]:.2f} s, again from the cache {times[1] * 1e3:.1f} ms: {ratio:.0f} times as fast")


def main() -> int:
    """Run with 1M events in 3 rounds (TIERCEL_BENCH_EVENTS=10000000, TIERCEL_BENCH_ROUNDS=9: longer)."""
    events = int(os.environ.get("TIERCEL_BENCH_EVENTS", "1000000"))
    rounds = int(os.environ.get("TIERCEL_BENCH_ROUNDS", "3"))
    with tempfile.TemporaryDirectory(prefix="tiercel-bench-traces-") as folder:
        root = Path(folder)
        generate(root / "tiny", 1000)
        for name in _WAYS:  # so that all modules are compiled
            if importlib.util.find_spec(_NEEDS.get(name, "json")) is not None:
                peer(name, root / "tiny", "new")
        for schema in ("new", "old"):
            generate(root / schema, min(events, 1_000_000), schema=schema)
            compare(root / schema, schema, rounds)
        load_twice(root / "new", root)
        growth(root, events // 10, events)
    return 0
