"""How good a choice of systems is: the paper's accuracy, and what a wrong choice costs.

*Accuracy* is the share of configurations for which the chosen system is the one that measured best (paper
003, section VII.A). *Regret* is the share of the best system's throughput that the choice gives away. Two
systems *differ* when their median throughputs lie more than two standard errors apart; where the best does
not differ from the second, either choice is as good as the noise lets us say.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.placement.dataset import errors, throughput

#: Standard errors apart (about 95 % of differences of nothing are smaller).
TWO = 2.0

Names = npt.NDArray[np.object_]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Score:
    """Of one set of choices. `differing` counts the configurations in which systems differ."""

    count: int
    accuracy: float
    regret: float
    differing: int
    accuracy_where_differ: float
    regret_where_differ: float

    def row(self) -> dict[str, Any]:
        return asdict(self)


def best_of(table: pd.DataFrame) -> Names:
    """Return the system with the highest throughput of each configuration."""
    found: Any = throughput(table).idxmax(axis=1).to_numpy(dtype=object)
    return cast(Names, found)


def differ(table: pd.DataFrame) -> Mask:
    """Return for which configurations the best system differs from the second."""
    speed, error = np.log2(throughput(table).to_numpy()), errors(table).to_numpy()
    order = np.argsort(-speed, axis=1)
    rows = np.arange(len(table))
    first, second = order[:, 0], order[:, 1]
    gap = speed[rows, first] - speed[rows, second]
    noise = np.hypot(error[rows, first], error[rows, second])
    found: Mask = gap > TWO * noise
    return found


def fastest_shares(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the share of configurations in which each system is fastest by more than the noise.

    By operation, transfer size and system.
    """
    table = table.assign(fastest=np.where(differ(table), best_of(table), ""))
    rows = []
    for key, part in table.groupby(["operation", "transfer_size"]):
        operation, size = cast(tuple[str, float], key)
        rows += [
            {"operation": operation, "transfer_size": int(size), "system": system, "n": len(part),
             "share": float((part["fastest"] == system).mean())}
            for system in table.attrs["systems"]
        ]  # fmt: skip
    return rows


def score(table: pd.DataFrame, chosen: Names, mask: Mask | None = None) -> Score:
    """Return how good `chosen` (a system's name for each row) is."""
    speed = throughput(table)
    values = speed.to_numpy()
    rows = np.arange(len(table))
    got = values[rows, speed.columns.get_indexer(pd.Index(chosen))]
    best = values.max(axis=1)
    right, lost = got == best, 1 - got / best
    clear = differ(table) if mask is None else mask
    return Score(
        count=len(table),
        accuracy=float(right.mean()) if len(table) else float("nan"),
        regret=float(lost.mean()) if len(table) else float("nan"),
        differing=int(clear.sum()),
        accuracy_where_differ=float(right[clear].mean()) if clear.any() else float("nan"),
        regret_where_differ=float(lost[clear].mean()) if clear.any() else float("nan"),
    )


def mean_score(scores: list[Score]) -> dict[str, float]:
    """Return the means over splits, and the spread (standard deviation) of the accuracy."""
    frame = pd.DataFrame([s.row() for s in scores])
    means = {str(k): float(v) for k, v in frame.mean(skipna=True).items()}
    return {**means, "accuracy_sd": float(frame["accuracy"].std(ddof=0))}
