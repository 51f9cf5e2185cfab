"""Parallel programs, each process with its part of a file or with a file of its own:
mpiexec -n N python parallel_files.py hacc|stencil FOLDER KEY=NUMBER..."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from mpi4py import MPI

#: A particle of HACC in its checkpoints: position, velocity and potential, a name, a mask. 38 bytes.
_PARTICLE = ("f4",) * 7 + ("i8", "u2")


class _Posix:
    """A file by pwrite and pread, with the two methods of mpi4py's files that are used here."""

    def __init__(self, path: Path, mode: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT if mode & MPI.MODE_CREATE else os.O_RDONLY, 0o664)

    def Write_at(self, offset: int, data: np.ndarray) -> None:
        left = data.data.cast("B")
        while left:
            moved = os.pwrite(self._fd, left, offset)
            left, offset = left[moved:], offset + moved

    def Read_at(self, offset: int, data: np.ndarray) -> None:
        left = data.data.cast("B")
        while left:
            got = os.pread(self._fd, len(left), offset)
            if not got:
                raise EOFError(f"unexpected end of file at byte {offset}")
            left[: len(got)] = got
            left, offset = left[len(got) :], offset + len(got)

    def Close(self) -> None:
        os.close(self._fd)


def _hacc(folder: Path, particles: int, mpiio: int, shared: int) -> None:
    """Write a checkpoint of HACC's particles and restart from it, as HACC-IO does.

    One variable after the other, each of a process in one call, behind a header that the first process writes
    at the end; into one file, or into one for each process; by MPI-IO (independent, as there) or POSIX.
    """
    world = MPI.COMM_WORLD
    rank, size = (world.rank, world.size) if shared else (0, 1)
    path = folder / ("checkpoint" if shared else f"checkpoint.{world.rank:05}")
    header = np.zeros(2 + 2 * size, dtype="i8")
    header[:2] = size, particles
    mine = header.nbytes + rank * particles * sum(np.dtype(kind).itemsize for kind in _PARTICLE)

    def opened(mode: int) -> _Posix | MPI.File:
        if mpiio:
            return MPI.File.Open(world if shared else MPI.COMM_SELF, str(path), mode)
        return _Posix(path, mode)

    def variables() -> Iterator[tuple[int, np.ndarray]]:
        offset = mine
        for kind in _PARTICLE:
            data = np.arange(particles).astype(kind)
            yield offset, data
            offset += data.nbytes

    file = opened(MPI.MODE_CREATE | MPI.MODE_RDWR)
    for offset, data in variables():
        file.Write_at(offset, data)
    if rank == 0:
        file.Write_at(0, header)
    file.Close()
    world.Barrier()
    file = opened(MPI.MODE_RDONLY)
    for offset, data in variables():
        found = np.empty_like(data)
        file.Read_at(offset, found)
        if not np.array_equal(found, data):
            raise ValueError(f"{path}: the particles at byte {offset} are not those that were written")
    file.Close()


def _stencil(folder: Path, cells: int, steps: int, every: int, collective: int) -> None:
    """Let heat spread on a square that the processes share in blocks.

    Every so often the whole square is written to a file, of which each process sees its block alone (a view);
    the last one is read at the end.
    """
    world = MPI.COMM_WORLD
    shape = MPI.Compute_dims(world.size, 2)
    grid = world.Create_cart(shape, periods=[True, True])
    block = [cells // n for n in shape]
    whole = [n * b for n, b in zip(shape, block, strict=True)]
    start = [c * b for c, b in zip(grid.coords, block, strict=True)]
    view = MPI.DOUBLE.Create_subarray(whole, block, start).Commit()
    heat = np.random.default_rng(world.rank).random(block)

    def checkpoint(path: Path, data: np.ndarray, write: bool) -> None:
        mode = MPI.MODE_CREATE | MPI.MODE_RDWR if write else MPI.MODE_RDONLY
        file = MPI.File.Open(grid, str(path), mode)
        file.Set_view(0, MPI.DOUBLE, view)
        if write:
            (file.Write_all if collective else file.Write)(data)
        else:
            (file.Read_all if collective else file.Read)(data)
        file.Close()

    path = folder / "none"
    for step in range(1, steps + 1):
        padded = np.pad(heat, 1, mode="edge")
        for axis in (0, 1):
            _swap(grid, padded, axis)
        heat = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / 4
        total = grid.reduce(float(heat.sum()))
        if step % every == 0:
            path = folder / f"heat-{step:04}"
            checkpoint(path, heat, write=True)
            if grid.rank == 0:
                with (folder / "log.txt").open("a") as log:
                    log.write(f"{step} {total}\n")
    found = np.empty_like(heat)
    checkpoint(path, found, write=False)
    if not np.array_equal(found, heat):
        raise ValueError(f"{path}: holds another square than was written")
    view.Free()


def _swap(grid: MPI.Cartcomm, padded: np.ndarray, axis: int) -> None:
    """Exchange the rims of a block with the neighbours along an axis."""
    lines = padded if axis == 0 else padded.T
    before, after = grid.Shift(axis, 1)
    for mine, theirs, to, source in ((-2, 0, after, before), (1, -1, before, after)):
        sent, got = np.ascontiguousarray(lines[mine]), np.empty(lines.shape[1])
        grid.Sendrecv(sent, to, recvbuf=got, source=source)
        lines[theirs] = got


if __name__ == "__main__":
    _kind, _folder, *_words = sys.argv[1:]
    _options = {k: int(v) for k, v in (word.split("=") for word in _words)}
    _programs: dict[str, Callable[..., None]] = {"hacc": _hacc, "stencil": _stencil}
    _programs[_kind](Path(_folder), **_options)
