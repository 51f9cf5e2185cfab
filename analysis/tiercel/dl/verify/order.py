"""Compares the order in which programs read files: by system calls, for each process and each epoch.

Scalars such as bytes and calls are equal for a program that keeps its files and one that draws new ones in
each epoch. What a cache can do is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

from tiercel.dl.running import deep_learning
from tiercel.dl.verify.metrics import of_dataset
from tiercel.dl.verify.programs import PROGRAMS, Program, Setting, make_dataset, traced
from tiercel.errors import RunFailed, UserError
from tiercel.runs.strace import no_strace
from tiercel.traces import open_trace

#: At least two: what processes share, one cannot show.
PROCESSES = 2
EPOCHS, FILES = 3, 24


_READS = """
SELECT process, file FROM events WHERE api = 'posix' AND kind = 'read' AND size > 0 ORDER BY time
"""


@dataclass(frozen=True)
class OrderCase:
    """Files of one sample each, read in three epochs by two processes."""

    name: str
    workload: str
    settings: dict[str, Any]
    reference: str
    """The program whose order dlkernel emulates here."""
    order: str
    compared: Literal["sequences", "files", "reuse"] = "sequences"
    """What can be equal: each process' sequence, its files, or only how many of them it reads again."""


def _case(
    name: str, workload: str, reference: str, order: str, compared: Any = "sequences", **reader: Any
) -> OrderCase:
    base = {
        "dataset.num_files_train": FILES, "dataset.num_samples_per_file": 1, "train.epochs": EPOCHS,
        "dataset.record_length_bytes": 40_000, "reader.batch_size": 2, "reader.order": order,
        "reader.file_shuffle": "seed", "reader.sample_shuffle": "seed", "train.computation_time": 0.001,
    }  # fmt: skip
    return OrderCase(name, workload, base | reader, reference, order, compared)


CASES = (
    _case("order-pytorch", "resnet50-vast", "dlio", "dlio-2.0",
          **{"dataset.format": "npz", "reader.read_threads": 0}),
    _case("order-pytorch-workers", "resnet50-vast", "dlio", "dlio-2.0",
          **{"dataset.format": "npz", "reader.read_threads": 2}),
    _case("order-tensorflow", "cosmoflow-vast", "dlio", "dlio-2.0",
          **{"dataset.format": "npz", "reader.read_threads": 1}),
    # tf.data reads several files at a time, by threads whose order is theirs.
    _case("order-tfrecord", "cosmoflow-vast", "dlio", "dlio-2.0", "files",
          **{"dataset.format": "tfrecord", "reader.read_threads": 1, "reader.shuffle_size": 4}),
    # Another permutation is drawn than PyTorch's.
    _case("order-distributed-sampler", "resnet50-vast", "training", "distributed-sampler", "reuse",
          **{"dataset.format": "npz", "reader.read_threads": 0}),
)  # fmt: skip


def verify_order(
    folder: Path, names: Sequence[str] = (), say: Callable[[str], None] = lambda _line: None
) -> list[dict[str, Any]]:
    """Return one row for each case: sequences of dlkernel and its reference, whether they agree, and reuse.

    Columns: ``sequences`` (program: for each process the numbers of its files in the order of their reads),
    ``equal`` (null where only the reuse is compared), ``reuse`` (program: share of a process' files of the
    later epochs that it read in the epoch before, 0 to 1; null where it cannot be told). UserError where a
    program fails.
    """
    rows = []
    for case in CASES:
        if names and case.name not in names:
            continue
        without = no_strace()
        reference = PROGRAMS[case.reference]()
        workload = deep_learning(case.workload, case.settings)
        found, _ = workload.resolved(1, PROCESSES)
        if reason := without or reference.missing(found):
            say(f"{case.name}: left out: {reason}")
            continue
        say(f"{case.name}: dlkernel and {case.reference}")
        setting = Setting(workload, found, folder / case.name, PROCESSES, "strace")
        make_dataset(setting)
        rows.append(_compared(case, setting, (PROGRAMS["dlkernel"](), reference)))
    return rows


def _compared(case: OrderCase, setting: Setting, programs: tuple[Program, Program]) -> dict[str, Any]:
    sequences = {program.name: _sequences(case, setting, program) for program in programs}
    own, reference = (sequences[program.name] for program in programs)
    equal = None
    if case.compared == "sequences":
        equal = own == reference
    elif case.compared == "files":
        equal = _shares(own) == _shares(reference)
    return {
        "workload": case.name, "order": case.order, "engine": programs[0].name, "reference": case.reference,
        "processes": PROCESSES, "epochs": EPOCHS, "files": FILES, "compared": case.compared,
        "sequences": sequences, "equal": equal,
        # Workers receive other batches in each epoch: they show sequences, but no reuse by their process.
        "reuse": {n: reuse(lists) if len(lists) == PROCESSES else None for n, lists in sequences.items()},
    }  # fmt: skip


def _shares(sequences: Sequence[Sequence[int]]) -> list[list[int]]:
    return sorted(sorted(set(sequence)) for sequence in sequences)


def _sequences(case: OrderCase, setting: Setting, program: Program) -> list[list[int]]:
    output = setting.folder / program.name
    try:
        frame = open_trace(traced(program, setting, output), cache=setting.folder / "cache")
    except RunFailed as failure:
        raise UserError(f"dl verify: {case.name}: {failure} (see {output})") from None
    calls = of_dataset(frame, setting.dataset, program.since(output))
    reads = calls.query(_READS)
    return sequences_of(zip(reads["process"], reads["file"], strict=True))


def sequences_of(reads: Iterable[tuple[int, str]]) -> list[list[int]]:
    """Return for each process the numbers of its files in the order of its reads; processes by first file.

    `reads`: (process, path) of each read, in order of time. Reads of one file in a row are one visit.
    """
    visits: dict[int, list[str]] = {}
    for process, path in reads:
        visits.setdefault(int(process), []).append(path)
    names = sorted({path for paths in visits.values() for path in paths})
    numbers = {path: number for number, path in enumerate(names)}
    return sorted([numbers[path] for path, _ in groupby(paths)] for paths in visits.values())


def reuse(sequences: Sequence[Sequence[int]], epochs: int = EPOCHS) -> float | None:
    """Return the share of the later epochs' files that the same process read in the epoch before (0 to 1).

    None where a process' visits do not divide into as many epochs.
    """
    again = visits = 0
    for sequence in sequences:
        each, rest = divmod(len(sequence), epochs)
        if rest:
            return None
        parts = [sequence[n * each : (n + 1) * each] for n in range(epochs)]
        for before, after in pairwise(parts):
            again += len(set(before) & set(after))
            visits += len(set(after))
    return again / visits if visits else None
