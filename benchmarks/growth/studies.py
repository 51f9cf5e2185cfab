"""Projects with the results of a study of any size: the plan is tiercel's own, each run a copy of a real one.

A small study is measured once. Its records are copied to the runs of a larger plan, with rates that differ by
storage, workload and repetition.
"""
# A process hands its peak memory on to the commands that it measures: each function imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.project import make_project, make_scratch

#: How much faster each storage is than the first.
STORAGES = {"project": 1.0, "scratch": 1.6, "node": 4.0}
#: Standard deviation of the logarithm of rates between runs of one configuration.
_SPREAD = 0.03

_SITE = """
site: local
launcher: fork
processes_per_node: 2
storages:
{storages}
"""
_STUDY = """
study: trial
title: Many small runs
repetitions: {{minimum: {repetitions}, maximum: {repetitions}}}
twins: {replicates}
experiments:
  scaling:
    processes_per_node: {processes}
    workloads:
{workloads}
"""


@dataclass(frozen=True)
class Size:
    """How large a study is."""

    workloads: int
    repetitions: int
    storages: int = 3
    processes: tuple[int, ...] = (1, 2)
    replicates: bool = True


def make_study(root: Path, size: Size) -> Path:
    """Make a project with a study of this size and no results; return its folder.

    Workloads differ in transfer size, pattern and fsync, so that each has partners that differ in one factor.
    """
    scratch, mount = make_scratch(root)
    storages = "\n".join(
        f"  {name}: {{type: {mount.type}, mount: {mount.point}, medium: disk, scratch: {scratch / name}}}"
        for name in list(STORAGES)[: size.storages]
    )
    workloads = "\n".join(
        f"      w{n}: {{operation: write, transfer_size: {4 * (1 + n // 4)}KiB, "
        f"data_per_process: {4 * (1 + n // 4)}KiB, pattern: {('sequential', 'random')[n % 2]}, "
        f"fsync: {('none', 'write')[n // 2 % 2]}}}"
        for n in range(size.workloads)
    )
    study = _STUDY.format(
        repetitions=size.repetitions, replicates=str(size.replicates).lower(),
        processes=list(size.processes), workloads=workloads,
    )  # fmt: skip
    return make_project(root, _SITE.format(storages=storages), study)


def measured_template(root: Path) -> Path:
    """Measure a study of one workload and return the folder of one of its runs."""
    from tiercel.results.raw import RawStore

    project = make_study(root, Size(1, 1, 1, (1,), False))
    command = [sys.executable, "-m", "snakemake", "--profile", "local", "--config", "study=trial"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (run,) = RawStore(project / "results/local")
    return run.folder


def make_results(root: Path, size: Size, template: Path, *, tables: bool = True) -> int:
    """Make a project whose study is measured: raw folders, stamps, and with `tables` the tables.

    Return the number of runs.
    """
    from tiercel.results.observations import collect
    from tiercel.results.raw import RawStore
    from tiercel.runs.planning import make_plan

    make_study(root, size)
    plan = make_plan("local", "trial", root).plan
    results = root / "results/local"
    store = RawStore(results)
    record, context, native = (
        json.loads((template / name).read_text()) for name in ("record.json", "context.json", "main.json")
    )
    for number, run in enumerate(plan.runs):
        configuration = run.configuration
        chance = random.Random(f"{configuration.name}.{run.repetition}.{run.twin}.{number}")
        faster = STORAGES[configuration.stack.name] * configuration.processes_per_node**0.7
        faster *= chance.lognormvariate(0, _SPREAD)
        folder = store.path(run.id)
        folder.mkdir(parents=True)
        for name, content in (
            ("run.json", run.row()),
            ("context.json", context),
            ("main.json", _faster(native, faster)),
            ("record.json", {**record, "run": run.id, "started": record["started"] + number}),
        ):
            (folder / name).write_text(json.dumps(content, indent=1) + "\n")
        for name in ("main.stdout", "main.stderr"):
            (folder / name).touch()
    stamps = results / "batches" / "trial"
    stamps.mkdir(parents=True)
    for batch in plan.batches:
        (stamps / f"{batch.name}.done").write_text(json.dumps({"runs": len(batch.runs)}) + "\n")
    if tables:
        collect(results)
    return len(plan.runs)


def _faster(native: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return an engine's result with its rates multiplied and its times divided by a factor."""
    (test,) = native["tests"]
    (phase,) = test["Results"]
    phase = {
        **phase,
        **{key: phase[key] * factor for key in ("bwMiB", "iops")},
        **{key: phase[key] / factor for key in ("totalTime", "wrRdTime", "openTime", "closeTime")},
    }
    return {**native, "tests": [{**test, "Results": [phase]}]}


def later_session(results: Path, folder: Path) -> None:
    """Write the tables of results to a folder as if all runs had been made again a day later, 20 % slower."""
    import pandas as pd

    for name in ("observations.parquet", "runs.parquet"):
        table = pd.read_parquet(results / name)
        for column in ("began", "started"):
            if column in table:
                table[column] += 86_400.0
        if "bandwidth" in table:
            table["bandwidth"] *= 0.8
        table["run"] += "-later"
        table.to_parquet(folder / name)


_SIMULATED_SITE = """
site: local
launcher: srun
nodes: 795
processes_per_node: 44
memory_per_node: 256GiB
storages:
  parallel:
    type: lustre
    mount: /p/parallel
    scratch: /p/parallel/tiercel
    medium: network
    topology:
      - {stage: client, bandwidth: 100Gb/s, per_node: true, latency: 100us, metadata_latency: 1ms}
      - {stage: server, bandwidth: 10GB/s, units: 16, operations: 50000, metadata: 20000}
"""
_SIMULATED_STUDY = """
study: trial
title: Two workloads
experiments:
  scaling:
    nodes: [NODES]
    workloads:
      write: {operation: write, transfer_size: 1MiB, data_per_process: 1GiB, fsync: phase}
      read: {operation: read, transfer_size: 1MiB, data_per_process: 1GiB, pattern: random, direct: true}
      metadata: {operation: metadata, items_per_process: 1000, phases: [create, stat, remove]}
"""


def simulated_study(root: Path, nodes: int) -> Path:
    """Make a project whose site can be simulated; return its folder."""
    if root.exists():
        return root
    return make_project(root, _SIMULATED_SITE, _SIMULATED_STUDY.replace("NODES", str(nodes)))
