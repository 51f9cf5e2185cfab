"""dlkernel's own benchmarks: start-up time, reading against upstream DLIO, generating against plain writing.

Ratios above 1 are dlkernel's advantage, except of CPU time and start-up, where less is better.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from tiercel.dl.running import Ran, deep_learning, run_once
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.engines import engines
from tiercel.errors import UserError

#: No computation: the loader alone. Small images for processes, records of some 150 KB for threads.
_READING: dict[str, tuple[str, dict[str, Any]]] = {
    "npz-processes": ("resnet50-vast", {"dataset.format": "npz", "reader.read_threads": 2}),
    "tfrecord-threads": ("cosmoflow-vast", {"dataset.record_length_bytes": 262144, "reader.read_threads": 2}),
}  # fmt: skip
_MORE = 2
"""Epochs of the long runs beyond the first."""
_BIG: dict[str, Any] = {"dataset.format": "npz", "dataset.record_length_bytes": 64 * 1024**2,
        "dataset.num_files_train": 8,
        "dataset.record_length_bytes_stdev": 0, "reader.batch_size": 1, "reader.read_threads": 1,
        "train.epochs": 1, "train.computation_time": 0, "workflow.checkpoint": False}  # fmt: skip


def bench(folder: Path, repetitions: int = 3, samples: int = 512) -> dict[str, Any]:
    """Return the ratios, their parts and notes; everything is written below `folder`, and removed."""
    notes: list[str] = []
    answer: dict[str, Any] = {
        "startup": _startup(folder, repetitions),
        "generation": _generation(folder, repetitions),
        "reading": [_reading(name, folder, repetitions, samples, notes) for name in _READING],
        "notes": notes,
    }
    return answer


def _startup(folder: Path, repetitions: int) -> dict[str, Any]:
    """Time from the start of the process to the first read (everything imported, dataset checked)."""
    settings = {"dataset.format": "npz", "train.computation_time": 0, "dataset.num_files_train": 8,
                "reader.read_threads": 1}  # fmt: skip
    workload = deep_learning("resnet50-vast", settings)
    seconds = []
    for _ in range(repetitions):
        ran = _fresh(folder, partial(run_once, workload, "dlkernel", folder))
        seconds.append(float(ran.details["run"]["startup"]))
    _clear(folder)
    return {"seconds": statistics.median(seconds), "goal": 1.0, "all": seconds}


def _generation(folder: Path, repetitions: int) -> dict[str, Any]:
    """Bandwidth of making 8 files of 64 MiB, up to durable, against plain writes of as much beside it."""
    workload = deep_learning("unet3d-h100", _BIG)
    ratios, speeds, plain = [], [], []
    for _ in range(repetitions):
        plain.append(_plain_write(folder / "plain", 8 * 64 * 1024**2))
        ran = _fresh(folder, partial(run_once, workload, "dlkernel", folder))
        speeds.append(ran.of("generate").bandwidth or 0.0)
        ratios.append(speeds[-1] / plain[-1])
        _clear(folder)
    return {
        "bandwidth": statistics.median(speeds), "plain_bandwidth": statistics.median(plain),
        "ratio": statistics.median(ratios), "all": ratios,
    }  # fmt: skip


def _plain_write(path: Path, size: int) -> float:
    """Write `size` random bytes as ``dd bs=16M conv=fsync`` would; return bytes per second."""
    block = os.urandom(16 * 1024**2)
    began = time.monotonic()
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(block)):
            file.write(block)
        os.fsync(file.fileno())
    seconds = time.monotonic() - began
    path.unlink()
    return size / seconds


def _reading(name: str, folder: Path, repetitions: int, samples: int, notes: list[str]) -> dict[str, Any]:
    """Samples per second and CPU, warm, without computation: dlkernel against upstream DLIO, interleaved.

    The CPU of reading is what three epochs take more than one: without the start, which is seconds of
    TensorFlow's.
    """
    file, overrides = _READING[name]
    settings = {"train.computation_time": 0, "dataset.num_files_train": samples, **overrides}
    lengths = [
        deep_learning(file, {**settings, "train.epochs": epochs}, cold="none") for epochs in (1, 1 + _MORE)
    ]
    names = ["dlkernel", *_upstream(name, lengths[-1], notes)]
    rates: dict[str, list[float]] = {e: [] for e in names}
    reading: dict[str, list[float]] = {e: [] for e in names}
    whole: dict[str, list[float]] = {e: [] for e in names}
    _fresh(folder, partial(run_once, lengths[0], "dlkernel", folder))  # makes the dataset
    for _ in range(repetitions):
        for engine in list(names):
            try:
                short, long = (_fresh(folder, partial(run_once, w, engine, folder)) for w in lengths)
            except UserError as error:
                if engine == "dlkernel":
                    raise
                notes.append(f"{name}: upstream DLIO failed: {error}")
                names.remove(engine)
                continue
            rates[engine].append(long.of("train-later").metrics["samples_per_second"])
            reading[engine].append((long.cpu - short.cpu) / (_MORE * samples))
            whole[engine].append(long.cpu)
    _clear(folder)
    found: dict[str, Any] = {"case": name}
    for engine in names:
        found[engine] = {
            "samples_per_second": statistics.median(rates[engine]),
            "cpu_seconds_per_sample": statistics.median(reading[engine]),
            "cpu_seconds": statistics.median(whole[engine]),
        }
    if "dlio" in found:
        ours, theirs = found["dlkernel"], found["dlio"]
        found["samples_ratio"] = ours["samples_per_second"] / theirs["samples_per_second"]
        found["cpu_ratio"] = ours["cpu_seconds_per_sample"] / theirs["cpu_seconds_per_sample"]
        found["cpu_ratio_with_start"] = ours["cpu_seconds"] / theirs["cpu_seconds"]
    return found


def _upstream(name: str, workload: DeepLearningWorkload, notes: list[str]) -> list[str]:
    """Return upstream DLIO's name where it can read `workload`; else note why not."""
    if "dlio" not in engines or engines.get("dlio")().find() is None:
        notes.append(f"{name}: upstream DLIO is not installed: no ratio")
        return []
    if reason := engines.get("dlio")().unsupported(workload, 1):
        notes.append(f"{name}: upstream DLIO cannot do it: {reason}")
        return []
    return ["dlio"]


def _fresh(folder: Path, run: Callable[[Path], Ran]) -> Ran:
    """Run with an empty output folder."""
    output = folder / "output"
    if output.exists():
        rmtree(output)
    output.mkdir()
    return run(output)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()
