"""Times drawn from a distribution, and waiting for them without using the processor."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, MutableSequence
from typing import Any


def drawing(spec: Mapping[str, Any], seed: str) -> Callable[[], float]:
    """Return a function that draws a time in seconds, never negative; the same times for the same seed."""
    mean, stdev, kind = spec.get("mean", 0.0), spec.get("stdev", 0.0), spec.get("type", "normal")
    generator = random.Random(seed)
    if kind == "uniform":
        return lambda: generator.uniform(spec["min"], spec["max"])
    if kind == "gamma":
        return lambda: generator.gammavariate(spec["shape"], spec["scale"])
    if kind == "exponential":
        return lambda: generator.expovariate(1 / spec["scale"]) if spec["scale"] else 0.0
    if kind == "poisson":
        return lambda: _poisson(generator, spec["lam"])
    if stdev:
        return lambda: max(0.0, generator.gauss(mean, stdev))
    return lambda: float(mean)


def _poisson(generator: random.Random, mean: float) -> float:
    """Count arrivals of rate 1 within `mean` (Knuth's method, in logarithms)."""
    left, count = mean, 0
    while (left := left - generator.expovariate(1.0)) > 0:
        count += 1
    return float(count)


def wait(seconds: float) -> None:
    """Stand still: an accelerator computes meanwhile, and the readers keep the processor."""
    if seconds > 0:
        time.sleep(seconds)


class NumpyRandom:
    """NumPy's legacy generator after ``numpy.random.seed(seed)``: the same shuffles, without loading NumPy.

    Source: ``mt19937_seed`` and ``random_interval`` of NumPy's ``numpy/random/src``.
    """

    _WORDS = 624

    def __init__(self, seed: int) -> None:
        key = [seed & 0xFFFFFFFF]
        for number in range(1, self._WORDS):
            key.append((1812433253 * (key[-1] ^ key[-1] >> 30) + number) & 0xFFFFFFFF)
        self._generator = random.Random()
        self._generator.setstate((3, (*key, self._WORDS), None))

    def shuffle(self, items: MutableSequence[int]) -> None:
        """Shuffle in place, as ``numpy.random.shuffle`` does."""
        draw = self._generator.getrandbits
        for last in range(len(items) - 1, 0, -1):
            mask = (1 << last.bit_length()) - 1
            while (place := draw(32) & mask) > last:
                pass
            items[last], items[place] = items[place], items[last]
