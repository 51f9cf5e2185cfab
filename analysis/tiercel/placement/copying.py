"""What it costs to use files on another storage than the one that they live on: copied in before, home after.

The rates of copying are those that a study measured; no model is asked. A study measures neither ``cp`` nor
always one process, so what is known of a copy is a range: the least and the most that it can take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

#: Files smaller than this (mean, bytes) cost by their number: what opening them takes must be known.
SMALL = 1024**2


@dataclass(frozen=True)
class Span:
    """Seconds between the least and the most that measurements allow; NaN where nobody measured."""

    least: float = math.nan
    most: float = math.nan

    def times(self, factor: float) -> Span:
        """Return the span of `factor` times as much."""
        return Span(self.least * factor, self.most * factor)


#: Nothing to do takes no time.
NOTHING = Span(0.0, 0.0)


def each_of(rate: float, processes: int = 1, *, cold: bool = True) -> Span:
    """Return the seconds that one process needs for one byte (or file) where `processes` did `rate` a second.

    One alone is no faster than all together, and at worst they shared the work and none waited for another.
    What was in the page cache (not `cold`) says only what it takes at the least. A rate that is no positive
    number says nothing.
    """
    if not (math.isfinite(rate) and rate > 0):
        return Span()
    return Span(1 / rate, processes / rate if cold else math.nan)


@dataclass(frozen=True)
class Rates:
    """What one process needs to copy from and to a storage; NaN where the study did not measure it."""

    read: Span = Span()
    """For each byte of large files."""
    write: Span = Span()
    open: Span = Span()
    """For each small file that is opened to be read."""
    create: Span = Span()


@dataclass(frozen=True)
class Staging:
    """The cost of using files on another storage than the one that they live on."""

    home: str
    target: str
    seconds_in: float
    """To copy the inputs to `target`, once, at the most."""
    seconds_out: float
    """To copy the results home, after each use, at the most."""
    saved: float
    """Seconds saved by each use (or file, see `per`)."""
    least_in: float = math.nan
    """As `seconds_in`, at the least."""
    least_out: float = math.nan
    per: str = "use"
    """What `saved` is of: each ``use`` of the files, or each ``file`` that is made and removed."""

    @property
    def pays_from(self) -> int | None:
        """The use of the files with which copying has surely paid; None: never."""
        return _pays(self.seconds_in, self.seconds_out, self.saved)

    @property
    def pays_at_best(self) -> int | None:
        """The same if copying takes the least that is possible."""
        return _pays(self.least_in, self.least_out, self.saved)


def _pays(seconds_in: float, seconds_out: float, saved: float) -> int | None:
    each = saved - seconds_out
    if not math.isfinite(each) or not math.isfinite(seconds_in) or each <= 0:
        return None
    # Paid is what takes less time altogether, not as much: a cost of nothing pays with the first use.
    return math.floor(seconds_in / each + 1e-9) + 1 if seconds_in else 1


@dataclass(frozen=True)
class Amount:
    """What one use of some files moves between storages: copied in before, brought home after."""

    files_in: float = 0
    bytes_in: float = 0
    files_out: float = 0
    bytes_out: float = 0


def staging(
    home: str,
    target: str,
    amount: Amount,
    rates: Mapping[str, Rates],
    saved: float,
    *,
    reading: Span | None = None,
    per: str = "use",
) -> Staging:
    """Return what copying costs: each byte is read here and written there, each file opened and created.

    At the most, the steps come one after the other; at the least, reading ahead and writing behind hide the
    shorter one. `reading` is what reading these very inputs at home took, where it was measured.
    """
    a, b = rates.get(home, Rates()), rates.get(target, Rates())

    def copy(source: Rates, to: Rates, files: float, size: float, read: Span | None) -> Span:
        if not size and not files:
            return NOTHING
        read = read or _step(source.read, source.open, files, size)
        write = _step(to.write, to.create, files, size)
        return Span(float(np.fmax(read.least, write.least)), read.most + write.most)

    into = copy(a, b, amount.files_in, amount.bytes_in, reading)
    out = copy(b, a, amount.files_out, amount.bytes_out, None)
    return Staging(home, target, into.most, out.most, saved, into.least, out.least, per)


def _step(of_byte: Span, of_file: Span, files: float, size: float) -> Span:
    """Return what reading or writing takes: bytes, and files where they are measured or small."""
    least = size * of_byte.least + np.nansum([files * of_file.least])
    if size < SMALL * files:
        return Span(float(least), size * of_byte.most + files * of_file.most)
    # Opening a few large files is little: what it takes at least will do.
    each = of_file.least if math.isnan(of_file.most) else of_file.most
    return Span(float(least), float(size * of_byte.most + np.nansum([files * each])))
