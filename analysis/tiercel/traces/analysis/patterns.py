"""How files are accessed: consecutive, sequential or random; and what was done before to the same bytes.

Both need the accesses of a file in the order of time. They are fetched in groups of whole files that fit into
the frame's memory, as numbers only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.deferred import pd
from tiercel.traces import engine
from tiercel.traces.analysis.common import IS_DATA, layer_of, with_units
from tiercel.traces.analysis.turns import turns
from tiercel.traces.cluster import spread

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

Ints = npt.NDArray[np.int64]
PATTERNS = ("consecutive", "sequential", "random")
HISTORIES = ("RAR", "RAW", "WAR", "WAW", "RO", "WO")
_RAW = HISTORIES.index("RAW")
_OF_OTHERS = "RAW of others"

#: Bytes of memory that one access needs at the worst point of both analyses.
_BYTES_PER_ACCESS = 160
_PAIRS = 1 << 22
_BATCH = 1 << 18


@dataclass(frozen=True)
class Accesses:
    """Accesses to some files, ordered by file and, within a file, by time."""

    files: list[str]
    file: Ints
    stream: Ints  # one number for each (process, read or write) on one file
    writes: npt.NDArray[np.bool_]
    offset: Ints
    size: Ints


def access_pattern(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Count accesses of each file by their pattern (index: file).

    An access is *consecutive* when it starts where the process' last read (or write) of the file ended,
    *sequential* when it starts after that, and *random* when it starts before. The first one is measured
    from byte 0. Accesses at positions that the trace does not tell are left out.
    """
    layer = layer_of(frame, api)
    table = pd.concat(spread(frame.select(rank), "file", _patterns_of, layer, filter))
    table["total"] = table.sum(axis=1)
    return with_units(table.sort_index(), {})


