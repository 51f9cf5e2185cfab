"""Darshan: DXT's segments as events, and the counters as what they are.

Needs the package `darshan` (the extra of the same name). Counters say for each file and rank how many reads,
how many bytes, how long in sum. They are no events and are not made into any: they lie beside these, one
table for each module (`IOFrame.counters`; rank -1 stands for all ranks of a shared file), and analyses answer
from them where there are no events. ``metadata``:

* ``counter_totals``: module to counter to its sum over files and ranks, for counters that add up;
* ``stripes``: file to size (bytes) and width of its stripes, where it lies on Lustre;
* ``run_time`` (s), ``ranks``, ``job`` (the scheduler's number) and ``user`` (its number) of the job;
  ``modules``: those in the log, ``partial``: of these the ones for which Darshan ran out of memory, and
  those of DXT that lack bytes which counters tell;
  ``mounts``: mount point and type of the file systems of the job's node.

With DXT an event is a read or write of a file, POSIX or MPI-IO, with time, offset, length, rank and host.
Opens, stats, syncs and STDIO are not in DXT but in the counters. Times are seconds from the job's start.
"""

from __future__ import annotations

import bz2
import contextlib
import importlib.util
import json
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tiercel.errors import UserError
from tiercel.traces.analysis.heat import HEATMAP
from tiercel.traces.child import Child, Lost
from tiercel.traces.readers.base import EventWriter, ReadReport, readers
from tiercel.units import format_size

_MAGIC = (6567223).to_bytes(8, "little"), (6567223).to_bytes(8, "big")
_APIS = {"DXT_POSIX": "posix", "DXT_MPIIO": "mpiio"}
_FUNCTIONS = {("posix", "read"): "read", ("posix", "write"): "write", ("mpiio", "read"): "MPI_File_read",
              ("mpiio", "write"): "MPI_File_write"}  # fmt: skip
#: What is said where the package is not installed.
NEEDED = "a Darshan log needs the package darshan, tiercel's extra: pip install 'tiercel[darshan]'"
#: How the warning of a log without DXT begins, which is how sites keep them.
NO_DXT = "no DXT in this log"
#: A log that takes longer is given up: the library hangs on some damaged ones. (18 us a segment at most.)
_SECONDS = 600


@readers.register("darshan")
class Darshan:
    """Reads one log."""

    title = "Darshan (.darshan)"
    alone = True

    def recognises(self, path: Path) -> bool:
        if not path.is_file():
            return False
        return path.name.endswith(_NAMES) or _version(path) != ""

    def read(self, sources: Sequence[Path], writer: EventWriter) -> ReadReport:
        if len(sources) > 1:
            raise UserError(f"{len(sources)} Darshan logs of different programs: name one of them")
        if (version := _version(sources[0])).startswith("2."):
            raise UserError(
                f"{sources[0]}: a log of format version {version} (Darshan 2), which Darshan's library no "
                "longer reads: use darshan-parser of Darshan 2"
            )
        if importlib.util.find_spec("darshan") is None:
            raise UserError(NEEDED)
        with tempfile.TemporaryDirectory(prefix="tiercel-darshan-") as name:
            ended, said = _take_apart(sources[0], Path(name))
            return _report(sources[0], Path(name), ended, said, writer)


#: How logs are called; those of Darshan 2 are compressed as a whole.
_NAMES = (".darshan", ".darshan.gz", ".darshan.bz2", ".darshan_partial", ".darshan_partial.gz")


