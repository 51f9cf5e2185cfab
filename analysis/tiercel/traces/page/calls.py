"""The sections on calls: transfer sizes and layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiercel.pages.tables import table
from tiercel.pages.words import MISSING, count, number, portion, seconds
from tiercel.traces.analysis.timeline import COLOURS
from tiercel.traces.page.charts import Series, bars, share
from tiercel.traces.page.part import Drawing, Part
from tiercel.units import format_bandwidth, format_size


def sizes_part(numbers: Mapping[str, Any]) -> Part:
    """How many reads and writes moved how much."""
    rows = numbers["transfer_sizes"]
    anchor, heading = "sizes", "Transfer sizes"
    if not rows:
        return Part(anchor, heading, ("No read or write has a known size.",))
    sizes = _without_gaps(sorted({row["size"] for row in rows}), bool(numbers["events"]))
    kinds = [kind for kind in ("read", "write") if any(row["kind"] == kind for row in rows)]
    calls = {(row["kind"], row["size"]): row["calls"] for row in rows}
    series = [Series(kind, COLOURS[kind], [calls.get((kind, size), 0) for size in sizes]) for kind in kinds]
    drawing = Drawing(
        "Calls by size",
        bars([format_size(size) for size in sizes], series, "number of calls by transfer size", number),
        "Each bar: transfers from this size up to the next.",
    )
    whole = {kind: sum(v for (k, _), v in calls.items() if k == kind) for kind in kinds}
    small = {kind: sum(v for (k, size), v in calls.items() if k == kind and size < 1 << 20) for kind in kinds}
    # A class of Darshan's holds its upper end; a power of two begins its own.
    least = "move less than 1 MiB" if numbers["events"] else "move 1 MiB or less"
    said = "; ".join(
        f"{portion(small[kind] / whole[kind])} of {count(whole[kind], kind)} {least}"
        for kind in kinds if whole[kind]
    )  # fmt: skip
    body = [
        [row["kind"], (format_size(row["size"]), row["size"]), (number(row["calls"]), row["calls"]),
         _known(row["bytes"], format_size), _known(row["median_duration_s"], seconds),
         _known(row["bandwidth_bytes_s"], format_bandwidth)]
        for row in rows
    ]  # fmt: skip
    columns = ["transfers", "from", "calls", "bytes", "median time", "bandwidth in a call"]
    listed = table("Transfers by size.", columns, body, columns[1:])
    return Part(anchor, heading, (f"{said}.",) if said else (), (drawing,), folded=(("All sizes", listed),))


def _without_gaps(sizes: list[int], powers: bool) -> list[int]:
    """Return the sizes, of powers of two also those between them, so that the axis is even."""
    over = [size for size in sizes if size > 0]
    if not powers or not over:
        return sizes
    low, high = over[0].bit_length() - 1, over[-1].bit_length() - 1
    return [0] * (sizes[0] == 0) + [1 << n for n in range(low, high + 1)]


def layers_part(numbers: Mapping[str, Any]) -> Part:
    """Calls, bytes and time of each layer, and what the processes' time goes into."""
    anchor, heading = "layers", "Layers"
    rows = numbers["layers"]
    if not rows:
        return Part(anchor, heading, ("The trace holds no I/O call.",))
    body = [
        [row["api"], (number(row["calls"]), row["calls"]),
         (format_size(row["bytes_read"]), row["bytes_read"]),
         (format_size(row["bytes_written"]), row["bytes_written"]),
         *(_known(row[c], seconds) for c in ("data_s", "metadata_s", "sync_s"))]
        for row in rows
    ]  # fmt: skip
    columns = ["layer", "calls", "read", "written", "data time", "metadata time", "sync time"]
    listed = table("Calls of each layer; times are sums over all processes.", columns, body, columns[1:])
    note = "A call of a higher layer causes calls of lower ones: layers are not added up."
    return Part(anchor, heading, (), _whole_time(numbers), (listed,), notes=(note,) if len(rows) > 1 else ())


def _whole_time(numbers: Mapping[str, Any]) -> tuple[Drawing, ...]:
    """Return where the time of all ranks goes: data, metadata, sync, the rest; of the lowest layers."""
    low = [r for r in numbers["layers"] if r["api"] in ("posix", "stdio")] or numbers["layers"][:1]
    length, ranks = numbers["job_time_s"], numbers["ranks"]
    if not length or not ranks:
        return ()
    kinds = [("data", "read", "data_s"), ("metadata", "metadata", "metadata_s"), ("sync", "sync", "sync_s")]
    parts = [
        Series(word, COLOURS[colour], [sum(r[column] or 0.0 for r in low) / (length * ranks)])
        for word, colour, column in kinds
    ]
    parts = [part for part in parts if part.values[0] > 0]
    if not 0 < sum(part.values[0] for part in parts) <= 1:
        return ()  # threads: their calls take longer together than the job
    names = " and ".join(str(r["api"]) for r in low)
    caption = f"Of run time times ranks: {names} calls; the empty part is everything else."
    return (
        Drawing(
            "Where the ranks' time goes", share(parts, "share of the ranks' time in calls", portion), caption
        ),
    )


def _known(value: float | None, show: Any) -> Any:
    return MISSING if value is None else (show(value), value)
