"""Takes Darshan logs apart with the `darshan` package: run as a program, in a process of its own.

For each line of its standard input, ``["LOG", "FOLDER"]``, it answers with a line: a word of JSON, "" for
well, else what went wrong.

Darshan's C library ends the whole process on some damaged logs and speaks on the standard error output; here
neither reaches the caller. What was understood lies in FOLDER even when it dies half-way: ``head.json``, then
``mounts.json``, then ``0.arrow``, ``1.arrow``... (segments of DXT), then for each module with counters
``POSIX.counters`` (Arrow: file, rank, a column for each counter), then ``end.json`` (totals); ``said`` is
what came on the standard error output. Imports nothing of tiercel.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

#: Records of counters that are written at once.
_RECORDS = 1 << 14
_FLUSH = 1 << 17
_SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
_COUNTED = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
#: The module that tells how files are striped.
_STRIPES = "LUSTRE"
#: The module that counts each rank's bytes over time (3.4 and later).
_HEAT = "HEATMAP"
#: Bins that a sound record of it may have, far above what Darshan writes (some 200).
_BINS = 1 << 16
#: Endings of counters whose sum over files and ranks means something.
_ADD_UP = (
    "_OPENS", "_READS", "_WRITES", "_SEEKS", "_STATS", "_FSYNCS", "_FDSYNCS", "_FLUSHES", "_MMAPS", "_SYNCS",
    "_BYTES_READ", "_BYTES_WRITTEN", "_READ_TIME", "_WRITE_TIME", "_META_TIME",
)  # fmt: skip
#: Of these the ones that every version counts; the others are -1 in logs of a version that does not.
_ALWAYS = ("_OPENS", "_READS", "_WRITES", "_SEEKS", "_BYTES_READ", "_BYTES_WRITTEN", "_TIME")
#: No counter of a sound log is larger: 64 PiB, or as many calls; 10 trillion seconds of all ranks.
_LARGEST, _LONGEST = 1 << 56, 1e13


def main() -> None:
    """Take apart one log after another, until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no answer
    for line in sys.stdin:
        log, folder = json.loads(line)
        said = os.open(Path(folder) / "said", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(said, 2)
        os.close(said)
        try:
            take_apart(log, Path(folder))
            ended = ""
        except Exception as error:
            ended = f"{type(error).__name__}: {error}"
        print(json.dumps(ended), file=answers, flush=True)


def _backend() -> Any:
    """Return the part of Darshan's package that reads logs. The package also imports its reports, and it and
    Arrow import pandas: nothing of that is used here, and it takes most of the time of a small log."""
    if "darshan" not in sys.modules:
        reports, pandas = ModuleType("darshan.report"), ModuleType("pandas")
        vars(reports)["DarshanReport"] = None
        vars(pandas)["__version__"] = "0"  # Arrow does without one that is too old
        warnings.filterwarnings("ignore", message="pyarrow requires pandas")
        sys.modules.update({"darshan.report": reports, "pandas": pandas})
    return import_module("darshan.backend.cffi_backend")


def take_apart(log_path: str, target: Path) -> None:
    """Write what the log holds to the folder `target`."""
    backend = _backend()
    if not isinstance(backend.ffi, _Interface):
        backend.ffi = _Interface(backend.ffi)
    log = backend.log_open(log_path)
    if log["handle"] == backend.ffi.NULL:
        return
    try:
        _take_apart(backend, log, target)
    finally:
        backend.log_close(log)


def _take_apart(backend: Any, log: Any, target: Path) -> None:
    job = backend.log_get_job(log)
    modules = backend.log_get_modules(log)
    head = {
        "job": {key: value for key, value in job.items() if isinstance(value, int | float | str)},
        "exe": str(backend.log_get_exe(log)),
        "library": str(dict(job.get("metadata", {})).get("lib_ver", "")),
        "modules": {
            name: {"version": m["ver"], "partial": bool(m["partial_flag"])} for name, m in modules.items()
        },
    }
    _write(target / "head.json", head)
    _write(target / "mounts.json", backend.log_get_mounts(log))
    names = _Names(backend.log_get_name_records(log))
    segments = _Segments(target, names)
    read = {name: _dxt(backend, log, name, segments) for name in modules if name.startswith("DXT_")}
    segments.flush()
    impossible: dict[str, int] = defaultdict(int)
    totals = {
        name: _counters(backend, log, name, names, target / f"{name}.counters", impossible)
        for name in modules
        if name in _COUNTED
    }
    if _HEAT in modules and (bad := _heat(backend, log, names, target / f"{_HEAT}.counters")):
        impossible[_HEAT] = bad
    stripes = _stripes(backend, log, names) if _STRIPES in modules else {}
    _write(target / "end.json", {
        "dxt_records": read, "totals": totals, "stripes": stripes, "impossible": impossible,
        "unnamed": names.unnamed,
    })  # fmt: skip


class _Names(dict[int, str]):
    """Names of records; one that the log does not name goes by its number."""

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__({number: name for number, name in names.items() if name})
        self.unnamed = 0

    def __missing__(self, number: int) -> str:
        self.unnamed += 1
        name = self[number] = f"<record {number:#x}>"
        return name


class _Text(bytes):
    """Text of a log, which is what the file system had: bytes that are no UTF-8 are shown as ``\\xe9``."""

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, errors)