def _version(path: Path) -> str:
    """Return the version of a log's format as its first bytes tell it; empty for what is no log."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(31).decompress(head, 16)
        elif head.startswith(b"BZh"):
            with bz2.open(path) as packed:
                head = packed.read(16)
    except (OSError, EOFError, zlib.error):
        return ""
    known = head[8:16] in _MAGIC and head[1:2] == b"."
    return head[:8].rstrip(b"\0").decode("ascii", "replace") if known else ""


@contextlib.contextmanager
def one_child() -> Iterator[None]:
    """While this lasts, one child process takes apart all logs that this process reads, one after another:
    starting one for each takes a second. For one thread."""
    with _new_child() as child:
        _kept.append(child)
        try:
            yield
        finally:
            _kept.pop()


#: The child of `one_child`, where one is in use.
_kept: list[Child] = []


def _new_child() -> Child:
    # -P: else the file beside it that is named darshan.py would be found instead of the package.
    command = [sys.executable, "-P", str(Path(__file__).with_name("darshan_log.py"))]
    return Child(command, environment={"OPENBLAS_NUM_THREADS": "1"})  # others spin, and compute nothing


def _take_apart(log: Path, folder: Path) -> tuple[str, list[str]]:
    """Have a child take `log` apart; returns how it ended, '' for well, and what the library complains of."""
    with contextlib.nullcontext(_kept[-1]) if _kept else _new_child() as child:
        try:
            ended = str(json.loads(child.ask(json.dumps([str(log.resolve()), str(folder)]), _SECONDS)))
        except Lost as lost:
            if (folder / "end.json").exists():  # closing the log broke it, when all had been read
                ended = ""
            else:
                ended = str(lost) if str(lost).startswith("not done") else f"Darshan's library {lost}"
    with contextlib.suppress(OSError):
        lines = (folder / "said").read_text(errors="replace").splitlines()
        return ended, list(dict.fromkeys(x.strip() for x in lines if x.strip().lower().startswith("error")))
    return ended, []


def _report(log: Path, folder: Path, ended: str, said: list[str], writer: EventWriter) -> ReadReport:
    head: dict[str, Any] = _json(folder / "head.json")
    if not head:
        why = ended or "; ".join(said)
        version = _version(log)
        named = f" (format version {version})" if version else ""
        raise UserError(f"{log}: not a readable Darshan log{named}{': ' + why if why else ''}")
    warnings = [f"{log.name}: read in part: {ended}"] if ended else []
    warnings += [f"{log.name}: Darshan's library says: {line}" for line in said]
    rows = 0
    moved: Counter[str] = Counter()
    for number in range(len(list(folder.glob("*.arrow")))):
        with pa.OSFile(str(folder / f"{number}.arrow")) as file:
            table = pa.ipc.open_file(file).read_all()
        rows += _write(table, writer, _run_time(head["job"]), warnings)
        for part in table.group_by("module").aggregate([("size", "sum")]).to_pylist():
            moved[part["module"]] += part["size_sum"]
    end: dict[str, Any] = _json(folder / "end.json")
    modules: Mapping[str, Any] = head["modules"]
    warnings += _damage(end)
    cut = _cut(moved, end.get("totals", {}))
    warnings += cut.values()
    for name, module in modules.items():
        if module["partial"] and name not in cut:
            warnings.append(f"{name}: Darshan ran out of its memory: the log holds a part of the files")
        if name.startswith("DXT_") and not ended and end.get("dxt_records", {}).get(name, 0) < 1:
            warnings.append(
                f"{name}: its version {module['version']} is not read by the installed darshan package: lost"
            )
    records = _keep_counters(folder, writer)
    if unread := sorted(set(modules) & _NOT_READ):
        warnings.append(f"{', '.join(unread)}: not read by tiercel: what moved through it is in no answer")
    if said and not rows and not records:
        raise UserError(f"{log}: nothing in this Darshan log could be read: {'; '.join(said)}")
    if not modules:
        warnings.append("the log has no module: Darshan recorded no I/O at all")
    elif not rows:
        why = NO_DXT if not any(n.startswith("DXT_") for n in modules) else "no DXT could be read"
        warnings.append(
            f"{why}: answers are from {records} records of counters; times of single operations are unknown "
            "(DXT_ENABLE_IO_TRACE=1 traces them)"
        )
    elif end.get("totals"):
        warnings.append("DXT holds reads and writes only: opens, stats and syncs are in the counters")
    job = head["job"]
    metadata: dict[str, Any] = {
        "format": "darshan",
        "command": head["exe"],
        "ranks": job.get("nprocs"),
        "darshan_version": head["library"],
        "log_version": job.get("log_ver"),
        "counter_totals": end.get("totals", {}),
        "stripes": end.get("stripes", {}),
        "run_time": _run_time(job),
        "job": job.get("jobid"),
        "user": job.get("uid"),
        "mounts": _json(folder / "mounts.json") or [],
        "modules": sorted(modules),
        "partial": sorted({name for name, module in modules.items() if module["partial"]} | cut.keys()),
    }
    if begin := job.get("start_time_sec", job.get("start_time", 0)):
        metadata["epoch"] = float(begin) + float(job.get("start_time_nsec", 0)) * 1e-9
    return ReadReport(warnings, metadata)


def _damage(end: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of the counters cannot be, and what has no name."""
    if impossible := end.get("impossible"):
        names = sorted(impossible, key=lambda each: -impossible[each])
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        yield (
            f"{sum(impossible.values())} counters cannot be (negative, not a number, or out of reason): they "
            f"and their sums are missing ({', '.join(names[:4])}{more})"
        )
    if unnamed := end.get("unnamed"):
        yield (
            f"{unnamed} files have no name in this log and are shown as <record NUMBER>: Darshan's memory "
            "for names was full (DARSHAN_NAMEMEM makes it larger)"
        )


