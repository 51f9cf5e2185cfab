"""iokernel, the embedded engine (native/iokernel): IOR's and mdtest's options, unrounded JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tiercel.engines import behind
from tiercel.engines.base import Engine, Installation, Measurement, Role, Step, Task, engines
from tiercel.engines.hdf5_library import HOW, hdf5_library
from tiercel.engines.iokernel_within import hidden, within_phase
from tiercel.engines.plausibility import check_rate
from tiercel.engines.within import Within
from tiercel.errors import RunFailed
from tiercel.programs import program
from tiercel.study.workloads import DataWorkload, MetadataWorkload, Workload

#: The phases of one program start for each access type; the last is the measured one. RO is two starts:
#: the data is written by one and read by another (see steps()).
_PHASES = {
    "WO": "w", "WAW": "w,w", "WAR": "w,r,w", "RO": "r", "RAW": "w,r", "RAR": "w,r,r",
}  # fmt: skip

#: Of more processes the result would be mostly about single ones: some 400 bytes each.
_PER_RANK = 4096
_MD_PHASES = {"create": "-C", "stat": "-T", "read": "-E", "remove": "-r"}


@engines.register("iokernel")
class IOKernel(Engine):
    name = "iokernel"
    needs_mpi = False

    def find(self) -> Installation | None:
        programs = {
            kind: path
            for kind, path in (("fork", program("iokernel")), ("mpi", program("iokernel-mpi")))
            if path
        }
        if not programs:
            return None
        return Installation(self.name, version_of(next(iter(programs.values()))), programs)

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, DataWorkload | MetadataWorkload):
            return "iokernel does data and metadata only"
        if isinstance(workload, DataWorkload) and workload.api == "hdf5":
            return _no_hdf5(workload)
        return None

    def unsupported_started_by(self, workload: Workload, launcher: str) -> str | None:
        if not isinstance(workload, DataWorkload) or workload.api != "hdf5" or launcher == "fork":
            return None
        library = hdf5_library()
        if library is None or library.parallel:
            return None
        return f"HDF5 {library.version} is serial, and iokernel-mpi needs a parallel one: {HOW}"

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        if isinstance(task.workload, MetadataWorkload):
            return [Step("metadata", self._metadata(task, installation, task.workload))]
        assert isinstance(task.workload, DataWorkload)
        if task.workload.access_type != "RO":
            phases = _PHASES[task.workload.access_type]
            return [Step("main", self._data(task, installation, task.workload, phases, "main"))]
        return [
            Step("write", self._data(task, installation, task.workload, "w", "write")),
            Step("read", self._data(task, installation, task.workload, "r", "read")),
        ]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        if isinstance(task.workload, MetadataWorkload):
            results = results_in(output / "metadata.json")
            return [_metadata_measurement(r, phase) for phase, r in enumerate(results)]
        workload = task.workload
        assert isinstance(workload, DataWorkload)
        cold = workload.access_type == "RO"
        before = results_in(output / "write.json") if cold else []
        results = results_in(output / ("read.json" if cold else "main.json"))
        count = _PHASES[workload.access_type].count(",") + 1
        if len(results) != count * workload.repeats or len(before) != cold:
            raise RunFailed(
                f"iokernel reported {len(before) + len(results)} phases where "
                f"{count * workload.repeats + cold} were asked for"
            )
        phases = [before] * cold + [results[number::count] for number in range(count)]
        last = len(phases) - 1
        found = [
            _united([_data_measurement(r, phase, "measured" if phase == last else "setup") for r in repeats])
            for phase, repeats in enumerate(phases)
        ]
        for name, value in behind.fields(results[last - cold :: count]).items():
            setattr(found[-1], name, value)
        if cold:
            found[-1].access = "RO"
        if _of_another(task):
            found[-1].cross_node_fraction = 1.0
        return found

    def within(self, task: Task, output: Path) -> list[Within]:
        metadata = isinstance(task.workload, MetadataWorkload)
        names = ("metadata.json",) if metadata else ("read.json", "main.json")
        path = next((output / name for name in names if (output / name).is_file()), output / names[-1])
        results = results_in(path)
        phases = [[r] for r in results]
        if not metadata:
            assert isinstance(task.workload, DataWorkload)
            count = _PHASES[task.workload.access_type].count(",") + 1
            phases = [results[count - 1 :: count]]  # the last phase is the measured one, in each repeat
        try:
            return [within_phase(repeats) for repeats in phases if repeats]
        except (KeyError, TypeError) as error:
            raise RunFailed(f"{path.name} has no {error}") from None

    def _program(self, task: Task, installation: Installation) -> list[str]:
        if task.launcher == "fork":
            return [str(installation.programs["fork"]), "-n", str(task.processes)]
        return [str(installation.programs["mpi"])]

    def _data(
        self, task: Task, installation: Installation, w: DataWorkload, phases: str, name: str
    ) -> tuple[str, ...]:
        per_process = w.bytes_per_process(task.processes_per_node)
        block = w.block_size or w.transfer_size
        # A single transfer has no order, and IOR's -z refuses it.
        random = w.pattern == "random" and per_process > w.transfer_size
        if random:
            # Random order lies within a block, so the whole of a process is one block: for file per
            # process that is the very same file as many small segments.
            block = per_process
        setup = name == "write"  # of a cold read: in order and whole, whatever the read will be
        argv = [
            *self._program(task, installation),
            *("-a", w.api.upper(), "-t", str(w.transfer_size), "-b", str(block)),
            *("-s", str(per_process // block), "-o", str(task.data / "data"), "-k"),
            *("--phases", phases + ("z" if random and not setup else "")),
            *("--summary-file", str(task.output / f"{name}.json")),
        ]
        if random and not setup:
            argv += ["--random-offset-seed", str(task.seed)]
        switches = {
            "-c": w.collective, "-F": w.layout == "file-per-process", "-u": w.unique_directories,
            "-e": w.fsync == "phase" or (w.wants_cold and setup), "-Y": w.fsync == "write",
            "--mpiio.preallocate": w.preallocate, "--mpiio.useFileView": w.file_view,
            "--posix.odirect": w.direct, "-E": name == "read",
            "--evict": w.wants_cold and not setup, "--behind": w.wants_cold and not setup,
            "-R": w.verify and w.operation == "read" and not setup,
            "-W": w.verify and w.operation == "write",
            "--per-rank": 1 < task.processes <= _PER_RANK and not setup,
        }  # fmt: skip
        argv += [switch for switch, on in switches.items() if on]
        if w.api == "hdf5" and (library := hdf5_library()):
            argv += ["--hdf5.library", library.path]
        argv += ["--compressibility", f"{w.compressibility:g}"] if w.compressibility else []
        argv += ["--dedup", f"{w.dedup:g}"] if w.dedup else []
        argv += ["-l", "random"] if w.refill else []
        if w.verify:  # the steps of a run write and expect the same data
            argv += ["-G", str(task.seed)]
        # Processes that shuffle one shared file read all over it anyway; IOR refuses to reorder them.
        if w.reorder != "none" and "r" in phases and not (random and w.layout == "shared"):
            argv += ["--task-offset", str(w.reorder)] if isinstance(w.reorder, int) else ["-C"]
        if _of_another(task):
            argv += ["--on-node", "0" if setup else "1"]
        if w.repeats > 1 and not setup:
            argv += ["-i", str(w.repeats)]
        if w.queue_depth > 1:
            argv += ["--queue-depth", str(w.queue_depth)]
        if w.stonewall is not None and not setup:
            argv += ["-D", f"{w.stonewall:g}"] + (["--stonewall-wear-out"] if w.wear_out else [])
        return tuple(argv)

    def _metadata(self, task: Task, installation: Installation, w: MetadataWorkload) -> tuple[str, ...]:
        program, *forks = self._program(task, installation)
        # `-n` is items to mdtest, so the number of forked processes is spelled out.
        argv = [program, "md", *(["--processes", forks[1]] if forks else [])]
        argv += ["-n", str(w.items_per_process), "-d", str(task.data)]
        argv += ["--summary-file", str(task.output / "metadata.json")]
        argv += [_MD_PHASES[phase] for phase in w.phases if phase != "rename"]
        renames = "rename" in w.phases
        switches = {
            "-U": renames and w.directories, "--rename": renames and w.files,
            "-D": w.directories and not w.files, "-F": w.files and not w.directories,
            "-u": w.unique_directories, "-y": w.fsync,
        }  # fmt: skip
        argv += [switch for switch, on in switches.items() if on]
        argv += ["-w", str(w.write_bytes)] if w.write_bytes else []
        argv += ["-e", str(w.read_bytes)] if w.read_bytes else []
        argv += ["-W", f"{w.stonewall:g}"] if w.stonewall is not None else []
        argv += ["--again", f"{w.again:g}"] if w.again is not None else []
        stride = task.processes_per_node if w.reorder == "node" else w.reorder
        if isinstance(stride, int) and stride % task.processes:
            argv += ["-N", str(stride)]
        return tuple(argv)


def version_of(iokernel: Path) -> str:
    """Return what one of its programs says of its version and sources."""
    answer = subprocess.run([iokernel, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return answer.stdout.strip().removeprefix("iokernel ")


def _of_another(task: Task) -> bool:
    """Whether the task's one node reads what another wrote: each start is of one of the job's two nodes."""
    return isinstance(task.workload, DataWorkload) and task.workload.waiting_nodes(task.nodes) > 0


def _no_hdf5(workload: DataWorkload) -> str | None:
    """Return why iokernel cannot do a workload through HDF5 on this machine, or None."""
    library = hdf5_library()
    if library is None:
        return f"iokernel finds no HDF5 library of 1.10 or newer: install h5py, or {HOW}"
    if workload.direct or workload.queue_depth > 1:
        return "iokernel has O_DIRECT and queues for POSIX only"
    return None


def results_in(path: Path) -> list[dict[str, Any]]:
    """Return the results in an iokernel JSON file; RunFailed for one that is missing, torn or failed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except FileNotFoundError:
        raise RunFailed(f"{path.name} is missing: the engine wrote no result") from None
    except (OSError, ValueError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error}") from None
    try:
        if content["status"] != "ok":
            problem = content.get("error") or {}
            raise RunFailed(f"iokernel: {problem.get('message') or 'failed without saying why'}")
        return [result for test in content["tests"] for result in test["Results"]]
    except (KeyError, TypeError) as error:
        raise RunFailed(f"{path.name} has no {error}") from None


