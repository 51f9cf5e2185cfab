"""IOFrame: one trace, whatever wrote it, as a handle on events that lie in Parquet files.

The frame holds no events: it knows where they are and which of them belong to it. Analyses live in
`traces/analysis`; the methods here only pass the frame on.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.atomic_file import drafted
from tiercel.deferred import pd
from tiercel.errors import UserError
from tiercel.traces import engine, store
from tiercel.traces.analysis import bandwidth, features, heat, imbalance, patterns, transfer
from tiercel.traces.analysis import overlap as overlapping
from tiercel.traces.analysis import timeline as timelines
from tiercel.traces.analysis.common import group_calls, keep_groups
from tiercel.traces.analysis.counters import refuse_counters
from tiercel.traces.kept import cache_folder, digest
from tiercel.traces.plausible import doubts
from tiercel.traces.readers import readers
from tiercel.traces.schema import LATER, NAMES, UNITS
from tiercel.traces.sources import Sources, find_sources

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A condition on rows: SQL on the columns of the schema (``"kind = 'read' AND size < 4096"``, quick), or a
#: function of rows as in paper 003 (``lambda x: x["kind"] == "read"``), for whole tables or for one row.
Filter = str | Callable[[Any], Any] | None
Ranks = int | Sequence[int] | None

#: Names of columns in paper 003, which its filters use; they work in filter functions too.
_PAPER_NAMES = {"file_name": "file", "tstart": "time", "func": "function"}
_PAPER_KINDS = {"metadata": "meta", "sync": "meta"}
_BATCH = 1 << 18
#: Groups of calls that are kept beside the events: more of them take as long to read as to make.
_FEW = 10_000
Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class IOFrame:
    """A trace. Make one with `from_dftracer`, `from_darshan`, ... or :func:`open_trace`.

    `warnings` says in sentences what of the trace was lost; `metadata` what the trace says of its program.
    `memory` is the number of bytes that analyses may use.
    """

    paths: tuple[Path, ...]
    warnings: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    memory: int = engine.DEFAULT_MEMORY
    client: Any = None
    _start: float = 0.0
    _end: float = 0.0
    chosen: tuple[str, ...] = ()
    """The conditions that chose these events of the trace, in words."""
    _conditions: tuple[str, ...] = ()
    _counters: Path | None = None  # the folder with tables of counters, where they are of these events
    # Tables that were asked for (`once`): a dozen rules ask, and reading one takes milliseconds.
    _tables: dict[Any, Any] = field(default_factory=dict, compare=False)
    _kept: Any = None  # a temporary folder that must live as long as a frame uses it

    # -- making one ------------------------------------------------------------------------------------------

    @classmethod
    def from_dftracer(cls, path: Path | str, **options: Any) -> IOFrame:
        """Read DFTracer's ``.pfw`` or ``.pfw.gz``: a file, a folder or a tar (options: see `open_trace`)."""
        return open_trace(path, format="dftracer", **options)

    @classmethod
    def from_darshan(cls, path: Path | str, **options: Any) -> IOFrame:
        """Read a Darshan log, its DXT segments included (options: see `open_trace`)."""
        return open_trace(path, format="darshan", **options)

    @classmethod
    def from_recorder(cls, path: Path | str, **options: Any) -> IOFrame:
        """Read the folder of a Recorder trace (options: see `open_trace`)."""
        return open_trace(path, format="recorder", **options)

    @classmethod
    def from_strace(cls, path: Path | str, **options: Any) -> IOFrame:
        """Read what ``strace -f -ttt -T -y`` printed (options: see `open_trace`)."""
        return open_trace(path, format="strace", **options)

    @classmethod
    def from_parquet(cls, path: Path | str, *, memory: int | None = None, client: Any = None) -> IOFrame:
        """Use Parquet files in the schema of traces, as `convert` writes them, where they lie."""
        return _from_parquet(Path(path), memory, client)

    # -- reading it ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self._conditions:
            return sum(pq.read_metadata(path).num_rows for path in self.paths)
        return int(self.rows("SELECT count(*) FROM events")[0][0])

    def __repr__(self) -> str:
        lost = f", {len(self.warnings)} warnings" if self.warnings else ""
        shown = f" where {' and '.join(self.chosen)}" if self.chosen else ""
        return f"<IOFrame: {len(self):,} events in {self.job_time:.6g} s{shown}{lost}>"

    def _repr_html_(self) -> str:
        """For Jupyter: calls, bytes and time of each kind."""
        table = self.query(
            "SELECT api, kind, count(*) AS calls, sum(size)::BIGINT AS bytes, sum(duration) AS seconds "
            "FROM events GROUP BY api, kind ORDER BY api, kind"
        )
        table["bytes"] = table["bytes"].astype("Int64")  # with some missing: they were shown as 2097152.0
        return f"<p>{escape(repr(self))}</p>{table.to_html(index=False, border=0, na_rep='–')}"

    @property
    def job_time(self) -> float:
        """Seconds that the job took, where the trace tells (Darshan); else from the start of the first event
        to the end of the last, of the whole trace."""
        return self._end - self._start

    @property
    def began(self) -> float | None:
        """The time of day of the frame's time 0, in seconds since 1970; None where the trace does not say."""
        epoch = self.metadata.get("epoch")
        return None if epoch is None else float(epoch) + self._start

    def counters(self, module: str) -> pd.DataFrame | None:
        """Return a module's counters (Darshan: POSIX, MPI-IO, STDIO): file, rank (-1: all together), a column
        for each counter by the tracer's name. None where there are none, or only some events were chosen."""
        path = None if self._counters is None else store.counters_path(self._counters, module)
        if path is None or not path.is_file():
            return None
        return self.once(path, partial(_read_counters, path)).copy(deep=False)

    def once(self, name: Any, make: Callable[[], Result]) -> Result:
        """Return what `make` returns; for the same `name` and events it is called once."""
        key = name, self.paths, self._conditions
        if key not in self._tables:
            self._tables[key] = make()
        made: Result = self._tables[key]
        return made

    def counted_modules(self) -> frozenset[str]:
        """Return the names of the modules of which there are counters."""
        return frozenset() if self._counters is None else store.counted_modules(self._counters)

    @property
    def ranks_are_numbered(self) -> str:
        """A sentence where ranks are not (all) MPI's, because the trace does not tell them; else empty."""
        told = self.metadata.get("ranks_from")
        if told == "order of appearance":
            return "ranks are numbers of processes in order of appearance: this trace does not tell MPI's"
        if told == "some are told":
            return "this trace does not tell the ranks of all processes: the others are numbered after them"
        return ""

    def select(self, rank: Ranks = None, filter: Filter = None) -> IOFrame:
        """Return a frame of the events of these ranks that meet the condition; nothing is copied.

        A function as filter reads every row through Python and writes the chosen rows to a temporary file:
        an SQL condition is many times faster. UserError where there are counters alone, and for a rank that
        the trace does not have.
        """
        if rank is not None or filter is not None:
            self.need_events("choosing by rank or filter")
        frame = self
        if rank is not None:
            numbers = list(rank) if isinstance(rank, Iterable) else [rank]
            self._need_ranks(numbers)
            listed = ", ".join(str(int(n)) for n in numbers)
            frame = frame.where(f"rank IN ({listed})" if listed else "FALSE")
        if isinstance(filter, str):
            engine.check_expression(filter)
            frame = frame.where(filter)
        elif filter is not None:
            frame = _filtered(frame, filter)
        return frame

    def _need_ranks(self, numbers: Sequence[int]) -> None:
        """UserError for a rank that the trace does not have; one that called nothing is there."""
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise UserError(f"rank {number!r}: ranks are whole numbers")
        whole = replace(self, _conditions=())
        there = {int(n) for (n,) in whole.rows("SELECT DISTINCT rank FROM events WHERE rank IS NOT NULL")}
        known = there | set(range(int(self.metadata.get("ranks") or 0)))
        lacking = [str(int(n)) for n in numbers if int(n) not in known]
        if lacking and known:
            raise UserError(
                f"{self.metadata.get('path', 'this trace')}: no rank {', '.join(lacking)}: its ranks are "
                f"{min(known)} to {max(known)}"
            )

    def where(self, condition: str) -> IOFrame:
        """Return a frame of the events that meet an SQL condition, unchecked: for analyses."""
        return replace(
            self, chosen=(*self.chosen, condition), _conditions=(*self._conditions, condition), _counters=None
        )

    def need_events(self, what: str) -> None:
        """UserError where there are counters alone, which do not say what happened when."""
        refuse_counters(self, what)

    def query(self, sql: str) -> pd.DataFrame:
        """Run DuckDB's SQL on ``events``, a table of this frame's rows."""
        with engine.connection(self.memory) as db:
            table: pd.DataFrame = db.sql(f"{self.events_clause()} {sql}").to_arrow_table().to_pandas()
        return table

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run SQL on ``events`` and return the answer's rows."""
        with engine.connection(self.memory) as db:
            return db.sql(f"{self.events_clause()} {sql}").fetchall()

    def batches(self, sql: str, rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
        """Run SQL on ``events`` and yield the answer in Arrow batches."""
        with engine.connection(self.memory) as db:
            yield from engine.to_batches(db, f"{self.events_clause()} {sql}", rows)

    def events_clause(self) -> str:
        """Return the SQL that defines ``events``, for analyses that hold a connection of their own."""
        return engine.events_clause(self.paths, self._start, self._conditions)

    def events(self, columns: Sequence[str] = NAMES) -> pd.DataFrame:
        """Return events as a pandas table, ordered by time (all of it in memory), units in ``attrs``."""
        listed = ", ".join(engine.quoted_name(name) for name in columns)
        with engine.connection(self.memory) as db:
            answer = db.sql(
                f"{self.events_clause()} SELECT {listed} FROM events ORDER BY time, rank, process, thread"
            )
            # Whole numbers stay whole where some are missing.
            integers = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}
            table: pd.DataFrame = answer.to_arrow_table().to_pandas(types_mapper=integers.get)
        table.attrs["units"] = {name: UNITS[name] for name in columns}
        return table

    # -- asking it: each passes the frame on (traces/analysis) -----------------------------------------------

    def io_bandwidth(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return bytes, time and bandwidth of each file on each rank."""
        return bandwidth.io_bandwidth(self, rank, filter, **options)

    def io_time(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the time in I/O calls of each file and rank, and its share of the rank's."""
        return bandwidth.io_time(self, rank, filter, **options)

    def shared_files(self, rank: Ranks = None, filter: Filter = None, dropna: bool = False) -> pd.DataFrame:
        """Return which ranks use each file."""
        return bandwidth.shared_files(self, rank, filter, dropna)

    def bandwidth_over_time(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return bytes and bandwidth in equal parts of the job."""
        return bandwidth.bandwidth_over_time(self, rank, filter, **options)

    def heatmap(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return bytes and I/O time of each rank (``by="host"``, ``"file"``) in equal parts of the job."""
        return heat.heatmap(self, rank, filter, **options)

    def overlap_over_time(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the shares of ranks in I/O that is felt, in hidden I/O and in computation, over time."""
        return overlapping.overlap_over_time(self, rank, filter, **options)

    def access_pattern(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Count consecutive, sequential and random accesses of each file."""
        return patterns.access_pattern(self, rank, filter, **options)

    def read_write_pattern(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return what `readwrite_pattern` does: both spellings are in use."""
        return self.readwrite_pattern(rank, filter, **options)

    def readwrite_pattern(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return bytes read or written after what: RAR, RAW, WAR, WAW, RO, WO."""
        return patterns.readwrite_pattern(self, rank, filter, **options)

    def extract_features(self, rank: Ranks = None, filter: Filter = None) -> pd.DataFrame:
        """Return all features of Table I of paper 003 for each file."""
        return features.extract_features(self, rank, filter)

    def overlap(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return I/O that overlaps computation, and application and system throughput (paper 004)."""
        return overlapping.overlap(self, rank, filter, **options)

    def transfer_sizes(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the distribution of transfer sizes."""
        return transfer.transfer_sizes(self, rank, filter, **options)

    def metadata_share(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the time of each rank in data and in metadata calls."""
        return transfer.metadata_share(self, rank, filter, **options)

    def load_imbalance(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the load of each rank (or host: ``by="host"``) and which stand out."""
        return imbalance.load_imbalance(self, rank, filter, **options)

    def timeline(self, rank: Ranks = None, filter: Filter = None, **options: Any) -> pd.DataFrame:
        """Return the blocks of the timeline."""
        return timelines.timeline(self, rank, filter, **options)

    def plot_timeline(self, rank: Ranks = None, filter: Filter = None, ax: Axes | None = None) -> Axes:
        """Draw the timeline with matplotlib."""
        return timelines.plot_timeline(self, rank, filter, ax)

    def write_timeline(self, path: Path | str, rank: Ranks = None, filter: Filter = None) -> Path:
        """Write the timeline as one HTML file that works offline."""
        return timelines.write_timeline(self, Path(path), rank, filter)

    def export_perfetto(self, path: Path | str, rank: Ranks = None, filter: Filter = None) -> Path:
        """Write the events for Perfetto."""
        return timelines.export_perfetto(self, Path(path), rank, filter)

    def to_parquet(self, path: Path | str) -> Path:
        """Write this frame's events to one Parquet file, which `from_parquet` opens."""
        return _to_parquet(self, Path(path))


def _read_counters(path: Path) -> pd.DataFrame:
    table = pq.ParquetFile(path).read()  # read_table imports pyarrow.dataset
    # A name that the log lost is None; as a pandas string it would be a number (NaN).
    names = pd.Series(table.column("file").to_pylist(), dtype=object)
    read: pd.DataFrame = table.to_pandas().assign(file=names)
    return read


def open_trace(
    path: Path | str,
    *,
    format: str | None = None,
    cache: Path | str | None = None,
    memory: int | None = None,
    client: Any = None,
) -> IOFrame:
    """Open the trace at `path`: a file, a folder or a tar, of any known format.

    The events are read once and kept as Parquet under `cache` (default: the user's cache folder) for as long
    as the trace's files do not change. `memory` caps what analyses use, in bytes. `client` is a Dask client:
    analyses then run on its workers. UserError when there is no trace at `path`.
    """
    path = Path(path)
    if format is not None:
        readers.get(format)
    if format is None and _is_parquet(path):
        return _from_parquet(path, memory, client)
    folder = cache_folder(cache)
    kept: tempfile.TemporaryDirectory[str] | None = None
    notes: tuple[str, ...] = ()
    if not store.writable(folder):
        kept = tempfile.TemporaryDirectory(prefix="tiercel-traces-")
        notes = (
            (f"{folder} cannot be written: this trace is read anew each time",) if cache is not None else ()
        )
        folder = Path(kept.name)
    entry = _entry(path, format, folder, client)
    return _frame(entry, path, notes, memory, client, kept)


def read_once(sources: Sources, folder: Path, memory: int | None = None) -> IOFrame:
    """Read a trace into the empty folder `folder`, where it lies for as long as the caller keeps it."""
    _read(sources, folder, None)
    return _frame(store.Entry(folder), sources.kept[0], (), memory, None, None)


def _frame(
    entry: store.Entry, path: Path, notes: tuple[str, ...], memory: int | None, client: Any, kept: Any
) -> IOFrame:
    report = entry.report()
    start, end = _span(report)
    frame = IOFrame(
        paths=entry.paths(),
        warnings=(*report["warnings"], *notes),
        metadata={**report["metadata"], "path": str(path)},
        memory=memory or engine.DEFAULT_MEMORY,
        client=client,
        _start=start,
        _end=end,
        _counters=entry.folder,
        _kept=kept,
    )
    if (groups := report.get("groups")) is not None:
        keep_groups(frame, groups)
    return frame


def _span(report: Mapping[str, Any]) -> tuple[float, float]:
    """Return when the job began and ended, in the reader's seconds. A tracer that knows how long the job took
    (`run_time`) counts from its start: what lies before the first event and after the last is the job's."""
    start, end = float(report["start"]), float(report["end"])
    took = report["metadata"].get("run_time")
    return (min(start, 0.0), max(end, float(took))) if took else (start, end)


def _entry(path: Path, format: str | None, folder: Path, client: Any) -> store.Entry:
    """Return the cache entry of the trace at `path`, made now if it is not there."""
    # A tar is known by itself, so that a second load does not unpack it.
    name = digest(f"tar {format}", (path,)) if _is_tar_name(path) and path.is_file() else None
    if name and (entry := store.find(folder, name)):
        return entry
    with find_sources(path, format) as sources:
        name = name or digest(sources.reader, sources.kept)
        if entry := store.find(folder, name):
            return entry
        with store.new_entry(folder, name) as draft:
            _read(sources, draft, client)
    made = store.find(folder, name)
    assert made is not None
    return made


def _is_tar_name(path: Path) -> bool:
    return any(suffix in {".tar", ".tgz", ".tbz2", ".txz"} for suffix in path.suffixes[-2:])


def _read(sources: Sources, folder: Path, client: Any) -> None:
    """Read all sources into `folder`; on a cluster in parts, where the format can be read so."""
    reader = readers.get(sources.reader)()
    if client is not None and hasattr(reader, "read_parts"):
        found = reader.read_parts(sources.files, folder, client)
        if found is not None:
            _report(sources, folder, *found)
            return
    writer = store.ParquetWriter(folder / "events.parquet")
    try:
        report = reader.read(sources.files, writer)
    except store.NoLayer as error:
        raise UserError(f"{sources.files[0]}: {error}") from None
    writer.close(report.renames)
    warnings = [*report.warnings, *writer.unbelieved()]
    _report(sources, folder, [writer.extent()], warnings, report.metadata)


def _report(
    sources: Sources, folder: Path, extents: Sequence[store.Extent], warnings: Sequence[str],
    metadata: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write what is known of a trace beside its events, and whether it can be true."""
    warnings = [*warnings, *_skipped(sources.skipped)]
    store.write_report(folder, extents, warnings, metadata)
    frame = _frame(store.Entry(folder), sources.kept[0], (), None, None, None)
    warnings = [*warnings, *doubts(frame)]
    groups = group_calls(frame) if len(frame) else []
    store.write_report(folder, extents, warnings, metadata, groups if len(groups) <= _FEW else None)


def _skipped(files: Sequence[Path]) -> list[str]:
    if not files:
        return []
    names = ", ".join(file.name for file in files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return [f"{len(files)} files of the folder are no part of the trace: {names}{more}"]


def _is_parquet(path: Path) -> bool:
    if path.is_dir():
        return any(path.glob("*.parquet"))
    return path.suffix == ".parquet"


def _from_parquet(path: Path, memory: int | None, client: Any) -> IOFrame:
    paths = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
    if not paths:
        raise UserError(f"{path}: no .parquet file in this folder")
    for file in paths:
        if file.exists() and not file.is_file():  # who opens a pipe that nobody writes to waits for ever
            raise UserError(f"{file}: not a Parquet file: neither a file nor a folder of files")
        try:
            there = set(pq.read_schema(file).names)
        except (OSError, pa.ArrowInvalid) as error:
            raise UserError(f"{file}: not a Parquet file: {str(error).splitlines()[0]}") from None
        if missing := [name for name in NAMES if name not in there and name not in LATER]:
            raise UserError(f"{file}: not a trace in tiercel's schema: no column {', '.join(missing)}")
    warnings, metadata = store.told_by(paths[0])
    frame = IOFrame(paths=paths, warnings=tuple(warnings), client=client,
                    chosen=tuple(metadata.pop("chosen", ())),
                    metadata={"format": "parquet", **metadata, "path": str(path)},
                    memory=memory or engine.DEFAULT_MEMORY)  # fmt: skip
    frame, warnings = _sound(frame, path, warnings)
    ends = frame.rows("SELECT min(time), max(time + coalesce(duration, 0)) FROM events")[0]
    start, end = (0.0 if v is None else float(v) for v in ends)
    start, end = _span({"start": start, "end": end, "metadata": metadata})
    frame = replace(frame, _start=start, _end=end)
    return replace(frame, warnings=tuple(dict.fromkeys([*warnings, *doubts(frame)])))


def _sound(frame: IOFrame, path: Path, warnings: list[str]) -> tuple[IOFrame, list[str]]:
    """Return a frame whose events can be, and what was lost; UserError for a file of something else."""
    changed, none = frame.rows(
        f"SELECT count(*) FILTER ({store.CHANGED}), count(*) FILTER ({store.NO_EVENT}) FROM events"
    )[0]
    if none:
        raise UserError(
            f"{path}: not a trace in tiercel's schema: {none:,} events have no rank, or no known "
            "kind or layer"
        )
    if not changed:
        return frame, warnings
    folder = Path(tempfile.mkdtemp(prefix="tiercel-sound-"))
    keeper = _Folder(folder)
    writer = store.ParquetWriter(folder / "events.parquet")
    try:
        for batch in frame.batches("SELECT * FROM events"):
            writer.write({name: batch.column(name) for name in NAMES})
    except store.NoLayer as error:
        raise UserError(f"{path}: {error}") from None
    writer.close()
    return replace(frame, paths=(folder / "events.parquet",), _kept=keeper), [*warnings, *writer.unbelieved()]


def _to_parquet(frame: IOFrame, path: Path) -> Path:
    """Write beside the target first, so that a file is never half written. What the trace says of its program
    goes with the events, whose times count from the frame's own start."""
    lost = [*frame.warnings]
    if frame.counted_modules():
        lost.append("converted from a log whose counters are not in this file")
    schema = store.with_told(lost, {**frame.metadata, "epoch": frame.began, "chosen": list(frame.chosen)})
    try:
        with drafted(path) as draft, pq.ParquetWriter(draft, schema, **store.PARQUET) as writer:
            for batch in frame.batches(
                f"SELECT {', '.join(map(engine.quoted_name, NAMES))} FROM events", 1 << 19
            ):
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path


def _filtered(frame: IOFrame, filter: Callable[[Any], Any]) -> IOFrame:
    """Write the rows that `filter` chooses to a temporary file and return a frame on it."""
    folder = Path(tempfile.mkdtemp(prefix="tiercel-filter-"))
    keeper = _Folder(folder)  # goes with this function too, where the filter raises
    path = folder / "events.parquet"
    with pq.ParquetWriter(path, store.SCHEMA) as chosen:
        for batch in frame.batches("SELECT * FROM events"):
            rows = batch.to_pandas()
            mask = _mask(rows, filter)
            if mask.any():
                kept = pa.Table.from_batches([batch.filter(pa.array(mask))])
                chosen.write_table(kept.cast(store.SCHEMA))
    return replace(
        frame,
        paths=(path,),
        chosen=(*frame.chosen, "what a function chose"),
        _conditions=(),
        _start=0.0,
        _end=frame.job_time,
        _counters=None,
        _kept=(keeper, frame._kept),
    )


class _Folder:
    """A folder that goes with the last frame that uses it."""

    def __init__(self, folder: Path) -> None:
        weakref.finalize(self, shutil.rmtree, folder, True)


def _mask(rows: pd.DataFrame, filter: Callable[[Any], Any]) -> Any:
    """Return which rows a filter function chooses: asked for the whole table, else row by row."""
    shown = rows.assign(
        **{paper: rows[ours] for paper, ours in _PAPER_NAMES.items()},
        tend=rows["time"] + rows["duration"],
        **{"I/O_type": rows["kind"].map(lambda kind: _PAPER_KINDS.get(kind, kind))},
    )
    try:
        answer = filter(shown)
        if isinstance(answer, pd.Series | np.ndarray) and len(answer) == len(rows):
            return np.asarray(pd.Series(answer).fillna(False), dtype=bool)
    except (ValueError, TypeError, AttributeError):
        pass  # written for one row: "if x[...]", "and", string methods
    return np.fromiter((bool(filter(row)) for _, row in shown.iterrows()), dtype=bool, count=len(rows))
