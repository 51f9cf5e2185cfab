"""replay: the I/O of a trace again (native/replay), so that a system or a plan is tried without the program.

dftracer_replay, which comes with DFTracer, was tried first and is no basis: it reports pwrite and pread calls
that never reach the files of the trace (nothing in strace), fails every fdatasync, and has no other root.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.errors import RunFailed
from tiercel.placement.workload import ReplayWorkload
from tiercel.programs import program
from tiercel.project import project_root
from tiercel.study.workloads import Workload


@engines.register("replay")
class Replay(Engine):
    name = "replay"
    needs_mpi = False
    own_processes = True

    def find(self) -> Installation | None:
        path = program("tiercel-replay")
        return Installation(self.name, "1", {"replay": path}) if path else None

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, ReplayWorkload):
            return "replay re-issues traces only (operation: replay)"
        return "replay goes on one node" if nodes > 1 else None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        w = task.workload
        assert isinstance(w, ReplayWorkload)
        trace = Path(w.trace).expanduser()
        trace = trace if trace.is_absolute() else project_root() / trace
        recipe = str(task.output / "recipe.txt")
        compile_ = (
            sys.executable,
            "-m",
            "tiercel.placement.compile",
            str(trace),
            recipe,
            "--limit",
            str(w.largest),
        )
        head = (str(installation.programs["replay"]), recipe, "--root", str(task.data))
        think = ("--think",) if w.think_time == "recorded" else ()
        return [
            Step("recipe", compile_, launch="once"),
            Step("prepare", (*head, "--prepare"), launch="once"),
            Step(
                "replay", (*head, *think, "--summary-file", str(task.output / "replay.json")), launch="once"
            ),
        ]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        result, facts = _read(output / "replay.json"), _read(output / "recipe.json")
        check_totals(result, facts["totals"])
        try:
            total = result["total"]
            moved = total["read"]["bytes"] + total["write"]["bytes"]
            wall = result["wallSeconds"]
            return [
                Measurement(
                    operation="replay",
                    bandwidth=moved / wall,
                    operation_rate=sum(t["operations"] for t in total.values()) / wall,
                    bytes_moved=moved,
                    bytes_expected=sum(facts["totals"][k]["bytes"] for k in ("read", "write")),
                    operations=sum(t["operations"] for t in total.values()),
                    total_time=wall,
                    transfer_time=total["read"]["seconds"] + total["write"]["seconds"],
                )
            ]
        except (KeyError, TypeError, ZeroDivisionError) as error:
            raise RunFailed(f"replay.json has no valid {error}") from None


def check_totals(result: dict[str, Any], wanted: dict[str, dict[str, int]]) -> None:
    """Raise RunFailed unless the replay did every operation and byte of the recipe."""
    if result.get("complete") is not True:
        raise RunFailed("replay.json is not a complete result")
    for group, numbers in wanted.items():
        for what, number in numbers.items():
            done = result["total"][group][what]
            if done != number:
                raise RunFailed(f"replayed {done:,} {group} {what} where the trace has {number:,}")


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except FileNotFoundError:
        raise RunFailed(f"{path.name} is missing: the replay wrote no result") from None
    except ValueError as error:
        raise RunFailed(f"{path.name} is not a complete result: {error}") from None
    return content
