"""From one raw folder to its measurements. Light: measuring processes import it, and no tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tiercel.engines import Engine, Measurement, Task, engines
from tiercel.engines.within import Within
from tiercel.errors import RunFailed
from tiercel.results.raw import RawRun
from tiercel.study.any_workload import AnyWorkload
from tiercel.study.workloads import Workload

_WORKLOAD: TypeAdapter[Workload] = TypeAdapter(AnyWorkload)


def workload_of(run: dict[str, Any]) -> Workload:
    """Return the workload in a run's ``run.json``.

    RunFailed for one that this tiercel does not know: the package that brought it may be gone.
    """
    try:
        return _WORKLOAD.validate_python(run["workload"])
    except ValidationError as error:
        first = error.errors()[0]
        reason = str(first["msg"]).removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":  # measured by a later tiercel, say
            reason = f"{first['loc'][-1]} is no key of it"
        raise RunFailed(f"its workload is not known here: {reason}") from None


def measurements_of(raw: RawRun) -> list[Measurement]:
    """Return what the engine's files in a raw folder say; RunFailed when they cannot be true."""
    engine, task = _read_by(raw)
    return engine.measurements(task, raw.folder, [step["seconds"] for step in raw.record.get("steps", ())])


def within(raw: RawRun) -> list[Within]:
    """Return what went on within a run's measured phases, where its engine records it; RunFailed as
    `measurements_of`."""
    engine, task = _read_by(raw)
    return engine.within(task, raw.folder) if raw.ok else []


def _read_by(raw: RawRun) -> tuple[Engine, Task]:
    run = raw.run
    if run["engine"] not in engines:
        raise RunFailed(f"its engine {run['engine']} is not known here")
    task = Task(
        workload=workload_of(run),
        nodes=run["nodes"],
        processes_per_node=run["processes_per_node"],
        data=Path(),
        output=raw.folder,
        seed=run["run_seed"],
        launcher=run["launcher"],
    )
    return engines.get(run["engine"])(), task
