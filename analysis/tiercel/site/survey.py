"""What can be found out about an unknown machine from one of its login nodes."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tiercel.site.discover import discover
from tiercel.site.machine import cores, memory
from tiercel.site.model import Storage

_PATIENCE_S = 20.0
#: What usually starts programs in jobs of a scheduler, and what only a person can say.
_USUAL = {
    "lsf": ("jsrun", "queue, nodes, cores and walltime: `bqueues -l` and the site's pages say"),
    "flux": ("flux", "queue, nodes, cores and walltime: `flux resource list` and `flux queue list`"),
    "gridengine": (
        "auto",
        "queue, parallel environment (in submit), nodes, cores: `qconf -sql`, `qconf -spl`, `qhost`",
    ),
}
_OTHERS = ("auto", "queue, nodes, cores and walltime: the site's pages say")


@dataclass
class Survey:
    """What was found. `questions` are for a person who knows the machine."""

    scheduler: str = ""
    """Of `tiercel.schedulers`, or sbatch (Slurm with its own launcher), or empty."""
    launcher: str = "auto"
    launcher_options: list[str] = field(default_factory=list)
    partition: str = ""
    walltime_minutes: int | None = None
    nodes: int = 1
    cores: int = 1
    memory_mib: int | None = None
    processor: str = ""
    modules: list[str] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Mount points that are no storage to measure, with the reason."""
    questions: list[str] = field(default_factory=list)