def _common(result: dict[str, Any], latency: dict[str, Any] | None) -> dict[str, Any]:
    cpu = result.get("cpu") or {}
    values: dict[str, Any] = {
        "cpu_user": cpu.get("userSeconds"),
        "cpu_system": cpu.get("systemSeconds"),
        "began": _began(result),
        "clock_skew": result.get("clockSkewSeconds"),
        "session_layout": result.get("sessionLayout"),
        **hidden(result),
    }
    if latency and latency.get("count"):
        for name, key in (("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"),
                          ("p999", "p999"), ("max", "max")):  # fmt: skip
            values[f"latency_{name}"] = latency.get(key)
    return values


def _began(result: dict[str, Any]) -> float | None:
    """Return when the first process began; the result has the time at which process 0 left the barrier."""
    began, ranks = result.get("began"), result.get("perRank")
    if began is None or not ranks:
        return began
    return float(began) - float(ranks[0]["barrierExit"]) + min(float(each["openStart"]) for each in ranks)


def _data_measurement(result: dict[str, Any], phase: int, role: Role) -> Measurement:
    try:
        moved, total = result["bytesMoved"], result["totalTime"]
        if result.get("verifyErrors"):
            raise RunFailed(f"data verification found {result['verifyErrors']} wrong bytes or words")
        if "bwMiB" in result:
            check_rate(f"iokernel: {result['access']}", result["bwMiB"] * 2**20, moved, total)
        residency = result.get("residency") or {}
        offset = result.get("taskOffset") or {}
        transfer = result.get("transferLatency")
        return Measurement(
            operation=result["access"],
            role=role,
            phase=phase,
            access=result["accessHistory"],
            bandwidth=moved / total,
            operation_rate=result["operations"] / total,
            bytes_moved=moved,
            bytes_expected=result["bytesExpected"],
            operations=result["operations"],
            total_time=total,
            open_time=result["openTime"],
            transfer_time=result["wrRdTime"],
            close_time=result["closeTime"],
            resident_fraction=residency.get("fraction"),
            resident_method=residency.get("method"),
            resident_unknown=residency.get("unknown"),
            memory_backed=residency.get("memoryBacked"),
            cross_node_fraction=offset.get("crossNodeFraction"),
            task_offset=offset.get("effective"),
            stonewall_hit=(result.get("stonewall") or {}).get("hit"),
            **_common(result, transfer),
        )
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise RunFailed(f"iokernel's result has no valid {error}") from None


