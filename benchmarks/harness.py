"""What tiercel costs beside the engines: planning, and everything around each run.

Harness cost of a run: the wall time of the whole study through Snakemake (its start, jobs, tables and
report included) less the time in which an engine's command ran, over the number of runs. The floor beside
it is the same engine command started bare, so that a slow machine shows as one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.project import make_project, make_scratch
from tiercel.results.raw import RawStore
from tiercel.site import load_site
from tiercel.study.expand import Capabilities, expand
from tiercel.study.load import load_study
from tiercel.study.plan import order_runs

_SITE = """
site: local
launcher: auto
processes_per_node: 2
storages:
  bench: {{type: {type}, mount: "{mount}", medium: {medium}, scratch: "{scratch}"}}
"""

_STUDY = """
study: trial
title: Many small runs
repetitions: {{minimum: {repetitions}, maximum: {repetitions}}}
twins: false
experiments:
  scaling:
    processes_per_node: [1, 2]
    workloads:
{workloads}
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tiercel-bench-") as name:
        root = Path(name)
        seconds = _plan_2000(root / "plan")
        print(f"planning 2,000 runs                        {seconds:8.3f} s   (target: under 5 s)")
        cost, inside, bare = _harness(root / "runs")
        print(f"harness cost of a run, whole study         {cost:8.3f} s   (target: under 0.3 s)")
        print(f"  of which inside the batch, median        {inside:8.3f} s")
        print(f"the engine's command started bare, median  {bare:8.3f} s")
    return 0


def _write_project(root: Path, workloads: int, repetitions: int) -> None:
    scratch, mount = make_scratch(root)
    entries = "\n".join(
        f"      w{n}: {{operation: write, transfer_size: 4KiB, data_per_process: {4 * (n + 1)}KiB}}"
        for n in range(workloads)
    )
    study = _STUDY.format(repetitions=repetitions, workloads=entries)
    site = _SITE.format(type=mount.type, mount=mount.point, medium=mount.medium, scratch=scratch)
    make_project(root, site, study)


def _plan_2000(root: Path) -> float:
    """Return seconds from the two YAML files to 2,000 named runs (median of 5)."""
    _write_project(root, workloads=100, repetitions=10)  # x 2 scales x 1 storage
    times = []
    for _ in range(5):
        began = time.perf_counter()
        site, study = load_site("local", root), load_study("trial", root)
        configurations, _ = expand(study, site, Capabilities("fork", {"iokernel": "1"}))
        plan = order_runs(site, study, configurations, 500)
        assert len({run.id for run in plan.runs}) == 2000
        times.append(time.perf_counter() - began)
    return median(times)


def _harness(root: Path) -> tuple[float, float, float]:
    """Return (cost of a run over the whole study, inside the batch, the engine started bare) in seconds."""
    _write_project(root, workloads=20, repetitions=5)  # x 2 scales: 200 runs
    began = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", "--profile", "local", "--config", "study=trial"]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    whole = time.perf_counter() - began
    runs = list(RawStore(root / "results/local"))
    engine = sum(r.record["engine_time"] for r in runs)
    inside = median(r.record["duration"] - r.record["engine_time"] for r in runs)
    return (whole - engine) / len(runs), inside, _bare(runs[0].record["steps"][0]["argv"], root)


def _bare(argv: list[str], root: Path) -> float:
    folder = root / "bare"
    folder.mkdir()
    changed = [str(folder / "d") if a.endswith("/data/data") else a for a in argv]
    changed[changed.index("--summary-file") + 1] = str(folder / "r.json")
    times = []
    for _ in range(20):
        began = time.perf_counter()
        subprocess.run(changed, check=True, capture_output=True, env=os.environ)
        times.append(time.perf_counter() - began)
    assert json.loads((folder / "r.json").read_text())["status"] == "ok"
    return median(times)


if __name__ == "__main__":
    sys.exit(main())
