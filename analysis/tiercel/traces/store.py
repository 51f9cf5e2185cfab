"""Events on disk: the Parquet writer that readers fill, and the cache of traces read before.

A cache entry is a folder with ``events.parquet`` and ``report.json``. It is named by the reader and by path,
size and time of change of every source, so that a changed trace is read anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.pages.words import count
from tiercel.traces.arrays import to_arrow, to_numpy, to_words
from tiercel.traces.calls import api_of
from tiercel.traces.kept import forget_answers, seal
from tiercel.traces.pseudo import is_pseudo
from tiercel.traces.schema import EVENTS, KINDS, NAMES

_IO = {"read", "write", "metadata", "sync"}
_ROW_GROUP = 1 << 19
#: No call lasts longer (s: 30 years), none moves more (B: 64 PiB); such numbers are damage.
_LONGEST, _LARGEST = 1e9, 1 << 56
#: What can be, by column: least and most.
_BELIEVED = (
    ("time", -_LONGEST * 10, _LONGEST * 10), ("duration", 0.0, _LONGEST), ("size", 0, _LARGEST),
    ("offset", 0, 1 << 62),
)  # fmt: skip
_KNOWN_LAYERS = ("posix", "stdio", "mpiio", "hdf5")
#: Events of a file that others wrote which `ParquetWriter` changes (SQL), and those that are none.
CHANGED = " OR ".join([
    '"time" IS NULL', f"kind IN {tuple(sorted(_IO))} AND api IS NULL",
    *(f'"{name}" IS NOT NULL AND NOT "{name}" BETWEEN {least!r} AND {most!r}'
      for name, least, most in _BELIEVED),
])  # fmt: skip
NO_EVENT = (
    f"kind IS NULL OR kind NOT IN {KINDS} OR rank IS NULL OR rank < 0 "
    f"OR (kind IN {tuple(sorted(_IO))} AND api NOT IN {_KNOWN_LAYERS})"
)
_WORDS = {field.name for field in EVENTS if field.kind == "string"}
_TYPES: dict[str, pa.DataType] = {
    field.name: pa.dictionary(pa.int32(), pa.string())
    if field.kind == "string"
    else pa.type_for_alias(field.kind)
    for field in EVENTS
}
#: Types of numpy that are a column's as they are.
_NUMBERS = (np.float64, np.int64, np.int32, np.bool_)
SCHEMA = pa.schema([pa.field(name, _TYPES[name]) for name in NAMES])

# Statistics let queries skip row groups; the dictionary keeps words small and quick to group by.
PARQUET: dict[str, Any] = {
    "compression": "lz4", "use_dictionary": sorted(_WORDS), "write_statistics": ["time", "rank"],
}  # fmt: skip


@dataclass(frozen=True)
class Extent:
    """Number of events, the earliest start and the latest end, in the reader's seconds."""

    rows: int
    start: float
    end: float


#: Where a Parquet file of `to_parquet` keeps what the trace says of its program.
_TOLD = b"tiercel.trace"


def with_told(warnings: Sequence[str], metadata: Mapping[str, Any]) -> pa.Schema:
    """Return `SCHEMA` with the warnings and the metadata of a trace, for a file that is handed on."""
    told = {name: value for name, value in metadata.items() if name != "path"}
    return SCHEMA.with_metadata({_TOLD: json.dumps({"warnings": list(warnings), "metadata": told})})


