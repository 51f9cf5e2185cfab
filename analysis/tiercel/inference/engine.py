"""inferkernel, the embedded programs of inference (tiercel.inference): key-value cache, vector search."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tiercel
from tiercel.columns import NUMBER, Column
from tiercel.dl.engine import has_mpi4py
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.digest import digest_of
from tiercel.engines.measurement import metrics
from tiercel.errors import RunFailed
from tiercel.inference.workload import KVCacheWorkload, VectorSearchWorkload
from tiercel.study.workloads import Workload

_MODULE = "tiercel.inference"
_RESULT = "inference.json"
metrics.declare(Column("hit_share", NUMBER, "1", "of what was wanted of a cache: what was there"))
#: What the storage has to do with them, of one run: what was read, and what was not.
_ACCESS = {"kv-request": "RAW", "kv-read": "RAW", "kv-write": "WO", "vector-query": "RO", "vector-read": "RO"}


#: Making the index, and making room for new blocks.
_PREPARES = ("generate", "kv-evict")


@engines.register("inferkernel")
class InferKernel(Engine):
    name = "inferkernel"
    needs_mpi = False

    def find(self) -> Installation | None:
        own, shared = Path(__file__).parent, Path(tiercel.__file__).parent / "dl" / "kernel"
        programs = [own / f"{name}.py" for name in ("__main__", "kv_cache", "tally", "vector_search")]
        code = digest_of([*programs, shared / "comm.py", shared / "makers.py"])
        return Installation(self.name, f"{tiercel.__version__}+{code}", {"python": Path(sys.executable)})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, KVCacheWorkload | VectorSearchWorkload):
            return f"inferkernel does key-value caches and vector search, not {workload.operation}"
        if nodes > 1 and not has_mpi4py():
            return "several nodes need mpi4py, which is not installed"
        return None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        mpi = task.launcher != "fork" and has_mpi4py()
        spec = {**task.workload.model_dump(exclude={"title"}), "seed": task.seed}
        argv = [
            sys.executable, "-m", _MODULE, "--spec", json.dumps(spec, separators=(",", ":")),
            "--data", str(task.data), "--output", str(task.output),
            *(["--mpi"] if mpi else ["--processes", str(task.processes)]),
        ]  # fmt: skip
        return [Step("serve", tuple(argv), launch="parallel" if mpi else "once")]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        try:
            content = json.loads((output / _RESULT).read_text(encoding="utf-8"))
            if content["processes"] != task.processes:
                raise RunFailed(f"{_RESULT} is of {content['processes']} processes, not {task.processes}")
            rows = [r for r in content["rows"] if r["operations"]]
            return [_measurement(r, phase, content["memory_backed"]) for phase, r in enumerate(rows)]
        except FileNotFoundError:
            raise RunFailed(f"{_RESULT} is missing: the engine wrote no result") from None
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            raise RunFailed(f"{_RESULT} is not a complete result: {error!r}") from None


def _measurement(found: dict[str, Any], phase: int, memory_backed: bool) -> Measurement:
    operation, seconds, moved = found["operation"], found["total_time"], found["bytes"]
    count, role = found["operations"], "setup" if operation in _PREPARES else "measured"
    one = Measurement(
        operation, role, phase=phase, access=_ACCESS.get(operation),  # type: ignore[arg-type]
        bytes_moved=moved, bytes_expected=moved, operations=count,
        bandwidth=moved / seconds if moved else None, operation_rate=count / seconds,
        total_time=seconds, began=found["began"], metrics={"hit_share": found["hit_share"]},
    )  # fmt: skip
    if one.access in ("RO", "RAW"):
        one.memory_backed = memory_backed
    for name, value in found["latency"].items():
        setattr(one, f"latency_{name}", value)
    return one
