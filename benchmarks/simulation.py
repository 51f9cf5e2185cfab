"""How well the simulation predicts: `python -m benchmarks.simulation` (as root, some ten minutes).

A network file system on a link of known rate (tools/network-storage: GlusterFS, two servers) is calibrated at
one rate with one process and with eight, as `tiercel site calibrate` does it. From that alone the simulation
predicts other rates and other numbers of processes; iokernel measures them; the table has both.

What is carried over to another rate: the share of the link that the bytes of files get, latency, operations
and metadata. No row of the table was fitted. Files of the servers lie in memory, so that what another program
does to the disk meanwhile is not taken for an error. `--quick`: a few rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tiercel.checklist.stages import Bench, storage_stage
from tiercel.simulation.phases import phases
from tiercel.site.machine import memory
from tiercel.site.model import Site, Stack, Storage
from tiercel.study.workloads import DataWorkload, MetadataWorkload

_SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "network-storage" / "storage"
#: All of it in namespaces of its own, whose processes end with the first one.
_ALONE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_PLACE = "/dev/shm"
_KIB, _MIB = 1024, 1024**2

FITTED_RATE, FITTED_PROCESSES = 400, (1, 8)
"""Mb/s of the link, and processes, at which the calibration measures."""
RATES, PROCESSES = (200, 400, 800), (1, 2, 4, 8)
REPETITIONS = 3
#: What a measured phase aims at (s).
SECONDS = 1.0

WORKLOADS: dict[str, dict[str, Any]] = {
    "write, 1 MiB, synced at the end": {"operation": "write", "transfer_size": _MIB, "fsync": "phase"},
    "read cold, 1 MiB": {"operation": "read", "transfer_size": _MIB},
    "write, 64 KiB, each synced": {"operation": "write", "transfer_size": 64 * _KIB, "fsync": "write"},
    "write, 4 KiB, each synced": {"operation": "write", "transfer_size": 4 * _KIB, "fsync": "write"},
    "read, 64 KiB, random, O_DIRECT": {
        "operation": "read", "transfer_size": 64 * _KIB, "pattern": "random", "direct": True,
    },
}  # fmt: skip
METADATA = "metadata"


def main() -> int:
    if "--inside" not in sys.argv:
        why = subprocess.run([_SCRIPT, "missing"], capture_output=True, text=True, check=True).stdout.strip()
        if why:
            print(f"benchmarks.simulation: no network storage here: {why}", file=sys.stderr)
            return 2
        again = [sys.executable, "-m", "benchmarks.simulation", "--inside", *sys.argv[1:]]
        return subprocess.run([*_ALONE, *again], check=False).returncode
    quick = "--quick" in sys.argv
    rates, processes = ((200,), (2,)) if quick else (RATES, PROCESSES)
    rows = []
    with tempfile.TemporaryDirectory(prefix="tiercel-fidelity-", dir=_PLACE) as name:
        folder = Path(name)
        with _storage(folder, FITTED_RATE) as bench:
            fitted = storage_stage(bench, max(FITTED_PROCESSES))
        _say_fitted(fitted)
        for rate in rates:
            with _storage(folder, rate) as bench:
                for count in processes:
                    if rate != FITTED_RATE or count not in FITTED_PROCESSES:
                        rows += list(
                            _compare(bench, _predicting(bench.stack.storage, fitted, rate), rate, count)
                        )
        _remove(folder)
    _say(rows)
    return 0


Row = tuple[str, int, int, float, float, str]


def _compare(bench: Bench, known: Storage, rate: int, processes: int) -> Iterator[Row]:
    """Yield what was measured and what was predicted, for each workload, in B/s or 1/s."""
    for name, keys in WORKLOADS.items():
        size = keys["transfer_size"]
        guess = _data(keys, 64 * size)
        (some,) = phases(guess, known, 1, processes)
        amount = max(8 * size, int(some.moved / some.seconds * SECONDS / processes) // size * size)
        workload = _data(keys, amount)
        (predicted,) = phases(workload, known, 1, processes)
        found = [bench.measure(workload, processes, n)[-1].bandwidth or 0.0 for n in range(REPETITIONS)]
        yield _told((name, rate, processes, median(found), predicted.moved / predicted.seconds, "B/s"))
    items = MetadataWorkload(
        operation="metadata", items_per_process=max(50, 400 // processes), directories=False, reorder="none",
        phases=["create", "stat", "read", "rename", "remove"],
    )  # fmt: skip
    several = [bench.measure(items, processes, n) for n in range(REPETITIONS)]
    for place, phase in enumerate(phases(items, known, 1, processes)):
        rate_found = median(each[place].operation_rate or 0.0 for each in several)
        assert several[0][place].operation == phase.operation
        yield _told(
            (
                f"{METADATA}, {phase.operation}",
                rate,
                processes,
                rate_found,
                phase.moved / phase.seconds,
                "1/s",
            )
        )


def _told(row: Row) -> Row:
    name, rate, processes, measured, predicted, unit = row
    print(
        f"  {name}, {rate} Mb/s, {processes}: {measured:.4g} {unit}, predicted {predicted:.4g}",
        file=sys.stderr,
    )
    return row


def _data(keys: dict[str, Any], amount: int) -> DataWorkload:
    own = {"reorder": "none"} if keys["operation"] == "read" else {}
    return DataWorkload.model_validate({**keys, **own, "data_per_process": amount})


def _predicting(storage: Storage, fitted: dict[str, Any], rate: int) -> Storage:
    """Return the storage with what was fitted, its bandwidth in the ratio of the links' rates."""
    ratio = rate / FITTED_RATE
    stage = {**fitted, **{key: fitted[key] * ratio for key in ("read_bandwidth", "write_bandwidth")}}
    return Storage.model_validate({**storage.model_dump(), "topology": [stage]})