def told_by(path: Path) -> tuple[list[str], dict[str, Any]]:
    """Return warnings and metadata that `with_told` kept; nothing from files of others."""
    try:
        told = json.loads((pq.read_schema(path).metadata or {}).get(_TOLD, b"{}"))
        warnings, metadata = told.get("warnings", []), told.get("metadata", {})
    except (ValueError, AttributeError):
        return [], {}
    if not (isinstance(metadata, dict) and _words(warnings)):
        return [], {}
    return warnings, {
        name: value for name, value in metadata.items()
        if (_EXPECTED[name](value) if name in _EXPECTED else isinstance(value, str | int | None))
    }  # fmt: skip


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _number(most: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and abs(value) <= most  # NaN is not


#: What a file from elsewhere may say, where more than a word is expected; what is not so is left out.
_EXPECTED: dict[str, Callable[[Any], bool]] = {
    "run_time": lambda value: _number(_LONGEST)(value) and value > 0,
    "epoch": _number(1e11),
    "ranks": lambda value: isinstance(value, int) and 0 < value < 1 << 31,
    **dict.fromkeys(("commands", "partial", "modules", "chosen"), _words),
    "stripes": lambda value: isinstance(value, dict) and all(isinstance(v, dict) for v in value.values()),
    "mounts": lambda value: isinstance(value, list) and all(isinstance(v, list) for v in value),
    "counter_totals": lambda value: isinstance(value, dict),
}


class NoLayer(ValueError):
    """An I/O call whose layer nothing tells."""


class ParquetWriter:
    """Collects batches into row groups; also keeps what the frame needs to know of the whole.

    `start` is the earliest time seen; `rows` their number. Ranks that a reader leaves out are numbered here.
    """

    def __init__(self, path: Path) -> None:
        _reuse_memory()
        self._path = path
        self._file = pq.ParquetWriter(path, SCHEMA, **PARQUET)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._ranks: dict[tuple[Any, Any], int] = {}
        self.rows = 0
        self._lost: Counter[str] = Counter()
        self.start = np.inf
        self.end = -np.inf

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows (see :class:`tiercel.traces.readers.base.EventWriter`)."""
        unknown = set(columns) - set(NAMES)
        if unknown:
            raise ValueError(f"no such column in a trace: {', '.join(sorted(unknown))}")
        length = len(next(iter(columns.values()), ()))
        if not length:
            return
        arrays = {name: _array(values, _TYPES[name]) for name, values in columns.items()}
        arrays, length = self._believable(arrays, length)
        if not length:
            return
        if "rank" not in arrays:
            arrays["rank"] = self._number(arrays, length)
        if "kind" in arrays:
            arrays["api"] = _with_layers(arrays, length)
        if "file" in arrays and "kind" in arrays:
            arrays["kind"] = _marked(arrays["kind"], arrays["file"])
        batch = pa.record_batch(
            [arrays[n] if n in arrays else pa.nulls(length, _TYPES[n]) for n in NAMES], schema=SCHEMA
        )
        self.rows += length
        times, _ = to_numpy(arrays["time"])
        self.start = min(self.start, float(times.min()))
        if "duration" in arrays:
            lasted, missing = to_numpy(arrays["duration"])
            lasted = lasted if missing is None else np.where(missing, 0.0, lasted)
            self.end = max(self.end, float((times + lasted).max()))
        self._waiting.append(batch)
        self._waiting_rows += length
        if self._waiting_rows >= _ROW_GROUP:
            self._flush()

    def _believable(self, arrays: dict[str, pa.Array], length: int) -> tuple[dict[str, pa.Array], int]:
        """Take out numbers that cannot be: one of them would be the length, or the bytes, of a job. An event
        without a time is left out."""
        for name, least, most in _BELIEVED:
            if name not in arrays:
                continue
            values, missing = to_numpy(arrays[name])
            bad = ~((values >= least) & (values <= most))  # NaN is not
            if missing is not None:
                bad &= ~missing
            if bad.any():
                self._lost[name] += int(bad.sum()) if name != "time" else 0
                arrays[name] = to_arrow(values, bad if missing is None else bad | missing)
        if gone := arrays["time"].null_count:
            self._lost["time"] += gone
            timed = arrays["time"].is_valid()
            arrays = {name: values.filter(timed) for name, values in arrays.items()}
        return arrays, len(arrays["time"])

    def unbelieved(self) -> list[str]:
        """Return a sentence for each kind of impossible numbers."""
        said = []
        if lost := self._lost["time"]:
            said.append(f"{count(lost, 'event')} left out: impossible time")
        for name in ("duration", "size", "offset"):
            if lost := self._lost[name]:
                said.append(f"{count(lost, f'impossible {name}')} (negative or too large) treated as missing")
        return said

    def keep(self, name: str, table: pa.Table) -> None:
        """Write a table of counters beside the events."""
        pq.write_table(table, counters_path(self._path.parent, name), compression="lz4")

    def _number(self, arrays: Mapping[str, pa.Array], length: int) -> pa.Array:
        """Return ranks for rows without: the numbers of (host, process) in order of appearance."""
        if "process" not in arrays:
            return pa.array(np.zeros(length, dtype=np.int32))
        host = arrays["host"].to_pylist() if "host" in arrays else [None] * length
        keys = zip(host, arrays["process"].to_pylist(), strict=True)
        return pa.array([self._ranks.setdefault(key, len(self._ranks)) for key in keys], pa.int32())

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, SCHEMA).unify_dictionaries()
            self._file.write_table(table, row_group_size=_ROW_GROUP)
            self._waiting, self._waiting_rows = [], 0

    def extent(self) -> Extent:
        """Return what is known of all rows written."""
        if not self.rows:
            return Extent(0, 0.0, 0.0)
        return Extent(self.rows, self.start, max(self.end, self.start))

    def close(self, renames: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Write what waits; then replace words that a reader explained at the end."""
        self._flush()
        self._file.close()
        if renames:
            rename(self._path, renames)
        _give_back()


#: malloc's parameters, and what they are set to (B): the largest that glibc accepts, and as much again as is
#: in use at once.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 256 << 20)


def _reuse_memory() -> None:
    """Let glibc use the memory of one block of lines for the next one. It would return each to the system and
    get it again page by page, which takes as long as inflating."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        for parameter, value in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            library.mallopt(parameter, value)


def _give_back() -> None:
    """Return to the system what reading took: Arrow and glibc (in an arena for each thread) keep it for more
    of the same, and the analyses that follow have their own."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def counters_path(folder: Path, name: str) -> Path:
    """Return where a table of counters lies beside the events."""
    return folder / f"{name}.counters"


def counted_modules(folder: Path) -> frozenset[str]:
    """Return the names of the tables of counters that lie in a folder."""
    return frozenset(path.stem for path in folder.glob("*.counters"))


def rename(path: Path, renames: Mapping[str, Mapping[str, str]]) -> None:
    """Replace words in columns of a file of events."""
    draft = path.with_suffix(".renamed")
    old = pq.ParquetFile(path, read_dictionary=sorted(_WORDS))
    with pq.ParquetWriter(draft, SCHEMA, **PARQUET) as new:
        for number in range(old.num_row_groups):
            table = old.read_row_group(number).unify_dictionaries()
            for column, names in renames.items():
                place = table.schema.get_field_index(column)
                words = _whole(table.column(place).combine_chunks())
                changed = [names.get(w, w) for w in words.dictionary.to_pylist()]
                renamed = pa.DictionaryArray.from_arrays(words.indices, pa.array(changed, pa.string()))
                table = table.set_column(place, SCHEMA.field(column), renamed)
            if "file" in renames:
                kinds, files = (table.column(name).combine_chunks() for name in ("kind", "file"))
                marked = _marked(_whole(kinds), _whole(files))
                table = table.set_column(table.schema.get_field_index("kind"), SCHEMA.field("kind"), marked)
            new.write_table(table.cast(SCHEMA), row_group_size=_ROW_GROUP)
    old.close()
    draft.replace(path)


def _whole(column: Any) -> pa.DictionaryArray:
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _with_layers(arrays: Mapping[str, pa.Array], length: int) -> pa.Array:
    """Return `api`, told by the call's name where the reader left it out: what has none counts in no layer.

    NoLayer where the name does not tell it either: its bytes would be lost without a word.
    """
    given = arrays["api"] if "api" in arrays else pa.nulls(length, _TYPES["api"])
    if not given.null_count:
        return given
    calls = arrays["function"] if "function" in arrays else pa.nulls(length, _TYPES["function"])
    apis, kinds = given.to_pylist(), arrays["kind"].to_pylist()
    for row, (api, kind, call) in enumerate(zip(apis, kinds, calls.to_pylist(), strict=True)):
        if api is None and kind in _IO:
            apis[row] = api_of(call or "")
            if apis[row] == "app":
                raise NoLayer(
                    f"an event of kind {kind} says no api (posix, stdio, mpiio or hdf5), and its function "
                    f"({call}) does not tell it"
                )
    return _array(apis, _TYPES["api"])


def _marked(kinds: pa.DictionaryArray, files: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the kinds of calls, ``pseudo`` where the file is no storage; of what is no I/O, as they are."""
    pseudo = np.array([is_pseudo(word) for word in files.dictionary.to_pylist()], dtype=bool)
    if not pseudo.any():
        return kinds
    words = kinds.dictionary.to_pylist()
    io = np.array([word in _IO for word in words], dtype=bool)
    places, codes = _codes(files), _codes(kinds)
    rows = np.append(pseudo, False)[places] & np.append(io, False)[codes]
    codes[rows] = len(words)
    return to_words(codes, [*words, "pseudo"])


def _codes(words: pa.DictionaryArray) -> np.ndarray[Any, Any]:
    """Return a copy of the indices, -1 where a word is missing."""
    codes, missing = to_numpy(words.indices)
    return codes.copy() if missing is None else np.where(missing, -1, codes)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, np.ndarray) and values.dtype in _NUMBERS:
        array = to_arrow(values, np.isnan(values) if values.dtype == np.float64 else None)
    elif isinstance(values, pa.Array | pa.ChunkedArray):
        array = values
    else:
        array = pa.array(values, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.type == kind:
        return array
    if pa.types.is_dictionary(kind):
        if pa.types.is_dictionary(array.type):
            words = array.dictionary.cast(pa.string())
            return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), words)
        return array.cast(pa.string()).dictionary_encode()
    return array.cast(kind)


#: For so long after it was last asked for a trace that was read before is kept, seconds; a draft of a reader
#: that was killed goes after a day.
KEPT_S, ABANDONED_S = 30 * 86400.0, 86400.0
_ENTRY, _DRAFT = re.compile(r"[0-9a-f]{32}"), ".tiercel-draft-"
#: What an entry holds; a folder with anything else is not only ours.
_HELD = re.compile(r"report\.json|[\w.-]+\.parquet")


class Entry:
    """One trace in the cache, or in a temporary folder that goes when the process ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> tuple[Path, ...]:
        return tuple(sorted(self.folder.glob("*.parquet")))

    def report(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return answer


def find(folder: Path, name: str) -> Entry | None:
    """Return the entry called `name` if it is there and whole."""
    entry = Entry(folder / name)
    try:
        rows = sum(pq.read_metadata(path).num_rows for path in entry.paths())
        report = entry.report()
        whole = report["rows"] == rows and report.pop("seal") == seal(json.dumps(report))
    except (OSError, ValueError, KeyError, TypeError):  # damaged: a Parquet file ends with what it holds
        return None
    if not (whole and entry.paths()):
        return None
    with contextlib.suppress(OSError):  # another's, or read-only: then others forget it
        os.utime(entry.folder)
    return entry


@contextlib.contextmanager
def new_entry(folder: Path, name: str) -> Any:
    """Give a folder to fill; on success it becomes the entry `name`, else it goes."""
    folder.mkdir(parents=True, exist_ok=True)
    forget(folder)
    draft = Path(tempfile.mkdtemp(prefix=f"{_DRAFT}{name[:8]}-", dir=folder))
    try:
        yield draft
        target = folder / name
        try:
            draft.rename(target)
        except OSError:  # somebody else made it meanwhile, or a broken one lies there
            if find(folder, name) is None:
                shutil.rmtree(target, ignore_errors=True)
                draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def forget(folder: Path, now: float | None = None) -> None:
    """Remove entries that nobody asked for in `KEPT_S`, and what killed readers left; nothing else."""
    now = time.time() if now is None else now
    forget_answers(folder, KEPT_S, now)
    for path in folder.iterdir():
        draft = path.name.startswith(_DRAFT)
        with contextlib.suppress(OSError):
            # What is young is most of it, and is not looked into.
            old = now - path.stat().st_mtime > (ABANDONED_S if draft else KEPT_S)
            if old and not path.is_symlink() and (draft or _is_entry(path)):
                shutil.rmtree(path, ignore_errors=True)


def _is_entry(path: Path) -> bool:
    """Say whether a folder is one of this cache's, and holds nothing else."""
    if not _ENTRY.fullmatch(path.name):
        return False
    try:
        report = Entry(path).report()
        held = all(_HELD.fullmatch(inside.name) and inside.is_file() for inside in path.iterdir())
    except (OSError, ValueError):
        return False
    return held and isinstance(report, dict) and {"rows", "warnings", "metadata"} <= report.keys()


def writable(folder: Path) -> bool:
    """Say whether entries can be made in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def write_report(
    folder: Path, extents: Sequence[Extent], warnings: Sequence[str], metadata: Mapping[str, Any],
    groups: Sequence[tuple[Any, ...]] | None = None,
) -> None:  # fmt: skip
    """Write what the frame keeps beside the events. `groups`: sums over them (`analysis.common.Group`)."""
    filled = [extent for extent in extents if extent.rows]
    whole = {
        "rows": sum(extent.rows for extent in filled),
        "start": min((extent.start for extent in filled), default=0.0),
        "end": max((extent.end for extent in filled), default=0.0),
        "warnings": list(warnings),
        "metadata": dict(metadata),
        "groups": groups,
    }
    (folder / "report.json").write_text(json.dumps({**whole, "seal": seal(json.dumps(whole))}))
