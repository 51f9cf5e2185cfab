"""How well the simulation predicts: `python -m benchmarks.simulation` (as root, some ten minutes).

Two storages whose limits are known, measured by iokernel, no row of them fitted:

- A device that the kernel throttles (blkio, cgroup v1) to so many bytes and operations a second, its image in
  memory: the throttle's figures are the topology.
- A network file system on a link of known rate (tools/network-storage: GlusterFS, two servers, their files
  in memory), calibrated at one rate with one process and with eight, as `tiercel site calibrate` does it.
  Carried over to other rates: the share of the link that the bytes of files get, latency, operations and
  metadata.

What a process waits for on the network is time of the processors: on a machine that is busy with other things
it is another one in each minute. `--device` or `--network`: one of the two; `--quick`: a few rows; `--write`:
keep the errors by what bounds, which reports of simulations tell.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.blind import mounted, throttled_group
from tiercel.ceilings.ceiling import Figure
from tiercel.checklist.stages import Bench, storage_stage
from tiercel.simulation.fidelity import Fidelity, keep
from tiercel.simulation.phases import phases
from tiercel.site.machine import memory
from tiercel.site.model import Site, Stack, Storage
from tiercel.study.workloads import DataWorkload, MetadataWorkload

_SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "network-storage" / "storage"
#: All of it in namespaces of its own, whose processes end with the first one.
_ALONE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_PLACE = "/dev/shm"
_KIB, _MIB = 1024, 1024**2

_SITE = Site(site="fidelity", processes_per_node=8, memory_per_node=memory())


@dataclass(frozen=True)
class Row:
    """One prediction beside what was measured, in B/s or operations per second."""

    where: str
    workload: str
    processes: int
    measured: float
    predicted: float
    unit: str
    figure: Figure
    """What bounds it by the model."""

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    def text(self) -> str:
        shown = [
            f"{value / 1e6:.3g} MB/s" if self.unit == "B/s" else f"{value:,.0f}/s"
            for value in (self.measured, self.predicted)
        ]
        cells = (self.where, self.workload, str(self.processes), *shown, f"{self.error:+.0%}")
        return f"| {' | '.join(cells)} |"


#: Bytes and operations per second of the device.
LIMITS = ((50_000_000, 400), (25_000_000, 400), (50_000_000, 1600))
DIRECT: dict[str, dict[str, Any]] = {
    f"{operation}, {size} KiB{', random' if operation == 'read' else ''}, O_DIRECT": {
        "operation": operation, "transfer_size": size * _KIB, "direct": True,
        **({"pattern": "random"} if operation == "read" else {}),
    }
    for operation, size in (("read", 4), ("read", 64), ("read", 1024), ("write", 64), ("write", 1024))
}  # fmt: skip
FITTED_RATE, FITTED_PROCESSES = 400, (1, 8)
"""Mb/s of the link, and processes, at which the calibration measures."""
RATES, PROCESSES = (200, 400, 800), (1, 2, 4, 8)
REPETITIONS = 3
#: What a measured phase aims at (s); the throttle lets a tenth of a second's bytes pass at once.
SECONDS = 2.0

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
    loads = [os.getloadavg()[0]]
    print(f"load of the machine before: {loads[0]:.1f} on {os.cpu_count()} processors\n", flush=True)
    rows: list[Row] = []
    if "--network" not in sys.argv:
        rows += _device(quick)
    if "--device" not in sys.argv:
        rows += _network(quick)
    loads.append(os.getloadavg()[0])
    print(f"load of the machine after: {loads[-1]:.1f}\n")
    _say(rows)
    if "--write" in sys.argv:
        keep(_errors(rows, max(loads) / (os.cpu_count() or 1)))
    return 0


def _device(quick: bool) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tiercel-fidelity-", dir=_PLACE) as name, ExitStack() as stack:
        folder = Path(name)
        mount = stack.enter_context(mounted(folder / "image", folder / "mount"))
        group = stack.enter_context(throttled_group(folder.name))
        here = Path("/sys/fs/cgroup/blkio/cgroup.procs")
        stack.callback(lambda: here.write_text(str(os.getpid())))
        (group / "cgroup.procs").write_text(str(os.getpid()))  # what it starts is throttled, too
        number = mount.stat().st_dev
        for bandwidth, operations in LIMITS[:1] if quick else LIMITS:
            for way in ("read", "write"):
                for figure, limit in (("bps", bandwidth), ("iops", operations)):
                    text = f"{os.major(number)}:{os.minor(number)} {limit}"
                    (group / f"blkio.throttle.{way}_{figure}_device").write_text(text)
            stage = {"stage": "media", "bandwidth": float(bandwidth), "operations": operations}
            storage = Storage.model_validate(
                {"type": "ext4", "mount": str(mount), "scratch": str(mount / "scratch"), "topology": [stage]}
            )
            bench = Bench(_SITE, Stack("device", storage), folder / "results", SECONDS)
            where = f"device, {bandwidth / 1e6:.0f} MB/s, {operations}/s"
            for count in PROCESSES[1:2] if quick else PROCESSES:
                rows += _compare(bench, storage, where, count, DIRECT)
    return rows


def _network(quick: bool) -> list[Row]:
    rates, processes = ((200,), (2,)) if quick else (RATES, PROCESSES)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tiercel-fidelity-", dir=_PLACE) as name:
        folder = Path(name)
        with _storage(folder, FITTED_RATE) as bench:
            fitted = storage_stage(bench, max(FITTED_PROCESSES))
        _say_fitted(fitted)
        for rate in rates:
            with _storage(folder, rate) as bench:
                for count in processes:
                    if rate != FITTED_RATE or count not in FITTED_PROCESSES:
                        known, where = _predicting(bench.stack.storage, fitted, rate), f"link, {rate} Mb/s"
                        rows += _compare(bench, known, where, count, WORKLOADS)
                        rows += _compare_metadata(bench, known, where, count)
        _remove(folder)
    return rows


def _compare(
    bench: Bench, known: Storage, where: str, processes: int, workloads: Mapping[str, dict[str, Any]]
) -> Iterator[Row]:
    """Yield what was measured and what was predicted, for each workload."""
    for name, keys in workloads.items():
        size = keys["transfer_size"]
        (some,) = phases(_data(keys, 64 * size), known, 1, processes)
        amount = max(8 * size, int(some.moved / some.seconds * SECONDS / processes) // size * size)
        workload = _data(keys, amount)
        (predicted,) = phases(workload, known, 1, processes)
        found = [bench.measure(workload, processes, n)[-1].bandwidth or 0.0 for n in range(REPETITIONS)]
        rate = predicted.moved / predicted.seconds
        yield _told(Row(where, name, processes, median(found), rate, "B/s", predicted.figure))


def _compare_metadata(bench: Bench, known: Storage, where: str, processes: int) -> Iterator[Row]:
    items = MetadataWorkload(
        operation="metadata", items_per_process=max(50, 400 // processes), directories=False, reorder="none",
        phases=["create", "stat", "read", "rename", "remove"],
    )  # fmt: skip
    several = [bench.measure(items, processes, n) for n in range(REPETITIONS)]
    for place, phase in enumerate(phases(items, known, 1, processes)):
        rate = median(each[place].operation_rate or 0.0 for each in several)
        assert several[0][place].operation == phase.operation
        yield _told(
            Row(where, phase.operation, processes, rate, phase.moved / phase.seconds, "1/s", phase.figure)
        )


def _told(row: Row) -> Row:
    print("  " + row.text(), file=sys.stderr, flush=True)
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
    try:
        yield Bench(_SITE, Stack("network", storage), folder / "results", SECONDS)
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
    print("| storage | workload | processes | measured | predicted | error |\n|---|---|---:|---:|---:|---:|")
    for row in rows:
        print(row.text())
    print("\n| storage | workload | rows | median error | worst |\n|---|---|---:|---:|---:|")
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row.where.partition(",")[0], row.workload), []).append(row.error)
    for (where, name), errors in groups.items():
        worst = max(errors, key=abs)
        print(f"| {where} | {name} | {len(errors)} | {median(map(abs, errors)):.0%} | {worst:+.0%} |")


_STORAGES = {"device": "a throttled device", "link": "a network file system"}


def _errors(rows: Sequence[Row], load: float) -> list[Fidelity]:
    """Return the errors by storage and by the figure that bounds."""
    groups: dict[tuple[str, Figure], list[float]] = {}
    for row in rows:
        groups.setdefault((_STORAGES[row.where.partition(",")[0]], row.figure), []).append(row.error)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    return [
        Fidelity(
            figure, storage, date, round(load, 1), len(errors), round(median(map(abs, errors)), 3),
            round(min(errors), 3), round(max(errors), 3),
        )
        for (storage, figure), errors in groups.items()
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
