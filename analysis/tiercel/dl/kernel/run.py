"""A whole run on one process: generate, check, make cold, train, evaluate, save and load, report."""

from __future__ import annotations

import importlib
import os
import random
import resource
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime
from typing import Any

from tiercel.clock import now
from tiercel.dl.kernel import report
from tiercel.dl.kernel.checkpoint import Checkpoints
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.dataset import Split, check, find, node_share, read_some, steps_of
from tiercel.dl.kernel.draw import drawing, wait
from tiercel.dl.kernel.epoch import Epoch, Runner
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.formats import Format, format_of
from tiercel.dl.kernel.generate import SPLITS, Generated, generate, holds_files, read_manifest, remove
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.loaders import Loader, Work, by_files, loader_for
from tiercel.dl.kernel.makers import Makers
from tiercel.dl.kernel.room import check_memory
from tiercel.dl.kernel.spec import Spec
from tiercel.dl.kernel.trace import Tracer
from tiercel.pagecache import Residency
from tiercel.s3.endpoint import is_url

#: Share of a compressed file that its samples have at least; the rest is labels, index and padding.
_OF_A_FILE = 0.8


@dataclass(frozen=True)
class Places:
    """Folders of a run, and how it is to be carried out."""

    data: Folder
    checkpoints: Folder
    output: Path
    cold: str = "first"
    """Which epochs begin with none of the dataset in the page cache: none, first, every."""
    trace: bool = False


def run(spec: Spec, places: Places, comm: Comm) -> None:
    """Carry out the run; Failure for everything that the user can mend."""
    handler = format_of(spec.format)
    handler.prepare()
    _check_access(spec, comm)
    tracer = None
    if comm.local_rank == 0:  # where results lie may be a folder of each node
        _make(places)
    comm.barrier()
    if places.trace:
        tracer = Tracer(places.output / "trace", comm.rank, comm.size)
    calls = places.data.calls(tracer)
    check_memory(spec, comm, by_files(spec, handler, calls))
    spec = _seeded(spec, places.data, comm)
    began = now()
    try:
        _Job(spec, places, comm, handler, calls, began).carry_out()
    finally:
        if tracer:
            tracer.close()


def _seeded(spec: Spec, folder: Folder, comm: Comm) -> Spec:
    """Return `spec` with the seed of the dataset that is there, where it is the workload's."""
    known = comm.gather(read_manifest(folder) if comm.rank == 0 else None)[0]
    if known is None or not known.serves(spec):
        return spec
    return replace(spec, data_seed=known.seed)


