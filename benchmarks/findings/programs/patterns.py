"""Small programs, each with one habit, good or bad: ``patterns.py NAME FOLDER [key=value ...]``.

Every function below is one program. Sizes are bytes, times seconds. Ranks come from mpi4py where the launcher
started several; alone, MPI is not touched. Computation between I/O is slept, so that it costs no other rank
its processor. The calls of `os` are those that reach the storage one for one.
"""

# A call of pathlib is not always one system call.
# ruff: noqa: PTH108, PTH110, PTH116, PTH123

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
_BLOCK = os.urandom(MIB) * 4

COMM: Any = None
RANK, RANKS = 0, 1
if os.environ.get("PMI_SIZE", "1") != "1":
    from mpi4py import MPI

    COMM = MPI.COMM_WORLD
    RANK, RANKS = COMM.rank, COMM.size


def barrier() -> None:
    if COMM is not None:
        COMM.Barrier()


def create(path: str, more: int = 0) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | more, 0o644)


def blocks(total: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, size) of the pieces of `total` bytes."""
    for offset in range(0, total, size):
        yield offset, min(size, total - offset)


def whole(path: str, size: int = 4 * MIB) -> None:
    """Read a file from its start to its end."""
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, size):
        pass
    os.close(fd)


# Sensible programs.


def checkpoint(
    folder: str, size: int = 64 * MIB, block: int = 4 * MIB, steps: int = 3, compute: float = 0.5
) -> None:
    """Each rank writes a file of its own in large blocks, synced once, after each step of computation."""
    for step in range(steps):
        time.sleep(compute)
        fd = create(f"{folder}/state.{step}.{RANK}")
        for _, n in blocks(size, block):
            os.write(fd, _BLOCK[:n])
        os.fsync(fd)
        os.close(fd)
        barrier()


def load(folder: str, files: int = 1, block: int = 4 * MIB, compute: float = 0.5) -> None:
    """Each rank reads inputs of its own once, in large blocks, and computes after each."""
    for i in range(files):
        whole(f"{folder}/input.{i}.{RANK}", block)
        time.sleep(compute)


def settings(folder: str, compute: float = 4, size: int = 64 * MIB) -> None:
    """Read a small configuration by lines, compute long, report with a few lines, write one large result."""
    with open(f"{folder}/settings.ini", buffering=128) as stream:
        lines = list(stream)
    assert lines
    with open(f"{folder}/log.{RANK}", "w", buffering=1) as log:
        for step in range(10):
            time.sleep(compute / 10)
            log.write(f"step {step}: residual {1 / (step + 1):.3e}\n")
    fd = create(f"{folder}/result.{RANK}")
    for _, n in blocks(size, 4 * MIB):
        os.write(fd, _BLOCK[:n])
    os.close(fd)


def catalogue(folder: str, files: int = 60, compute: float = 4, size: int = 32 * MIB) -> None:
    """Look at some small files at the start and jump about in a small index; then compute, then stream."""
    for i in range(files):
        path = f"{folder}/part.{RANK}.{i}"
        os.close(create(path))
        os.stat(path)
    fd = create(f"{folder}/index.{RANK}")
    os.write(fd, _BLOCK[: 256 * KIB])
    for i in random.Random(1).sample(range(64), 64):
        os.pread(fd, 256, i * 4 * KIB)
    os.close(fd)
    for _ in range(20):
        with open(f"{folder}/status.{RANK}", "a") as status:
            status.write("alive\n")
        time.sleep(compute / 20)
    fd = create(f"{folder}/result.{RANK}")
    for _, n in blocks(size, 4 * MIB):
        os.write(fd, _BLOCK[:n])
    os.fsync(fd)
    os.close(fd)


def regions(folder: str, size: int = 64 * MIB, block: int = 4 * MIB, compute: float = 0.5) -> None:
    """All ranks write one file without MPI-IO, each a large region of its own in large aligned blocks."""
    fd = create(f"{folder}/field")
    barrier()
    time.sleep(compute)
    for offset, n in blocks(size, block):
        os.pwrite(fd, _BLOCK[:n], RANK * size + offset)
    barrier()
    os.close(fd)


def collective(
    folder: str, record: int = 64 * KIB, count: int = 200, read: int = 0, compute: float = 0.5
) -> None:
    """All ranks write (or read) interleaved records of one file by collective MPI-IO through a view."""
    data = bytearray(_BLOCK[:record] * count)
    file = MPI.File.Open(COMM, f"{folder}/field", MPI.MODE_CREATE | MPI.MODE_RDWR)
    kind = MPI.BYTE.Create_vector(count, record, record * RANKS).Commit()
    file.Set_view(RANK * record, MPI.BYTE, kind)
    time.sleep(compute)
    (file.Read_all if read else file.Write_all)(data)
    file.Close()


# Programs with a habit that costs.


def records(
    folder: str, record: int = 4 * KIB, count: int = 5000, read: int = 0, compute: float = 0.5
) -> None:
    """Each rank writes (or reads) a file of its own in small records without a buffer."""
    fd = create(f"{folder}/input.0.{RANK}" if read else f"{folder}/records.{RANK}")
    time.sleep(compute)
    for _ in range(count):
        if read:
            os.read(fd, record)
        else:
            os.write(fd, _BLOCK[:record])
    os.close(fd)


def shifted(folder: str, header: int = 100, block: int = MIB, count: int = 60, compute: float = 0.5) -> None:
    """A short header moves every large block that follows off the boundaries of the storage."""
    fd = create(f"{folder}/output.{RANK}")
    os.write(fd, _BLOCK[:header])
    for i in range(count):
        if i % 20 == 0:
            time.sleep(compute)
        os.write(fd, _BLOCK[:block])
    os.close(fd)


def lookup(
    folder: str, record: int = 4 * KIB, count: int = 3000, size: int = 64 * MIB, compute: float = 0.5
) -> None:
    """Each rank reads records in random order out of one large input."""
    fd = os.open(f"{folder}/input.0.{RANK}", os.O_RDONLY)
    draw = random.Random(RANK)
    time.sleep(compute)
    for _ in range(count):
        os.pread(fd, record, draw.randrange(size // record) * record)
    os.close(fd)


def update(folder: str, record: int = 8 * KIB, count: int = 2000, size: int = 64 * MIB) -> None:
    """Each rank writes records in random order into a file of its own."""
    fd = create(f"{folder}/table.{RANK}")
    os.ftruncate(fd, size)
    draw = random.Random(RANK)
    for _ in range(count):
        os.pwrite(fd, _BLOCK[:record], draw.randrange(size // record) * record)
    os.close(fd)


def epochs(folder: str, times: int = 8, block: int = MIB, compute: float = 0.2) -> None:
    """Each rank reads its whole input again for every pass, although it would fit in memory."""
    for _ in range(times):
        whole(f"{folder}/input.0.{RANK}", block)
        time.sleep(compute)


def everyone(folder: str, block: int = MIB, compute: float = 0.5) -> None:
    """Every rank reads all of the same input."""
    whole(f"{folder}/input.0.0", block)
    time.sleep(compute)


def reread_block(folder: str, block: int = MIB, times: int = 150, compute: float = 0.5) -> None:
    """A table at the start of the input is read anew for every item."""
    fd = os.open(f"{folder}/input.0.{RANK}", os.O_RDONLY)
    time.sleep(compute)
    for _ in range(times):
        os.pread(fd, block, 0)
    os.close(fd)


def small_files(folder: str, files: int = 600, size: int = 0, remove: int = 1, compute: float = 0.5) -> None:
    """Make many small files, look at each, and remove them."""
    names = [f"{folder}/item.{RANK}.{i}" for i in range(files)]
    for name in names:
        fd = create(name)
        if size:
            os.write(fd, _BLOCK[:size])
        os.close(fd)
    time.sleep(compute)
    for name in names:
        os.stat(name)
    if remove:
        for name in names:
            os.unlink(name)


def poll(folder: str, looks: int = 2000, size: int = 8 * MIB) -> None:
    """Ask again and again whether a file is there, beside a little useful work."""
    for _ in range(looks):
        os.path.exists(f"{folder}/go.{RANK}")
    fd = create(f"{folder}/output.{RANK}")
    for _, n in blocks(size, 4 * MIB):
        os.write(fd, _BLOCK[:n])
    os.close(fd)


def reopen(folder: str, size: int = 256, count: int = 1500, read: int = 0, compute: float = 0.5) -> None:
    """Open the same file, append (or read) one piece, and close it, over and over."""
    path = f"{folder}/input.0.{RANK}" if read else f"{folder}/log.{RANK}"
    time.sleep(compute)
    for i in range(count):
        fd = os.open(path, os.O_RDONLY) if read else create(path, os.O_APPEND)
        if read:
            os.pread(fd, size, i * size)
        else:
            os.write(fd, _BLOCK[:size])
        os.close(fd)


def journal(folder: str, record: int = MIB, count: int = 60, every: int = 1, compute: float = 0.5) -> None:
    """Sync after every record (or every so many)."""
    fd = create(f"{folder}/journal.{RANK}")
    time.sleep(compute)
    for i in range(count):
        os.write(fd, _BLOCK[:record])
        if (i + 1) % every == 0:
            os.fsync(fd)
    os.close(fd)


def table(folder: str, rows: int = 400, together: int = 1) -> None:
    """Insert rows into SQLite, so many in a transaction."""
    import sqlite3  # noqa: PLC0415 -- the other programs need not look for its files

    database = sqlite3.connect(f"{folder}/rows.db", isolation_level=None)
    database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    for first in range(0, rows, together):
        database.execute("BEGIN")
        for row in range(first, min(first + together, rows)):
            database.execute("INSERT INTO t VALUES (?, ?)", (row, "x" * 100))
        database.execute("COMMIT")
    database.close()


def interleave(
    folder: str, record: int = 16 * KIB, count: int = 1000, read: int = 0, mpi: int = 0, compute: float = 0.5
) -> None:
    """All ranks write (or read) small interleaved records of one file, each for itself."""
    path = f"{folder}/input.0.0" if read else f"{folder}/field"
    file = MPI.File.Open(COMM, path, MPI.MODE_CREATE | MPI.MODE_RDWR) if mpi else None
    fd = -1 if mpi else create(path)
    barrier()
    time.sleep(compute)
    data = bytearray(_BLOCK[:record])
    for i in range(count):
        offset = (i * RANKS + RANK) * record
        if file is not None:
            (file.Read_at if read else file.Write_at)(offset, data)
        elif read:
            os.pread(fd, record, offset)
        else:
            os.pwrite(fd, data, offset)
    barrier()
    if file is not None:
        file.Close()
    else:
        os.close(fd)


def gather(
    folder: str, size: int = 32 * MIB, piece: int = 4 * MIB, steps: int = 4, compute: float = 0.3
) -> None:
    """Rank 0 collects what all ranks have and writes it; the others wait, and keep a short log."""
    mine = bytes(size)
    for step in range(steps):
        time.sleep(compute)
        with open(f"{folder}/log.{RANK}", "a") as log:
            log.write(f"step {step}\n")
        parts = COMM.gather(mine)
        if parts is not None:
            fd = create(f"{folder}/output.{step}")
            for part in parts:
                for offset, n in blocks(size, piece):
                    os.write(fd, part[offset : offset + n])
            os.close(fd)
        barrier()


def uneven(
    folder: str, shares: str = "1,1,1,5", unit: int = 16 * MIB, steps: int = 3, compute: float = 0.3
) -> None:
    """Some ranks have far more to write than others, which wait for them."""
    share = [int(s) for s in shares.split(",")]
    for step in range(steps):
        time.sleep(compute)
        fd = create(f"{folder}/part.{step}.{RANK}")
        for _, n in blocks(unit * share[RANK % len(share)], 4 * MIB):
            os.write(fd, _BLOCK[:n])
        os.close(fd)
        barrier()


def uneven_load(folder: str, compute: float = 0.3) -> None:
    """Inputs are dealt out by number, not by size: the ranks of the large ones read long."""
    whole(f"{folder}/input.0.{RANK}", 4 * MIB)
    time.sleep(compute)
    barrier()


def relay(folder: str, size: int = 48 * MIB, steps: int = 3, compute: float = 0.3) -> None:
    """Ranks hand their results to the next one through files instead of messages."""
    for step in range(steps):
        fd = create(f"{folder}/stage.{step}.{RANK}")
        for _, n in blocks(size, 4 * MIB):
            os.write(fd, _BLOCK[:n])
        os.close(fd)
        barrier()
        whole(f"{folder}/stage.{step}.{(RANK + 1) % RANKS}")
        time.sleep(compute)
        barrier()


PROGRAMS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        *(
            checkpoint,
            load,
            settings,
            catalogue,
            regions,
            collective,
            records,
            shifted,
            lookup,
            update,
            epochs,
        ),
        *(everyone, reread_block, small_files, poll, reopen, journal, table, interleave, gather, uneven),
        *(uneven_load, relay),
    )
}


def main() -> None:
    name, folder, *options = sys.argv[1:]
    values: dict[str, object] = {}
    for option in options:
        key, _, value = option.partition("=")
        values[key] = value if "," in value else float(value) if "." in value else int(value)
    PROGRAMS[name](folder, **values)


main()
