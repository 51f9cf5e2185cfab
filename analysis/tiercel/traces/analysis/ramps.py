"""Amounts (bytes, seconds) spread over time: how much of them falls into each of equal parts of a job."""

from __future__ import annotations

from typing import Any

import numpy as np

#: What rounding leaves in a bin in which nothing happened, against the row's whole.
_NOTHING = 1e-9


class Ramps:
    """What was moved up to each edge of equal bins: sums of ramps, each from 0 to a call's amount.

    `rows` things (files, ranks) are told apart; all cover `bins` bins of `width` seconds from time 0.
    """

    def __init__(self, rows: int, bins: int, width: float) -> None:
        self._rows, self._bins, self._width = rows, bins, width
        self._slope, self._level, self._jump = (np.zeros(rows * (bins + 2)) for _ in range(3))
        self._missing = np.zeros(rows * (bins + 2), dtype=np.int64)

    def add(self, row: Any, time: Any, duration: Any, amount: Any) -> None:
        """Spread each call's amount evenly over its duration; arrays of one length (`row`: one, or 0).

        Where an amount is missing (NaN), so is the sum of every bin that its call touches.
        """
        missing = np.isnan(amount)
        amount = np.where(missing, 0.0, amount)
        # An edge at t sees rate * (t - start) of a ramp that began before it, less the same after its end.
        instant = duration <= 0
        rate = np.where(instant, 0.0, amount / np.where(instant, 1.0, duration))
        base = np.asarray(row, dtype=np.int64) * (self._bins + 2) + 1
        first = base + np.clip(np.floor(time / self._width).astype(np.int64), 0, self._bins - 1)
        after = base + np.clip(np.floor((time + duration) / self._width).astype(np.int64), 0, self._bins)
        length = len(self._slope)
        self._missing += np.bincount(first[missing], minlength=length)
        self._missing -= np.bincount(
            np.minimum(np.maximum(after, first) + 1, base + self._bins)[missing], minlength=length
        )
        self._slope += np.bincount(first, rate, length) - np.bincount(after, rate, length)
        self._level += np.bincount(after, rate * (time + duration), length) - np.bincount(
            first, rate * time, length
        )
        self._jump += np.bincount(first, np.where(instant, amount, 0.0), length)

    def amounts(self) -> Any:
        """Return rows x bins; 0 in bins in which nothing happened, whatever rounding left there."""
        edges = np.arange(self._bins + 1) * self._width
        slope, level, jump = (
            np.cumsum(part.reshape(self._rows, -1), axis=1)[:, : self._bins + 1]
            for part in (self._slope, self._level, self._jump)
        )
        found = np.maximum(np.diff(slope * edges + level + jump, axis=1), 0.0)
        found = np.where(found > _NOTHING * found.sum(axis=1, keepdims=True), found, 0.0)
        missing = np.cumsum(self._missing.reshape(self._rows, -1), axis=1)[:, 1 : self._bins + 1]
        return np.where(missing > 0, np.nan, found)