def _cut(moved: Mapping[str, int], totals: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the modules of DXT that lack more than a hundredth of what moved by their counters, each with a
    sentence. DXT ends where its memory does (DXT_MAX_MEMORY...), and does not say so."""
    found = {}
    for module, counted, prefix in (("DXT_POSIX", "POSIX", "POSIX_"), ("DXT_MPIIO", "MPI-IO", "MPIIO_")):
        told = totals.get(counted, {})
        counts = [told.get(f"{prefix}BYTES_{what}", 0.0) for what in ("READ", "WRITTEN")]
        if None in counts:
            continue
        whole = sum(counts)
        if module in moved and moved[module] < (1 - _NEARLY) * whole:
            found[module] = (
                f"{module} holds {format_size(moved[module])} of the {format_size(whole)} that moved: times, "
                "overlap and all that is over time are of this part; counters have the whole"
            )
    return found


def _keep_counters(folder: Path, writer: EventWriter) -> int:
    """Hand the modules' counters on; return the number of records."""
    records = 0
    for path in sorted(folder.glob("*.counters")):
        with pa.OSFile(str(path)) as file:
            try:
                table = pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:  # it died half-way
                continue
        if len(table):
            writer.keep(path.stem, table)
            records += len(table) if path.stem != HEATMAP else 0  # its rows are parts of records
    return records


def _run_time(job: Mapping[str, Any]) -> float | None:
    """Return the job's seconds; whole ones where the log is of a version before 3.4."""
    told = job.get("run_time")
    return float(told) if isinstance(told, int | float) and told > 0 else None


#: DXT may lack this part of the bytes and count as whole.
_NEARLY = 0.01
#: Modules of storage that is no file system: their I/O is in no other module.
_NOT_READ = frozenset({"DFS", "DAOS", "MDHIM"})
#: The offset of an MPI-IO segment in logs before 3.2.0: DXT did not know where a view put it.
_NOT_TOLD = -1


def _write(table: pa.Table, writer: EventWriter, run_time: float | None, warnings: list[str]) -> int:
    """Write segments as events. One outside the job has no time; the writer counts what cannot be."""
    time, duration, offset = (table.column(name).to_numpy() for name in ("time", "duration", "offset"))
    if run_time is not None:
        # Logs before 3.4 count whole seconds.
        outside = (time < -1.0) | (time + np.maximum(duration, 0) > run_time * (1 + _NEARLY) + 2.0)
        if lost := int(outside.sum()):
            warnings.append(f"{lost} of {len(table)} segments lie outside the job's {run_time:g} s")
            time = np.where(outside, np.nan, time)
    modules, kinds = (table.column(name).to_pylist() for name in ("module", "kind"))
    apis = [_APIS.get(module, "posix") for module in modules]
    writer.write(
        {
            "time": time,
            "duration": duration,
            "rank": table.column("rank"),
            "host": table.column("host"),
            "function": [_FUNCTIONS[api, kind] for api, kind in zip(apis, kinds, strict=True)],
            "category": table.column("module"),
            "api": apis,
            "kind": table.column("kind"),
            "file": table.column("file"),
            "offset": pa.array(offset, mask=offset == _NOT_TOLD),
            "size": table.column("size"),
        }
    )
    return len(table)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
