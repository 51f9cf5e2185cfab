"""One epoch of training or evaluation: batches, computation, and the times of both.

Accelerator utilisation is DLIO's (and MLPerf Storage's): the time of computation over the time of the block
of steps, without the first `exclude_start` and the last `exclude_end` steps of the block. A block ends with a
checkpoint. Throughput counts the same steps over the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.draw import wait
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.loaders import Loader, Usage
from tiercel.dl.kernel.spans import Pairs, Spans
from tiercel.dl.kernel.spec import Spec


@dataclass
class Block:
    """Consecutive steps between checkpoints: seconds of each step."""

    began: float
    ended: float = 0.0
    load: list[float] = field(default_factory=list)
    proc: list[float] = field(default_factory=list)
    compute: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)

    def is_short(self, start: int, end: int) -> bool:
        """Return whether there are too few steps to leave so many out: then all of them count."""
        return start + end > 0 and len(self.compute) <= start + end

    def utilisation(self, start: int, end: int) -> tuple[float, float, int]:
        """Return utilisation (0 to 1), samples per second, and the steps that they are of."""
        steps = len(self.compute)
        if self.is_short(start, end):
            start = end = 0
        last = steps - end
        counted = last - start
        seconds = self.ended - self.began - sum(self.proc[:start]) - sum(self.proc[last:])
        if not counted or seconds <= 0:
            return 0.0, 0.0, 0
        samples = sum(self.samples[start:last])
        return min(1.0, sum(self.compute[start:last]) / seconds), samples / seconds, counted


@dataclass
class Epoch:
    """What an epoch came to on one process. Seconds since 1970; bytes."""

    kind: str
    number: int
    began: float
    ended: float = 0.0
    steps: int = 0
    samples: int = 0
    batch_bytes: int = 0
    usage: Usage = field(default_factory=Usage)
    compute: Pairs = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def utilisation(self, spec: Spec) -> tuple[float, float]:
        """Return utilisation and this process' samples per second, over the blocks by their steps."""
        parts = [b.utilisation(spec.exclude_start, spec.exclude_end) for b in self.blocks]
        steps = sum(n for _, _, n in parts)
        if not steps:
            return 0.0, 0.0
        return sum(au * n for au, _, n in parts) / steps, sum(rate * n for _, rate, n in parts) / steps

    def short_blocks(self, spec: Spec) -> int:
        """Return the blocks whose first and last steps are in utilisation, against what the workload says."""
        return sum(b.is_short(spec.exclude_start, spec.exclude_end) for b in self.blocks)

    def left_out(self, spec: Spec) -> float:
        """Return the seconds of steps that utilisation does not count."""
        start, end, seconds = spec.exclude_start, spec.exclude_end, 0.0
        for block in self.blocks:
            if not block.is_short(start, end):
                last = len(block.proc) - end
                seconds += sum(block.proc[:start]) + sum(block.proc[last:])
        return seconds

    def as_output(self, spec: Spec) -> dict[str, Any]:
        """Return DLIO's entry for an epoch in ``<rank>_output.json``."""
        names = ["eval"] if self.kind == "eval" else [f"block{n + 1}" for n in range(len(self.blocks))]
        found: dict[str, Any] = {"load": {}, "proc": {}, "throughput": {}, "au": {}, "compute": {}}
        for name, block in zip(names, self.blocks, strict=True):
            au, rate, _ = block.utilisation(spec.exclude_start, spec.exclude_end)
            content = asdict(block)
            for key in ("load", "proc", "compute"):
                found[key][name] = content[key]
            found["au"][name], found["throughput"][name] = au * 100, rate
        return found


class Runner:
    """Runs epochs on one process."""

    def __init__(self, spec: Spec, comm: Comm, calls: IO) -> None:
        self._spec, self._comm, self._calls = spec, comm, calls
        self._framework = "TorchFramework" if spec.framework == "pytorch" else "TFFramework"

    def run(
        self, kind: str, number: int, steps: int, loader: Loader, draw: Callable[[], float],
        after_step: Callable[[int], bool] = lambda _: False,
    ) -> Epoch:  # fmt: skip
        """Run one epoch. `after_step` may save a checkpoint, and says whether it did."""
        comm, calls = self._comm, self._calls
        loader.usage()  # what went before (validation, residency) is not the epoch's
        comm.barrier()
        epoch, computed = Epoch(kind, number, now()), Spans()
        block = Block(now())
        batches = iter(loader.epoch(number, steps))
        for step in range(1, steps + 1):
            asked = now()
            samples, size = next(batches)
            loaded = now()
            epoch.samples += samples
            epoch.batch_bytes += size
            block.samples.append(samples)
            if calls.tracer:
                calls.span("loop.iter", "dlio_benchmark", asked, {"epoch": number, "step": step})
            wait(draw())
            done = now()
            block.load.append(loaded - asked)
            block.proc.append(done - asked)
            block.compute.append(done - loaded)
            computed.add(loaded, done)
            if calls.tracer:
                arguments = {"epoch": number, "step": step}
                calls.span(f"{self._framework}.compute", "ai_framework", loaded, arguments)
            comm.barrier()  # stands for the exchange of gradients
            if kind == "train":
                block.ended = now()
                if after_step(step):
                    epoch.blocks.append(block)
                    block = Block(now())
        next(batches, None)
        block.ended = now()
        if block.compute:
            epoch.blocks.append(block)
        epoch.ended, epoch.steps = now(), steps
        if calls.tracer:
            name = "_train" if kind == "train" else "_eval"
            calls.span(f"DLIOBenchmark.{name}", "dlio_benchmark", epoch.began, {"epoch": number})
        epoch.compute = computed.merged()
        epoch.usage = loader.usage()
        _check_read(epoch, loader.work.owed(number, epoch.samples, epoch.batch_bytes), comm.rank)
        return epoch


def _check_read(epoch: Epoch, owed: int, rank: int) -> None:
    """Failure where fewer bytes were read than the samples have: utilisation would be that of no storage."""
    if epoch.usage.bytes < owed:
        raise Failure(
            f"{epoch.kind} epoch {epoch.number}: process {rank} read {epoch.usage.bytes} bytes, and its "
            f"{epoch.samples} samples have at least {owed}: this is no measurement of the storage"
        )
