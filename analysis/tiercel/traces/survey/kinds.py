"""What kind of I/O a job does, decided by its row, with the numbers that decided it.

The first that fits, because each of them hides the ones after it: who spends no time in I/O needs no second
look, and whose time goes to metadata is not helped by a faster disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiercel.pages.words import percent
from tiercel.traces.analysis.tally import SMALL
from tiercel.traces.findings.calls import METADATA_TIME
from tiercel.units import format_size

#: Lustre's smallest stripe, and less than any request that a disk array likes: what costs is the call.
SMALL_IO = 64 << 10
#: Less of the time of all processes is no matter of I/O.
QUIET = 0.005
#: One direction has four fifths of the bytes.
MOSTLY = 4.0

KINDS = {
    "none": "no I/O recorded",
    "quiet": "less than 0.5 % of the processes' time goes to I/O, or to waiting for it",
    "metadata": "30 % of the I/O time or more goes to metadata",
    "small": "transfers are below 64 KiB on average",
    "writer": "writes four times what it reads, or more: checkpoints, output",
    "reader": "reads four times what it writes, or more: input, training",
    "mixed": "reads and writes",
    "unknown": "the trace does not tell how many bytes its reads and writes moved",
}


def kind_of(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the kind (of `KINDS`) and a sentence part; (None, None) for a trace that was not read."""
    if row["reason"]:
        return None, None
    if row["source"] is None:
        return "none", "neither counters nor events"
    read, written = row["bytes_read"], row["bytes_written"]
    if read == written == row["io_s"] == 0:
        return "none", "no byte moved, no time in calls"
    # While one process is in I/O the others may wait for it: that time is in a finding, and in no call.
    share, core_s = row["io_share"], row["core_s"]
    if share is not None and max(share, (row["gain_core_s"] or 0.0) / core_s) < QUIET:
        return "quiet", f"{percent(share)} of the processes' time in I/O"
    if row["metadata_share"] is not None and row["metadata_share"] >= METADATA_TIME:
        return "metadata", f"{percent(row['metadata_share'])} of the I/O time in metadata"
    if read is None or written is None:
        return "unknown", "the trace has no sizes of transfers"
    calls = (row["reads"] or 0) + (row["writes"] or 0)
    if calls and (read + written) / calls < SMALL_IO:
        small = "" if row["small_share"] is None else (
            f", {percent(row['small_share'])} of them below {format_size(SMALL)}"
        )  # fmt: skip
        return "small", f"{format_size((read + written) / calls)} a transfer{small}"
    moved = f"{format_size(read)} read, {format_size(written)} written"
    if written >= MOSTLY * read:
        return "writer", moved
    return ("reader" if read >= MOSTLY * written else "mixed"), moved
