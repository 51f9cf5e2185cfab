"""Tables II and III of paper 002 on this machine: plain HDF5, the connector, the node-local storage itself.

The three take turns in random order, the node-local storage with a second file too. A ratio is taken between
programs that ran beside each other; the answer has its median over the repetitions and the interval of that
median. `noise` is the ratio of the second node-local file to the first: what is within it says nothing. The
base storage is a given folder, or one whose speed is limited to a rate, which the answer says.

What makes the ratios of later epochs tell something: an epoch from memory takes some ten milliseconds, so
the programs are open all at once and each gets a turn of several epochs again and again, which pairs it with
turns of the others a tenth of a second away. And how fast a file comes from the page cache depends on which
pages of memory it got, by up to 10 %: all of them are made anew for each repetition.
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
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tiercel.caching.kernel import make_samples
from tiercel.children import killed_with_parent
from tiercel.errors import UserError
from tiercel.layers.cachevol import check_loads, settings, throttle
from tiercel.statistics.summary import summarize
from tiercel.units import format_bandwidth, format_size, parse_size

MIB = 1024**2
#: Compute time over the time that plain HDF5 needs for the writes (table II).
RATIOS = (0.0, 0.5, 1.0, 1.5, 2.0)
QUICK_RATIOS = (0.0, 0.5, 1.0, 2.0)
MODES = ("plain", "cached", "node-local", "again")
#: Turns of each reader after the first epoch. Plain HDF5, which is slow, has fewer, of one epoch each.
TURNS, PLAIN_TURNS = 5, 3

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
        self.repetitions = {"checkpoint": 3 if quick else 7, "stream": 4 if quick else 7}
        self.samples = 384 if quick else 4096
        self.epochs = 4 if quick else 1  # in a turn
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

    def environment(self, mode: str, page_cache: bool = False) -> dict[str, str]:
        """Return the environment of a kernel; for the connector, with an empty folder on the node.

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
        if mode == "cached":
            cache = self.node / "cache"
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            environment |= settings(cache)
        return environment

    def run(self, mode: str, spec: dict[str, Any]) -> Any:
        """Run a kernel; the folder it works on lies on the base storage for plain and cached."""
        environment = self.environment(mode)
        # The written data of the runs before must not be in the way of this one's.
        os.sync()
        answer = subprocess.run(
            [sys.executable, "-m", "tiercel.caching.kernel", json.dumps(spec)],
            capture_output=True, text=True, env=environment, check=False,
            preexec_fn=killed_with_parent,
        )  # fmt: skip
        if answer.returncode:
            raise _failed(mode, answer.stderr)
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
        seen: dict[float, dict[str, list[float]]] = {ratio: {} for ratio in self.ratios}
        for _ in range(self.repetitions["checkpoint"]):
            for mode in self.rng.sample(MODES, len(MODES)):
                folder = self.base if mode in ("plain", "cached") else self.node
                ratios = self.rng.sample(self.ratios, len(self.ratios))
                computes = [ratio * expected for ratio in ratios]
                answers = self.run(mode, {**spec, "folder": str(folder), "computes": computes})
                for ratio, answer in zip(ratios, answers, strict=True):
                    seen[ratio].setdefault(mode, []).append(answer["bytes"] / answer["observed"])
        rows = []
        for ratio, found in seen.items():
            plain, cached, own, again = (found[mode] for mode in MODES)
            middle = {"plain": plain, "cached": cached, "node_local": own}
            rows.append(
                {"compute_ratio": ratio}
                | {name: statistics.median(rates) for name, rates in middle.items()}
                | _paired("of_plain", cached, plain)
                | _paired("of_node_local", cached, own)
                | _paired("noise", again, own)
            )
        return {"bytes": total, "rows": rows}

    def streams(self) -> list[dict[str, Any]]:
        """Table III: read bandwidth by epoch, in order and shuffled, with and without a page cache."""
        self.make_samples(self.base)
        os.sync()
        # The connector copies no file that changed within the last seconds.
        time.sleep(2.2)
        return [self.stream(shuffled, cache) for shuffled in (False, True) for cache in (False, True)]

    def make_samples(self, folder: Path, name: str = "samples") -> Path:
        """Write a file for `turns`; all by HDF5: how a file was written tells in how fast it is read."""
        path = folder / f"{name}.h5"
        make_samples(path, self.samples, 128 * 1024)
        return path

    def lay_out(self) -> dict[str, Path]:
        """Make the node-local files anew, and return the file of each mode.

        All go before one is made, in random order, so that each gets other memory than last time, and perhaps
        what another one had. Nothing is synced: none lives for as long as the system keeps written data back.
        """
        names = [*MODES[2:], "cache"]
        for name in self.rng.sample(names, len(names)):
            (self.node / f"{name}.h5").unlink(missing_ok=True)
            shutil.rmtree(self.node / name, ignore_errors=True)
        made = {name: self.make_samples(self.node, name) for name in self.rng.sample(MODES[2:], 2)}
        return dict.fromkeys(MODES[:2], self.base / "samples.h5") | made

    def stream(self, shuffled: bool, page_cache: bool) -> dict[str, Any]:
        """Return one row of table III."""
        runs = [
            self.take_turns(self.lay_out(), shuffled, repetition, page_cache)
            for repetition in range(self.repetitions["stream"])
        ]
        first = {mode: [run[mode][0].bandwidth for run in runs] for mode in MODES}
        by_epoch = {
            mode: [statistics.median(e) for e in zip(*(_epochs(run[mode])[:4] for run in runs), strict=True)]
            for mode in MODES
        }
        cost = [_median_ratio(run["cached"][1:], run["node-local"][1:], Turn.cpu_per_byte) for run in runs]
        return (
            {"order": "shuffled" if shuffled else "sequential", "base_page_cache": page_cache}
            | {mode.replace("-", "_"): by_epoch[mode] for mode in MODES[:3]}
            | _paired("first_epoch_of_plain", first["cached"], first["plain"])
            | _later("later_of_plain", runs, "cached", "plain")
            | _later("later_of_node_local", runs, "cached", "node-local")
            | _later("noise", runs, "again", "node-local")
            | _summary("later_cpu_of_node_local", cost)
            | {"pays_from_epoch": _pays_from(by_epoch["plain"], by_epoch["cached"])}
        )

    def take_turns(
        self, paths: dict[str, Path], shuffled: bool, seed: int, page_cache: bool
    ) -> dict[str, list[Turn]]:
        """Read a file in each of the modes, in turns in random order; return each mode's turns.

        The first turn is the first epoch alone.
        """
        found: dict[str, list[Turn]] = {mode: [] for mode in MODES}
        with ExitStack() as stack:
            readers = {}
            for mode, path in paths.items():
                spec = {"kernel": "turns", "path": str(path), "batch": 16, "shuffled": shuffled, "seed": seed}
                readers[mode] = stack.enter_context(Reader(mode, spec, self.environment(mode, page_cache)))
            for reader in readers.values():
                reader.answer()  # it is open
            for turn in range(1 + TURNS):
                for mode in self.rng.sample(MODES, len(MODES)):
                    if mode != "plain" or turn <= PLAIN_TURNS:
                        found[mode].append(readers[mode].read(self.epochs if turn and mode != "plain" else 1))
        return found


