"""The columns of ``traces.parquet`` and ``trace-groups.parquet``: names, types, units, meaning.

Missing is missing: a number that the trace does not hold is null, never zero. A zero was counted.
"""

from __future__ import annotations

from tiercel.columns import COUNT, NUMBER, WORD, WORDS, Column
from tiercel.results.schema import IDENTITY

TRACE = (
    Column("reason", WORD, "", "why there are no numbers, or not all: missing, torn, failed run; empty else"),
    Column("warnings", WORDS, "", "what the trace does not hold, in sentences"),
    Column("tracer", WORD, "", "DFTracer's preload library, or the engine that wrote its own trace"),
    Column("part", WORD, "", "measured phases, or whole trace where their times are not known"),
    Column("events", COUNT, "", "events of the whole trace"),
    Column("trace_s", NUMBER, "s", "from the first event of the whole trace to the end of the last"),
    Column("measured_s", NUMBER, "s", "time of the measured phases; all other numbers are of this part"),
    Column("ranks", COUNT, "", "processes with calls or computation"),
    Column("api", WORD, "", "layer whose calls count: the lowest that moved bytes"),
)

_COUNTS = (
    Column("calls", COUNT, "", "read, write, metadata and sync calls"),
    Column("reads", COUNT, "", "calls that read"),
    Column("writes", COUNT, "", "calls that write"),
    Column("metadata_calls", COUNT, "", "open, close, stat, mkdir..."),
    Column("syncs", COUNT, "", "fsync and its like"),
    Column("bytes_read", COUNT, "B", "bytes that reads returned"),
    Column("bytes_written", COUNT, "B", "bytes that writes took"),
    Column("read_s", NUMBER, "s", "durations of reads, summed over all calls and processes"),
    Column("write_s", NUMBER, "s", "durations of writes, summed"),
    Column("metadata_s", NUMBER, "s", "durations of metadata calls, summed"),
    Column("sync_s", NUMBER, "s", "durations of syncs, summed"),
)

_NUMBERS = (
    Column("files", COUNT, "", "files and folders below the run's data folder with calls"),
    Column("files_elsewhere", COUNT, "", "files elsewhere, whose calls are in no other number"),
    *_COUNTS,
    Column("read_wall_s", NUMBER, "s", "wall-clock time in which at least one process was in a read"),
    Column("write_wall_s", NUMBER, "s", "wall-clock time in which at least one process was in a write"),
    Column("metadata_wall_s", NUMBER, "s", "the same of metadata calls"),
    Column("sync_wall_s", NUMBER, "s", "the same of syncs"),
    Column("read_p10", NUMBER, "B", "10 % of the reads moved at most this (reads that moved bytes)"),
    Column("read_p50", NUMBER, "B", "median size of a read"),
    Column("read_p90", NUMBER, "B", "90 %"),
    Column("write_p10", NUMBER, "B", "10 % of the writes moved at most this"),
    Column("write_p50", NUMBER, "B", "median size of a write"),
    Column("write_p90", NUMBER, "B", "90 %"),
    Column("metadata_share", NUMBER, "1", "metadata and sync calls, of the time in calls (paper 003)"),
    Column("random_share", NUMBER, "1", "accesses that go backwards in their file, of all placed ones"),
    Column("io_s", NUMBER, "s", "wall-clock time in which at least one process does I/O"),
    Column("overlapped_io_s", NUMBER, "s", "of it: hidden behind computation"),
    Column("nonoverlapped_io_s", NUMBER, "s", "of it: not hidden; what the application waits for"),
    Column("compute_s", NUMBER, "s", "wall-clock time in which at least one process computes"),
    Column("app_throughput", NUMBER, "B/s", "bytes over nonoverlapped_io_s: what the application perceives"),
    Column("system_throughput", NUMBER, "B/s", "bytes over io_s: what the storage delivers"),
)

#: What tracing itself cost; from the observations, made anew each time.
COST = (
    Column("rate_metric", WORD, "", "bandwidth (B/s), samples_per_second or operation_rate (1/s)"),
    Column("traced_rate", NUMBER, "", "of the traced run, over all phases with that metric; see rate_metric"),
    Column("untraced_rate", NUMBER, "", "median of the untraced repetitions, for the same work"),
    Column("untraced_runs", COUNT, "", "their number"),
    Column("cost", NUMBER, "1", "untraced over traced rate: 1.1 means that tracing made it 10 % slower"),
    Column("cost_low", NUMBER, "1", "against the slowest untraced repetition"),
    Column("cost_high", NUMBER, "1", "against the fastest: one more repetition would lie between..."),
    Column("cost_coverage", NUMBER, "1", "...with this probability, (n - 1) / (n + 1)"),
)

_TEXTS = (
    Column("findings", WORD, "", "JSON: rule, severity, sentence, advice, evidence of each finding"),
    Column("timeline", WORD, "", "JSON: share of each time bin that each process spent in calls, by kind"),
)

TRACES = (*IDENTITY, *TRACE, *_NUMBERS, *COST, *_TEXTS)

#: Bytes by what was done last to the same bytes before (traces.analysis.patterns).
HISTORIES = tuple(
    Column(name, COUNT, "B", meaning)
    for name, meaning in (
        ("RO", "bytes read for the first time in this part of the trace"),
        ("WO", "bytes written for the first time"),
        ("RAR", "bytes read after a read"),
        ("RAW", "bytes read after a write"),
        ("WAR", "bytes written after a read"),
        ("WAW", "bytes written after a write"),
    )
)

GROUPS = (
    *IDENTITY,
    Column("group", WORD, "", "files' names below the data folder, what varies as *; same on every storage"),
    Column("files", COUNT, "", "files (and folders) of the group"),
    Column("ranks", COUNT, "", "processes that use the group"),
    Column("size", COUNT, "B", "bytes that the files span, as far as the trace shows"),
    Column("input_bytes", COUNT, "B", "of it: in files that are read before anything is written to them"),
    Column("output_bytes", COUNT, "B", "of it: in files that are written and not removed"),
    Column("opens", COUNT, "", "opens"),
    *_COUNTS,
    *HISTORIES,
    Column("access", WORD, "", "the access type of most bytes: RO, WO, RAR, RAW, WAR or WAW"),
    Column("random_share", NUMBER, "1", "accesses that go backwards in their file, of all placed ones"),
)

UNITS = {column.name: column.unit for column in (*TRACES, *GROUPS)}
