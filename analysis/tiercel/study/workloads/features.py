"""Features of workloads: the columns of the tables that say what was done.

Those that several kinds have are here; what only one has, it declares beside its class.
"""

from __future__ import annotations

from tiercel.columns import COUNT, FLAG, NUMBER, WORD, Column, Declared
from tiercel.study.workloads.base import workload_kinds

features = Declared(
    "feature",
    workload_kinds.fill,
    (
        Column("api", WORD, "", "posix, mpiio or hdf5"),
        Column("collective", FLAG, "", "collective MPI-IO, of HDF5 too"),
        Column("file_view", FLAG, "", "MPI-IO file view"),
        Column("preallocate", FLAG, "", "file preallocated before writing"),
        Column("layout", WORD, "", "file-per-process or shared"),
        Column("unique_directories", FLAG, "", "a folder for each process"),
        Column("pattern", WORD, "", "sequential or random"),
        Column("transfer_size", COUNT, "B", "bytes of one read or write call"),
        Column("bytes_per_process", COUNT, "B", "bytes that one process was to move"),
        Column("fsync", WORD, "", "none, phase (once, after writing) or write (after every write)"),
        Column("direct", FLAG, "", "O_DIRECT"),
        Column("queue_depth", COUNT, "", "operations in flight of one process"),
        Column("compressibility", NUMBER, "1", "share of the data that compression can remove (null: none)"),
        Column("dedup", NUMBER, "1", "share of the blocks of 4 KiB that repeat others (null: none)"),
        Column("refill", FLAG, "", "every byte is made anew for each write"),
        Column("format", WORD, "", "format of the dataset's files"),
        Column("batch_size", COUNT, "", "samples of one step of one process"),
        Column("file_order", WORD, "", "program whose order of files a deep-learning run follows"),
        Column("computation_time", NUMBER, "s", "emulated computation of one step"),
    ),
)