class Turn(list[dict[str, float]]):
    """What a reader answered for some epochs in a row."""

    @property
    def bandwidth(self) -> float:
        return sum(e["bytes"] for e in self) / sum(e["seconds"] for e in self)

    def cpu_per_byte(self) -> float:
        return sum(e["cpu"] for e in self) / sum(e["bytes"] for e in self)


class Reader:
    """A program that has a file open and reads epochs when it is told to."""

    def __init__(self, mode: str, spec: dict[str, Any], environment: dict[str, str]) -> None:
        self.mode = mode
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tiercel.caching.kernel", json.dumps(spec)], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=killed_with_parent,  # noqa: PLW1509
        )  # fmt: skip

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # its input ends, and so does it

    def answer(self) -> str:
        """Wait for a line; UserError where the program ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise _failed(self.mode, self.process.communicate()[1])
        return line

    def read(self, epochs: int) -> Turn:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it ended: answer() tells why
            self.process.stdin.write(f"{epochs}\n")
            self.process.stdin.flush()
        return Turn(json.loads(self.answer()))


def _failed(mode: str, errors: str) -> UserError:
    return UserError(f"the kernel failed ({mode}): {errors.strip().splitlines()[-1:]}")


def _epochs(turns: list[Turn]) -> list[float]:
    return [epoch["bytes"] / epoch["seconds"] for turn in turns for epoch in turn]


def _median_ratio(a: list[Turn], b: list[Turn], figure: Callable[[Turn], float]) -> float:
    """Return the median ratio of `figure` over turns beside each other; one of the two may have had fewer."""
    return statistics.median(figure(x) / figure(y) for x, y in zip(a, b, strict=False))


def _later(name: str, runs: list[dict[str, list[Turn]]], a: str, b: str) -> dict[str, Any]:
    return _summary(name, [_median_ratio(r[a][1:], r[b][1:], lambda turn: turn.bandwidth) for r in runs])


def _paired(name: str, a: list[float], b: list[float]) -> dict[str, Any]:
    return _summary(name, [x / y for x, y in zip(a, b, strict=True)])


def _summary(name: str, ratios: list[float]) -> dict[str, Any]:
    """Return the median of the repetitions' ratios, and its 95 % interval: of fewer than six, their range."""
    found = summarize(ratios)
    return {name: found.median, f"{name}_interval": [found.low, found.high]}


