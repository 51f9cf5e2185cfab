"""What one synchronisation (fsync and its like) costs on each system, learnt from synced configurations.

A synchronisation costs by the call: a journal's commit takes the same for 8 bytes and for 64 KiB, and more
only where the bytes themselves take long. So a synced configuration's time is that of its writes, as if they
were not synced, and that of its calls; the second is what is learnt here, growing with the bytes of a call
(isotonic regression on the logarithms).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.isotonic import IsotonicRegression

Floats = npt.NDArray[np.float64]

#: Seconds that no clock here tells from nothing.
_NOTHING = 1e-7


def sync_calls(rows: pd.DataFrame) -> Floats:
    """Return how many synchronisations there are from open to close, of feature rows (``features``)."""
    calls = rows["syncs_per_write"].to_numpy(float) * 2.0 ** rows["accesses_per_open"].to_numpy(float)
    return np.where(rows["fsync"].to_numpy(float) > 0, np.maximum(calls, 1.0), 0.0)


def unsynced(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the same rows as if nothing were synchronised."""
    return rows.assign(fsync=0.0, syncs_per_write=0.0)


@dataclass
class SyncCosts:
    """Seconds of one synchronisation on each system; nothing where no configuration was synced."""

    systems: list[str]
    curves: dict[str, Any]
    smallest: float = 0.0
    largest: float = 0.0
    """Bytes of one synchronisation between which it was learnt."""

    @classmethod
    def learn(cls, systems: list[str], rows: pd.DataFrame, seconds: Floats, plain: Floats) -> SyncCosts:
        """Learn from feature rows: measured `seconds` from open to close and those without synchronisations.

        Both have the shape (rows, systems).
        """
        calls = sync_calls(rows)
        synced = calls > 0
        if not synced.any():
            return cls(systems, {})
        amount = 2.0 ** rows["bytes_per_open"].to_numpy(float)[synced] / calls[synced]
        each = np.maximum((seconds - plain)[synced] / calls[synced, None], _NOTHING)
        curves = {
            s: IsotonicRegression(out_of_bounds="clip").fit(np.log2(amount), np.log2(each[:, i]))
            for i, s in enumerate(systems)
        }
        return cls(systems, curves, float(amount.min()), float(amount.max()))

    def seconds(self, calls: Floats, amount: Floats) -> Floats:
        """Return seconds of `calls` synchronisations that bring `amount` bytes together: (rows, systems)."""
        found = np.zeros((len(calls), len(self.systems)))
        some = calls > 0
        if self.curves and some.any():
            each = np.log2(np.maximum(amount[some] / calls[some], 1.0))
            for i, system in enumerate(self.systems):
                found[some, i] = calls[some] * 2.0 ** self.curves[system].predict(each)
        return found