class _Interface:
    """The interface to Darshan's C library, whose texts can all be decoded."""

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ffi, name)

    def string(self, *arguments: Any) -> _Text:
        return _Text(self._ffi.string(*arguments))


class _Segments:
    """Collects segments into files of a bounded size."""

    def __init__(self, folder: Path, names: _Names) -> None:
        self._folder = folder
        self._names = names
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._files = 0

    def add(self, module: str, record: int, rank: int, host: str, kind: str, segments: Any) -> None:
        count = len(segments)
        file = self._names[record]

        def same(value: Any, kind: pa.DataType) -> pa.Array:
            words = pa.array([value], kind)
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), words)

        self._parts.append(
            pa.record_batch(
                {
                    "time": pa.array(segments["start"]),
                    "duration": pa.array(segments["end"] - segments["start"]),
                    "offset": pa.array(segments["offset"]),
                    "size": pa.array(segments["length"]),
                    "rank": pa.array(np.full(count, rank, dtype=np.int32)),
                    "module": same(module, pa.string()),
                    "kind": same(kind, pa.string()),
                    "host": same(host, pa.string()),
                    "file": same(file, pa.string()),
                }
            )
        )
        self._rows += count
        if self._rows >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        if not self._parts:
            return
        table = pa.Table.from_batches(self._parts).unify_dictionaries()
        draft = self._folder / "draft"
        with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        draft.rename(self._folder / f"{self._files}.arrow")
        self._files += 1
        self._parts, self._rows = [], 0


def _dxt(backend: Any, log: Any, module: str, segments: _Segments) -> int:
    """Read all records of a DXT module; returns their number (the package's own way is a dict a segment)."""
    ffi, library = backend.ffi, backend.libdutil
    index = backend.log_get_modules(log)[module]["idx"]
    if ffi.sizeof("struct segment_info") != _SEGMENT.itemsize:
        return -1
    count = 0
    while True:
        buffer = ffi.new("void **")
        if library.darshan_log_get_record(log["handle"], index, buffer) < 1:
            return count
        record = ffi.cast("struct dxt_file_record **", buffer)[0]
        host = ffi.string(record.hostname).decode("utf-8", "replace")
        writes, reads = int(record.write_count), int(record.read_count)
        if writes < 0 or reads < 0:
            return count
        first = buffer[0] + ffi.sizeof("struct dxt_file_record")
        raw = ffi.buffer(first, (writes + reads) * _SEGMENT.itemsize)
        both = np.frombuffer(raw, dtype=_SEGMENT).copy()
        for kind, part in (("write", both[:writes]), ("read", both[writes:])):
            if len(part):
                segments.add(module, int(record.base_rec.id), int(record.base_rec.rank), host, kind, part)
        library.darshan_free(buffer[0])
        count += 1


def _counters(
    backend: Any, log: Any, module: str, names: _Names, path: Path, impossible: dict[str, int]
) -> dict[str, float | None]:
    """Write a module's records to `path`, and return totals of the counters that add up.

    Numbers that cannot be are written as missing, make their total so, and are counted in `impossible`.
    """
    whole = [str(name) for name in backend.counter_names(module)]
    broken = [str(name) for name in backend.fcounter_names(module)]
    schema = pa.schema([
        ("file", pa.string()), ("rank", pa.int32()),
        *((name, pa.int64()) for name in whole), *((name, pa.float64()) for name in broken),
    ])  # fmt: skip
    totals: dict[str, float | None] = {}
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        held: list[dict[str, Any]] = []
        while (record := backend.log_get_record(log, module, "numpy")) is not None:
            held.append(record)
            if len(held) == _RECORDS:
                _write_records(held, schema, (whole, broken), names, writer, totals, impossible)
                held = []
        _write_records(held, schema, (whole, broken), names, writer, totals, impossible)
    return totals


