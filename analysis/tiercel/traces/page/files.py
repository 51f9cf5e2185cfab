"""The section on files: those with most time, how they are accessed, who shares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tiercel.pages.tables import table
from tiercel.pages.words import MISSING, count, listed, name, portion, seconds
from tiercel.traces.analysis.counters import only_counters
from tiercel.traces.analysis.names import common_folder
from tiercel.traces.analysis.patterns import HISTORIES, PATTERNS
from tiercel.traces.analysis.summary import files_table
from tiercel.traces.page.charts import Series, share
from tiercel.traces.page.part import Drawing, Part
from tiercel.units import format_bandwidth, format_size

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Files in the table.
TOP = 20
_COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7")
_HISTORY = {
    "RO": "read for the first time", "RAR": "read again", "RAW": "read after written",
    "WO": "written for the first time", "WAW": "written again", "WAR": "written after read",
}  # fmt: skip


def files_part(frame: IOFrame, ranks: int | None, api: str | None) -> Part:
    """Files by their time in calls, access patterns, and who shares what."""
    anchor, heading = "files", "Files"
    files = files_table(frame, api=api)
    if files.empty:
        return Part(anchor, heading, ("No call names a file.",))
    folder = common_folder([str(file) for file in files.index])
    top = files.head(TOP)
    body = [
        [
            name(str(file).removeprefix(folder)), row["num_ranks"],
            (format_size(row["bytes_read"]), row["bytes_read"]),
            (format_size(row["bytes_written"]), row["bytes_written"]), row["calls"],
            (seconds(row["io_time"]), row["io_time"]),
            (portion(row["metadata_share"]), row["metadata_share"]),
            MISSING if pd.isna(row["bandwidth"]) else (format_bandwidth(row["bandwidth"]), row["bandwidth"]),
            row["pattern"] or MISSING,
        ]
        for file, row in top.iterrows()
    ]  # fmt: skip
    columns = ["file", "ranks", "read", "written", "calls", "I/O time", "in metadata", "bandwidth", "pattern"]
    where = f" In {name(folder)}." if folder else ""
    left = files.iloc[TOP:]
    rest = (
        f" {count(len(left), 'more file')}: {seconds(float(left['io_time'].sum()))}, "
        f"{format_size(float((left['bytes_read'] + left['bytes_written']).sum()))}."
        if len(left) else ""
    )  # fmt: skip
    caption = f"Those with most time in calls (sums over all processes).{where}{rest}"
    numeric = ["ranks", "read", "written", "calls", "I/O time", "in metadata", "bandwidth"]
    said = (_sharing(files, ranks),)
    return Part(
        anchor, heading, said, _patterns(frame, files), (table(caption, columns, body, numeric),),
        notes=_notes(frame),
    )  # fmt: skip


def _sharing(files: pd.DataFrame, ranks: int | None) -> str:
    """Say how many files one rank uses alone, and how many are shared."""
    users = files["num_ranks"].astype("float64").fillna(0)
    alone, everybody = int((users == 1).sum()), int((users == ranks).sum()) if ranks and ranks > 1 else 0
    some = int((users > 1).sum()) - everybody
    found = [
        f"{alone:,} used by one rank alone".replace(",", " ") if alone else "",
        f"{some:,} shared by some".replace(",", " ") if some else "",
        f"{everybody:,} shared by all {ranks} ranks".replace(",", " ") if everybody else "",
    ]
    said = listed([f for f in found if f])
    shared = files[users > 1]
    most = "" if shared.empty else f" Most time of the shared ones: {name(shared.index[0])}."
    return f"{count(len(files), 'file')}: {said or 'nothing is known of who uses them'}.{most}"


def _patterns(frame: IOFrame, files: pd.DataFrame) -> tuple[Drawing, ...]:
    found = []
    counts = files[list(PATTERNS)].sum()
    if counts.sum() > 0:
        parts = [
            Series(kind, _COLOURS[n], [float(counts[kind] / counts.sum())]) for n, kind in enumerate(PATTERNS)
        ]
        found.append(
            Drawing(
                "How accesses follow each other",
                share(parts, "access patterns", portion),
                f"{count(int(counts.sum()), 'access', 'accesses')}: consecutive ones begin where the last "
                "one of the process ended, sequential ones later, random ones before.",
            )
        )
    if not only_counters(frame) and (moved := files[list(HISTORIES)].sum()).sum() > 0:
        parts = [
            Series(said, _COLOURS[n], [float(moved[kind] / moved.sum())])
            for n, (kind, said) in enumerate(_HISTORY.items()) if moved[kind] > 0
        ]  # fmt: skip
        found.append(
            Drawing(
                "What was done before to the same bytes",
                share(parts, "bytes by what was done before", portion),
                f"{format_size(float(moved.sum()))} at positions that the trace tells.",
            )
        )
    return tuple(found)


def _notes(frame: IOFrame) -> tuple[str, ...]:
    if not only_counters(frame):
        return ()
    return ("Of a file that all ranks share Darshan keeps one record: its ranks are those of the job.",)
