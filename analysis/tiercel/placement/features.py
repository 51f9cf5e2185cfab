"""What a model knows of a file: the features of Table I of paper 003, as numbers, from a sweep or a trace.

Sizes and counts enter as logarithms (base 2), categories as 0 and 1, as the paper encodes them (section
III.C).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.errors import UserError

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

HISTORIES = ("RAR", "RAW", "WAR", "WAW", "RO", "WO")
READS = ("RO", "RAW", "RAR")

#: The columns of a feature table and what they mean.
FEATURES: Mapping[str, str] = {
    "transfer_size": "log2 of the bytes of one read or write",
    "accesses_per_open": "log2 of the reads and writes from open to close",
    "bytes_per_open": "log2 of the bytes from open to close: the sum of the two",
    "mpiio": "1: MPI-IO, which may be what HDF5 uses",
    "hdf5": "1: HDF5; neither of the two: POSIX",
    "collective": "1: collective MPI-IO, of HDF5 too",
    "fsync": "1: the file is synchronised at least once",
    "syncs_per_write": "synchronisations for each write, 1 at most (fsync per write: 1)",
    "preallocate": "1: space is allocated ahead of writing",
    "unique_dir": "1: each process has a folder of its own",
    "shared_file": "1: several processes use the file",
    "use_file_view": "1: an MPI-IO file view is set",
    "random": "share of the accesses that go backwards; 1 for a random order",
    "processes": "log2 of the processes that do I/O side by side",
    **{name: f"share of the bytes that are {name}" for name in HISTORIES},
}
NAMES = tuple(FEATURES)
#: A buffered (stdio) file reaches the system in pieces of its buffer, which is the file system's block.
STDIO_BUFFER = 4096


def of_sweep(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the features of observations of a sweep (columns as in ``results.schema``), one row for each."""
    size = rows["transfer_size"].astype(float)
    accesses = rows["bytes_per_process"].astype(float) / size
    writes = rows["operation"] == "write"
    several = rows["processes"].astype(int) > 1
    hdf5 = rows["api"] == "hdf5"
    sync = np.select(
        [writes & (rows["fsync"] == "write"), writes & (rows["fsync"] == "phase")], [1.0, 1.0 / accesses], 0.0
    )
    return _table(
        rows.index,
        transfer_size=np.log2(size),
        accesses_per_open=np.log2(accesses),
        # Forked processes have HDF5 without MPI, others HDF5 with it (engines.iokernel).
        mpiio=(rows["api"] == "mpiio") | (hdf5 & (rows["launcher"] != "fork")),
        hdf5=hdf5,
        collective=rows["collective"],
        fsync=sync > 0,
        syncs_per_write=sync,
        preallocate=rows["preallocate"],
        unique_dir=rows["unique_directories"].astype(bool) & several,
        shared_file=(rows["layout"] == "shared") & several,
        use_file_view=rows["file_view"],
        random=rows["pattern"] == "random",
        processes=np.log2(rows["processes"].astype(float)),
        **{name: rows["access"] == name for name in HISTORIES},
    )


def files_of(frame: IOFrame) -> pd.DataFrame:
    """Return the files of a trace with what placement needs to know of them (index: file).

    These are the columns of ``extract_features``, in the calls that reach the storage: for files used
    through HDF5 or buffered I/O the system calls below, where the trace has them; else buffered transfers
    count as whole buffers. UserError for a trace that names no files, or in which none was read or written.
    """
    named = frame.query(
        "SELECT count(*) FILTER (kind IN ('read', 'write')) AS moves, "
        "count(*) FILTER (kind IN ('read', 'write') AND file IS NOT NULL) AS named FROM events WHERE api "
        "<> 'app'"
    ).iloc[0]
    where = frame.metadata.get("path", "this trace")
    if named["moves"] == 0:
        raise UserError(f"{where}: no reads or writes in this trace, so there is nothing to place")
    if named["named"] == 0:
        raise UserError(
            f"{where}: none of its {int(named['moves']):,} reads and writes names a file, so files cannot be "
            "placed; trace again with file names (DFTracer: DFTRACER_INC_METADATA=1, strace: -y)"
        )
    files = frame.extract_features()
    covered = files["interface"].isin(["stdio", "hdf5"])
    if covered.any():
        below = frame.select(filter="api IN ('posix', 'mpiio')")
        if len(below.query("SELECT 1 FROM events WHERE kind IN ('read', 'write') LIMIT 1")):
            under = below.extract_features()
            shared = files.index[covered].intersection(under.index)
            shared = shared[under.loc[shared, ["bytes_read", "bytes_written"]].sum(axis=1) > 0]
            upper = files.loc[shared, "interface"]
            files.loc[shared] = under.loc[shared]
            files["library"] = upper.reindex(files.index)
    files["processes"] = _at_once(frame)
    files = files[files[["bytes_read", "bytes_written"]].sum(axis=1) > 0].copy()
    files["syncs"] = _syncs(frame, files.index)
    return files


def _syncs(frame: IOFrame, names: pd.Index) -> pd.Series:
    """Return how often each file was synchronised; those of a folder count for the first file in it."""
    calls = frame.query(
        "SELECT file, count(*) FILTER (api = 'posix') AS below, count(*) AS all_of_them FROM events "
        "WHERE kind = 'sync' AND NOT contains(function, 'fflush') AND file IS NOT NULL AND api <> 'app' "
        "GROUP BY file"
    ).set_index("file")
    # H5Fflush and the fsync that it causes are one.
    counts = calls["below"].where(calls["below"] > 0, calls["all_of_them"]).astype(float)
    return counts.groupby(owners_of(counts.index, names)).sum().reindex(names).fillna(0.0)