def _united(repeats: list[Measurement]) -> Measurement:
    """Return the repeats of one phase as one: bytes, operations and times added up, rates anew.

    Percentiles of the parts give none of the whole, so they stay missing; extremes and means do not.
    """
    first = repeats[0]
    if len(repeats) == 1:
        return first
    if all(r.began is not None and r.total_time is not None for r in repeats):
        first.pieces = tuple((r.began or 0.0, r.total_time or 0.0) for r in repeats)
    sums = ("bytes_moved", "bytes_expected", "operations", "total_time", "open_time", "transfer_time",
            "close_time", "cpu_user", "cpu_system")  # fmt: skip
    for name in sums:
        values = [getattr(r, name) for r in repeats]
        setattr(first, name, None if None in values else sum(values))
    slow = [r for r in repeats if r.slowest_process is not None]
    if slow:
        worst = min(slow, key=lambda r: r.slowest_process or 0.0)
        first.slowest_process, first.slowest_rank = worst.slowest_process, worst.slowest_rank
    for name in ("latency_max", "longest_pause", "resident_fraction", "clock_skew"):
        values = [v for r in repeats if (v := getattr(r, name)) is not None]
        setattr(first, name, max(values, default=None))
    # Each repeat does the same number of operations, so the mean of the means is the mean.
    means = [r.latency_mean for r in repeats]
    first.latency_mean = None if None in means else sum(m for m in means if m is not None) / len(means)
    for name in ("latency_p50", "latency_p90", "latency_p99", "latency_p999"):
        setattr(first, name, None)
    assert first.total_time is not None and first.bytes_moved is not None and first.operations is not None
    first.bandwidth = first.bytes_moved / first.total_time
    first.operation_rate = first.operations / first.total_time
    return first


def _metadata_measurement(result: dict[str, Any], phase: int) -> Measurement:
    try:
        return Measurement(
            operation=result["key"],
            # The one tree that holds the items is not what the workload is about.
            role="setup" if result["key"].startswith("tree-") else "measured",
            phase=phase,
            operation_rate=result["items"] / result["time"],
            operations=result["items"],
            total_time=result["time"],
            **_common(result, result.get("latency")),
        )
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise RunFailed(f"iokernel's result has no valid {error}") from None
