"""What MLPerf Storage's rules ask of a run of a workload, and how a planned run stands to them.

Source: mlcommons/storage, Rules.md of edition 3.0 (2026); each standing names its rule. Rules on the tool
itself (code images, folders, logs of a submission) are not here: a submission is run by `mlpstorage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Model, Transformer
from tiercel.dl.files.spec import spec_of
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.shards import shards
from tiercel.dl.kernel.spec import Spec
from tiercel.dl.official import Official
from tiercel.units import format_size

EDITION = "3.0"
#: "holds", "short", or "yours": what no plan of one run can say.
Verdict = Literal["holds", "short", "yours"]

_STEPS, _TIMES_MEMORY, _CHECKPOINT_TIMES = 500, 5, 3
_MODELS = ("unet3d", "retinanet")
#: Keys that a CLOSED submission may change (3.6.2, 4.6.3 with its table 3), and those of OPEN (3.6.3).
_TRAINING = {
    "dataset.num_files_train", "dataset.num_subfolders_train", "dataset.data_folder", "reader.read_threads",
    "reader.computation_threads", "reader.transfer_size", "reader.prefetch_size", "reader.odirect",
    "storage.storage_root", "storage.storage_type", "storage.storage_options.prefetch_window",
}  # fmt: skip
_CHECKPOINTS = {"checkpoint.checkpoint_folder", "checkpoint.num_checkpoints_write",
                "checkpoint.num_checkpoints_read"}  # fmt: skip
_OPEN = {"framework", "dataset.format", "dataset.num_samples_per_file", "reader.data_loader"}
#: Where data lies and results go is nobody's tuning, and the rest `mlpstorage` sets itself.
_PLACES = {
    "output.folder", "train.seed", "checkpoint.checkpoint_folder", "dataset.skip_listing",
    "dataset.listing_validation_interval", "storage.storage_type", "storage.storage_root",
    *(f"storage.storage_options.{key}" for key in
      ("endpoint_url", "region", "storage_library", "uri_scheme", "s3_force_path_style")),
}  # fmt: skip
_PREFETCH = (0, 1, 2)
#: GiB of memory of the accelerators that a submission may emulate (table 3 of 4.3.4; written as GB there, but
#: multiplied and held against GiB by `mlpstorage`).
_ACCELERATORS = {"b200": 180, "mi355": 288}
_LEAST_ON_A_HOST = 4
#: Of the five numbers of a model's shape, from how many on it is that model with a mistake.
_MOST_OF_A_MODEL = 3


@dataclass(frozen=True)
class Plan:
    """How a workload is to be run: processes of all hosts together, bytes of memory of each host."""

    processes: int
    hosts: int
    memory: int
    overridden: frozenset[str] = frozenset()
    """Keys of the workload file that are changed."""
    scale: float = 1.0
    official: Official | None = None
    """Of a file of the user's own: the official one that is nearest, and what differs."""
    own_file: bool = False
    """Whether the workload is a file of the user's, and none that comes with tiercel."""


@dataclass(frozen=True)
class Standing:
    """One rule: its number, what it asks, what the plan has, and whether that will do."""

    rule: str
    asks: str
    here: str
    verdict: Verdict


#: A model's layers, hidden size, size of the feed-forward part, attention heads, heads of keys and values.
Shape = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class _Llama:
    """A column of table 2."""

    shape: Shape
    processes: int
    tensor: int
    pipeline: int
    zero: int


_LLAMAS = {
    "llama3-8b": _Llama((32, 4096, 14336, 32, 8), 8, 1, 1, 3),
    "llama3-70b": _Llama((80, 8192, 28672, 128, 8), 64, 8, 1, 3),
    "llama3-405b": _Llama((126, 16384, 53248, 128, 8), 512, 8, 32, 1),
    "llama3-1t": _Llama((128, 25872, 98304, 192, 32), 1024, 8, 64, 1),
}


