"""The files of a dataset: names (DLIO's), shapes and content, the same for every number of processes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tiercel.dl.kernel.spec import Spec

_EXTENSIONS = {"hdf5_opt": "hdf5"}
_POOL = 16 * 1024**2 - 1237
"""Bytes of random content. No multiple of a block: content that repeats never lies the same way in a file."""
_DRAWN = 2 * 1024**2
"""Bytes that are drawn; the others are these with their values exchanged, which is ten times as fast."""


@dataclass(frozen=True)
class FileSpec:
    """One file of a dataset: its path below the data folder, its samples, the shape of each (elements)."""

    path: str
    samples: int
    shape: tuple[int, ...]
    element_bytes: int
    seed: str

    @property
    def sample_bytes(self) -> int:
        return math.prod(self.shape) * self.element_bytes


def extension(spec: Spec) -> str:
    """Return what the names of the files end with."""
    packed = {"gzip": ".gz", "bz2": ".bz2", "zip": ".zip", "xz": ".xz"}
    name = _EXTENSIONS.get(spec.format, spec.format)
    return name + (packed.get(spec.compression, "") if spec.format == "csv" else "")


def file_count(spec: Spec, split: str) -> int:
    return spec.files if split == "train" else spec.files_eval


def path_of(spec: Spec, split: str, number: int) -> str:
    """Return the path of file `number` of a split (train, valid) below the data folder, named as by DLIO."""
    count = file_count(spec, split)
    folders = spec.subfolders if split == "train" else spec.subfolders_eval
    name = f"{spec.prefix}_{number:0{len(str(count))}d}_of_{count}.{extension(spec)}"
    if folders > 1:
        return f"{split}/{number % folders:0{len(str(folders))}d}/{name}"
    return f"{split}/{name}"


def file_spec(spec: Spec, split: str, number: int) -> FileSpec:
    """Return file `number`. Its shape is drawn from the seed and its number (as DLIO, one for a file)."""
    seed = f"{spec.data_seed}:{split}:{number}"
    return FileSpec(path_of(spec, split, number), spec.per_file, _shape(spec, seed), spec.element_bytes, seed)


def _shape(spec: Spec, seed: str) -> tuple[int, ...]:
    shape = tuple(spec.shape)
    if not spec.stdev:
        return shape
    # A square image of n bytes has sides of sqrt(n); their deviation that gives the bytes' is half as large.
    side = math.sqrt(spec.record_length / spec.element_bytes)
    deviation = spec.stdev / spec.element_bytes / 2 / side
    draw = random.Random(seed + ":shape")
    return tuple(max(1, round(draw.gauss(n, deviation))) for n in shape)


@cache
def _pool(seed: int) -> memoryview:
    draw = random.Random(seed)
    drawn, values = draw.randbytes(_DRAWN), list(range(256))
    pool = bytearray(drawn)
    while len(pool) < _POOL:
        draw.shuffle(values)
        pool += drawn.translate(bytes(values))
    return memoryview(pool)[:_POOL]


def content(spec: Spec, seed: str, length: int) -> Sequence[memoryview]:
    """Return `length` random bytes as pieces of one buffer that is made once: generating costs no time."""
    return content_at(spec.data_seed, seed, 0, length)


def content_at(pool_seed: int, seed: str, offset: int, length: int) -> Sequence[memoryview]:
    """Return `length` of the bytes that `seed` stands for, from `offset` on, as pieces of one buffer."""
    pool = _pool(pool_seed)
    start = (random.Random(seed).randrange(len(pool)) + offset) % len(pool)
    pieces = []
    while length > 0:
        piece = pool[start : start + length]
        pieces.append(piece)
        length -= len(piece)
        start = 0
    return pieces
