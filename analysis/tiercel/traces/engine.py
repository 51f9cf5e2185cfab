"""DuckDB over the Parquet files of a frame, under a memory cap."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.errors import UserError
from tiercel.traces.schema import LATER, NAMES

#: Memory that the queries of one frame may use when the user names none. DuckDB spills the rest to disk.
DEFAULT_MEMORY = 512 << 20
#: With less DuckDB does not get through a plain sum.
LEAST_MEMORY = 64 << 20
#: What each core that computes needs: DuckDB's documentation asks for 125 MB (Tuning Workloads). On a node of
#: 16 cores, all of them at once, traces of 16 processes did not get through with 256 MiB.
_MEMORY_PER_CORE = 128 << 20


#: What only a row shows: a text that is no number, a sum beyond 64 bits, a filter that calls `error`.
_OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)


@contextmanager
def connection(memory: int, ordered: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that uses at most `memory` bytes, and as many of this process' cores as those feed.

    `ordered`: answers keep the order of the files' rows, which is nearly that of time. Connections share one
    database for each (memory, ordered): making one takes 15 ms. UserError for what no query can help: a
    filter that a row does not fit, too little memory, no room to spill to.
    """
    cursor = _database(os.getpid(), memory, ordered).cursor()
    try:
        yield cursor
    except _OF_VALUES as error:
        raise UserError(
            f"a filter, or a number of the trace, cannot be computed with: {reason(error)}"
        ) from None
    except duckdb.OutOfMemoryException as error:
        raise UserError(f"{memory >> 20} MiB of memory do not suffice: allow more: {reason(error)}") from None
    except duckdb.IOException as error:
        raise UserError(f"the events cannot be read, or not be spilled: {reason(error)}") from None
    finally:
        cursor.close()


def reason(error: duckdb.Error) -> str:
    """Return the line of an error that says what it is; others show where in the query."""
    return str(error).split("\n", maxsplit=1)[0]


@lru_cache(maxsize=4)
def _database(process: int, memory: int, ordered: bool) -> duckdb.DuckDBPyConnection:
    """Return the database of this process (a forked child makes its own)."""
    spill = Path(tempfile.gettempdir()) / f"tiercel-spill-{os.getuid()}-{process}-{memory}-{ordered}"
    atexit.register(shutil.rmtree, spill, True)
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{max(memory, LEAST_MEMORY) // 1024}KiB",
            "threads": max(1, min(len(os.sched_getaffinity(0)), memory // _MEMORY_PER_CORE)),
            "temp_directory": str(spill),  # made only when a query spills
            "preserve_insertion_order": ordered,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )


def events_clause(paths: Sequence[Path], start: float, conditions: Sequence[str]) -> str:
    """Return ``WITH events AS (...)``: the rows of a frame, times from its start, its filters applied."""
    files = ", ".join(quoted(str(path)) for path in paths)
    lacking = _lacking(paths[0]) if paths else frozenset()
    columns = ", ".join(
        f"{quoted_name('time')} - {start!r} AS {quoted_name('time')}"
        if name == "time" and start
        else f"NULL::{_SQL_TYPES[name]} AS {quoted_name(name)}"
        if name in lacking
        else quoted_name(name)
        for name in NAMES
    )
    where = " AND ".join(f"({condition}\n)" for condition in conditions)
    inner = f"SELECT {columns} FROM read_parquet([{files}])"
    return (
        f"WITH events AS ({inner})"
        if not where
        else f"WITH all_events AS ({inner}), events AS (SELECT * FROM all_events WHERE {where})"
    )


@lru_cache(maxsize=64)
def _lacking(path: Path) -> frozenset[str]:
    """Return the columns that a file of an earlier version does not have."""
    return frozenset(LATER) - set(pq.read_schema(path).names)


def quoted(text: str) -> str:
    """Return `text` as an SQL word in quotes."""
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


#: Parentheses inside each other in a condition.
_DEEPEST = 100


def check_expression(expression: str) -> None:
    """Raise UserError when `expression` is no condition on the columns of a trace."""
    if not expression.strip():
        raise UserError("filter: is empty")
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in expression)
    if max(depths) > _DEEPEST:  # thousands keep DuckDB's parser busy for minutes
        raise UserError(f"filter: more than {_DEEPEST} parentheses inside each other")
    columns = ", ".join(f"NULL::{_SQL_TYPES[name]} AS {quoted_name(name)}" for name in NAMES)
    with connection(64 << 20) as db:
        try:
            # Where it will stand: what sums up rows is no condition on one.
            query = f"SELECT 1 FROM (SELECT {columns}) WHERE ({expression}\n) AND FALSE"
            if len(db.extract_statements(query)) != 1:  # the others would be run, and may write files
                raise UserError(f"filter {expression!r}: is more than one condition")
            db.execute(query).fetchall()
        except duckdb.Error as error:
            raise UserError(f"filter {expression!r}: {reason(error)} (columns: {', '.join(NAMES)})") from None


_SQL_TYPES = {
    "time": "DOUBLE", "duration": "DOUBLE", "process": "BIGINT", "thread": "BIGINT", "rank": "INTEGER",
    "host": "VARCHAR", "function": "VARCHAR", "category": "VARCHAR", "api": "VARCHAR", "kind": "VARCHAR",
    "file": "VARCHAR", "offset": "BIGINT", "size": "BIGINT", "failed": "BOOLEAN", "flags": "VARCHAR",
    "target": "VARCHAR", "epoch": "INTEGER", "step": "INTEGER",
}  # fmt: skip


def to_batches(db: duckdb.DuckDBPyConnection, query: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Run `query` and yield its answer in Arrow batches of about `rows` rows."""
    yield from db.sql(query).to_arrow_reader(rows)


def fill(db: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Put rows into a table of the connection."""
    rows = pa.table({name: pa.array(values) for name, values in columns.items()})
    db.register("rows_to_fill", rows)
    db.execute(f"INSERT INTO {table} SELECT * FROM rows_to_fill")
    db.unregister("rows_to_fill")
