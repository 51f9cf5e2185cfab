"""Finds the settings of a loader that suit a storage: the DLIO paper's section V.C, by itself.

Every candidate differs from the workload file in one setting. Rounds go over all of them and the file's own
settings in random order, each with a cold dataset, so that a ratio compares runs of the same minutes. A
setting is taken where the interval of its gain lies above 1; those that were taken are then run together
against the file's own, and that gain, with its interval, is the answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from tiercel.dl.real_training import framework_of, waited
from tiercel.dl.running import Ran, run_once
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.workload import DLWorkload
from tiercel.statistics.bootstrap import ratio_interval
from tiercel.units import format_size

Settings = dict[str, Any]
KIB = 1024
#: What HDF5 2 holds of a file's chunks, with which dlkernel read; HDF5 1 holds 1 MiB where nothing is said,
#: and unpacks a larger chunk anew for each sample.
_CHUNK_CACHE = 8 << 20


@dataclass(frozen=True)
class Gain:
    """How much faster an epoch is than with the file's settings: the ratio of medians and its interval."""

    axis: str
    settings: Settings
    ratio: float
    low: float
    high: float
    seconds: list[float] = field(default_factory=list)

    @property
    def better(self) -> bool:
        return self.low > 1


@dataclass(frozen=True)
class Real:
    """What a real training gains by the same settings: ratios of the times that it waits for data."""

    framework: str
    gain: Gain | None
    tried: list[Gain]
    baseline: list[float]


@dataclass(frozen=True)
class Answer:
    """The best settings found, with their gain over the file's, and everything that was tried."""

    settings: Settings
    gain: Gain | None
    tried: list[Gain]
    baseline: list[float]
    recommendation: dict[str, str]
    real: Real | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings,
            "gain": asdict(self.gain) if self.gain else None,
            "tried": [asdict(g) for g in self.tried],
            "baseline_seconds": self.baseline,
            "recommendation": self.recommendation,
            "real": self.real and {
                "framework": self.real.framework,
                "gain": asdict(self.real.gain) if self.real.gain else None,
                "tried": [asdict(g) for g in self.real.tried],
                "baseline_seconds": self.real.baseline,
            },
        }  # fmt: skip


def candidates(workload: DLWorkload) -> dict[str, list[Settings]]:
    """Return, by axis, the settings to try: those of the paper's figures 9 to 12 that the format knows."""
    form, reader = workload.dataset.format, workload.reader
    axes: dict[str, list[Settings]] = {}
    if form == "tfrecord":
        sizes = (64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB)
        axes["transfer buffer"] = [{"reader.transfer_size": n} for n in sizes if n != reader.transfer_size]
        if workload.reader.preprocess_time.expected:
            axes["preprocess threads"] = [
                {"reader.computation_threads": n} for n in (1, 2, 4, 8) if n != reader.computation_threads
            ]
    if form in ("hdf5", "hdf5_opt"):
        # The paper's best is about a batch of samples.
        most = 4 * workload.dataset.sample_bytes * reader.batch_size
        axes["chunk size"] = [
            {"dataset.enable_chunking": True, "dataset.chunk_size": n * KIB}
            for n in (4, 16, 64, 256, 1024, 4096)
            if n * KIB != workload.dataset.chunk_size and n * KIB <= most
        ]
        axes["compression"] = [
            {"dataset.compression": "gzip", "dataset.compression_level": n} for n in (1, 4, 9)
        ]
    axes["read threads"] = [{"reader.read_threads": n} for n in (1, 2, 4, 8) if n != reader.read_threads]
    return {axis: values for axis, values in axes.items() if values}


def told(settings: Settings) -> str:
    """Return the values of one axis for people: sizes in units, without the key that only turns it on."""
    return ", ".join(
        format_size(value)
        if key.endswith("_size")
        else f"level {value}"
        if key.endswith("_level")
        else str(value)
        for key, value in settings.items()
        if key != "dataset.enable_chunking"
    )


def gain_of(axis: str, settings: Settings, baseline: Sequence[float], seconds: Sequence[float]) -> Gain:
    """Return the gain of `settings` from the epoch times of both, with a 95 % interval."""
    a, b = np.asarray(baseline, dtype=float), np.asarray(seconds, dtype=float)
    low, high = ratio_interval([(a, b)])
    return Gain(axis, settings, float(np.median(a) / np.median(b)), low, high, [float(s) for s in seconds])


def taken(tried: Sequence[Gain]) -> Settings:
    """Return the best proven setting of each axis, together."""
    best: dict[str, Gain] = {}
    for gain in tried:
        if gain.better and (gain.axis not in best or gain.ratio > best[gain.axis].ratio):
            best[gain.axis] = gain
    return {key: value for gain in best.values() for key, value in gain.settings.items()}