@contextmanager
def _storage(folder: Path, rate: int) -> Iterator[Bench]:
    """Mount the network storage at `rate` Mb/s, as a bench."""
    environment = {
        **os.environ, "TIERCEL_NETWORK_STORAGE": str(folder / "files"), "MOUNT": str(folder / "mount"),
        "RATE": f"{rate}mbit",
    }  # fmt: skip
    subprocess.run([_SCRIPT, "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    mount = folder / "mount"
    storage = Storage(type="glusterfs", mount=str(mount), scratch=str(mount / "scratch"), medium="network",
                      fill_limit=1.0)  # fmt: skip
    site = Site(site="fidelity", processes_per_node=max(PROCESSES), memory_per_node=memory())
    try:
        yield Bench(site, Stack("network", storage), folder / "results", SECONDS)
    finally:
        subprocess.run([_SCRIPT, "stop"], env=environment, check=True)


def _remove(folder: Path) -> None:
    # Its files have attributes that only root may remove.
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder / "files")], check=True)


def _say_fitted(fitted: dict[str, Any]) -> None:
    link = FITTED_RATE / 8 * 1e6
    shares = [f"{fitted[f'{way}_bandwidth'] / link:.0%} of the link for {way}s" for way in ("write", "read")]
    waits = [f"{fitted[f'{way}_latency'] * 1e3:.2f} ms to {way}" for way in ("write", "read")]
    begun = [f"{fitted[f'{way}_operations']:,.0f} {way}s a second" for way in ("write", "read")]
    print(f"fitted at {FITTED_RATE} Mb/s: {', '.join([*shares, *waits, *begun])}\n", flush=True)


def _say(rows: Sequence[Row]) -> None:
    print(
        "| workload | link, Mb/s | processes | measured | predicted | error |\n|---|---:|---:|---:|---:|---:|"
    )
    for name, rate, processes, measured, predicted, unit in rows:
        shown = [
            f"{value / 1e6:.3g} MB/s" if unit == "B/s" else f"{value:,.0f}/s"
            for value in (measured, predicted)
        ]
        print(
            f"| {name} | {rate} | {processes} | {shown[0]} | {shown[1]} | {predicted / measured - 1:+.0%} |"
        )
    print("\n| workload | rows | median error | worst |\n|---|---:|---:|---:|")
    names = dict.fromkeys(name for name, *_ in rows)
    for name in (*names, ""):
        errors = [p / m - 1 for n, _, _, m, p, _ in rows if name in ("", n)]
        worst = max(errors, key=abs)
        print(f"| {name or 'all'} | {len(errors)} | {median(map(abs, errors)):.0%} | {worst:+.0%} |")


if __name__ == "__main__":
    sys.exit(main())
