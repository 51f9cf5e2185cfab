"""From a trace to a recipe for ``tiercel-replay`` (native/replay): who does what to which file, in which
order.

A *stream* is one thread of the program. Two rules keep the order where it matters, and nothing else:

* operations on one file by several streams keep their order where one ended before the other began;
* a stream that began after another had ended begins after it again (helpers started one after the other).

Offsets that the trace does not tell go on where the stream's last access to the file ended. What is read
before it was written was there before the program, so it is made beforehand. Names are kept below each root.

    python -m tiercel.placement.compile TRACE RECIPE [--limit BYTES]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.errors import UserError
from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.placement.recipe import Operation, Recipe
from tiercel.traces import IOFrame, open_trace

#: Calls that are replayed beside reads and writes; others (seek, lock, mmap...) are counted and left out.
_CALLS: Mapping[str, str] = {
    **dict.fromkeys(("open", "open64", "openat", "openat64", "creat", "creat64", "fopen", "fopen64",
    "opendir"), "O"),
    **dict.fromkeys(("close", "fclose", "closedir"), "C"),
    **dict.fromkeys(("fsync", "msync", "sync_file_range"), "S"),
    "fdatasync": "D",
    "fflush": "L",
    **dict.fromkeys(
        ("stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat", "newfstatat", "statx", "access",
         "faccessat", "faccessat2", "xstat", "xstat64", "lxstat", "lxstat64", "fxstat", "fxstat64"), "T"),
    **dict.fromkeys(("unlink", "unlinkat", "remove"), "U"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "N"),
    **dict.fromkeys(("mkdir", "mkdirat"), "M"),
}  # fmt: skip
_STREAMS = 4096


def compile_trace(frame: IOFrame, data: str = "/") -> Recipe:
    """Return the recipe of a trace's I/O on files below the folder `data`. UserError when there is none."""
    events = _events(frame, data)
    if events.empty:
        raise UserError(
            f"{frame.metadata.get('path', 'the trace')}: no reads or writes that name a file below {data}: "
            "nothing to replay"
        )
    recipe = Recipe(left_out=dict(_left_out(frame, events, data)))
    _add_files(recipe, events)
    _add_streams(recipe, events)
    return recipe


def _events(frame: IOFrame, data: str) -> pd.DataFrame:
    """Return the calls to replay, in the order of their begin, with columns code and kind letter."""
    prefix = data.rstrip("/") + "/"
    below = f"starts_with(file, '{prefix.replace(chr(39), chr(39) * 2)}')" if prefix != "/" else "true"
    table = frame.query(
        'SELECT file, api, kind, function, "offset", size, time, coalesce(duration, 0) AS duration, '
        "coalesce(process, rank, 0) AS process, coalesce(thread, process, rank, 0) AS thread, rank FROM "
        "events "
        f"WHERE file IS NOT NULL AND api IN ('posix', 'stdio', 'mpiio', 'hdf5') AND {below} ORDER BY time"
    )
    table = table[~table["file"].str.startswith(SYSTEM_FOLDERS)]
    if table.empty:
        return table
    # Calls of one layer cause those of the next: of each file the lowest layer that moved bytes is replayed.
    height = {"posix": 0, "stdio": 1, "mpiio": 2, "hdf5": 3}
    moves = table[table["kind"].isin(["read", "write"])]
    lowest = moves.assign(height=moves["api"].map(height)).groupby("file")["height"].min()
    wanted = table["file"].map(lowest)
    table = table[wanted.isna() & (table["api"] == "posix") | (table["api"].map(height) == wanted)]
    letter = table["function"].str.replace(r"^_+", "", regex=True).map(_CALLS)
    letter = letter.where(table["kind"] != "read", "R").where(table["kind"] != "write", "W")
    table = table.assign(letter=letter)
    if not table["letter"].isin(["R", "W"]).any():
        return table.iloc[:0]
    return table


def _left_out(frame: IOFrame, events: pd.DataFrame, data: str) -> Counter[str]:
    lost = Counter(events.loc[events["letter"].isna(), "function"].astype(str))
    moved = events["letter"].isin(["R", "W"]) & events["size"].isna()
    lost.update(f"{name} without a size" for name in events.loc[moved, "function"].astype(str))
    return lost


def _add_files(recipe: Recipe, events: pd.DataFrame) -> None:
    """Name the files, and find what each held before the program and holds at most."""
    names = sorted(events["file"].unique())
    moved = set(events.loc[events["letter"].isin(["R", "W"]), "file"])
    buffered = set(events.loc[(events["api"] == "stdio") & events["letter"].isin(["R", "W"]), "file"])
    parents = {parent for name in names for parent in _parents(name)}
    for name in names:
        recipe.files.append(name)
        folder = name not in moved and (name in parents or name.rstrip("/") in parents)
        recipe.flags.append("d" if folder else "b" if name in buffered else "-")
    recipe.sizes = [0] * len(names)
    recipe.largest = [0] * len(names)


