"""Sweeps with a known law, as observations of runs that were never run: what a model should find is known."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

from tiercel.placement.dataset import load_sweep, placement_folder, sweep_of
from tiercel.study.sweep import Sweep

#: Seconds of an open, of an access, of a sync, and bytes/s.
LAWS = {
    "near": (2e-5, 2e-6, 1e-5, 1.0e9),  # memory: everything quick, modest bandwidth
    "far": (1e-3, 4e-6, 5e-3, 4.0e9),  # a parallel file system: slow opens and syncs, high bandwidth
}


def seconds(law: tuple[float, float, float, float], transfer: int, accesses: int, syncs: int) -> float:
    opening, each, sync, rate = law
    return opening + accesses * each + syncs * sync + transfer * accesses / rate


def observations(
    size: int = 150, repetitions: int = 4, noise: float = 0.02, laws: dict[str, tuple[float, float, float,
    float]] = LAWS,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return rows as ``observations.parquet`` has them, for a designed sweep on the systems of `laws`."""
    chance = np.random.default_rng(seed)
    rows = []
    for name, w in Sweep(size=size).workloads.items():
        accesses = w.segments or 1
        syncs = {"none": 0, "phase": 1, "write": accesses}[w.fsync]
        for system, law in laws.items():
            for repetition in range(repetitions):
                factor = 2.0 ** chance.normal(0, noise)
                rows.append(
                    {
                        "site": "here", "study": "sweep", "experiment": "e", "workload": name,
                        "storage": system,
                        "storage_label": system, "storage_type": "x", "medium": "disk", "layer": "none",
                        "engine": "iokernel", "engine_version": "1", "launcher": "fork",
                        "operation": w.operation,
                        "access": w.access_type, "api": w.api, "collective": w.collective,
                        "file_view": w.file_view,
                        "preallocate": w.preallocate, "layout": w.layout,
                        "unique_directories": w.unique_directories, "pattern": w.pattern,
                        "transfer_size": w.transfer_size, "bytes_per_process": w.transfer_size * accesses,
                        "fsync": w.fsync, "processes": 1, "repetition": repetition, "origin": "simulated",
                        "bandwidth": factor * w.transfer_size * accesses / seconds(law, w.transfer_size,
                        accesses, syncs),
                        "flags": [], "began": float(repetition), "kernel": "k", "host": "h",
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def saved(root: Path, rows: pd.DataFrame | None = None) -> tuple[Path, pd.DataFrame]:
    """Save the dataset of `rows` as `tiercel place sweep` does; return its folder and the loaded
    table."""
    table, provenance = sweep_of(observations() if rows is None else rows)
    folder = placement_folder(root, "sweep")
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "sweep.parquet")
    provenance["sha256"] = hashlib.sha256((folder / "sweep.parquet").read_bytes()).hexdigest()
    (folder / "sweep.json").write_text(json.dumps(provenance))
    return folder, load_sweep(folder)
