"""Predicted throughput on every system, with intervals that were checked on held-out configurations.

One regression for each system gives log2(bytes/s), and what synchronisations cost is added by the call
(`syncs`). The intervals are conformal (V. Vovk et al., "Algorithmic
Learning in a Random World", 2005; cross-conformal with grouped folds): the errors on configurations
whose neighbours were held back too say how wrong the next prediction may be. A comparison of two systems
uses the errors of the *difference*, which are smaller than those of both: what a configuration does to one
system it mostly does to the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from tiercel.placement.dataset import errors, throughput, vectors
from tiercel.placement.features import NAMES
from tiercel.placement.score import TWO, Names
from tiercel.placement.splits import folds
from tiercel.placement.syncs import SyncCosts, sync_calls, unsynced

Floats = npt.NDArray[np.float64]


def _regression(seed: int) -> Any:
    return ExtraTreesRegressor(n_estimators=200, min_samples_leaf=1, max_features=0.6, random_state=seed)


@dataclass
class ThroughputModel:
    """`fit` first. `features`: the columns that are used (all by default)."""

    systems: list[str]
    features: tuple[str, ...] = NAMES
    seed: int = 0
    _fitted: Any = None
    syncs: SyncCosts = field(default_factory=lambda: SyncCosts([], {}))
    residuals: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """log2(measured / predicted) of held-out configurations: shape (configurations, systems)."""
    floors: dict[tuple[str, str], float] = field(default_factory=dict)
    """log2 ratio of two systems that noise alone gives: two standard errors of a typical configuration."""

    def fit(self, table: pd.DataFrame, calibrate: bool = True) -> ThroughputModel:
        """Learn from a dataset; `calibrate` also finds the errors on held-out configurations (ten fits
        more)."""
        x, y = vectors(table), np.log2(throughput(table)[self.systems].to_numpy())
        if calibrate:
            found = np.full(y.shape, np.nan)
            for train, test in folds(x):
                self._learn(x.iloc[train], y[train])
                found[test] = y[test] - np.log2(self.predict(x.iloc[test]).to_numpy())
            self.calibrate(table, found)
        self._learn(x, y)
        return self

    def _learn(self, rows: pd.DataFrame, speed: Floats) -> None:
        """Learn from feature rows and log2(bytes/s)."""
        self._fitted = _regression(self.seed).fit(self._x(rows), speed)
        moved = 2.0 ** rows["bytes_per_open"].to_numpy(dtype=float)[:, None]
        plain = moved / self.predict(unsynced(rows)).to_numpy()
        self.syncs = SyncCosts.learn(self.systems, rows, moved / 2.0**speed, plain)

    def calibrate(self, table: pd.DataFrame, residuals: Floats) -> None:
        """Take errors that were found before, and the dataset's noise floors."""
        self.residuals = residuals
        error = errors(table)[self.systems].to_numpy()
        self.floors = {
            (a, b): float(TWO * np.median(np.hypot(error[:, i], error[:, j])))
            for i, a in enumerate(self.systems)
            for j, b in enumerate(self.systems)
        }

    def _x(self, rows: pd.DataFrame) -> Floats:
        found: Floats = rows[list(self.features)].to_numpy(dtype=float)
        return found

    def predict(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return predicted bytes/s: one row for each of `rows`, one column for each system."""
        values = 2.0 ** self._fitted.predict(self._x(unsynced(rows))).reshape(len(rows), -1)
        calls = sync_calls(rows)
        if calls.any():
            moved = 2.0 ** rows["bytes_per_open"].to_numpy(dtype=float)
            values = moved[:, None] / (moved[:, None] / values + self.syncs.seconds(calls, moved))
        return pd.DataFrame(values, index=rows.index, columns=self.systems)

    def choose(self, rows: pd.DataFrame) -> Names:
        """Return the system with the highest predicted throughput of each row."""
        found: Any = self.predict(rows).idxmax(axis=1).to_numpy(dtype=object)
        return cast(Names, found)

    def interval(self, system: str, confidence: float = 0.9) -> tuple[float, float]:
        """Return the factors between which measured / predicted throughput lies with `confidence`."""
        values = np.sort(self.residuals[:, self.systems.index(system)])
        return float(2.0 ** _quantile(values, (1 - confidence) / 2)), float(
            2.0 ** _quantile(values, (1 + confidence) / 2)
        )

    def confidence(self, better: str, worse: str, log_ratio: float) -> float:
        """Return how sure it is that `better` is faster when predicted faster by 2**log_ratio."""
        i, j = self.systems.index(better), self.systems.index(worse)
        difference = self.residuals[:, i] - self.residuals[:, j]
        # One more that speaks against it: a finite sample never proves anything wholly.
        return float((difference + log_ratio > 0).sum() / (len(difference) + 1))

    def gain_interval(
        self, better: str, worse: str, log_ratio: float, confidence: float = 0.9
    ) -> tuple[float, float]:
        """Return the log2 ratios between which the true one lies with `confidence`."""
        i, j = self.systems.index(better), self.systems.index(worse)
        values = np.sort(self.residuals[:, i] - self.residuals[:, j])
        return log_ratio + _quantile(values, (1 - confidence) / 2), log_ratio + _quantile(
            values, (1 + confidence) / 2
        )


def _quantile(ordered: Floats, share: float) -> float:
    """Return the conformal quantile: of n values the ceil((n+1) share)-th, at the ends the extreme."""
    n = len(ordered)
    rank = int(np.ceil((n + 1) * share) if share > 0.5 else np.floor((n + 1) * share))
    return float(ordered[min(max(rank, 1), n) - 1])
