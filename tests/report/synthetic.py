"""SYNTHETIC TEST DATA: made-up observations of a machine that does not exist. No number here was measured."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tiercel.results.schema import OBSERVATIONS, RUNS
from tiercel.site.model import Site
from tiercel.study.model import Study

MIB = 1024**2
_KINDS = {"list": "object", "string": "str"}
_STORAGES = {
    # name: (label, type, medium, write, read, random read, files per second; MiB/s of one process)
    "nfs-project": ("Project space (NFS)", "nfs4", "network", 180, 420, 60, 300),
    "nvme": ("Node-local NVMe", "xfs", "disk", 900, 1900, 1100, 9000),
    "shm": ("/dev/shm", "tmpfs", "memory", 2600, 4100, 3900, 60000),
}
_LIMITS = {"nfs-project": 2.2, "nvme": 3.2, "shm": 6.0}
_METADATA = {"create": 1.0, "stat": 4.0, "read": 2.5, "remove": 1.3}

FLAGS = {
    "not-cold": ["cache-unknown"],
    "cached": ["cache-not-cold"],
    "loaded": ["loaded-machine"],
}


@dataclass
class Synthetic:
    """A study's tables in the making."""

    seed: int = 1
    repetitions: int = 5
    processes: tuple[int, ...] = (1, 2, 4, 8)
    storages: tuple[str, ...] = tuple(_STORAGES)
    origin: str = "measured"
    engine: str = "iokernel"
    observations: list = field(default_factory=list)
    runs: list = field(default_factory=list)

    def __post_init__(self):
        self.random = random.Random(self.seed)

    def whole(self):
        """Add the three experiments of the quick study, with what goes wrong on a real machine."""
        for workload, title, operation, pattern, column in (
            ("scientific", "Sequential write (scientific simulation)", "write", "sequential", 3),
            ("analytics", "Sequential read (data analytics)", "read", "sequential", 4),
            ("ml", "Random read (machine learning)", "read", "random", 5),
        ):
            self.data("scaling", workload, title, operation, pattern, column, fsync="phase")
        self.data(
            "fsync", "synced-write", "Sequential write, fsync after each write", "write", "sequential", 3,
            fsync="write", slower=0.22,
        )  # fmt: skip
        self.metadata()
        self.fail("nfs-project", "ended with code 1: write failed: No space left on device")
        return self

    def data(self, experiment, workload, title, operation, pattern, column, fsync="none", slower=1.0):
        for storage in self.storages:
            base = _STORAGES[storage][column] * MIB * slower
            if fsync == "write" and storage == "shm":
                base /= slower
            for p in self.processes:
                truth = base * min(p, _LIMITS[storage] + 0.1 * p)
                for repetition, twin in self._repetitions(p):
                    value = truth * self.random.lognormvariate(0, 0.05)
                    if storage == "nfs-project" and self.random.random() < 0.08:
                        value *= 0.55
                    flags = ["memory-storage"] if storage == "shm" else []
                    if operation == "read" and storage == "nfs-project":
                        flags = ["cache-unknown"]
                    latency = p * MIB / value
                    self.add(
                        experiment, workload, title, storage, p, repetition, twin, flags, operation=operation,
                        access="RO" if operation == "read" else "WO", pattern=pattern, fsync=fsync,
                        transfer_size=MIB, layout="file-per-process", api="posix", direct=False,
                        bytes_per_process=256 * MIB // p, bandwidth=value, operation_rate=value / MIB,
                        total_time=256 * MIB / value, latency_p50=latency * 0.9,
                        latency_p99=latency * self.random.uniform(3, 8),
                    )  # fmt: skip

    def metadata(self, kinds=("file", "directory")):
        for storage in self.storages:
            base = _STORAGES[storage][6]
            for p in (self.processes[0], self.processes[-1]):
                for repetition, twin in self._repetitions(p):
                    for kind in kinds:
                        for phase, weight in _METADATA.items():
                            if (kind, phase) == ("directory", "read"):
                                continue
                            value = base * weight * p**0.5 * self.random.lognormvariate(0, 0.06)
                            flags = ["memory-storage"] if storage == "shm" else []
                            self.add(
                                "metadata", "shared-directory", "Empty files in one directory", storage, p,
                                repetition, twin, flags, operation=f"{kind}-{phase}",
                                items_per_process=2000, write_bytes=0, operation_rate=value,
                                total_time=2000 * p / value, latency_p50=p / value, latency_p99=9 * p / value,
                            )  # fmt: skip

    def training(self, says=True):
        """A training on each storage: an AU of 95 %, on NFS 60 %. `says`: the engine times its I/O, too."""
        for storage in self.storages:
            for p in self.processes:
                for repetition, twin in self._repetitions(p):
                    rate = 100.0 * p * self.random.lognormvariate(0, 0.02)
                    parts = {}
                    if says:
                        parts = {"io_time": 1.0, "overlapped_io": 1.0, "compute_alone": 3.0,
                                 "nonoverlapped_io": 0.0, "system_throughput": 2.0 * MIB}  # fmt: skip
                    # On the others computation hides all I/O, so there is no application throughput.
                    if says and storage == "nfs-project":
                        parts |= {"nonoverlapped_io": 0.5, "app_throughput": 4.0 * MIB}
                    self.add(
                        "training", "resnet50", "ResNet-50", storage, p, repetition, twin, [],
                        operation="train", access="RO", bandwidth=rate * MIB, operation_rate=0.9 * rate,
                        total_time=10.0, samples_per_second=rate, epochs=1, samples=1000,
                        au=0.6 if storage == "nfs-project" else 0.95, au_goal=0.9, computation_time=0.1,
                        data_scale=0.25, **parts,
                    )  # fmt: skip
        return self

    def fail(self, storage, reason, experiment="scaling", workload="scientific"):
        identity = self._identity(experiment, workload, workload, storage, 8, 99, "a")
        self.runs.append({**identity, **_CONTEXT, "status": "failed", "reason": reason, "started": 1.7e9})

    def add(self, experiment, workload, title, storage, processes, repetition, twin, flags, **numbers):
        identity = self._identity(experiment, workload, title, storage, processes, repetition, twin)
        began = 1.7e9 + 3000 * repetition + len(self.observations)  # rounds hold all storages
        row = {**identity, **_CONTEXT, "role": "measured", "phase": 0, "began": began, "flags": flags}
        self.observations.append(row | numbers)
        if not self.runs or self.runs[-1]["run"] != identity["run"]:
            self.runs.append(
                {**identity, **_CONTEXT, "status": "ok", "reason": "", "started": began, "duration": 9.0}
            )

    def frames(self):
        observations = pd.DataFrame(self.observations, columns=[c.name for c in OBSERVATIONS])
        runs = pd.DataFrame(self.runs, columns=[c.name for c in RUNS])
        kinds = {c.name: _KINDS.get(c.kind, c.kind) for c in OBSERVATIONS}
        run_kinds = {c.name: _KINDS.get(c.kind, c.kind) for c in RUNS}
        return observations.astype(kinds), runs.astype(run_kinds)

    def write(self, folder: Path) -> Path:
        observations, runs = self.frames()
        folder.mkdir(parents=True, exist_ok=True)
        observations.to_parquet(folder / "observations.parquet")
        runs.to_parquet(folder / "runs.parquet")
        return folder

    def _repetitions(self, processes):
        for repetition in range(self.repetitions):
            yield repetition, "a"
            if processes == self.processes[-1]:
                yield repetition, "b"

    def _identity(self, experiment, workload, title, storage, processes, repetition, twin):
        label, kind, medium = _STORAGES[storage][:3]
        configuration = f"{experiment}.{workload}.{storage}.{self.engine}.{self.origin}.1x{processes}"
        return {
            "run": f"{configuration}.r{repetition}{twin if twin == 'b' else ''}",
            "configuration": configuration,
            "origin": self.origin,
            "site": "example",
            "study": "quick",
            "experiment": experiment,
            "workload": workload,
            "title": title,
            "storage": storage,
            "storage_label": label,
            "storage_type": kind,
            "medium": medium,
            "layer": "none",
            "engine": self.engine,
            "engine_version": "1.0",
            "launcher": "mpiexec",
            "nodes": 1,
            "processes_per_node": processes,
            "processes": processes,
            "repetition": repetition,
            "twin": twin,
            "traced": False,
        }