def _add_streams(recipe: Recipe, events: pd.DataFrame) -> None:
    number = {name: i for i, name in enumerate(recipe.files)}
    streams: dict[tuple[int, int], int] = {}
    ends: list[float] = []
    clock: list[dict[int, int]] = []  # what each stream has waited for already
    per_file: dict[int, list[tuple[float, int, int]]] = {}  # (end, stream, count) of the last of each stream
    position: dict[tuple[int, int], int] = {}
    written: dict[int, int] = {}
    totals: dict[str, Counter[str]] = {name: Counter() for name in ("read", "write", "sync", "metadata")}
    start = float(events["time"].min())
    rows: Any = events[events["letter"].notna()].itertuples(index=False)
    for row in rows:
        key = (int(row.process), int(row.thread))
        time, end = float(row.time), float(row.time + row.duration)
        if key not in streams:
            streams[key] = len(streams)
            if len(streams) > _STREAMS:
                raise UserError(f"the trace has more than {_STREAMS} threads: too many to replay on one node")
            recipe.streams.append([])
            recipe.begins.append(
                [
                    (s, len(recipe.streams[s]))
                    for s, e in enumerate(ends)
                    if e <= time and _is_over(events, streams, s, time)
                ]
            )
            clock.append(dict(recipe.begins[-1]))
            ends.append(end)
        stream, file = streams[key], number[row.file]
        size = 0 if pd.isna(row.size) else max(0, int(row.size))
        offset = (
            int(row.offset)
            if not pd.isna(row.offset) and row.offset >= 0
            else position.get((stream, file), written.get(file, 0))
        )
        if row.letter == "R" and offset + size > written.get(file, 0):
            recipe.sizes[file] = max(recipe.sizes[file], offset + size)
        if row.letter == "W":
            written[file] = max(written.get(file, 0), offset + size)
        if row.letter in "RW":
            position[stream, file] = offset + size
            recipe.largest[file] = max(recipe.largest[file], offset + size)
        if row.letter == "U":
            written[file] = 0
            position = {k: v for k, v in position.items() if k[1] != file}
        before = [(s, n) for e, s, n in per_file.get(file, []) if s != stream and e <= time]
        waits = [(s, n) for s, n in before if clock[stream].get(s, 0) < n]
        clock[stream].update(waits)
        used = offset if row.letter in "RW" else 0
        recipe.streams[stream].append(
            Operation(row.letter, file, used, size, int((time - start) * 1e9), waits)
        )
        done = (end, stream, len(recipe.streams[stream]))
        per_file[file] = [*(e for e in per_file.get(file, []) if e[1] != stream), done]
        ends[stream] = max(ends[stream], end)
        group = {"R": "read", "W": "write", "S": "sync", "D": "sync"}.get(row.letter, "metadata")
        totals[group].update(operations=1, bytes=size if row.letter in "RW" else 0)
    recipe.totals = {name: {"operations": c["operations"], "bytes": c["bytes"]} for name, c in totals.items()}


def _is_over(events: pd.DataFrame, streams: dict[tuple[int, int], int], stream: int, time: float) -> bool:
    """Return whether a stream does nothing after `time`."""
    last = events.attrs.get("last")
    if last is None:
        ends = events["time"] + events["duration"]
        found = ends.groupby([events["process"], events["thread"]]).max()
        pairs: Any = found.items()
        last = events.attrs["last"] = {(int(p), int(t)): float(e) for (p, t), e in pairs}
    key = next(k for k, s in streams.items() if s == stream)
    return bool(last[key] <= time)


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def write_recipe(frame: IOFrame, path: Path, limit: int | None = None, data: str = "/") -> Recipe:
    """Write the recipe of a trace to `path`, and its totals beside it (``.json``). UserError beyond
    `limit` bytes."""
    recipe = compile_trace(frame, data)
    if limit is not None and recipe.footprint > limit:
        raise UserError(
            f"the trace's files need {recipe.footprint:,} bytes and the workload allows {limit:,}: raise "
            "`largest`"
        )
    path.write_text(recipe.text(), encoding="ascii")
    facts: dict[str, Any] = {
        "totals": recipe.totals, "left_out": recipe.left_out, "files": recipe.files,
        "footprint": recipe.footprint,
    }  # fmt: skip
    path.with_suffix(".json").write_text(
        json.dumps(facts, indent=1) + "\n", encoding="utf-8", errors="surrogateescape"
    )
    return recipe


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tiercel.placement.compile")
    parser.add_argument("trace", type=Path)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    try:
        write_recipe(open_trace(arguments.trace), arguments.recipe, arguments.limit)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main() or os.EX_OK)