def least_files(workload: DLWorkload, plan: Plan) -> int:
    """Return the files that a dataset must have (3.1.2): the next whole number, as the checker asks.

    That is the checker of submissions; `mlpstorage` rounds down, and makes one file less than it wants where
    that does not come out even.
    """
    by_memory = -(-_TIMES_MEMORY * plan.hosts * plan.memory // _file_bytes(workload))
    by_steps = -(
        -_STEPS * plan.processes * workload.reader.batch_size // workload.dataset.num_samples_per_file
    )
    return max(1, by_memory, by_steps)


def _file_bytes(workload: DLWorkload) -> int:
    """Return the bytes of a file as `mlpstorage` counts them: by a stated length, or Parquet's columns."""
    data = workload.dataset
    stated = "record_length_bytes" in data.model_fields_set or not data.parquet.columns
    return data.num_samples_per_file * (data.record_length_bytes if stated else data.sample_bytes)


def standings(workload: DLWorkload, plan: Plan) -> list[Standing]:
    """Return how a plan stands to the CLOSED division's rules; nothing for a workload of neither kind."""
    work = workload.workflow
    kinds: list[Iterable[Standing]] = []
    if work.train:
        kinds = [_common(workload, plan, _TRAINING), _training(workload, plan)]
    elif work.checkpoint:
        kinds = [_common(workload, plan, _CHECKPOINTS), _checkpoints(workload, plan)]
    return [one for kind in kinds for one in kind]


def _standing(rule: str, asks: str, here: object, holds: bool) -> Standing:
    return Standing(rule, asks, str(here), "holds" if holds else "short")


def _common(workload: DLWorkload, plan: Plan, allowed: set[str]) -> Iterator[Standing]:
    changed = sorted(plan.overridden - allowed - _PLACES)
    keys, whole = ("3.6.2", "3.3.1") if allowed is _TRAINING else ("4.6.3", "4.3.3")
    yield _standing(
        keys,
        "no key of the file is changed but those of its table",
        ", ".join(changed) or "none",
        not changed,
    )
    if plan.own_file:
        yield _against_official(keys, plan.official, allowed)
    if allowed is _TRAINING:
        yield from _values(keys, workload)
    yield _standing(whole, "the workload at its full size", f"scale {plan.scale:g}", plan.scale == 1)
    even = plan.processes % plan.hosts == 0
    each = plan.processes // plan.hosts if even else f"{plan.processes} on {plan.hosts} hosts"
    yield _standing("3.3.6", "as many processes on each host", each, even)


def _against_official(rule: str, official: Official | None, allowed: set[str]) -> Standing:
    """What differs between a file of the user's and the official one, and whether it may."""
    if official is None:
        return Standing(rule, "the official file of the workload", "yours; none is like it", "yours")
    asks = f"the official file, but for keys of its table (compared with {official.name})"
    wrong = {key: two for key, two in official.differing.items() if key not in allowed | _PLACES}
    if not wrong:
        tuned = sorted(official.differing.keys() & allowed)
        return Standing(rule, asks, f"as there{' but for ' + ', '.join(tuned) if tuned else ''}", "holds")
    training = allowed is _TRAINING
    told = [
        f"{key}: {here} for {there}{' (OPEN may)' if training and key in _OPEN else ''}"
        for key, (here, there) in sorted(wrong.items())
    ]
    return Standing(rule, asks, "; ".join(told), "short")


def _values(rule: str, workload: DLWorkload) -> Iterator[Standing]:
    """Keys of the table that may not have any value."""
    size = workload.reader.prefetch_size
    if size not in _PREFETCH:
        yield Standing(rule, "reader.prefetch_size: 0, 1 or 2", str(size), "short")


def _training(workload: DLWorkload, plan: Plan) -> Iterator[Standing]:
    data = workload.dataset
    name = workload.model.name
    yield _standing("2.1.11", f"one of {', '.join(_MODELS)}", name, name in _MODELS)
    least, each = least_files(workload, plan), _file_bytes(workload)
    memory = f"hosts: {plan.hosts}, {format_size(plan.memory)} each"
    yield _standing(
        "3.1.2",
        f"dataset.num_files_train: {least} ({format_size(least * each)}): {_STEPS} steps of all processes "
        f"({plan.processes}), {_TIMES_MEMORY} times the memory ({memory})",
        f"{data.num_files_train} ({format_size(data.num_files_train * each)})",
        data.num_files_train >= least,
    )
    yield Standing("3.3.2", f"AU of {100 * workload.metric.au:g} % or more", "the run says it", "yours")
    yield Standing(
        "2.1.17", "six runs in a row, the first to warm up, each with another train.seed", "a plan of one",
        "yours",
    )  # fmt: skip


def _checkpoints(workload: DLWorkload, plan: Plan) -> Iterator[Standing]:
    model, point, parallel = workload.model, workload.checkpoint, workload.model.parallelism
    shape = _shape(model)
    name = max(_LLAMAS, key=lambda n: _alike(_LLAMAS[n].shape, shape))
    if _alike(_LLAMAS[name].shape, shape) < _MOST_OF_A_MODEL:
        name = ""
    yield _standing("4.3.3", f"one of {', '.join(_LLAMAS)}", name or model.name, bool(name))
    if name:
        llama = _LLAMAS[name]
        yield _standing("4.3.3", _words(llama.shape), _words(shape), shape == llama.shape)
        yield _standing(
            "4.6.1", f"{llama.processes} processes", plan.processes, plan.processes == llama.processes
        )
        yield _standing(
            "4.3.3", f"tensor {llama.tensor}, pipeline {llama.pipeline}, ZeRO {llama.zero}",
            f"tensor {parallel.tensor}, pipeline {parallel.pipeline}, ZeRO {parallel.zero_stage}",
            (parallel.tensor, parallel.pipeline, parallel.zero_stage)
            == (llama.tensor, llama.pipeline, llama.zero),
        )  # fmt: skip
        if plan.processes <= llama.processes:  # shards of more are summed up for nothing: 4.6.1 says it
            yield from _of_its_size(workload, plan)
    if point.mode == "subset":
        yield _standing("4.3.5", "a subset of llama3-8b only", name or model.name, name == "llama3-8b")
    each = plan.processes / plan.hosts
    yield _standing("4.6.2", "more than 4 processes on each host", f"{each:.4g}", each > _LEAST_ON_A_HOST)
    yield _standing("4.3.2", "checkpoint.fsync: true", str(point.fsync).lower(), point.fsync)
    counts = tuple(max(0, n) for n in (point.num_checkpoints_write, point.num_checkpoints_read))
    yield _standing(
        "4.7.1", "10 written and 10 read, in one run or in two", f"{counts[0]} and {counts[1]}",
        counts in ((10, 10), (10, 0), (0, 10)),
    )  # fmt: skip


def _of_its_size(workload: DLWorkload, plan: Plan) -> Iterator[Standing]:
    """The rules on a checkpoint's bytes; nothing where so many processes cannot be."""
    spec = Spec(**spec_of(workload))
    try:
        one = sum(length for n in range(plan.processes) for _, length in shards(spec, n, plan.processes))
    except Failure:  # 4.6.1 says it
        return
    yield _accelerators(one, plan.processes)
    # What a host wrote may come back from its memory.
    written, needed = spec.ckpt_write * one // plan.hosts, _CHECKPOINT_TIMES * plan.memory
    yield Standing(
        "4.3.1",
        f"more than {format_size(needed)} written by a host, or its caches dropped before reading",
        f"{format_size(written)}" if written > needed else f"{format_size(written)}: drop the caches between",
        "holds" if written > needed else "yours",
    )


def _accelerators(checkpoint: int, processes: int) -> Standing:
    """Whether it fits into the accelerators' memory: which of them is emulated, no workload file says."""
    fitting = [name for name, gib in _ACCELERATORS.items() if processes * gib << 30 >= checkpoint]
    verdict: Verdict = "yours" if fitting else "short"
    return Standing(
        "4.3.4",
        "the checkpoint fits into all accelerators' memory: "
        + ", ".join(f"{name} {gib} GB" for name, gib in _ACCELERATORS.items()),
        f"{format_size(checkpoint)} on {processes}: {' or '.join(fitting) or 'none'}",
        "holds" if len(fitting) == len(_ACCELERATORS) else verdict,
    )


def _shape(model: Model) -> Shape:
    inner = model.transformer or Transformer()
    return (model.num_layers, inner.hidden_size, inner.ffn_hidden_size, inner.num_attention_heads,
            inner.num_kv_heads)  # fmt: skip


def _alike(one: Shape, other: Shape) -> int:
    return sum(a == b for a, b in zip(one, other, strict=True))


def _words(shape: Shape) -> str:
    layers, hidden, inner, heads, pairs = shape
    return f"layers {layers}, hidden {hidden}, FFN {inner}, heads {heads}, of keys and values {pairs}"
