"""Writes DFTracer traces of a deep-learning job that never ran: any number of events, both schemas, seeded.

``python -m benchmarks.traces.generate FOLDER --events 1000000 --files 16 --schema new``

Each file is one rank: epochs of steps; in each step the loader opens files and reads them in pieces while
the framework computes; now and then a checkpoint is written and synchronised. Names, categories, sizes and
the order of keys are those of real traces (DLIO with PyTorch).
"""

from __future__ import annotations

import argparse
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

_FOLDER = "/p/lustre3/project/dlio-benchmark/unet3d_v100_hdf5/data/train"
_START = 1_744_611_912_981_173


class _Rank:
    """Emits the lines of one rank."""

    def __init__(self, rank: int, events: int, schema: str, seed: int) -> None:
        self._random = random.Random(seed * 100_003 + rank)
        self._rank, self._left, self._schema = rank, events, schema
        self._pid = 100_000 + rank
        self._now = _START + self._random.randrange(5000)
        self._id = 0
        self._host = f"node{rank // 4:04d}"
        self._hhash = f"{zlib.crc32(self._host.encode()):08x}6a82f7cd"
        self._known: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        if self._schema == "old":
            yield "["
        else:
            yield self._metadata("HH", self._host, self._hhash)
            yield self._metadata("thread_name", str(self._pid), "thread_name")
            yield self._event("start", "dftracer", 0, {"ppid": 99_000, "cmd_hash": "0", "exec_hash": "0"})
        yield from self._steps()

    def _steps(self) -> Iterator[str]:
        """Emit steps until the wanted number of events is reached, in the middle of one if need be."""
        step = 0
        while True:
            for line in self._step(step):
                yield line
                if self._left <= 0:
                    return
            step += 1

    def _step(self, step: int) -> Iterator[str]:
        epoch = 1 + step // 50
        began = self._now
        for _ in range(4):
            yield from self._sample(step, epoch)
        # Computation begins while the last files are still read, so that part of the reads is hidden.
        length = self._random.randrange(8_000, 12_000)
        compute = began + (self._now - began) * 2 // 3
        yield self._event("TorchFramework.compute", "ai_framework", length, {"epoch": epoch}, compute)
        self._now = max(self._now, compute + length)
        if step % 40 == 39:
            yield from self._checkpoint(epoch)

    def _sample(self, step: int, epoch: int) -> Iterator[str]:
        file = f"{_FOLDER}/img_{self._random.randrange(20_000):05d}_of_20000.hdf5"
        began = self._now
        for name, low, high in (("__lxstat", 5, 300), ("open", 20, 900)):
            yield from self._posix(name, file, self._random.randrange(low, high), {"ret": 17})
        position = 0
        for size in (
            8,
            16,
            80,
            512,
            2048,
            *([4096 << self._random.randrange(9)] * self._random.randrange(2, 9)),
        ):
            yield from self._posix(
                "pread", file, 2 + size // 2000 + self._random.randrange(40),
                {"fd": 17, "ret": size, "count": size, "offset": position},
            )  # fmt: skip
            position += size
        yield from self._posix("close", file, self._random.randrange(1, 9), {"ret": 0, "fd": 17})
        took = self._now - began
        for name, category in (
            ("HDF5Reader.read_index", "reader"),
            ("TorchDataset.__getitem__", "data_loader"),
        ):
            yield self._event(name, category, took, {"epoch": epoch, "step": step, "image_idx": step}, began)

    def _checkpoint(self, epoch: int) -> Iterator[str]:
        file = f"{_FOLDER}/../checkpoint/layer-{self._rank}-epoch-{epoch}.pt"
        yield from self._posix("open64", file, 400, {"ret": 21, "flags": 577})
        for _ in range(16):
            yield from self._posix("write", file, 900, {"fd": 21, "ret": 1 << 20, "count": 1 << 20})
        yield from self._posix("fsync", file, 4000, {"fd": 21, "ret": 0})
        yield from self._posix("close", file, 20, {"ret": 0, "fd": 21})

    def _posix(self, name: str, file: str, took: int, numbers: dict[str, int]) -> Iterator[str]:
        if self._schema == "old":
            yield self._event(name, "POSIX", took, {**numbers, "fname": file})
        else:
            known = self._known.get(file)
            if known is None:
                known = self._known[file] = f"{zlib.crc32(file.encode()):08x}{len(self._known):08x}"
                yield self._metadata("FH", file, known)
            yield self._event(name, "POSIX", took, {**numbers, "fhash": known})

    def _event(
        self,
        name: str,
        category: str,
        took: int,
        extra: dict[str, int | str] | dict[str, int],
        at: int | None = None,
    ) -> str:
        self._left -= 1
        self._id += 1
        if at is None:
            at = self._now
            self._now += took + self._random.randrange(1, 30)
        if self._schema == "old":
            shown = "".join(
                f',"{k}":"{v}"' if k in {"ret", "count", "offset"} or isinstance(v, str) else f',"{k}":{v}'
                for k, v in extra.items()
            )
            return (
                f'{{"id":"{self._id}","name":"{name}","cat":"{category}","pid":"{self._pid}","tid":"{self._pid}",'
                f'"ts":"{at}","dur":"{took}","ph":"X","args":{{"hostname":"{self._host}"{shown}}}}}'
            )
        shown = "".join(f',"{k}":"{v}"' if isinstance(v, str) else f',"{k}":{v}' for k, v in extra.items())
        return (
            f'{{"id":{self._id},"name":"{name}","cat":"{category}","type":3,"pid":{self._pid},"tid":{self._pid},'
            f'"ts":{at},"dur":{took},"ph":1,"args":{{"hhash":"{self._hhash}"{shown}}}}}'
        )

    def _metadata(self, name: str, value: str, key: str) -> str:
        return (
            f'{{"name":"{name}","cat":"dftracer","type":1,"pid":{self._pid},"tid":{self._pid},"ph":4,'
            f'"args":{{"hhash":"{self._hhash}","name":"{value}","value":"{key}"}}}}'
        )


def generate(folder: Path, events: int, files: int = 16, schema: str = "new", seed: int = 1) -> list[Path]:
    """Write `events` events into `files` gzipped files (.pfw.gz), one for each rank."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank in range(files):
        share = events // files + (rank < events % files)
        path = folder / f"trace-{rank}-of-{files}.pfw.gz"
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        with path.open("wb") as file:
            held: list[str] = []
            for line in _Rank(rank, share, schema, seed).lines():
                held.append(line)
                if len(held) == 4096:
                    file.write(packer.compress(("\n".join(held) + "\n").encode()))
                    held = []
            file.write(packer.compress(("\n".join(held) + "\n").encode()) + packer.flush())
        paths.append(path)
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--schema", choices=("old", "new"), default="new")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    generate(wanted.folder, wanted.events, wanted.files, wanted.schema, wanted.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
