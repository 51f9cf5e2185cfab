"""The metrics of paper 000, section V.B, from a trace: what a program did to its dataset.

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
    count(DISTINCT file) FILTER (kind = 'read' AND moved) AS files_read
FROM (SELECT *, kind IN ('read', 'write') AND size > 0 AS moved FROM events
      WHERE api = 'posix' AND kind IN ('read', 'write', 'metadata', 'sync'))
"""


def metrics(frame: IOFrame, data: Path) -> dict[str, float | None]:
    """Return the metrics of :data:`METRICS` for calls on files under `data`; None where one cannot be."""
    prefix = f"{data}/".replace("'", "''")
    chosen = frame.where(f"starts_with(file, '{prefix}')")
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
    return {name: found[name] for name in METRICS}
