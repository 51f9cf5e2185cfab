"""What it costs to use files on another storage than the one that they live on: copied in before, home after.

The rates of copying are those that a study measured; no model is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rates:
    """How fast files are copied from and to a storage; NaN where the study did not measure it."""

    read: float = math.nan
    """Bytes per second of large files."""
    write: float = math.nan
    open: float = math.nan
    """Files per second that can be read, for small ones."""
    create: float = math.nan


@dataclass(frozen=True)
class Staging:
    """The cost of using files on another storage than the one that they live on."""

    home: str
    target: str
    seconds_in: float
    """To copy the inputs to `target`, once."""
    seconds_out: float
    """To copy the results home, after each use."""
    saved: float
    """Seconds saved by each use."""

    @property
    def pays_from(self) -> int | None:
        """The use of the files with which copying has paid; None: never."""
        each = self.saved - self.seconds_out
        if not math.isfinite(each) or not math.isfinite(self.seconds_in) or each <= 0:
            return None
        # Paid is what takes less time altogether, not as much: a cost of nothing pays with the first use.
        return math.floor(self.seconds_in / each + 1e-9) + 1 if self.seconds_in else 1


@dataclass(frozen=True)
class Amount:
    """What one use of some files moves between storages: copied in before, brought home after."""

    files_in: float = 0
    bytes_in: float = 0
    files_out: float = 0
    bytes_out: float = 0


def staging(home: str, target: str, amount: Amount, rates: Mapping[str, Rates], saved: float) -> Staging:
    """Return what copying costs: each byte is read here and written there, each file opened and created.

    The steps of a copy are counted one after the other, which is what a single ``cp`` does at worst.
    """
    a, b = rates.get(home, Rates()), rates.get(target, Rates())

    def copy(source: Rates, to: Rates, files: float, size: float) -> float:
        if not size and not files:
            return 0.0
        each = np.nansum([1 / source.open, 1 / to.create])  # where nobody measured files, bytes alone count
        return float(size * (1 / source.read + 1 / to.write) + files * each)

    return Staging(
        home, target, copy(a, b, amount.files_in, amount.bytes_in),
        copy(b, a, amount.files_out, amount.bytes_out), saved,
    )  # fmt: skip
