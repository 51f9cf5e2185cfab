"""Features of each file for the placement model: all of Table I of paper 003 in one call.

The paper extracts features one by one and names that as its open problem. Here one grouped query gives the
counts, and one ordered fetch of the accesses gives both patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tiercel.deferred import pd
from tiercel.traces.analysis.common import (
    IS_READ,
    IS_WRITE,
    LAYERS,
    bytes_of,
    layers,
    lowest_layer,
    with_units,
)
from tiercel.traces.analysis.patterns import HISTORIES, PATTERNS, both
from tiercel.traces.cluster import spread

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

#: Part of accesses from which a file counts as accessed at random, and of writes followed by a sync.
RANDOM = 0.5
SYNC_EACH = 0.9
#: The interface of a file is the highest layer that its calls come from.
INTERFACES = ("hdf5", "mpiio", "stdio", "posix")

_COUNTS = f"""
SELECT file, api,
    count(*) FILTER (kind = 'read') AS reads,
    count(*) FILTER (kind = 'write') AS writes,
    {bytes_of(IS_READ)} AS bytes_read,
    {bytes_of(IS_WRITE)} AS bytes_written,
    count(*) FILTER (
        regexp_matches(function, '^_*(f?open(at)?(64)?|creat(64)?|MPI_File_open|H5F(open|create).*)$')
    ) AS opens,
    -- fflush hands bytes to the system; it synchronises nothing.
    count(*) FILTER (kind = 'sync' AND NOT contains(function, 'fflush')) AS syncs,
    count(*) FILTER (regexp_matches(function, '^MPI_File_.*(_all|_ordered)(_begin)?$')) AS collectives,
    count(*) FILTER (regexp_matches(function, 'fallocate|MPI_File_preallocate')) AS preallocations,
    count(*) FILTER (function LIKE '%MPI_File_set_view') AS views,
    list(DISTINCT rank) AS ranks
FROM events WHERE file IS NOT NULL AND api <> 'app' GROUP BY file, api
"""


def extract_features(frame: IOFrame, rank: Ranks = None, filter: Filter = None) -> pd.DataFrame:
    """Return the features of each file that was read or written (index: file).

    ==================== =====================================================================================
    interface            highest layer of its calls: hdf5, mpiio, stdio or posix; one-hot in `interface_*`
    collective           some calls were collective MPI-IO
    fsync                the file was synchronised at least once
    fsync_per_write      it was synchronised for (nearly) every write; `syncs_per_write` is the number
    preallocate          space was allocated ahead of writing
    transfer_size        mean bytes of a read or write, in the interface's own calls
    unique_dir           only one rank uses files in its folder, and the program has several ranks
    reads_per_open ...   reads, writes, and both (`accesses_per_open`) from open to close
    use_file_view        MPI_File_set_view was called
    RAR .. WO            share of the bytes by what happened before to the same bytes
    random_access        half of the accesses or more go backwards; `random_share` is the number
    file_per_process     one rank uses it; `num_ranks` is the number
    ==================== =====================================================================================
    """
    chosen = frame.select(rank, filter)
    counts = chosen.query(_COUNTS)
    data = counts[(counts["reads"] > 0) | (counts["writes"] > 0)]
    files = sorted(data["file"].unique())
    top = _interface(data)
    table = pd.DataFrame(index=pd.Index(files, name="file"))
    table["interface"] = top["api"]
    for api in INTERFACES:
        table[f"interface_{api}"] = table["interface"] == api
    whole = counts[counts["file"].isin(table.index)].groupby("file")
    sums = whole[["opens", "syncs", "collectives", "preallocations", "views"]].sum()
    table["collective"] = sums["collectives"] > 0
    table["fsync"] = sums["syncs"] > 0
    writes = top["writes"].where(top["writes"] > 0)
    table["syncs_per_write"] = (sums["syncs"] / writes).fillna(0.0)
    table["fsync_per_write"] = table["syncs_per_write"] >= SYNC_EACH
    table["preallocate"] = sums["preallocations"] > 0
    accesses = top["reads"] + top["writes"]
    table["transfer_size"] = (top["bytes_read"] + top["bytes_written"]) / accesses
    users: dict[str, set[int]] = {file: set() for file in files}
    for file, ranks in zip(counts["file"], counts["ranks"], strict=True):
        if file in users:
            users[file].update(int(r) for r in ranks)
    table["unique_dir"] = _unique_dir(users)
    # A file whose open the tracer did not see was opened at least once.
    opens = top["opens"].clip(lower=1)
    table["reads_per_open"] = top["reads"] / opens
    table["writes_per_open"] = top["writes"] / opens
    table["accesses_per_open"] = accesses / opens
    table["use_file_view"] = sums["views"] > 0
    table = table.join(_patterns_of(chosen, table.index))
    # Where sizes are missing, so is where accesses lie and what was done to the same bytes before.
    unsized = table["transfer_size"].isna()
    table.loc[unsized, [*HISTORIES, "random_share"]] = np.nan
    table["random_access"] = (table["random_share"] >= RANDOM).mask(unsized)
    table["num_ranks"] = [len(ranks) for ranks in users.values()]
    table["file_per_process"] = table["num_ranks"] == 1
    for column in ("bytes_read", "bytes_written"):
        table[column] = top[column]
    units = {"transfer_size": "B", "bytes_read": "B", "bytes_written": "B"}
    return with_units(table, {**units, **dict.fromkeys((*HISTORIES, "random_share", "syncs_per_write"), "1")})


def _interface(data: pd.DataFrame) -> pd.DataFrame:
    """Return the row of each file's highest layer."""
    height = data["api"].map({api: n for n, api in enumerate(INTERFACES)}).fillna(len(INTERFACES))
    return (
        data.assign(height=height)
        .sort_values("height")
        .drop_duplicates("file")
        .set_index("file")
        .sort_index()
    )


def _unique_dir(users: dict[str, set[int]]) -> list[bool]:
    folders: dict[str, set[int]] = {}
    for file, ranks in users.items():
        folders.setdefault(_folder(file), set()).update(ranks)
    several = len(set().union(*users.values())) > 1
    return [several and len(folders[_folder(file)]) == 1 for file in users]


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _patterns_of(frame: IOFrame, files: Any) -> pd.DataFrame:
    layer = lowest_layer(layers(frame))
    found = pd.concat(spread(frame, "file", both, layer))
    total = found[list(HISTORIES)].sum(axis=1)
    shares = found[list(HISTORIES)].div(total.where(total > 0, np.nan), axis=0)
    count = found[list(PATTERNS)].sum(axis=1)
    shares["random_share"] = found["random"] / count.where(count > 0, np.nan)
    filled: pd.DataFrame = shares.reindex(files).fillna(0.0)
    return filled


assert set(INTERFACES) == set(LAYERS)
