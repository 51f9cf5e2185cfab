"""A designed sample of a factorial: levels of features in, workloads out.

The features are those of Table I of paper 003 (section III). The paper runs all feasible combinations; a
factorial of this many features is mostly near-copies, so a sample is drawn from it:

1. every pair of levels of two features that can occur together occurs at least once (a greedy covering
array);
2. the rest fills the space: each further point is the feasible one farthest from those already chosen
   (maximin; Gower distance: steps between ordered levels, 0 or 1 between unordered ones).

`size: all` takes the whole factorial. The same section with the same seed gives the same workloads.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, product
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Size
from tiercel.study.workloads.data import Access, DataWorkload

Level = dict[str, Any]
Positive = Annotated[int, Field(ge=1)]
_WRITES = ("WO", "WAW", "WAR")
#: Features whose levels have an order, so that some are nearer to each other than others.
_ORDERED = ("transfer_size", "accesses_per_open", "fsync")
_MARKS = {"collective": "coll", "file_view": "view", "preallocate": "prealloc"}


class Levels(Document):
    """The levels of each feature."""

    api: list[Literal["posix", "mpiio", "hdf5"]] = ["posix"]
    access: list[Access] = ["WO", "WAW", "WAR", "RO", "RAW", "RAR"]
    transfer_size: list[Size] = [64, 512, 4096, 32768, 262144, 1048576, 4194304]
    accesses_per_open: list[Positive] = [1, 4, 16, 64, 256, 1024, 4096]
    fsync: list[Literal["none", "phase", "write"]] = ["none", "phase", "write"]
    layout: list[Literal["file-per-process", "own-directories", "shared"]] = [
        "file-per-process", "own-directories", "shared",
    ]  # fmt: skip
    pattern: list[Literal["sequential", "random"]] = ["sequential", "random"]
    collective: list[bool] = [False]
    file_view: list[bool] = [False]
    preallocate: list[bool] = [False]

    @model_validator(mode="after")
    def _distinct(self) -> Levels:
        for name, levels in self:
            if not levels or len(set(levels)) != len(levels):
                raise ValueError(f"{name}: levels must be distinct, and one at least")
        return self


class Sweep(Document):
    """The section `sweep:` of an experiment. Sizes are of what one process does to its file."""

    size: Literal["all"] | Positive = Field(description="configurations to take")
    levels: Levels = Field(
        default=Levels(), description="values of each feature that the sample is drawn from"
    )
    seed: int = Field(default=1, ge=0, description="of the sample")
    smallest_file: Size = Field(default=64, gt=0, description="bytes")
    largest_file: Size = Field(default=16 * 1024**2, gt=0, description="bytes")
    data_per_run: Size = Field(
        default=8 * 1024**2, gt=0, description="small files are done again and again until this has moved"
    )
    most_repeats: Positive = Field(default=64, description="of a small file, so that a phase lasts")
    most_syncs: Positive = Field(default=64, description="of one process in a run")

    @model_validator(mode="after")
    def _feasible(self) -> Sweep:
        _ = self.workloads  # says now what is wrong
        return self

    @cached_property
    def workloads(self) -> dict[str, DataWorkload]:
        """Return the chosen workloads by name. ValueError when the size cannot hold every pair of levels."""
        points = list(self.feasible())
        if not points:
            raise ValueError("no combination of these levels is feasible within the sizes")
        if self.size != "all" and self.size < len(points):
            points = [points[i] for i in _design(points, self.size, self.seed)]
        return {_name(point): self._workload(point) for point in points}

    def feasible(self) -> Iterator[Level]:
        """Yield every feasible combination once; of several that mean the same, the plainest."""
        levels = dict(self.levels)
        for values in product(*levels.values()):
            point = dict(zip(levels, values, strict=True))
            if self._is_feasible(point):
                yield point

    def _is_feasible(self, p: Level) -> bool:
        size = p["transfer_size"] * p["accesses_per_open"]
        writes, single = p["access"] in _WRITES, p["accesses_per_open"] == 1
        posix, mpi = p["api"] == "posix", p["api"] == "mpiio"
        return not (
            not self.smallest_file <= size <= self.largest_file
            or (p["fsync"] != "none" and not writes)
            or (p["fsync"] == "write" and (single or p["accesses_per_open"] > self.most_syncs))
            or (p["pattern"] == "random" and (single or p["collective"] or p["file_view"]))
            or (p["collective"] and posix)
            or ((p["file_view"] or p["preallocate"]) and not mpi)
            or (p["collective"] and p["layout"] != "shared")
            or (p["preallocate"] and p["access"] != "WO")
            # A sync of a shared file of MPI-IO or HDF5 is collective; ranks in random order do not keep step.
            or (not posix and p["fsync"] == "write" and p["layout"] == "shared" and p["pattern"] == "random")
        )

    def _workload(self, p: Level) -> DataWorkload:
        size = p["transfer_size"] * p["accesses_per_open"]
        repeats = min(self.most_repeats, max(1, self.data_per_run // size))
        syncs = {"none": 0, "phase": 1, "write": p["accesses_per_open"]}[p["fsync"]]
        if p["access"] == "RO":  # each cold read evicts first
            syncs = 1
        if syncs:
            repeats = max(1, min(repeats, self.most_syncs // syncs))
        return DataWorkload(
            operation="write" if p["access"] in _WRITES else "read",
            access=p["access"],
            api=p["api"],
            collective=p["collective"],
            file_view=p["file_view"],
            preallocate=p["preallocate"],
            layout="shared" if p["layout"] == "shared" else "file-per-process",
            unique_directories=p["layout"] == "own-directories",
            pattern=p["pattern"],
            transfer_size=p["transfer_size"],
            # A data set of HDF5 holds a block of each process: one, as programs write their arrays.
            block_size=size if p["api"] == "hdf5" else None,
            segments=1 if p["api"] == "hdf5" else p["accesses_per_open"],
            fsync=p["fsync"],
            repeats=repeats,
        )


def _name(p: Level) -> str:
    size = p["transfer_size"]
    shown = (
        f"{size // 1024**2}m"
        if size % 1024**2 == 0
        else f"{size // 1024}k"
        if size % 1024 == 0
        else f"{size}b"
    )
    layout = {"file-per-process": "fpp", "own-directories": "dirs", "shared": "shared"}[p["layout"]]
    words = [p["access"].lower(), shown, f"x{p['accesses_per_open']}", layout, p["api"]]
    words += [{"phase": "sync", "write": "syncs"}[p["fsync"]]] if p["fsync"] != "none" else []
    words += ["random"] if p["pattern"] == "random" else []
    return "-".join([*words, *(mark for key, mark in _MARKS.items() if p[key])])


def _design(points: list[Level], size: int, seed: int) -> list[int]:
    """Return the indices of the chosen points, in the order in which they were chosen."""
    import numpy as np  # noqa: PLC0415 -- only sweeps need it

    points = points.copy()
    order = list(range(len(points)))
    random.Random(f"sweep:{seed}").shuffle(order)
    names = [n for n in points[0] if len({p[n] for p in points}) > 1]
    levels = {n: list(dict.fromkeys(sorted({p[n] for p in points}, key=_rank(n)))) for n in names}
    codes = np.array([[levels[n].index(points[i][n]) for n in names] for i in order])
    pairs = _pair_numbers(codes)
    uncovered = np.zeros(int(pairs.max(initial=0)) + 1, dtype=bool)
    uncovered[pairs] = True
    scale = np.array([1 / (len(levels[n]) - 1) if n in _ORDERED else 0.0 for n in names])
    distance = np.full(len(order), np.inf)
    chosen: list[int] = []
    while len(chosen) < size:
        gain = uncovered[pairs].sum(axis=1) if uncovered.any() else np.zeros(len(order), dtype=int)
        distance[chosen] = -1.0
        gain[chosen] = -1
        best = int(np.lexsort((-distance, -gain))[0])
        chosen.append(best)
        uncovered[pairs[best]] = False
        step = np.where(scale > 0, np.abs(codes - codes[best]) * scale, codes != codes[best]).sum(axis=1)
        distance = np.minimum(distance, step)
    if uncovered.any():
        least = _least(pairs, chosen, uncovered)
        raise ValueError(f"size: {size} cannot hold every pair of levels once: {least} can (or all)")
    return [order[i] for i in chosen]


def _least(pairs: Any, chosen: list[int], uncovered: Any) -> int:
    """Return how many points the covering needs when it goes on as it began."""
    count = len(chosen)
    while uncovered.any():
        uncovered[pairs[int(uncovered[pairs].sum(axis=1).argmax())]] = False
        count += 1
    return count


def _pair_numbers(codes: Any) -> Any:
    """Return, for each point, the numbers of the pairs of levels that it holds: shape (points, pairs)."""
    import numpy as np  # noqa: PLC0415

    columns, first = [], 0
    for a, b in combinations(range(codes.shape[1]), 2):
        width = int(codes[:, b].max()) + 1
        columns.append(first + codes[:, a] * width + codes[:, b])
        first += (int(codes[:, a].max()) + 1) * width
    if not columns:  # one feature with several levels
        return codes
    return np.stack(columns, axis=1)


def _rank(name: str) -> Any:
    if name == "fsync":
        return ["none", "phase", "write"].index
    return None if name in _ORDERED else str