def survey(scheduler: str = "") -> Survey:
    """Look at this machine. Nothing is written, no job is submitted. `scheduler`: the one to take, or none;
    else it is looked for."""
    found = Survey(cores=cores(), memory_mib=memory() // 1024**2, processor=_processor(), modules=_modules())
    # A Flux that answers has the jobs, whichever other programs are installed.
    answers = scheduler in ("", "flux") and shutil.which("flux") and _flux(found)
    if not answers:
        found.scheduler = "" if scheduler == "none" else scheduler or _scheduler()
    if found.scheduler == "slurm":
        _slurm(found)
    elif found.scheduler == "pbs":
        _pbs(found)
    elif found.scheduler and not answers:
        found.launcher, question = _USUAL.get(found.scheduler, _OTHERS)
        if found.scheduler == "cobalt":
            found.launcher = "aprun" if shutil.which("aprun") else "mpiexec"
        found.questions.append(question)
    elif shutil.which("qsub") and not scheduler and not answers:
        found.questions.append("there is a qsub of no known scheduler: no jobs are submitted to it")
    if found.scheduler:
        found.questions.append(
            "does a job's script run on its first node (head: compute) or elsewhere (service)?"
        )
    _storages(found)
    return found


def _scheduler() -> str:
    # Torque has programs of the same names; its qsub knows no `select`. Slurm's programs may be there, too.
    if shutil.which("qsub") and "pbs_version" in _answer("qstat", "--version"):
        return "pbs"
    programs = (("slurm", "sbatch"), ("lsf", "bsub"), ("flux", "flux"), ("gridengine", "qconf"))
    for name, program in programs:
        if shutil.which(program):
            return name
    cobalt = shutil.which("qsub") and (shutil.which("aprun") or Path("/etc/cobalt.conf").exists())
    return "cobalt" if cobalt else ""


def _flux(found: Survey) -> bool:
    """Take what the Flux instance says of itself; False where none answers (checked with 0.88)."""
    sums = _answer("flux", "resource", "list", "--no-header", "--states=all", "--format={nnodes}|{ncores}")
    counted = re.search(r"^(\d+)\|(\d+)$", sums, re.MULTILINE)
    if counted is None or int(counted[1]) == 0:
        return False
    found.scheduler = found.launcher = "flux"
    found.nodes = int(counted[1])
    found.cores = max(1, int(counted[2]) // found.nodes)
    lines = _answer(
        "flux", "queue", "list", "--no-header", "--format={queuem}|{limits.timelimit}"
    ).splitlines()
    rows = [line.split("|") for line in lines if line.count("|") == 1]
    chosen = next((row for row in rows if row[0].endswith("*")), rows[0] if rows else None)
    if chosen is not None:  # an instance without queues has one of no name
        found.partition = chosen[0].rstrip("*")
        seconds = re.fullmatch(r"(\d+)(?:\.\d+)?", chosen[1])
        found.walltime_minutes = int(seconds[1]) // 60 if seconds else None
    if len(rows) > 1:
        found.questions.append(f"other queues: {', '.join(sorted(r[0].rstrip('*') for r in rows))}")
    return True


def _pbs(found: Survey) -> None:
    """Take nodes, cores and memory of the most frequent kind of node, and the default queue (checked with
    OpenPBS 23.06)."""
    nodes: Counter[tuple[int, int]] = Counter()
    for node in re.split(r"^(?=\S)", _answer("pbsnodes", "-a"), flags=re.MULTILINE):
        kind = dict(re.findall(r"^ +resources_available\.(\w+) = (\S+)", node, re.M))
        if cpus := _number(kind.get("ncpus", "")):
            nodes[cpus, _mib(kind.get("mem", ""))] += 1
    if nodes:
        ((found.cores, memory_mib), found.nodes), *others = nodes.most_common()
        found.memory_mib = memory_mib or None
        if others:
            kinds = ", ".join(f"{count} of {cores}" for (cores, _), count in others)
            found.questions.append(
                f"other nodes, by processors: {kinds} (what a job asks for: chunk= in submit)"
            )
    else:
        found.questions.append("pbsnodes named no node: nodes and cores are guesses")
    queue = re.search(r"^ +default_queue = (\S+)", _answer("qstat", "-B", "-f"), re.MULTILINE)
    found.partition = queue[1] if queue else ""
    longest = re.search(
        r"^ +resources_max\.walltime = (\S+)", _answer("qstat", "-Q", "-f", found.partition), re.MULTILINE
    )
    found.walltime_minutes = _minutes(longest[1]) if longest else None
    found.launcher = "aprun" if shutil.which("aprun") else "auto"
    found.questions.append("launcher: pals where mpiexec is HPE's (PALS), as on HPE Cray machines")
    found.questions.append("processors may be hardware threads: the cores of a node (processes_per_node)")


def _slurm(found: Survey) -> None:
    own = shutil.which("ibrun") is not None
    found.scheduler, found.launcher = ("sbatch", "ibrun") if own else ("slurm", "srun")
    lines = _answer("sinfo", "--noheader", "--format=%P|%D|%c|%m|%l").splitlines()
    rows = [line.split("|") for line in lines if line.count("|") == 4]
    chosen = next((row for row in rows if row[0].endswith("*")), rows[0] if rows else None)
    if chosen is None:
        found.questions.append(
            "sinfo named no partition: partition, nodes and cores are guesses (is this machine its own? then"
            " remove this site and write it again with `--scheduler none`)"
        )
    else:
        found.partition = chosen[0].rstrip("*")
        found.nodes, found.cores = max(1, _number(chosen[1])), max(1, _number(chosen[2]))
        found.memory_mib = _number(chosen[3]) or None
        found.walltime_minutes = _minutes(chosen[4])
        if len(rows) > 1:
            found.questions.append(f"other partitions: {', '.join(sorted({r[0].rstrip('*') for r in rows}))}")
    kinds = re.findall(r"\bpmi2|\bpmix\w*", _answer("srun", "--mpi=list"))
    if kinds and not own:
        found.launcher_options = ["--mpi=pmi2" if "pmi2" in kinds else f"--mpi={kinds[0]}"]
        found.questions.append(
            f"srun knows --mpi={', '.join(dict.fromkeys(kinds))}: MPICH speaks pmi2, Open MPI pmix"
        )


def _storages(found: Survey) -> None:
    looked = discover()
    storages, found.skipped = looked.storages, looked.skipped
    if not found.scheduler:
        found.storages = storages
        return
    # The disks of a login node say nothing of the other nodes'.
    found.storages = {name: s for name, s in storages.items() if s.medium == "network"}
    if not found.storages:
        found.questions.append(
            "no network file system was found that this user can write: give `shared` the type, mount "
            "point and scratch folder of the one that there is"
        )
    found.questions.append("node-local storage of the compute nodes: add it with its mount point there")


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    name = re.search(r"^(?:model name|cpu)\s*:\s*(.+)$", text, re.MULTILINE)
    return f"{platform.machine()}, {name[1].strip()}" if name else platform.machine()


def _modules() -> list[str]:
    return [m for m in os.environ.get("LOADEDMODULES", "").split(":") if m]


def _answer(*command: str) -> str:
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout + ended.stderr


def _number(text: str) -> int:
    """Return the number in ``4000+`` (Slurm: nodes differ, this is the least)."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _mib(text: str) -> int:
    """Return the MiB in ``24684092kb`` or ``250gb``, as PBS writes memory; 0 for none."""
    number, unit = _number(text), text[-2:].lower()
    return (
        number * {"mb": 1, "gb": 1024, "tb": 1024**2}[unit] if unit in ("mb", "gb", "tb") else number // 1024
    )


def _minutes(text: str) -> int | None:
    """Return the minutes of Slurm's ``1-02:00:00``, ``2:00:00`` or ``30:00``; None for infinite."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if not match:
        return None
    days, hours, minutes, _ = (int(part or 0) for part in match.groups())
    return days * 1440 + hours * 60 + minutes
