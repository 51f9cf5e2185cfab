"""What is compared: each quantity with its words and its unit, and what makes it no comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tiercel.pages.words import number, portion, seconds
from tiercel.units import format_bandwidth, format_size


@dataclass(frozen=True)
class Quantity:
    """`unit` is s, B, B/s, 1 (a share) or empty (a number of things)."""

    name: str
    words: str
    unit: str

    @property
    def is_time(self) -> bool:
        return self.unit == "s"

    def show(self, value: float) -> str:
        return SHOW[self.unit](value)

    def show_difference(self, value: float) -> str:
        """Return a difference with its sign; of shares in points."""
        sign = "+" if value > 0 else "−" if value < 0 else ""
        if self.unit == "1":
            return f"{sign}{abs(100 * value):.3g} points"
        return f"{sign}{self.show(abs(value))}"


SHOW: dict[str, Callable[[float], str]] = {
    "s": seconds, "B": format_size, "B/s": format_bandwidth, "1": portion, "": number,
}  # fmt: skip

#: In the order in which equally large differences are told.
QUANTITIES = (
    Quantity("job_time", "job time", "s"),
    Quantity("felt", "I/O that is felt (wall clock)", "s"),
    Quantity("io_wall", "I/O of at least one rank (wall clock)", "s"),
    Quantity("compute", "computation of at least one rank (wall clock)", "s"),
    Quantity("read_time", "time in reads", "s"),
    Quantity("write_time", "time in writes", "s"),
    Quantity("metadata_time", "time in metadata calls", "s"),
    Quantity("sync_time", "time in syncs", "s"),
    Quantity("read_bytes", "bytes read", "B"),
    Quantity("write_bytes", "bytes written", "B"),
    Quantity("read_calls", "reads", ""),
    Quantity("write_calls", "writes", ""),
    Quantity("metadata_calls", "metadata calls", ""),
    Quantity("sync_calls", "syncs", ""),
    Quantity("read_bandwidth", "bandwidth in reads", "B/s"),
    Quantity("write_bandwidth", "bandwidth in writes", "B/s"),
    Quantity("app", "application throughput", "B/s"),
    Quantity("system", "system throughput", "B/s"),
    Quantity("read_size", "bytes a read", "B"),
    Quantity("write_size", "bytes a write", "B"),
    Quantity("read_small", "reads below 1 MiB", "1"),
    Quantity("write_small", "writes below 1 MiB", "1"),
    Quantity("metadata_share", "metadata's share of the time in calls", "1"),
    Quantity("hidden", "I/O hidden behind computation", "1"),
    Quantity("random", "random accesses", "1"),
    Quantity("files", "files", ""),
    Quantity("shared_files", "files of several ranks", ""),
    Quantity("ranks", "ranks", ""),
)
#: Of these Darshan's counters and events mean different things: fsync counts as writing in counters, and the
#: first access of a rank is followed by no pattern there.
DEPENDS_ON_DEPTH = {
    "write_time": "counters hold syncs as writing", "write_bandwidth": "counters hold syncs as writing",
    "random": "counters do not say where a rank's first access begins",
}  # fmt: skip
