import json
import sys
from pathlib import Path

from links.workload import LinksWorkload
from tiercel.columns import NUMBER, Column
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.measurement import metrics
from tiercel.errors import RunFailed
from tiercel.study.workloads import Workload

metrics.declare(Column("links_per_second", NUMBER, "1/s", "symbolic links followed over total_time"))


@engines.register("follower")
class Follower(Engine):
    name = "follower"
    needs_mpi = False
    own_processes = True

    def find(self) -> Installation:
        return Installation(self.name, "1.0", {"python": Path(sys.executable)})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        return None if isinstance(workload, LinksWorkload) else "follower follows links only"

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        w = task.workload
        assert isinstance(w, LinksWorkload)
        out = str(task.output / "links.json")
        return [Step("follow", (sys.executable, "-m", "links.program", str(task.data), out,
                                str(w.chain), str(w.names)), launch="once")]  # fmt: skip

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        try:
            found = json.loads((output / "links.json").read_text())
            opened, seconds = found["opened"], found["seconds"]
        except (OSError, ValueError, KeyError) as error:
            raise RunFailed(f"links.json is not a complete result: {error!r}") from None
        return [
            Measurement(
                "link-open", operations=opened, total_time=seconds, operation_rate=opened / seconds,
                metrics={"links_per_second": opened * found["chain"] / seconds},
            )
        ]  # fmt: skip