_CONTEXT = {
    "host": "node1",
    "kernel": "6.1.0-test",
    "mount_options": "rw,noatime",
    "free_bytes": 400 * 1024**3,
    "memory_bytes": 64 * 1024**3,
    "cores": 8,
    "load1_before": 0.4,
    "others_cpu": 0.03,
    "psi_cpu_during": 0.02,
    "psi_io_before": 0.01,
    "psi_io_during": 0.3,
}


def site():
    storages = {
        name: {
            "type": kind,
            "mount": f"/mnt/{name}",
            "scratch": f"/mnt/{name}/scratch",
            "medium": medium,
            "label": label,
            "capacity": 1024**4,
            "shared": medium == "network",
        }
        for name, (label, kind, medium, *_) in _STORAGES.items()
    }
    return Site.model_validate(
        {
            "site": "example",
            "description": "SYNTHETIC TEST DATA, not a measurement",
            "processes_per_node": 8,
            "memory_per_node": "64GiB",
            "storages": storages,
        }
    )


def study():
    data = {"operation": "write", "data_per_process": "64MiB"}
    return Study.model_validate(
        {
            "study": "quick",
            "title": "Quick evaluation",
            "description": "A study of test data.",
            "experiments": {
                "scaling": {
                    "title": "Scaling with the number of processes",
                    "workloads": dict.fromkeys(("scientific", "analytics", "ml", "last", "default"), data),
                },
                "fsync": {"title": "Writes with fsync on one node", "workloads": {"synced-write": data}},
                "training": {"title": "Training", "workloads": dict.fromkeys(("resnet50", "default"), data)},
                "metadata": {
                    "title": "Metadata",
                    "workloads": {"shared-directory": {"operation": "metadata"}},
                },
            },
        }
    )
