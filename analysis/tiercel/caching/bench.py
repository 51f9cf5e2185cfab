"""Tables II and III of paper 002 on this machine: plain HDF5, the connector, the node-local storage itself.

The three take turns in random order within each repetition, the node-local storage twice: the ratio of its
second figure to its first, `noise`, tells what a ratio of equals looks like here. Medians are reported, and
ratios between medians. The base storage is a given folder, or one whose speed is limited to a rate, which the
answer says.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tiercel.caching.kernel import make_samples
from tiercel.errors import UserError
from tiercel.layers.cachevol import check_loads, settings, throttle
from tiercel.units import format_bandwidth, format_size, parse_size

MIB = 1024**2
#: Compute time over the time that plain HDF5 needs for the writes (table II).
RATIOS = (0.0, 0.5, 1.0, 1.5, 2.0)
QUICK_RATIOS = (0.0, 0.5, 1.0, 2.0)
MODES = ("plain", "cached", "node-local", "again")

#: What the connector is meant to reach: ratios of bandwidths, each measured within one run of the benchmark.
TARGETS = {
    "writes, compute >= write time: of the node-local storage": 0.95,
    "writes, no compute: of plain HDF5": 0.90,
    "reads, first epoch: of plain HDF5": 0.95,
    "reads, later epochs: of the node-local storage": 0.90,
}


class Bench:
    """The folders and settings of one benchmark."""

    def __init__(self, quick: bool, base: Path | None, rate: int, storage: Path) -> None:
        self.quick, self.rate = quick, rate
        self.limited = base is None
        self.repetitions = 3 if quick else 7
        self.ratios = QUICK_RATIOS if quick else RATIOS
        self.node = Path(tempfile.mkdtemp(prefix="tiercel-cache-node-", dir=storage))
        self.base = Path(tempfile.mkdtemp(prefix="tiercel-cache-base-", dir=base or storage))
        self.rng = random.Random(1)

    def close(self) -> None:
        shutil.rmtree(self.node, ignore_errors=True)
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def base_words(self) -> str:
        if self.limited:
            return f"rate-limited to {format_bandwidth(self.rate)} (a folder on the node-local storage)"
        return f"the folder {self.base.parent}"

    def run(self, mode: str, spec: dict[str, Any], page_cache: bool = False) -> Any:
        """Run a kernel; the file or folder it works on lies on the base storage for plain and cached.

        All run with the library that limits the base's speed, since it costs a little at every call.
        """
        plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
        environment = {**plain, "PYTHONDONTWRITEBYTECODE": "1"}
        if self.limited:
            library = throttle()
            assert library is not None  # bench() looked
            environment |= {
                "LD_PRELOAD": ":".join(filter(None, [str(library), plain.get("LD_PRELOAD")])),
                "CACHEVOL_THROTTLE_FOLDER": str(self.base),
                "CACHEVOL_THROTTLE_RATE": str(self.rate),
                "CACHEVOL_THROTTLE_CACHED": "yes" if page_cache else "no",
            }
        cache = self.node / "cache"
        if mode == "cached":
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            environment |= settings(cache)
        # The written data of the runs before must not be in the way of this one's.
        os.sync()
        answer = subprocess.run(
            [sys.executable, "-m", "tiercel.caching.kernel", json.dumps(spec)],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        if answer.returncode:
            raise UserError(f"the kernel failed ({mode}): {answer.stderr.strip().splitlines()[-1:]}")
        return json.loads(answer.stdout)

    def checkpoints(self) -> dict[str, Any]:
        """Table II: observed write bandwidth by the ratio of compute to write time, at equal compute time."""
        spec: dict[str, Any] = {
            "kernel": "checkpoint", "steps": 4 if self.quick else 16, "datasets": 4,
            "dataset_bytes": 4 * MIB,
        }  # fmt: skip
        total: int = spec["steps"] * spec["datasets"] * spec["dataset_bytes"]
        expected = total / self.rate
        if not self.limited:  # what plain HDF5 needs here sets the compute times
            first = self.run("plain", {**spec, "folder": str(self.base), "computes": [0.0]})
            expected = first[0]["observed"]
        seen: dict[tuple[str, float], list[float]] = {}
        for _ in range(self.repetitions):
            for mode in self.rng.sample(MODES, len(MODES)):
                folder = self.base if mode in ("plain", "cached") else self.node
                ratios = self.rng.sample(self.ratios, len(self.ratios))
                computes = [ratio * expected for ratio in ratios]
                answers = self.run(mode, {**spec, "folder": str(folder), "computes": computes})
                for ratio, answer in zip(ratios, answers, strict=True):
                    seen.setdefault((mode, ratio), []).append(answer["bytes"] / answer["observed"])
        rows = []
        for ratio in self.ratios:
            plain, cached, own, again = (statistics.median(seen[mode, ratio]) for mode in MODES)
            rows.append({"compute_ratio": ratio, "plain": plain, "cached": cached, "node_local": own,
                         "of_plain": cached / plain, "of_node_local": cached / own,
                         "noise": again / own})  # fmt: skip
        return {"bytes": total, "rows": rows}

    def streams(self) -> list[dict[str, Any]]:
        """Table III: read bandwidth by epoch, in order and shuffled, with and without a page cache."""
        samples, width = (384 if self.quick else 4096), 128 * 1024
        here, there = self.base / "samples.h5", self.node / "samples.h5"
        for path in (here, there):  # both by HDF5: how a file was written decides on how fast it is read
            make_samples(path, samples, width)
        # The connector copies no file that changed within the last seconds.
        subprocess.run(["sleep", "2.2"], check=True)
        rows = []
        cases = [(shuffled, cache) for shuffled in (False, True) for cache in (False, True)]
        for shuffled, page_cache in cases:
            seen: dict[str, list[list[float]]] = {}
            for repetition in range(self.repetitions):
                for mode in self.rng.sample(MODES, len(MODES)):
                    path = here if mode in ("plain", "cached") else there
                    spec = {"kernel": "stream", "path": str(path), "epochs": 4, "batch": 16,
                            "shuffled": shuffled, "seed": repetition}  # fmt: skip
                    answers = self.run(mode, spec, page_cache)
                    seen.setdefault(mode, []).append([a["bytes"] / a["seconds"] for a in answers])
            medians = {m: [statistics.median(e) for e in zip(*runs, strict=True)] for m, runs in seen.items()}
            plain, cached, own, again = (medians[m] for m in MODES)
            rows.append({
                "order": "shuffled" if shuffled else "sequential", "base_page_cache": page_cache,
                "plain": plain, "cached": cached, "node_local": own,
                "first_epoch_of_plain": cached[0] / plain[0],
                "later_of_plain": statistics.median(cached[1:]) / statistics.median(plain[1:]),
                "later_of_node_local": statistics.median(cached[1:]) / statistics.median(own[1:]),
                "noise": statistics.median(again[1:]) / statistics.median(own[1:]),
                "pays_from_epoch": _pays_from(plain, cached),
            })  # fmt: skip
        return rows


def _targets(checkpoint: dict[str, Any], stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each target with the ratios found for it, and whether the worst of them reaches it."""
    rows = checkpoint["rows"]
    found = (
        [row["of_node_local"] for row in rows if row["compute_ratio"] >= 1],
        [row["of_plain"] for row in rows if row["compute_ratio"] == 0],
        [row["first_epoch_of_plain"] for row in stream],
        [row["later_of_node_local"] for row in stream],
    )
    return [
        {"target": name, "least": least, "found": ratios, "met": min(ratios) >= least}
        for (name, least), ratios in zip(TARGETS.items(), found, strict=True)
    ]