def readwrite_pattern(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return the bytes of each file by what was done last to the same bytes before (index: file).

    RAR: read after read, RAW: read after write, WAR: write after read, WAW: write after write; RO and WO:
    bytes read or written for the first time in this trace. The six add up to `read` + `write`. `unplaced` are
    bytes at positions that the trace does not tell.
    """
    layer = layer_of(frame, api)
    table = pd.concat(spread(frame.select(rank), "file", _histories_of, layer, filter))
    table["read"] = table[["RAR", "RAW", "RO"]].sum(axis=1)
    table["write"] = table[["WAR", "WAW", "WO"]].sum(axis=1)
    lost = (
        frame.select(rank, filter)
        .query(
            "SELECT file, sum(size)::BIGINT AS unplaced FROM events "
            f"WHERE {IS_DATA} AND api = '{layer}' AND size > 0 "
            'AND ("offset" IS NULL OR "offset" < 0) AND file IS NOT NULL GROUP BY file'
        )
        .set_index("file")
    )
    table = table.join(lost, how="outer").fillna(0).astype("int64")
    return with_units(table.sort_index(), dict.fromkeys(table.columns, "B"))


def _patterns_of(frame: IOFrame, layer: str, filter: Filter) -> pd.DataFrame:
    return pd.concat([_empty(PATTERNS), *map(patterns, fetch(frame.select(filter=filter), layer))])


def _histories_of(frame: IOFrame, layer: str, filter: Filter) -> pd.DataFrame:
    return pd.concat([_empty(HISTORIES), *map(histories, fetch(frame.select(filter=filter), layer))])


def both(frame: IOFrame, layer: str, filter: Filter = None) -> pd.DataFrame:
    """Return both patterns side by side, from one fetch."""
    parts = [
        pd.concat([patterns(a), histories(a)], axis=1) for a in fetch(frame.select(filter=filter), layer)
    ]
    return pd.concat([_empty((*PATTERNS, *HISTORIES)), *parts])


def _empty(columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {c: np.empty(0, dtype=np.int64) for c in columns}, index=pd.Index([], name="file", dtype=str)
    )


def fetch(frame: IOFrame, layer: str) -> Iterator[Accesses]:
    """Yield the placed reads and writes of this layer, whole files at a time."""
    condition = f"{IS_DATA} AND api = '{layer}' AND size > 0 AND \"offset\" >= 0 AND file IS NOT NULL"
    with engine.connection(frame.memory // 2, ordered=True) as db:
        clause = frame.events_clause()
        counts = db.sql(
            f"{clause} SELECT file, count(*) AS n FROM events WHERE {condition} GROUP BY file ORDER BY file"
        ).fetchall()
        if not counts:
            return
        names = [row[0] for row in counts]
        db.execute("CREATE TEMP TABLE names (file VARCHAR, code INTEGER)")
        engine.fill(db, "names", {"file": names, "code": range(len(names))})
        db.execute("CREATE TEMP TYPE file_code AS ENUM (SELECT file FROM names ORDER BY code)")
        query = (
            "SELECT enum_code(file::file_code)::INTEGER AS code, rank, process, kind = 'write' AS writes, "
            f'time, "offset", size FROM events WHERE {condition}'
        )
        counted = [row[1] for row in counts]
        room = max(frame.memory // 2 // _BYTES_PER_ACCESS, 1)
        if sum(counted) <= room:
            yield _ordered(names, 0, engine.to_batches(db, f"{clause} {query}", _BATCH))
            return
        # Sorted once on disk, then read from there some files at a time.
        with tempfile.TemporaryDirectory(prefix="tiercel-sorted-") as folder:
            path = Path(folder) / "accesses.parquet"
            db.execute(
                f"COPY ({clause} {query} ORDER BY code, time) TO {engine.quoted(str(path))} (FORMAT parquet)"
            )
            batches = pq.ParquetFile(path).iter_batches(_BATCH)
            held: list[pa.RecordBatch] = []
            for first, last in _groups(counted, room):
                held, now = _taken(held, batches, sum(counted[first:last]))
                yield _ordered(names[first:last], first, now)


def _taken(
    held: list[pa.RecordBatch], batches: Iterator[pa.RecordBatch], rows: int
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Return what is left over, and the next `rows` rows."""
    there = sum(batch.num_rows for batch in held)
    while there < rows:
        held.append(next(batches))
        there += held[-1].num_rows
    over = there - rows
    if not over:
        return [], held
    last = held[-1]
    cut = last.num_rows - over
    return [last.slice(cut)], [*held[:-1], last.slice(0, cut)]


def _groups(counts: list[int], room: int) -> Iterator[tuple[int, int]]:
    """Cut files into runs of at most `room` accesses (a single larger file is a run of its own)."""
    first, held = 0, 0
    for number, count in enumerate(counts):
        if held and held + count > room:
            yield first, number
            first, held = number, 0
        held += count
    yield first, len(counts)


def _ordered(names: list[str], first: int, batches: Any) -> Accesses:
    streams: dict[tuple[int, int], int] = {}
    columns: dict[str, list[Any]] = {k: [] for k in ("code", "owner", "writes", "time", "offset", "size")}
    for batch in batches:
        part = {
            name: batch.column(name).to_numpy(zero_copy_only=False)
            for name in batch.schema.names
            if name != "process"
        }
        process = batch.column("process").fill_null(-1).to_numpy(zero_copy_only=False)
        owner = _owners(part.pop("rank"), process, streams)
        for name, values in {**part, "owner": owner}.items():
            columns[name].append(values)
    code, owner, writes, time, offset, size = (np.concatenate(v) for v in columns.values())
    code = code.astype(np.int64) - first
    order = np.argsort(code, kind="stable")
    sorted_code, sorted_time = code[order], time[order]
    if ((sorted_time[1:] < sorted_time[:-1]) & (sorted_code[1:] == sorted_code[:-1])).any():
        order = np.lexsort((time, code))
    stream = (code * len(streams) + owner) * 2 + writes
    return Accesses(names, code[order], stream[order], writes[order], offset[order], size[order])


def _owners(rank: Any, process: Any, known: dict[tuple[int, int], int]) -> Ints:
    """Number the processes; batches mostly hold few of them."""
    if (rank == rank[0]).all() and (process == process[0]).all():
        number = known.setdefault((int(rank[0]), int(process[0])), len(known))
        return np.full(len(rank), number, dtype=np.int64)
    rank_code, ranks = pd.factorize(rank)
    process_code, processes = pd.factorize(process)
    codes, unique = pd.factorize(rank_code * np.int64(len(processes)) + process_code)
    pairs = zip(ranks[unique // len(processes)], processes[unique % len(processes)], strict=True)
    numbers = [known.setdefault((int(r), int(p)), len(known)) for r, p in pairs]
    numbered: Ints = np.array(numbers, dtype=np.int64)[codes]
    return numbered


def patterns(accesses: Accesses) -> pd.DataFrame:
    """Count patterns by file."""
    return _by_file(accesses, patterns_by_kind(accesses).reshape(-1, 2, 3).sum(axis=1))


def places(accesses: Accesses) -> pd.DataFrame:
    """Return by file, for reads and writes apart, how many are placed, consecutive, random, and in turn with
    others' (`analysis.turns`); and the bytes that are read again (`read_again`), and that are read after
    another process wrote them (`read_of_others`)."""
    counts, in_turn = patterns_by_kind(accesses), turns(accesses)
    columns: dict[str, Ints] = {}
    for number, kind in enumerate(("reads", "writes")):
        mine = counts[:, number * 3 : number * 3 + 3]
        columns |= {f"placed_{kind}": mine.sum(axis=1), f"consecutive_{kind}": mine[:, 0],
                    f"random_{kind}": mine[:, 2], f"turns_{kind}": in_turn[:, number]}  # fmt: skip
    table = pd.DataFrame(columns, index=pd.Index(accesses.files, name="file"))
    before = _histories(accesses)
    return table.assign(read_again=before["RAR"], read_of_others=before[_OF_OTHERS])


def _by_file(accesses: Accesses, counts: Ints) -> pd.DataFrame:
    return pd.DataFrame(counts, columns=list(PATTERNS), index=pd.Index(accesses.files, name="file"))


def patterns_by_kind(accesses: Accesses) -> Ints:
    """Count patterns by file, in six columns: consecutive, sequential and random reads, then writes."""
    stream, file = accesses.stream, accesses.file
    offset, end = accesses.offset, accesses.offset + accesses.size
    order = None
    if not (stream[1:] >= stream[:-1]).all():
        order = np.argsort(stream, kind="stable")
        stream, file, offset, end = stream[order], file[order], offset[order], end[order]
    before = np.zeros(len(end), dtype=np.int64)
    before[1:] = np.where(stream[1:] == stream[:-1], end[:-1], 0)
    pattern = np.where(offset == before, 0, np.where(offset > before, 1, 2))
    kind = file * 2 + (stream & 1)
    return np.bincount(kind * 3 + pattern, minlength=6 * len(accesses.files)).reshape(-1, 6)


def histories(accesses: Accesses) -> pd.DataFrame:
    """Return bytes by file and history."""
    return _histories(accesses)[list(HISTORIES)]


def _histories(accesses: Accesses) -> pd.DataFrame:
    """Return bytes by file and history, and `_OF_OTHERS`: those of RAW that another process wrote."""
    files = len(accesses.files)
    # All files on one line of bytes: each begins where the one before ends.
    ends = accesses.offset + accesses.size
    extent = np.zeros(files, dtype=np.float64)
    np.maximum.at(extent, accesses.file, ends.astype(np.float64))
    if extent.sum() > 2**62:  # absurdly sparse files: one by one
        return pd.concat([_histories_on_line(_only(accesses, f)) for f in range(files)])
    return _histories_on_line(accesses)


def _only(accesses: Accesses, number: int) -> Accesses:
    rows = accesses.file == number
    return Accesses(
        [accesses.files[number]], np.zeros(int(rows.sum()), dtype=np.int64), accesses.stream[rows],
        accesses.writes[rows], accesses.offset[rows], accesses.size[rows],
    )  # fmt: skip


def _histories_on_line(accesses: Accesses) -> pd.DataFrame:
    """Cut the line at every start and end of an access; in each piece, look at the access before in time."""
    files = len(accesses.files)
    extent = np.zeros(files, dtype=np.int64)
    np.maximum.at(extent, accesses.file, accesses.offset + accesses.size)
    base = np.concatenate([[0], np.cumsum(extent)])
    start = accesses.offset + base[accesses.file]
    edges = np.sort(np.concatenate([start, start + accesses.size]))
    edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])]  # np.unique hashes, and is slower
    first = np.searchsorted(edges, start)
    last = np.searchsorted(edges, start + accesses.size)
    covering = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(covering, first, 1)
    np.add.at(covering, last, -1)
    pairs_before = np.concatenate([[0], np.cumsum(np.cumsum(covering)[:-1])])
    moved = np.zeros(files * 7)
    low, pieces = 0, len(edges) - 1
    while low < pieces:
        high = int(np.searchsorted(pairs_before, pairs_before[low] + _PAIRS, side="right")) - 1
        high = min(max(high, low + 1), pieces)
        moved += _slice(accesses, first, last, edges, low, high)
        low = high
    table = moved.round().astype(np.int64).reshape(files, 7)
    return pd.DataFrame(table, columns=[*HISTORIES, _OF_OTHERS], index=pd.Index(accesses.files, name="file"))


