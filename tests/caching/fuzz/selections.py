"""Random selections of a dataset: slices, steps, points, masks, everything, nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.caching.fuzz.types import Rng


def _slice(rng: Rng, length: int) -> slice | int:
    if length and rng.random() < 0.15:
        return int(rng.integers(length))
    start = int(rng.integers(0, length + 1))
    stop = int(rng.integers(start, length + 1))
    return slice(start, stop, int(rng.choice([1, 1, 1, 2, 3, 7])))


def random_selection(rng: Rng, shape: tuple[int, ...]) -> Any:
    """Return something to put between the brackets of a dataset."""
    if not shape:
        return ()
    kind = rng.random()
    if kind < 0.2:
        return ...
    if kind < 0.3 and shape[0] > 0:
        picked = np.unique(rng.integers(0, shape[0], int(rng.integers(1, 6))))
        return ([int(i) for i in picked], *(_slice(rng, n) for n in shape[1:]))
    if kind < 0.36 and 0 < int(np.prod(shape)) < 5000:
        return rng.random(shape) < 0.3
    return tuple(_slice(rng, n) for n in shape)
