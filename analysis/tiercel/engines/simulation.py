"""The simulated engine: what a run would give by the site's topology alone. No program is started.

Its numbers carry ``origin: simulated`` (`results.observations`), and it runs on simulated sites alone
(``lassen-simulated``, see `site.simulated`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tiercel.ceilings import ceiling, demand, metadata
from tiercel.columns import WORD, Column
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.measurement import metrics
from tiercel.errors import RunFailed
from tiercel.simulation import events, fair, layout, phases
from tiercel.site.model import Storage
from tiercel.study.workloads import DataWorkload, Workload

NAME = "simulation"
RESULT = "simulation.json"

metrics.declare(
    Column("bound_by", WORD, "", "of a simulated number: what was full for the longest time"),
    Column(
        "bound_figure",
        WORD,
        "",
        "of it: bandwidth, operations, metadata or latency",
    ),
    Column("figures_missing", WORD, "", "of a simulated number: stages of which the site file has no figure"),
)


@engines.register(NAME)
class Simulation(Engine):
    name = NAME
    needs_mpi = False
    measures = False

    def find(self) -> Installation | None:
        return Installation(self.name, _digest([]), {})

    def of_storages(self, storages: Iterable[Storage]) -> Installation:
        """Return the installation for these storages: other figures give other runs.

        Only what the model goes by is in it: a scratch folder is another one in another environment.
        """
        return Installation(self.name, _digest([_figures(storage) for storage in storages]), {})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        return phases.simulated(workload)

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        return []

    def simulate(self, task: Task, storage: Storage) -> None:
        """Write what the run gives into its folder. RunFailed where a figure is missing."""
        try:
            found = phases.phases(task.workload, storage, task.nodes, task.processes_per_node)
        except ValueError as error:
            raise RunFailed(str(error)) from None
        content = {
            "phases": [asdict(phase) for phase in found],
            "figures_missing": phases.unknown(storage, task.workload, task.nodes, task.processes_per_node),
        }
        (task.output / RESULT).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        try:
            content = json.loads((output / RESULT).read_text(encoding="utf-8"))
            found = [phases.Phase(**each) for each in content["phases"]]
            missing = ", ".join(content["figures_missing"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunFailed(f"{RESULT} is not a complete result: {error}") from None
        return [_measurement(phase, n, task, missing) for n, phase in enumerate(found)]


def _measurement(phase: phases.Phase, number: int, task: Task, missing: str) -> Measurement:
    workload = task.workload
    bound = {
        "bound_by": phase.bound_by, "bound_figure": phase.figure, "figures_missing": missing or None,
    }  # fmt: skip
    same = Measurement(
        phase.operation, phase=number, total_time=phase.seconds, transfer_time=phase.seconds,
        latency_mean=phase.waited, metrics=bound,
    )  # fmt: skip
    if not isinstance(workload, DataWorkload):
        same.operations, same.operation_rate = round(phase.moved), phase.moved / phase.seconds
        return same
    same.access, same.bandwidth = workload.access_type, phase.moved / phase.seconds
    same.bytes_moved, same.bytes_expected = round(phase.moved), round(phase.asked)
    same.operations = round(phase.moved / workload.transfer_size)
    same.operation_rate = same.bandwidth / workload.transfer_size
    same.stonewall_hit = None if workload.stonewall is None else phase.moved < phase.asked
    return same


def _figures(storage: Storage) -> str:
    stages = [stage.model_dump(exclude={"source"}) for stage in storage.topology]
    return json.dumps([storage.medium, stages])


def _digest(figures: list[str]) -> str:
    """Return what identifies the model and the figures that it goes by."""
    found = hashlib.sha256()
    for module in (fair, events, layout, phases, ceiling, demand, metadata):
        found.update(Path(str(module.__file__)).read_bytes())
    for each in figures:
        found.update(f"{each}\0".encode())
    return found.hexdigest()[:12]