def _slice(accesses: Accesses, first: Ints, last: Ints, edges: Ints, low: int, high: int) -> Any:
    """Return bytes by file and history in the pieces low..high of the line."""
    if low == 0 and high == len(edges) - 1:
        rows = np.arange(len(first))
    else:
        rows = np.flatnonzero((first < high) & (last > low))
    begin, end = np.maximum(first[rows], low), np.minimum(last[rows], high)
    many = end - begin
    which = np.repeat(rows, many)
    piece = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many) + np.repeat(begin, many)
    order = np.argsort(piece, kind="stable")  # rows are in order of time within a file
    which, piece = which[order], piece[order]
    writes = accesses.writes[which].astype(np.int64)
    history = np.full(len(which), 4, dtype=np.int64) + writes  # RO, WO
    seen = piece[1:] == piece[:-1]
    history[1:][seen] = (writes[1:] * 2 + writes[:-1])[seen]  # RAR, RAW, WAR, WAW
    bytes_of = (edges[piece + 1] - edges[piece]).astype(np.float64)
    owner = accesses.stream[which] >> 1
    of_others = np.zeros(len(which), dtype=bool)
    of_others[1:] = seen & (history[1:] == _RAW) & (owner[1:] != owner[:-1])
    cell = accesses.file[which] * 7
    length = 7 * len(accesses.files)
    return np.bincount(cell + history, bytes_of, minlength=length) + np.bincount(
        cell[of_others] + 6, bytes_of[of_others], minlength=length
    )