def _pays_from(plain: list[float], cached: list[float]) -> int | None:
    """Return the first epoch by whose end the cached program is ahead by 2 % and stays there, or None."""
    ahead = None
    for epoch in range(1, len(plain) + 1):
        time_plain = sum(1 / b for b in plain[:epoch])
        is_ahead = sum(1 / b for b in cached[:epoch]) < 0.98 * time_plain
        ahead = (ahead or epoch) if is_ahead else None
    return ahead


def bench(quick: bool, base: Path | None, rate: str, storage: Path) -> dict[str, Any]:
    """Measure; see the module's text. Bandwidths are in bytes a second."""
    try:
        speed = parse_size(rate.removesuffix("/s"))
    except ValueError as error:
        raise UserError(f"--rate {rate}: {error}") from None
    if base is None and (throttle() is None or speed <= 0):
        raise UserError("--rate must be above 0, and libcachevol-throttle.so built (`make layers`)")
    if base is not None and not base.is_dir():
        raise UserError(f"--base {base}: not a folder")
    check_loads(settings(storage))
    run = Bench(quick, base, speed, storage)
    try:
        checkpoint, stream = run.checkpoints(), run.streams()
        return {
            "base": run.base_words, "node_local": str(storage), "repetitions": run.repetitions,
            "checkpoint": checkpoint, "stream": stream, "targets": _targets(checkpoint, stream),
        }  # fmt: skip
    finally:
        run.close()


def show(answer: dict[str, Any]) -> None:
    """Print the tables for people."""
    from rich.console import Console  # noqa: PLC0415 (JSON does without)
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    console.print(f"base storage: {answer['base']}; node-local: {answer['node_local']}", markup=False)
    found = answer["checkpoint"]
    table = Table(title=f"Checkpoints, {format_size(found['bytes'])}: observed write bandwidth")
    for heading in (
        "compute / write time",
        "plain",
        "cachevol",
        "node-local",
        "of plain",
        "of node-local",
        "noise",
    ):
        table.add_column(heading, justify="right")
    for row in found["rows"]:
        rates = (format_bandwidth(row[who]) for who in ("plain", "cached", "node_local"))
        ratios = (f"{row[which]:.2f}" for which in ("of_plain", "of_node_local", "noise"))
        table.add_row(f"{row['compute_ratio']:g}", *rates, *ratios)
    console.print(table)
    table = Table(title="Streaming reads: bandwidth by epoch")
    for heading in ("order", "base page cache", "who", "1", "2", "3", "4"):
        table.add_column(heading)
    for row in answer["stream"]:
        for who in ("plain", "cached", "node_local"):
            cells = [format_bandwidth(b) for b in row[who]]
            table.add_row(row["order"], "yes" if row["base_page_cache"] else "no", who, *cells)
    console.print(table)
    for row in answer["stream"]:
        epoch = f"epoch {row['pays_from_epoch']}" if row["pays_from_epoch"] else "no epoch of these"
        console.print(
            f"{row['order']}, {'with' if row['base_page_cache'] else 'without'} page cache: first epoch "
            f"{row['first_epoch_of_plain']:.2f} of plain, later {row['later_of_plain']:.2f} of plain and "
            f"{row['later_of_node_local']:.2f} of node-local (noise {row['noise']:.2f}); pays from {epoch}",
            markup=False,
        )  # fmt: skip
    table = Table(title="Targets: ratios of bandwidths")
    for heading in ("what", "at least", "found", "met"):
        table.add_column(heading)
    for row in answer["targets"]:
        reached = ", ".join(f"{ratio:.2f}" for ratio in row["found"])
        table.add_row(row["target"], f"{row['least']:.2f}", reached, "yes" if row["met"] else "no")
    console.print(table)