def _write_records(
    held: list[dict[str, Any]], schema: pa.Schema, columns: tuple[list[str], list[str]],
    names: _Names, writer: Any, totals: dict[str, float | None], impossible: dict[str, int],
) -> None:  # fmt: skip
    if not held:
        return
    arrays = [
        pa.array([names[int(record["id"])] for record in held], pa.string()),
        pa.array([int(record["rank"]) for record in held], pa.int32()),
    ]
    for key, listed in zip(("counters", "fcounters"), columns, strict=True):
        table = np.stack([np.asarray(record[key]) for record in held])
        for number, name in enumerate(listed):
            values = table[:, number]
            bad = _cannot_be(name, values)
            if bad.any():
                impossible[name] += int(bad.sum())
            arrays.append(pa.array(values, schema.field(name).type, mask=bad))
            if name.endswith(_ADD_UP) and "_MAX_" not in name:
                before = totals.get(name, 0.0)
                sound = None if bad.any() else float(np.clip(values, 0, None).sum())
                totals[name] = None if before is None or sound is None else before + sound
    writer.write_batch(pa.record_batch(arrays, schema=schema))


def _cannot_be(name: str, values: Any) -> Any:
    """Say which values of a counter cannot be: negative counts, bytes and times; what is out of reason."""
    if values.dtype.kind == "f":
        if not name.endswith("_TIME"):  # a time of day, a variance
            return ~np.isfinite(values)
        return ~((values >= 0) & (values <= _LONGEST))  # NaN is not
    if not (name.endswith(_ADD_UP) or "_SIZE_" in name):
        return np.zeros(len(values), dtype=bool)
    least = 0 if name.endswith(_ALWAYS) or "_SIZE_" in name else -1
    return (values < least) | (values > _LARGEST)


def _heat(backend: Any, log: Any, names: _Names, path: Path) -> int:
    """Write HEATMAP as rows: record (file), rank, a bin's start and width (s), bytes read and written in it.

    Bins in which nothing moved are left out, but for a record's last one, which says how long the job was.
    Return the number of bins whose bytes cannot be: they are missing.
    """
    impossible = 0
    columns = {"file": pa.string(), "rank": pa.int32(), "start": pa.float64(), "width": pa.float64(),
               "read": pa.int64(), "written": pa.int64()}  # fmt: skip
    schema = pa.schema(list(columns.items()))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for record, rank, width, read, written in _heat_records(backend, log):
            bad = [(each < 0) | (each > _LARGEST) for each in (read, written)]
            impossible += int(bad[0].sum() + bad[1].sum())
            kept = (read > 0) | (written > 0) | bad[0] | bad[1]
            kept[-1] = True
            count, start = int(kept.sum()), np.flatnonzero(kept) * width
            values = ([names[record]] * count, [rank] * count, start, [width] * count)
            arrays = [pa.array(v, kind) for v, kind in zip(values, columns.values(), strict=False)]
            arrays += [
                pa.array(moved[kept], pa.int64(), mask=lost[kept])
                for moved, lost in zip((read, written), bad, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return impossible


def _heat_records(backend: Any, log: Any) -> Any:
    """Yield name, rank, width of bins and both rows of bins; a record that cannot be ends them."""
    ffi, library = backend.ffi, backend.libdutil
    index = backend.log_get_modules(log)[_HEAT]["idx"]
    while True:
        buffer = ffi.new("void **")
        if library.darshan_log_get_record(log["handle"], index, buffer) < 1:
            return
        record = ffi.cast("struct darshan_heatmap_record **", buffer)[0]
        bins, width = int(record.nbins), float(record.bin_width_seconds)
        if not (0 < bins <= _BINS and 0.0 < width < 1e9):
            return
        read, written = (
            np.frombuffer(ffi.buffer(b, 8 * bins), dtype=np.int64).copy()
            for b in (record.read_bins, record.write_bins)
        )
        yield int(record.base_rec.id), int(record.base_rec.rank), width, read, written
        library.darshan_free(buffer[0])


def _stripes(backend: Any, log: Any, names: _Names) -> dict[str, dict[str, int]]:
    """Return stripe size (bytes) and width of each file that lies on Lustre."""
    found = {}
    while (record := backend.log_get_record(log, _STRIPES, "dict")) is not None:
        # Of a file with several layouts (by offset) the first counts.
        for component in record["components"][:1]:
            numbers = {str(key): int(value) for key, value in component["counters"].items()}
            file = names[int(record["id"])]
            size = numbers.get("LUSTRE_COMP_STRIPE_SIZE", 0)
            if size > 0:
                found[file] = {"size": size, "width": numbers.get("LUSTRE_COMP_STRIPE_COUNT", 0)}
    return found


def _write(path: Path, data: Any) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(data))
    draft.rename(path)


if __name__ == "__main__":
    main()
