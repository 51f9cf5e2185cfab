# mypy: ignore-errors
# ruff: noqa: PLC0415 (MPI and DFTracer start what they trace when they are imported)
"""What both training scripts share: arguments, ranks, averaged gradients, and spans in the trace.

Runs in an environment of DLIO (PyTorch or TensorFlow, mpi4py, DFTracer), not in tiercel's: standard library
first, the rest where it is there. The spans have the names that DLIO gives its own, so that one analysis
reads both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "upstream"))
from start import alias_dftracer, drop_empty_traces, trace_spans_too


def arguments(description: str) -> argparse.Namespace:
    """Return the command line; names are those of DLIO's workload files."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/")
    parser.add_argument("--report", type=Path, required=True, help="JSON file of rank 0")
    parser.add_argument("--format", required=True, help="of the files")
    parser.add_argument("--files", type=int, required=True, help="number of them")
    parser.add_argument("--samples-per-file", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--read-threads", type=int, required=True)
    parser.add_argument("--computation-threads", type=int, required=True)
    parser.add_argument("--prefetch-size", type=int, required=True, help="batches")
    parser.add_argument("--transfer-size", type=int, default=0, help="bytes; 0: the framework's own")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--shuffle-size", type=int, default=1024)
    parser.add_argument("--keep-open", action="store_true", help="each file is opened once by a worker")
    parser.add_argument("--seed", type=int, default=123)
    return parser.parse_args()


def files_in(data: Path, ending: str) -> list[str]:
    """Return the dataset's files in order of name; ends the program where there is none."""
    found = sorted(str(p) for p in (data / "train").rglob(f"*.{ending}"))
    if not found:
        raise SystemExit(f"{data}/train: no file *.{ending}")
    return found


class Ranks:
    """Data-parallel processes: who am I, and the mean of everybody's gradients."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.rank, self._world.size

    def mean(self, flat) -> None:
        """Replace `flat`, a NumPy array, by its mean over all ranks."""
        if self.size > 1:
            self._world.Allreduce(self._mpi.IN_PLACE, flat)
            flat /= self.size

    def share(self, things: list) -> list:
        """Return this rank's things: the same number on every rank."""
        return things[self.rank : len(things) // self.size * self.size : self.size]


class Spans:
    """Spans in DFTracer's log, where this process is traced; time spent in each, always."""

    def __init__(self, data: Path, ranks: Ranks) -> None:
        self.seconds: dict[str, list[float]] = {"fetch": [], "compute": []}
        self._log = None
        log = os.environ.get("DFTRACER_LOG_FILE")
        if os.environ.get("DFTRACER_ENABLE") == "1" and log:
            alias_dftracer()
            from dftracer.python import dftracer

            drop_empty_traces()
            path = Path(log).parent / f"trace-{ranks.rank}-of-{ranks.size}.pfw"
            self._log = dftracer.initialize_log(str(path), str(data), process_id=ranks.rank)

    def fetched(self, batches: Iterable) -> Iterator:
        """Yield batches and log how long each was waited for."""
        found = iter(batches)
        while True:
            began, mark = time.perf_counter(), self._now()
            try:
                batch = next(found)
            except StopIteration:
                return
            self._note("fetch", "loop.iter", "dlio_benchmark", began, mark)
            yield batch

    def computed(self, framework: str, work, *values):
        """Return what `work` returns and log how long it took."""
        began, mark = time.perf_counter(), self._now()
        answer = work(*values)
        self._note("compute", f"{framework}Framework.compute", "ai_framework", began, mark)
        return answer

    def epoch(self, work, *values) -> None:
        mark = self._now()
        work(*values)
        if self._log:
            self._log.log_event("DLIOBenchmark._train", "dlio_benchmark", mark, self._now() - mark)

    def end(self) -> None:
        if self._log:
            self._log.finalize()

    def _now(self) -> int:
        return self._log.get_time() if self._log else 0

    def _note(self, kind: str, name: str, category: str, began: float, mark: int) -> None:
        self.seconds[kind].append(time.perf_counter() - began)
        if self._log:
            self._log.log_event(name, category, mark, self._now() - mark)


def run(description: str, train) -> None:
    """Start `train(options, ranks, spans)`, which returns the losses, and write the report."""
    trace_spans_too()
    options = arguments(description)
    ranks = Ranks()
    spans = Spans(options.data, ranks)
    began = time.perf_counter()
    losses = train(options, ranks, spans)
    seconds = time.perf_counter() - began
    if ranks.rank == 0:
        steps = spans.seconds["compute"]
        # The first step of a framework compiles and allocates: it is no step like the others.
        typical = sorted(steps[1:] or steps)[len(steps[1:] or steps) // 2]
        report = {
            "steps": len(steps), "losses": losses, "seconds": seconds, "compute_seconds": typical,
            "wait_seconds": sum(spans.seconds["fetch"]),
        }  # fmt: skip
        options.report.write_text(json.dumps(report), encoding="utf-8")
    spans.end()
