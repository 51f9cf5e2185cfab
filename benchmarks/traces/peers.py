# ruff: noqa: PLC0415 -- each way imports only what it needs, since imports count in its time
"""The same fixed analysis by different ways of reading, each to be run in a process of its own.

``python -m benchmarks.traces.peers NAME FOLDER [SCHEMA]`` prints one JSON line: events, bytes read and
written, files, and over all ranks the time in I/O, in computation and in both. All ways but tiercel's use the
same numpy code for intervals, so that only reading and grouping differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, float | int]

_MOVES = {"read": "read", "pread": "read", "write": "write", "pwrite": "write"}


def tiercel(folder: Path, schema: str, cache: Path | None = None, memory: int | None = None) -> Answer:
    from tiercel.traces import open_trace

    with tempfile.TemporaryDirectory(prefix="tiercel-bench-") as own:
        return _answer_of(open_trace(folder, cache=cache or Path(own), memory=memory))


def _answer_of(frame: Any) -> Answer:
    table = frame.overlap()
    ranks = table.drop(index="all")
    moved = frame.query("SELECT kind, sum(size)::BIGINT AS n FROM events WHERE size > 0 GROUP BY kind")
    sums = dict(zip(moved["kind"], moved["n"], strict=True))
    files = frame.query("SELECT count(DISTINCT file) AS n FROM events WHERE api = 'posix'")["n"].iloc[0]
    return {
        "events": len(frame),
        "read": int(sums.get("read", 0)),
        "write": int(sums.get("write", 0)),
        "files": int(files),
        "io_us": round(float(ranks["io_time"].sum()) * 1e6),
        "compute_us": round(float(ranks["compute"].sum()) * 1e6),
        "both_us": round(float(ranks["overlapped_io"].sum()) * 1e6),
    }


def tiercel_python_scanner(folder: Path, schema: str) -> Answer:
    import os

    os.environ["TIERCEL_TRACESCAN"] = "off"
    return tiercel(folder, schema)


def plain_pandas(folder: Path, schema: str) -> Answer:
    import pandas as pd

    rows, hashes = [], {}
    for path in sorted(folder.glob("*.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                if not line.startswith("{"):
                    continue
                event = json.loads(line)
                arguments = event["args"]
                if event["ph"] == 4:
                    if event["name"] == "FH":
                        hashes[arguments["value"]] = arguments["name"]
                    continue
                file = arguments.get("fname") or hashes.get(arguments.get("fhash"))
                rows.append(
                    (event["name"], event["cat"], int(event["pid"]), int(event["ts"]), int(event["dur"]),
                     int(arguments.get("ret", 0)), file)
                )  # fmt: skip
    return _from_table(pd.DataFrame(rows, columns=["name", "cat", "pid", "ts", "dur", "ret", "file"]))


def pyarrow_json(folder: Path, schema: str) -> Answer:
    import io

    import pyarrow as pa
    from pyarrow import json as reader

    number = pa.string() if schema == "old" else pa.int64()
    inner = [
        ("fname", pa.string()),
        ("fhash", pa.string()),
        ("ret", number),
        ("name", pa.string()),
        ("value", pa.string()),
    ]
    wanted = pa.schema([
        ("name", pa.string()), ("cat", pa.string()), ("pid", number), ("ts", number), ("dur", number),
        ("ph", pa.string() if schema == "old" else pa.int64()), ("args", pa.struct(inner)),
    ])  # fmt: skip
    options = reader.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    tables = []
    for path in sorted(folder.glob("*.gz")):
        text = gzip.decompress(path.read_bytes()).removeprefix(b"[\n")
        if schema == "old":  # this field is a number in some lines and text in others, which pyarrow refuses
            text = (
                text.replace(b'"ret":17', b'"ret":"17"')
                .replace(b'"ret":21', b'"ret":"21"')
                .replace(b'"ret":0', b'"ret":"0"')
            )
        table = reader.read_json(io.BytesIO(text), parse_options=options).flatten()
        tables.append(
            table.rename_columns(
                [n.replace("args.name", "path").replace("args.", "") for n in table.column_names]
            )
        )
    return _from_arrow(pa.concat_tables(tables), schema)


def _from_arrow(table: Any, schema: str) -> Answer:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if schema == "old":
        for name in ("pid", "ts", "dur", "ret"):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int64()))
        events, file = table, table["fname"]
        frame = events.select(["name", "cat", "pid", "ts", "dur", "ret"]).to_pandas()
        frame["file"] = file.to_pandas()
        return _from_table(frame)
    known = (
        table.filter(pc.equal(table["name"], "FH")).select(["value", "path"]).to_pandas().drop_duplicates()
    )
    frame = (
        table.filter(pc.equal(table["ph"], 1))
        .select(["name", "cat", "pid", "ts", "dur", "ret", "fhash"])
        .to_pandas()
    )
    frame["file"] = frame["fhash"].map(pd.Series(known["path"].to_numpy(), index=known["value"]))
    return _from_table(frame)


def duckdb_json(folder: Path, schema: str) -> Answer:
    import duckdb

    db = duckdb.connect()
    db.execute("SET threads = 2")
    db.execute(
        "CREATE TABLE lines AS SELECT name, cat, pid, ts, dur, ph, args.fname AS fname, args.fhash AS fhash, "
        "args.ret AS ret, args.name AS path, args.value AS value "
        "FROM read_json($1, format = 'newline_delimited', ignore_errors = true, "
        "columns = {name: 'VARCHAR', cat: 'VARCHAR', pid: 'BIGINT', ts: 'BIGINT', dur: 'BIGINT', "
        "ph: 'VARCHAR', "
        "args: 'STRUCT(fname VARCHAR, fhash VARCHAR, ret BIGINT, name VARCHAR, value VARCHAR)'})",
        [str(folder / "*.gz")],
    )
    file = "fname" if schema == "old" else "known.path"
    join = (
        ""
        if schema == "old"
        else "LEFT JOIN (SELECT DISTINCT value, path FROM lines WHERE name = 'FH') known "
        "ON l.fhash = known.value"
    )
    moved = db.sql(
        "SELECT count(*), sum(ret) FILTER (l.name IN ('read', 'pread')), "
        "sum(ret) FILTER (l.name IN ('write', 'pwrite')), "
        f"count(DISTINCT {file}) FILTER (cat = 'POSIX') FROM lines l {join} WHERE ph IN ('1', 'X')"
    ).fetchall()[0]
    spans = db.sql("SELECT pid, ts, dur, cat = 'POSIX' AS io FROM lines WHERE ph IN ('1', 'X') "
                   "AND (cat = 'POSIX' OR name LIKE '%.compute')").fetchnumpy()  # fmt: skip
    return _finish(
        moved[0], moved[1], moved[2], moved[3], spans["pid"], spans["ts"], spans["dur"], spans["io"]
    )


def polars_json(folder: Path, schema: str) -> Answer:
    import io

    import polars as pl

    number = pl.String if schema == "old" else pl.Int64
    inner = pl.Struct(
        {"fname": pl.String, "fhash": pl.String, "ret": number, "name": pl.String, "value": pl.String}
    )
    wanted = {"name": pl.String, "cat": pl.String, "pid": number, "ts": number, "dur": number,
              "ph": pl.String if schema == "old" else pl.Int64, "args": inner}  # fmt: skip
    frames = []
    for path in sorted(folder.glob("*.gz")):
        text = gzip.decompress(path.read_bytes()).removeprefix(b"[\n")
        table = pl.read_ndjson(io.BytesIO(text), schema=wanted)
        frames.append(
            table.with_columns(
                pl.col("args").struct.rename_fields(["fname", "fhash", "ret", "path", "value"])
            ).unnest("args")
        )
    return _from_arrow(pl.concat(frames).to_arrow(), schema)


def _from_table(table: Any) -> Answer:
    """Group with pandas; the last steps are the same for all."""
    sizes = table.assign(kind=table["name"].map(_MOVES)).groupby("kind")["ret"].sum()
    posix = table["cat"] == "POSIX"
    spans = table[posix | table["name"].str.endswith(".compute")]
    return _finish(
        len(table), sizes.get("read", 0), sizes.get("write", 0), table["file"][posix].nunique(),
        *(spans[c].to_numpy() for c in ("pid", "ts", "dur")), (spans["cat"] == "POSIX").to_numpy(),
    )  # fmt: skip


def _finish(events: int, read: int, write: int, files: int, pid: Any, ts: Any, dur: Any, io: Any) -> Answer:
    import numpy as np

    _, number = np.unique(np.asarray(pid), return_inverse=True)
    start = np.asarray(ts) - int(np.min(ts))
    group = int((start + dur).max()) + 1
    start = start + number * group
    io = np.asarray(io, dtype=bool)

    def length(chosen: Any) -> int:
        order = np.argsort(start[chosen], kind="stable")
        begin, end = start[chosen][order], (start + dur)[chosen][order]
        reached = np.maximum.accumulate(end)
        gaps = np.maximum(begin[1:] - reached[:-1], 0).sum()
        return int(reached[-1] - begin[0] - gaps) if len(begin) else 0

    alone, computing, any_of_them = length(io), length(~io), length(np.ones(len(io), dtype=bool))
    return {"events": int(events), "read": int(read or 0), "write": int(write or 0), "files": int(files),
            "io_us": alone, "compute_us": computing, "both_us": alone + computing - any_of_them}  # fmt: skip


PEERS: dict[str, Callable[[Path, str], Answer]] = {
    "tiercel": tiercel,
    "tiercel-python": tiercel_python_scanner,
    "duckdb": duckdb_json,
    "pyarrow": pyarrow_json,
    "polars": polars_json,
    "pandas": plain_pandas,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(PEERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("schema", nargs="?", default="new")
    parser.add_argument("--cache", type=Path, help="tiercel only: keep what was read here")
    parser.add_argument("--memory", type=int, help="tiercel only: bytes that analyses may use")
    wanted = parser.parse_args()
    if wanted.name == "tiercel":
        print(json.dumps(tiercel(wanted.folder, wanted.schema, wanted.cache, wanted.memory)))
    else:
        print(json.dumps(PEERS[wanted.name](wanted.folder, wanted.schema)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