def owners_of(paths: Iterable[str], names: pd.Index) -> list[str | None]:
    """Return for each path the file that its calls count for: itself, or the first one in that folder."""
    known = set(names)
    first: dict[str, str] = {}
    for name in sorted(known):
        first.setdefault(name.rpartition("/")[0], name)
    return [p if p in known else first.get(p.rstrip("/")) for p in paths]


def _at_once(frame: IOFrame) -> int:
    """Return how many processes did I/O side by side: their times from first to last call over that of all.

    A program that starts helpers one after the other has many processes, of which one or two are at work.
    """
    spans = frame.query(
        "SELECT min(time) AS first, max(time + coalesce(duration, 0)) AS last FROM events "
        "WHERE file IS NOT NULL AND api <> 'app' GROUP BY rank"
    )
    whole = float(spans["last"].max() - spans["first"].min())
    return max(1, round(float((spans["last"] - spans["first"]).sum()) / whole)) if whole > 0 else 1


def parts_of(files: pd.DataFrame) -> pd.DataFrame:
    """Return files cut into parts of one access type each: rows to predict, with `file` and `bytes`.

    A sweep's configuration is of one type (write only, read after write...); a real file is a mixture. Its
    time on a system is the sum of its parts' times, each predicted as the configuration that it is like.
    """
    parts = []
    for name in HISTORIES:
        share = files[name].to_numpy(dtype=float)
        # Accesses at unknown positions have no history: then reads are RO and writes WO.
        unknown = files[list(HISTORIES)].sum(axis=1).to_numpy() == 0
        kind = "bytes_read" if name in READS else "bytes_written"
        moved = files["bytes_read"].to_numpy(dtype=float) + files["bytes_written"].to_numpy(dtype=float)
        amount = np.where(unknown, files[kind] if name in ("RO", "WO") else 0.0, share * moved)
        chosen = amount > 0
        if chosen.any():
            vectors = _vectors(files[chosen], name)
            parts.append(vectors.assign(file=files.index[chosen], bytes=amount[chosen]))
    return pd.concat(parts, ignore_index=True)


def whole_files(files: pd.DataFrame) -> pd.DataFrame:
    """Return one feature row for each file, its access types as shares: what the paper gives its
    classifiers."""
    mixed = _vectors(files, None)
    for name in HISTORIES:
        mixed[name] = files[name].to_numpy(dtype=float)
    return mixed.set_axis(files.index)


def readable(features: pd.DataFrame) -> pd.DataFrame:
    """Return a feature table as people read it: bytes and counts in place of their logarithms.

    Yes and no stay 1 and 0, shares stay shares.
    """
    found = features.copy()
    for name, meaning in FEATURES.items():
        if meaning.startswith("log2"):
            found[name] = np.exp2(found[name])
    return found


def _vectors(files: pd.DataFrame, history: str | None) -> pd.DataFrame:
    """Return features of files, of one access type, or of all their accesses together (None)."""
    reading = history in READS
    if history is None:
        accesses, bytes_ = files["accesses_per_open"], files["bytes_read"] + files["bytes_written"]
        count = bytes_ / files["transfer_size"]
    else:
        # Reads and writes of one file may differ in size: each part has its own.
        accesses = files["reads_per_open" if reading else "writes_per_open"]
        bytes_ = files["bytes_read" if reading else "bytes_written"]
        count = accesses * _opens(files)
    size = bytes_ / count.clip(lower=1)
    accesses = accesses.clip(lower=1)
    buffered = files["interface"] == "stdio"
    per_open = size * accesses
    size = size.where(~buffered, np.maximum(size, np.minimum(STDIO_BUFFER, per_open)))
    accesses = (per_open / size).clip(lower=1)
    syncs = np.zeros(len(files)) if reading else files["syncs_per_write"].to_numpy(dtype=float)
    # Of a file behind HDF5 the calls below are counted, where the trace has them; HDF5 stays its interface.
    library = files["library"] if "library" in files else files["interface"]
    hdf5 = (files["interface"] == "hdf5") | (library == "hdf5")
    return _table(
        files.index,
        transfer_size=np.log2(size.clip(lower=1)),
        accesses_per_open=np.log2(accesses),
        mpiio=files["interface"] == "mpiio",
        hdf5=hdf5,
        collective=files["collective"],
        fsync=files["fsync"].to_numpy(dtype=bool) & (syncs > 0),
        syncs_per_write=np.minimum(syncs, 1.0),
        preallocate=np.zeros(len(files)) if reading else files["preallocate"],
        unique_dir=files["unique_dir"],
        shared_file=files["num_ranks"] > 1,
        use_file_view=files["use_file_view"],
        random=files["random_share"],
        processes=np.log2(files["processes"].astype(float)),
        **{name: np.full(len(files), float(name == history)) for name in HISTORIES},
    ).reset_index(drop=True)


def _opens(files: pd.DataFrame) -> pd.Series:
    """Return how often each file was opened: what `accesses_per_open` was divided by."""
    accesses = (files["bytes_read"] + files["bytes_written"]) / files["transfer_size"]
    return accesses / files["accesses_per_open"]


def _table(index: Any, **columns: Any) -> pd.DataFrame:
    columns["bytes_per_open"] = np.asarray(columns["transfer_size"]) + np.asarray(
        columns["accesses_per_open"]
    )
    plain = {name: np.asarray(columns[name]).astype(float) for name in NAMES}
    return pd.DataFrame(plain, index=index)