def optimise(
    workload: DeepLearningWorkload,
    folder: Path,
    processes: int,
    repetitions: int = 5,
    say: Callable[[str], None] = lambda _: None,
    real: bool = False,
) -> Answer:
    """Search on the storage of `folder`; every run's dataset is made there, and removed at the end.

    `real`: a real training does each epoch too, just after dlkernel; the choice is dlkernel's all the same.
    """
    base, _ = workload.resolved(1, processes)
    framework = framework_of(base) if real else ""
    choices = [(axis, s) for axis, values in candidates(base).items() for s in values]
    own, *times = _rounds(workload, [s for _, s in choices], folder, processes, repetitions, say, real)
    tried = [gain_of(axis, s, own.seconds, t.seconds) for (axis, s), t in zip(choices, times, strict=True)]
    really = [
        gain_of(axis, s, own.waited, t.waited) for (axis, s), t in zip(choices, times, strict=True) if real
    ]
    settings = taken(tried)
    gain = real_gain = None
    if settings:
        say("the best of each together")
        again, together = _rounds(workload, [settings], folder, processes, repetitions, say, real)
        gain = gain_of("together", settings, again.seconds, together.seconds)
        real_gain = gain_of("together", settings, again.waited, together.waited) if real else None
        best = max((g for g in tried if g.better), key=lambda g: g.ratio)
        if not gain.better:  # what is good alone is not always good together
            gain, settings = best, best.settings
            real_gain = next((g for g in really if g.settings == settings), None)
    _clear(folder)
    found = Real(framework, real_gain, really, own.waited) if real else None
    return Answer(settings, gain, tried, own.seconds, recommend(base, settings), found)


@dataclass(frozen=True)
class _Cold:
    """Cold epochs with one setting: what dlkernel took, and what a real training waited for data; seconds."""

    seconds: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)


def _rounds(
    workload: DeepLearningWorkload, settings: Sequence[Settings], folder: Path, processes: int,
    repetitions: int, say: Callable[[str], None], real: bool,
) -> list[_Cold]:  # fmt: skip
    """Return the cold epochs with the file's settings and with each of `settings`, by repetition."""
    variants = [workload, *(_with(workload, s) for s in settings)]
    found = [_Cold() for _ in variants]
    draw = random.Random(workload.workload)
    for number in range(repetitions):
        order = list(range(len(variants)))
        draw.shuffle(order)
        for index in order:
            ran = _run(variants[index], folder, processes)
            found[index].seconds.append(ran.of("train").total_time or 0.0)
            if real:
                assert isinstance(ran.dataset, Path)
                output = folder / "output" / "real"
                found[index].waited.append(waited(variants[index], ran.dataset, output, processes))
        say(f"round {number + 1} of {repetitions}: {len(variants)} runs")
    return found


def _with(workload: DeepLearningWorkload, settings: Mapping[str, Any]) -> DeepLearningWorkload:
    overrides = {**workload.overrides, **settings}
    return DeepLearningWorkload.model_validate(
        {**workload.model_dump(exclude={"content", "overrides"}), "overrides": overrides}
    )


def _run(workload: DeepLearningWorkload, folder: Path, processes: int) -> Ran:
    """Run once; datasets are kept by what determines them, so each is made only once."""
    found, _ = workload.resolved(1, processes)
    key = sha256(found.dataset.model_dump_json().encode()).hexdigest()[:12]
    place, output = folder / f"dataset-{key}", folder / "output"
    if output.exists():
        rmtree(output)
    output.mkdir()
    place.mkdir(exist_ok=True)
    return run_once(workload, "dlkernel", place, output, processes)


def _clear(folder: Path) -> None:
    for path in [*folder.glob("dataset-*"), folder / "output"]:
        rmtree(path, ignore_errors=True)


def recommend(workload: DLWorkload, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what to write in a real loader for `settings`: a line of code for each framework and library."""
    return recommendation_lines(settings, workload.dataset.format)


def recommendation_lines(settings: Mapping[str, Any], form: str = "") -> dict[str, str]:
    """As `recommend`, for a format known only from its settings (a transfer buffer is TFRecord's)."""
    found: dict[str, str] = {}
    threads, buffer = settings.get("reader.read_threads"), settings.get("reader.transfer_size")
    prepare = settings.get("reader.computation_threads")
    if threads is not None and form != "tfrecord":
        found["PyTorch"] = f"DataLoader(dataset, num_workers={threads}, prefetch_factor=2)"
    if (form == "tfrecord" and (threads or buffer)) or (buffer and not form):
        arguments = [f"buffer_size={buffer}"] if buffer else []
        arguments += [f"num_parallel_reads={threads}"] if threads else []
        found["tf.data"] = f"tf.data.TFRecordDataset(files, {', '.join(arguments)})"
    if prepare is not None:
        found["tf.data map"] = f"dataset.map(parse, num_parallel_calls={prepare})"
    chunk, packing = settings.get("dataset.chunk_size"), settings.get("dataset.compression")
    if chunk or packing:
        level = settings.get("dataset.compression_level")
        arguments = [f'compression="{packing}", compression_opts={level}'] if packing else []
        arguments += ["chunks=..."] if chunk else []
        size = f"  # about {chunk} bytes: whole samples where they are smaller" if chunk else ""
        found["h5py (rewrite the dataset)"] = f"create_dataset(name, data=data, {', '.join(arguments)}){size}"
        held = max(_CHUNK_CACHE, 2 * (chunk or 0))
        found["h5py (read)"] = (
            f"h5py.File(path, rdcc_nbytes={held})  # opened once, not for each sample: a chunk comes "
            "whole, and stays for the next"
        )
    return found
