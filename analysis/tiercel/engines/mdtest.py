"""mdtest (https://github.com/hpc/ior), versions 3.3, 4.0 and 4.1.

It prints rates only. The time of a phase is operations over the rate of the slowest process: 3.3 prints
the fastest and the slowest process (Max, Min) and lets each count all items, later versions print the
slowest in every column. Rates have three decimals, so nothing is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.ior_warnings import invalidates
from tiercel.engines.probing import probe, release
from tiercel.errors import RunFailed
from tiercel.study.workloads import MetadataWorkload, Workload

#: Rows of the summary and the operations they are, in the order in which mdtest prints them.
OPERATIONS = {
    "Directory creation": "directory-create", "Directory stat": "directory-stat",
    "Directory rename": "directory-rename", "Directory removal": "directory-remove",
    "File creation": "file-create", "File stat": "file-stat", "File read": "file-read",
    "File removal": "file-remove", "Tree creation": "tree-create", "Tree removal": "tree-remove",
}  # fmt: skip

_SWITCHES = {"create": "-C", "stat": "-T", "read": "-E", "rename": "-U", "remove": "-r"}
_ALL = set(_SWITCHES)

_LAUNCHED = re.compile(r"^mdtest-(\S+) was launched with (\d+) total task", re.MULTILINE)
_TINY = ("-F", "-C", "-n", "1", "-d", "probe")
_ITEMS = re.compile(r"(\d+) tasks?, (\d+) (?:files/directories|files|directories)\s*")
_ROW = re.compile(
    r"\s+("
    + "|".join(OPERATIONS)
    + r")\s*:?\s+(\d+\.\d{3})\s+(\d+\.\d{3})\s+(\d+\.\d{3})\s+(-?nan|\d+\.\d{3})\s*"
)


@engines.register("mdtest")
class Mdtest(Engine):
    name = "mdtest"
    note = ""
    """Why find() found nothing."""

    def find(self) -> Installation | None:
        found = probe("mdtest", _TINY, _LAUNCHED, "mdtest")
        self.note = found.note
        if found.path is None or not found.version:
            return None
        return Installation(self.name, found.version, {"mdtest": found.path})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, MetadataWorkload):
            return "mdtest does metadata only"
        if workload.stonewall is not None:
            return "mdtest does not print how many items its stonewall let through"
        if workload.again is not None:
            return "mdtest goes over its items once"
        if "rename" not in workload.phases:
            return None
        if not workload.directories or workload.files:
            return "mdtest renames folders only, not files"
        if workload.items_per_process < 2:
            return "mdtest renames only where a process has two items or more"
        found = self.find()
        version = release(found.version) if found else (4, 1)
        if version < (4, 0):
            return "mdtest before 4.0 does not rename"
        if version < (4, 1) and set(workload.phases) != _ALL:
            return "mdtest 4.0 renames only when it does all phases: it has no option to choose it"
        return None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        w = task.workload
        assert isinstance(w, MetadataWorkload)
        if {"@", "\n"} & set(str(task.data)):
            raise RunFailed(f"mdtest takes {task.data} for several paths: it splits at @ and at newlines")
        argv = [str(installation.programs["mdtest"]), "-n", str(w.items_per_process), "-i", "1"]
        argv += ["-d", str(task.data)]
        if not ("rename" in w.phases and release(installation.version) < (4, 1)):
            argv += [_SWITCHES[phase] for phase in w.phases]
        switches = {
            "-D": w.directories and not w.files, "-F": w.files and not w.directories,
            "-u": w.unique_directories, "-y": w.fsync,
        }  # fmt: skip
        argv += [switch for switch, on in switches.items() if on]
        argv += ["-w", str(w.write_bytes)] if w.write_bytes else []
        argv += ["-e", str(w.read_bytes)] if w.read_bytes else []
        stride = task.processes_per_node if w.reorder == "node" else w.reorder
        if isinstance(stride, int) and stride % task.processes:
            argv += ["-N", str(stride)]
        return [Step("metadata", tuple(argv))]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        w = task.workload
        assert isinstance(w, MetadataWorkload)
        path = output / "metadata.stdout"
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise RunFailed(f"{path.name}: {error.strerror}: the engine wrote no result") from None
        log = parse_mdtest_text(text)
        items = w.items_per_process * task.processes
        problems = log.problems
        if not problems and (log.tasks, log.items) != (task.processes, items):
            problems = [
                f"mdtest had {log.tasks} tasks and {log.items} items, not {task.processes} and {items}"
            ]
        missing = [name for name in _wanted(w) if not log.rates.get(name)]
        if not problems and missing:
            problems = [f"no result of {', '.join(missing)}"]
        if problems:
            raise RunFailed(f"{path.name}: {problems[0]}")
        trees = task.processes if w.unique_directories else 1
        done = [name for name, rate in log.rates.items() if rate]
        order = sorted(done, key=lambda name: (name != "tree-create", name == "tree-remove"))
        return [_measurement(name, phase, log.rates[name], items, trees) for phase, name in enumerate(order)]


@dataclass
class MdtestLog:
    """What one start of mdtest printed. `rates` (1/s) are of the slowest process; 0 for phases not run."""

    version: str = ""
    tasks: int = 0
    items: int = 0
    """Files (and as many folders, where both are made) of all tasks."""
    iterations: int = 0
    rates: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """Why its numbers must not be taken as they are; empty for a whole and sound log."""


def parse_mdtest_text(text: str) -> MdtestLog:
    """Return what is in the output of one start of mdtest; of several iterations the slowest rates.

    Lines without a newline, a table without an end and error messages are problems, never numbers.
    """
    log = MdtestLog()
    launched = _LAUNCHED.search(text)
    if not launched:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        log.problems.append(f"no output of mdtest: {first[:200]}")
        return log
    log.version = launched[1]
    table = finished = False
    for line in text[launched.start() :].split("\n")[:-1]:
        if invalidates(line):
            log.problems.append(line.strip())
        elif items := _ITEMS.fullmatch(line):
            log.tasks, log.items = int(items[1]), int(items[2])
        elif line.startswith("SUMMARY"):
            iterations = re.search(r"\(of (\d+) iterations?\)", line)
            table = line.startswith("SUMMARY rate") and iterations is not None
            log.iterations = int(iterations[1]) if iterations else 0
        elif table and (row := _ROW.fullmatch(line)):
            log.rates.setdefault(OPERATIONS[row[1]], float(row[3]))
        elif table and line.strip().startswith(tuple(OPERATIONS)):
            log.problems.append(f"a row is torn: {line.strip()[:120]!r}")
        elif line.startswith("-- finished at "):
            finished = True
    if not finished:
        log.problems.append('the output ends without "finished"')
    if not log.rates:
        log.problems.append("no table of rates")
    return log


def _measurement(name: str, phase: int, rate: float, items: int, trees: int) -> Measurement:
    """Return the numbers of one row. Trees only prepare; mdtest counts one however many it makes (-u)."""
    tree = name.startswith("tree-")
    operations, seconds = (trees, 1 / rate) if tree else (items, items / rate)
    return Measurement(
        name,
        role="setup" if tree else "measured",
        phase=phase,
        operations=operations,
        operation_rate=operations / seconds,
        total_time=seconds,
    )


def _wanted(w: MetadataWorkload) -> list[str]:
    """Return the operations that a run of `w` must report."""
    kinds = [kind for kind, on in (("directory", w.directories), ("file", w.files)) if on]
    names = []
    for phase in w.phases:
        if phase == "read":
            names += ["file-read"] if w.files else []
        elif phase == "rename":
            names += ["directory-rename"]
        else:
            names += [f"{kind}-{phase}" for kind in kinds]
            names += [f"tree-{phase}"] if phase in ("create", "remove") else []
    return names