def _make(places: Places) -> None:
    try:
        (places.output / "trace" if places.trace else places.output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{places.output}: cannot be written: {error.strerror}") from None


def _check_access(spec: Spec, comm: Comm) -> None:
    """Refuse collective access where the libraries cannot do it."""
    if spec.access != "collective":
        return
    if type(comm).__name__ != "MPI":
        raise Failure("reader.file_access: collective needs MPI: start it by an MPI launcher, with mpi4py")
    if spec.format in ("hdf5", "hdf5_opt") and not importlib.import_module("h5py").get_config().mpi:
        raise Failure(
            "reader.file_access: collective with HDF5 needs an h5py that is built with parallel HDF5; "
            "use shared, or format indexed_binary"
        )


class _Job:
    """What the parts of a run share on one process."""

    def __init__(
        self, spec: Spec, places: Places, comm: Comm, handler: Format, calls: IO, began: float
    ) -> None:
        self.spec, self.places, self.comm, self.handler, self.calls = spec, places, comm, handler, calls
        self.began = began
        self.rows: list[report.Row] = []
        self.epochs: list[Epoch] = []
        self.runner = Runner(spec, comm, calls)
        # Their own calls: an epoch's bytes and times are those of reading the dataset.
        self.checkpoints = Checkpoints(spec, places.checkpoints, comm, places.checkpoints.calls(calls.tracer))
        self.generated: Generated | None = None
        self.makers = Makers(comm.rank, comm.size)
        self.nonce = comm.gather(random.SystemRandom().getrandbits(63) if comm.rank == 0 else 0)[0]
        self.startup = 0.0
        self.packed = {"train": 0.0, "valid": 0.0}
        self.files: dict[str, dict[str, int]] = {}

    def carry_out(self) -> None:
        spec = self.spec
        if spec.generate and spec.reads_files:
            self._have_dataset()
        if spec.train or spec.evaluate:
            self._learn()
        elif spec.checkpoint:
            self._checkpoints_only()
        self.calls.span("DLIOBenchmark.run", "dlio_benchmark", self.began)
        self._report()
        if self._made_all() and not spec.keep_files:
            self.comm.barrier()
            if self.makers.index == 0:
                remove(self.places.data)

    def _have_dataset(self) -> None:
        """Make what is missing of the dataset; files of others, and a larger dataset, are only checked."""
        spec, folder = self.spec, self.places.data
        given = False
        if spec.existing and self.comm.rank == 0:
            known = read_manifest(folder)
            larger = known is not None and known.key != spec.dataset_key() and known.serves(spec)
            given = larger or (known is None and holds_files(folder))
        if self.comm.gather(given)[0]:
            kept = [len(self._split(name).paths[self.comm.rank :: self.comm.size]) for name in self._splits()]
            self.generated = Generated(0, 0, sum(kept), 0.0)
        else:
            self.makers = folder.makers(self.comm)
            self.generated = generate(spec, self.handler, folder, self.comm, self.makers)

    def _splits(self) -> list[str]:
        return [name for name in SPLITS if name == "train" or self.spec.files_eval]

    def _made_all(self) -> bool:
        """Return whether all of the dataset is of this run."""
        return bool(self.generated) and not any(
            self.comm.gather(self.generated.kept if self.generated else 0)
        )

    def _learn(self) -> None:
        spec = self.spec
        splits = {
            name: self._split(name)
            for name, wanted in (("train", spec.train), ("valid", spec.evaluate))
            if wanted
        }
        whole = by_files(spec, self.handler, self.calls)
        steps = {n: steps_of(spec, s, self.comm, whole) for n, s in splits.items()}
        self.comm.barrier()  # all processes agree that the dataset is right before anybody trains
        self.startup = _since_start() - (self.generated.seconds if self.generated else 0.0)
        loaders = {
            name: loader_for(
                Work(spec, split, self.handler, self.comm, self.calls, self.nonce, self.packed[name])
            )
            for name, split in splits.items()
        }
        try:
            for number in range(1, spec.epochs + 1):
                if spec.train:
                    self._train(number, steps["train"], loaders["train"], splits["train"])
                if spec.evaluate and self._due(number, spec.eval_after, spec.eval_every):
                    self._evaluate(number, steps["valid"], loaders["valid"], splits["valid"])
            for epoch, step in self.checkpoints.written[-spec.ckpt_read :] if spec.ckpt_read else []:
                self._add(report.checkpoint_row(self.comm, self.checkpoints.load(epoch, step)))
        finally:
            for loader in loaders.values():
                loader.close()

    def _split(self, name: str) -> Split:
        split = find(self.spec, self.places.data, self.comm, name)
        self.files[name] = {"used": len(split.paths), "there": split.there}
        smallest = check(self.spec, self.handler, split, self.places.data, self.comm)
        if not self._made_all():
            read_some(self.spec, self.handler, split, self.places.data, self.comm)
        if self.handler.packs(self.spec):
            sizes = [n for n in self.comm.gather(smallest) if n is not None]
            self.packed[name] = _OF_A_FILE * min(sizes) / split.per_file
        return split

    def _train(self, number: int, steps: int, loader: Loader, split: Split) -> None:
        spec = self.spec
        before = self._cold(number, split)
        draw = drawing(spec.compute, f"{spec.seed}:compute:{number}:{self.comm.rank}")

        def after_step(step: int) -> bool:
            if not (spec.checkpoint and spec.ckpt_steps and step % spec.ckpt_steps == 0):
                return False
            self._save(number, step)
            return True

        cpu = _cpu()
        epoch = self.runner.run("train", number, steps, loader, draw, after_step)
        self._note(epoch, before, _cpu() - cpu + epoch.usage.cpu)
        if spec.checkpoint and not spec.ckpt_steps and self._due(number, spec.ckpt_after, spec.ckpt_epochs):
            self._save(number, steps)

    def _evaluate(self, number: int, steps: int, loader: Loader, split: Split) -> None:
        before = self._cold(number, split)
        draw = drawing(self.spec.eval_time, f"{self.spec.seed}:eval:{number}:{self.comm.rank}")
        cpu = _cpu()
        epoch = self.runner.run("eval", number, steps, loader, draw)
        self._note(epoch, before, _cpu() - cpu + epoch.usage.cpu)

    def _note(self, epoch: Epoch, before: Residency | None, cpu: float) -> None:
        self.epochs.append(epoch)
        self._add(report.epoch_row(self.spec, self.comm, epoch, before, cpu))

    def _add(self, row: report.Row | None) -> None:
        if row is not None:
            self.rows.append(row)

    def _save(self, epoch: int, step: int) -> None:
        self._add(report.checkpoint_row(self.comm, self.checkpoints.save(epoch, step)))

    def _checkpoints_only(self) -> None:
        spec = self.spec
        self.startup = _since_start()
        between = drawing(spec.ckpt_between, f"{spec.seed}:between")
        for step in range(1, spec.ckpt_write + 1):
            wait(between())
            self.comm.barrier()
            self._save(1, step)
        for step in range(1, spec.ckpt_read + 1):  # of this run, or of one before in the same folder
            wait(between())
            self.comm.barrier()
            self._add(report.checkpoint_row(self.comm, self.checkpoints.load(1, step)))

    def _cold(self, number: int, split: Split) -> Residency | None:
        """Drop the dataset from the page cache where the epoch is to be cold; return what is in it."""
        if not self.spec.reads_files:
            return None
        paths = node_share(self.spec, split, self.comm)
        wanted = self.places.cold == "every" or (self.places.cold == "first" and number == 1)
        if wanted:
            self.comm.barrier()  # nobody drops what another still reads
            self.places.data.forget(paths)
            self.comm.barrier()
        return self.places.data.remembered(paths)

    @staticmethod
    def _due(number: int, first: int, every: int) -> bool:
        return number >= first and (number - first) % every == 0

    def _report(self) -> None:
        output: dict[str, Any] = {"hostname": os.uname().nodename}
        for epoch in self.epochs:
            entry = output.setdefault(str(epoch.number), {})
            for key, value in epoch.as_output(self.spec).items():
                entry.setdefault(key, {}).update(value)
        report.write(self.places.output, f"{self.comm.rank}_output.json", output)
        mine = {"host": os.uname().nodename, **asdict(self.generated)} if self.generated else None
        made = self.comm.gather(mine)
        skew = self._skew()
        if self.comm.rank:
            return
        summary = report.summary(self.spec, self.comm, self.rows, self.began, now())
        details = {
            "engine": "dlkernel", "workload": self.spec.name, "format": self.spec.format,
            "processes": self.comm.size, "nodes": self.comm.nodes, "scale": self.spec.scale,
            "au_goal": self.spec.au, "batch": self.spec.batch, "startup": self.startup,
            "cold": self.places.cold, "clock_skew": skew, "objects": is_url(str(self.places.data)),
            "generated": _generated(made), "files": self.files, "rows": self.rows,
        }  # fmt: skip
        report.write(self.places.output, "summary.json", {**summary, "scale": self.spec.scale})
        report.write(self.places.output, "per_epoch_stats.json", report.per_epoch(self.rows))
        report.write(self.places.output, "dlkernel.json", details)

    def _skew(self) -> float:
        """Return the largest difference of the clocks, seen right after a barrier."""
        self.comm.barrier()
        seen = self.comm.gather(now())
        return max(seen) - min(seen) if self.comm.nodes > 1 else 0.0


def _generated(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    known = [p for p in parts if p]
    if not known:
        return None
    found = {key: sum(p[key] for p in known) for key in ("files", "bytes", "kept")}
    hosts: dict[str, int] = {}
    for part in known:
        hosts[part["host"]] = hosts.get(part["host"], 0) + part["files"]
    # Whose files: all nodes are to make the dataset, not the first alone.
    return {**found, "seconds": max(p["seconds"] for p in known), "files_of_hosts": hosts}


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _since_start() -> float:
    """Return seconds since this process was started by the kernel."""
    fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    return clock_gettime(CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
