"""What a phase of a run gave: a core that every engine may fill, and metrics that a subject declares.

    metrics.declare(Column("hit_share", NUMBER, "1", "of what was wanted of a cache: what was there"))
    Measurement("lookup", total_time=2.0, metrics={"hit_share": 0.8})

Either is a column of ``observations.parquet`` by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

from tiercel.columns import COUNT, FLAG, NUMBER, WORD, Column, Declared
from tiercel.subjects import fill

Role = Literal["measured", "setup"]


def _column(kind: str, unit: str, meaning: str, **default: Any) -> Any:
    return field(**default, metadata={"kind": kind, "unit": unit, "meaning": meaning})


def _word(meaning: str, default: str | None = None) -> Any:
    return _column(WORD, "", meaning, default=default)


def _count(meaning: str, unit: str = "", default: int | None = None) -> Any:
    return _column(COUNT, unit, meaning, default=default)


def _number(unit: str, meaning: str) -> Any:
    return _column(NUMBER, unit, meaning, default=None)


@dataclass
class Measurement:
    """Numbers of one phase of one run. Units: bytes, seconds, operations; None where an engine does not say.

    Definitions are IOR's (see native/iokernel/README.md): `bandwidth` is bytes moved over `total_time`,
    from the first open to the last close; `operation_rate` is operations over `total_time`.
    """

    operation: str = _column(WORD, "", "write, read, file-create, file-stat, directory-create...")
    role: Role = _word("measured; setup for phases that only prepare the measured one", "measured")  # noqa: RUF009 -- a Literal
    phase: int = _count("position of the phase in the run", default=0)
    access: str | None = _word("WO, RO, RAW, WAW, RAR or WAR")
    bandwidth: float | None = _number("B/s", "bytes moved over total_time")
    operation_rate: float | None = _number("1/s", "operations over total_time")
    bytes_moved: int | None = _count("bytes really moved", "B")
    bytes_expected: int | None = _count("bytes that were to be moved", "B")
    operations: int | None = _count("read, write or metadata operations done")
    total_time: float | None = _number("s", "first open to last close over all processes")
    open_time: float | None = _number("s", "first open start to last open end")
    transfer_time: float | None = _number("s", "first transfer start to last transfer end")
    close_time: float | None = _number("s", "first close start to last close end")
    latency_mean: float | None = _number("s", "mean time of one operation")
    latency_p50: float | None = _number("s", "median time of one operation")
    latency_p90: float | None = _number("s", "90 % of the operations took at most this")
    latency_p99: float | None = _number("s", "99 %")
    latency_p999: float | None = _number("s", "99.9 %")
    latency_max: float | None = _number("s", "slowest operation")
    cpu_user: float | None = _number("s", "user CPU time of all processes in the phase")
    cpu_system: float | None = _number("s", "system CPU time of all processes in the phase")
    resident_fraction: float | None = _number("1", "share of the data in the page cache just before the read")
    resident_method: str | None = _word("cachestat, mincore or none")
    resident_unknown: str | None = _word("why resident_fraction is unknown")
    memory_backed: bool | None = _column(
        FLAG, "", "the file system is memory (tmpfs): no read of it can be cold", default=None
    )
    behind_alike: float | None = _number(
        "1", "share of single pages whose first touch before the read was as quick as their second"
    )
    behind_hit_time: float | None = _number(
        "s", "a quick touch of a page that was there (a tenth were quicker)"
    )
    behind_miss_time: float | None = _number("s", "median first touch of those that were slower, if any were")
    cross_node_fraction: float | None = _number("1", "share of processes that read what another node wrote")
    task_offset: int | None = _count("effective distance from reader to writer in processes")
    stonewall_hit: bool | None = _column(FLAG, "", "the time limit cut the phase", default=None)
    clock_skew: float | None = _number("s", "largest difference of the nodes' clocks")
    session_layout: str | None = _word(
        "own: each process of a node has a session of its own; shared: one for all of them; mixed"
    )
    slowest_process: float | None = _number("1", "speed of the slowest process / median of the others")
    slowest_rank: int | None = _count("which process that is")
    longest_pause: float | None = _number("s", "longest time inside the phase in which no operation ended")
    began: float | None = _number("s", "start of the phase, seconds since the epoch")
    pieces: tuple[tuple[float, float], ...] = ()
    """Start and seconds of each piece of a phase that was done in several, with other work between them."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What the subject measures beside: names as in `metrics`."""

    def row(self) -> dict[str, Any]:
        """Return all numbers by the names of their columns."""
        return {column.name: getattr(self, column.name) for column in CORE} | self.metrics


#: The columns that every phase may have.
CORE = tuple(Column(f.name, **f.metadata) for f in fields(Measurement) if f.metadata)
#: What subjects measure beside.
metrics = Declared("metric", partial(fill, "engines", __name__))