def _targets(checkpoint: dict[str, Any], stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each target with the ratios found for it, their intervals, and whether the worst reaches it."""
    rows = checkpoint["rows"]
    found = (
        ("of_node_local", [row for row in rows if row["compute_ratio"] >= 1]),
        ("of_plain", [row for row in rows if row["compute_ratio"] == 0]),
        ("first_epoch_of_plain", stream),
        ("later_of_node_local", stream),
    )
    targets = []
    for (target, least), (name, those) in zip(TARGETS.items(), found, strict=True):
        ratios = [row[name] for row in those]
        intervals = [row[f"{name}_interval"] for row in those]
        targets.append({"target": target, "least": least, "found": ratios, "intervals": intervals,
                        "met": min(ratios) >= least})  # fmt: skip
    return targets


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


def _ratio(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_interval"]
    return f"{row[name]:.2f} ({low:.2f}-{high:.2f})"


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
        ratios = (_ratio(row, which) for which in ("of_plain", "of_node_local", "noise"))
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
            f"{row['order']}, {'with' if row['base_page_cache'] else 'without'} page cache: "
            f"first epoch {_ratio(row, 'first_epoch_of_plain')} of plain; "
            f"later {_ratio(row, 'later_of_plain')} of plain and {_ratio(row, 'later_of_node_local')} of "
            f"node-local (noise {_ratio(row, 'noise')}), for {_ratio(row, 'later_cpu_of_node_local')} of its "
            f"processor time; pays from {epoch}",
            markup=False,
        )  # fmt: skip
    table = Table(title="Targets: ratios of bandwidths")
    for heading in ("what", "at least", "found", "met"):
        table.add_column(heading)
    for row in answer["targets"]:
        pairs = zip(row["found"], row["intervals"], strict=True)
        reached = ", ".join(f"{ratio:.2f} ({low:.2f}-{high:.2f})" for ratio, (low, high) in pairs)
        table.add_row(row["target"], f"{row['least']:.2f}", reached, "yes" if row["met"] else "no")
    console.print(table)
