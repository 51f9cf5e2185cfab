"""Ways to hold configurations back from training.

*random*: ten random 90/10 splits, the paper's way (section V.A). In a sweep nearly every held-out
configuration then has a neighbour in training that differs in one feature, so this flatters.
*grouped*: ten splits that hold back a tenth of the pairs (transfer size, accesses per open) whole, with
everything that was measured there. *new sizes*: each transfer size held back in turn, so that the model
has never seen one like it: what an application with odd sizes may meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, LeaveOneGroupOut, ShuffleSplit

from tiercel.errors import UserError

Indices = npt.NDArray[np.int64]
Split = tuple[Indices, Indices]
KINDS = ("random", "grouped", "new-sizes")


def cells(features: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return a number for each row: which pair of transfer size and accesses per open it has."""
    pairs = features[["transfer_size", "accesses_per_open"]].round(3)
    found: Any = pairs.groupby(list(pairs.columns)).ngroup().to_numpy()
    return cast(Indices, found)


def splits(kind: str, features: pd.DataFrame, seed: int = 0, count: int = 10) -> Iterator[Split]:
    """Yield (training, test) row numbers. UserError when there are too few groups to hold any back."""
    if kind == "random":
        yield from ShuffleSplit(count, test_size=0.1, random_state=seed).split(features)
        return
    groups: Any = (
        cells(features)
        if kind == "grouped"
        else features["transfer_size"].round(3).rank(method="dense").to_numpy()
    )
    if len(np.unique(groups)) < 3:
        raise UserError(
            f"the sweep has {len(np.unique(groups))} transfer sizes or shapes of files: too few to hold "
            "some back: "
            "give its levels more transfer sizes"
        )
    splitter = (
        GroupShuffleSplit(count, test_size=0.1, random_state=seed)
        if kind == "grouped"
        else LeaveOneGroupOut()
    )
    yield from splitter.split(features, groups=groups)


def folds(features: pd.DataFrame, count: int = 10) -> Iterator[Split]:
    """Yield grouped folds that together hold every row back once."""
    groups: Any = cells(features)
    yield from GroupKFold(min(count, len(np.unique(groups)))).split(features, groups=groups)
