"""What an epoch of a training gives beside bytes and seconds, whichever engine reads for it.

Definitions: accelerator utilisation as MLPerf Storage's, I/O hidden and felt as paper 004's.
"""

from __future__ import annotations

from tiercel.columns import COUNT, NUMBER, Column
from tiercel.engines.measurement import metrics

metrics.declare(
    Column("epochs", COUNT, "", "epochs that the row is of"),
    Column("samples", COUNT, "", "samples read"),
    Column("samples_per_second", NUMBER, "1/s", "samples over time, without the excluded steps (as DLIO)"),
    Column("au", NUMBER, "1", "accelerator utilisation: computation over time, without the excluded steps"),
    Column(
        "au_short", NUMBER, "1", "share of the runs of steps too short to leave out the first and last ones"
    ),
    Column("au_goal", NUMBER, "1", "utilisation that passes (MLPerf Storage: 0.9, CosmoFlow 0.7)"),
    Column("io_time", NUMBER, "s", "time in which at least one process read"),
    Column("overlapped_io", NUMBER, "s", "of it: hidden behind computation"),
    Column("nonoverlapped_io", NUMBER, "s", "of it: not hidden; what the application waits for"),
    Column("compute_time", NUMBER, "s", "time in which at least one process computed"),
    Column("compute_alone", NUMBER, "s", "of it: without reading beside"),
    Column("app_throughput", NUMBER, "B/s", "bytes over nonoverlapped_io: what the application perceives"),
    Column("system_throughput", NUMBER, "B/s", "bytes over io_time: what the storage delivers"),
)
