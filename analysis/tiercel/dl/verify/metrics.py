"""The metrics of paper 000, section V.B, from a trace: what a program did to its dataset. Two are our own.

Only POSIX calls count (the lowest layer, the same for every framework) and only those on files under the
dataset's folder, so that imports of libraries and logs do not.
"""

from __future__ import annotations

from pathlib import Path

from tiercel.traces import IOFrame

#: Name of each metric to its unit. Transfers are reads and writes that moved at least a byte.
METRICS = {
    "io_time": "s",  # sum of durations of all calls on the dataset, over all processes
    "bytes_read": "B",
    "bytes_written": "B",
    "transfer_min": "B",
    "transfer_mean": "B",
    "transfer_median": "B",
    "transfer_max": "B",
    "read_bandwidth": "B/s",  # bytes over the sum of the reads' durations
    "write_bandwidth": "B/s",
    "sequential_share": "1",  # accesses that start at or after the end of the last one, as Darshan counts
    "consecutive_share": "1",  # accesses that start where the last one ended
    "files_read": "",
    "opens": "",  # of files, folders not counted
    "bytes_fetched": "B",  # what of the dataset lies in the page cache afterwards: mapped files have no reads
}
#: Those that depend on how fast the storage was in that moment. The others are what the program asked for.
TIMES = ("io_time", "read_bandwidth", "write_bandwidth")

_NUMBERS = """
SELECT coalesce(sum(duration), 0.0) AS io_time,
    coalesce(sum(size) FILTER (kind = 'read'), 0)::DOUBLE AS bytes_read,
    coalesce(sum(size) FILTER (kind = 'write'), 0)::DOUBLE AS bytes_written,
    min(size) FILTER (moved) AS transfer_min, avg(size) FILTER (moved) AS transfer_mean,
    median(size) FILTER (moved) AS transfer_median, max(size) FILTER (moved) AS transfer_max,
    sum(duration) FILTER (kind = 'read') AS read_time,
    sum(duration) FILTER (kind = 'write') AS write_time,
    count(DISTINCT file) FILTER (kind = 'read' AND moved) AS files_read,
    count(*) FILTER (function IN ('open', 'open64', 'openat', 'openat2') AND failed IS NOT TRUE
        AND coalesce(flags, '') NOT LIKE '%O_DIRECTORY%')::DOUBLE AS opens
FROM (SELECT *, kind IN ('read', 'write') AND size > 0 AS moved FROM events
      WHERE api = 'posix' AND kind IN ('read', 'write', 'metadata', 'sync'))
"""


def of_dataset(frame: IOFrame, data: Path, since: float | None = None) -> IOFrame:
    """Return the calls on files under `data`, those from `since` on (seconds since 1970)."""
    prefix = f"{data}/".replace("'", "''")
    chosen = frame.where(f"starts_with(file, '{prefix}')")
    return chosen if since is None else chosen.where(f"time >= {since - float(frame.metadata['epoch'])!r}")


def transfers(chosen: IOFrame) -> dict[str, int]:
    """Return how many reads and writes moved how much: {lower end of a bin of powers of two: calls}."""
    table = chosen.transfer_sizes(api="posix").reset_index()
    counts = table[table["size"] > 0].groupby("size")["calls"].sum()
    return {str(size): int(calls) for size, calls in counts.items()}


def metrics(chosen: IOFrame, fetched: float | None = None) -> dict[str, float | None]:
    """Return the metrics of :data:`METRICS` for calls on a dataset; None where one cannot be.

    `fetched`: bytes of it in the page cache after a run that began without any, None where nobody looked.
    """
    row = chosen.query(_NUMBERS).iloc[0]
    found: dict[str, float | None] = {
        name: None if row[name] != row[name] or row[name] is None else float(row[name])
        for name in METRICS
        if name in row
    }
    for kind in ("read", "write"):
        time, moved = row[f"{kind}_time"], found[f"bytes_{'read' if kind == 'read' else 'written'}"]
        found[f"{kind}_bandwidth"] = float(moved / time) if moved and time and time > 0 else None
    pattern = chosen.access_pattern(api="posix")
    total = int(pattern["total"].sum())
    consecutive, sequential = int(pattern["consecutive"].sum()), int(pattern["sequential"].sum())
    found["sequential_share"] = (consecutive + sequential) / total if total else None
    found["consecutive_share"] = consecutive / total if total else None
    found["bytes_fetched"] = fetched
    if fetched and not found["bytes_read"]:
        found["io_time"] = None  # mapped files: what their reading took is in no call
    return {name: found[name] for name in METRICS}
