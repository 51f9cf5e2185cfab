"""The columns of ``survey.parquet``: names, types, units, meaning. One row is one job's trace.

Missing is missing: a number that the trace does not hold is null, never zero. A zero was counted. Seconds in
calls are sums over all processes (core-seconds, where each has a core).
"""

from __future__ import annotations

from tiercel.columns import COUNT, NUMBER, ROWS, WORD, WORDS, Column

#: Which file it is, and which state of it was read: a log whose size or time differs is read anew.
SOURCE = (
    Column("log", WORD, "", "hash of the trace's place below the surveyed folder: its name in this table"),
    Column(
        "path", WORD, "", "the trace: a file, or the folder whose files make it; missing with --anonymous"
    ),
    Column("log_bytes", COUNT, "B", "size of the trace's files"),
    Column("log_stamp", COUNT, "ns", "latest time of change of the trace's files"),
)

JOB = (
    Column("reason", WORD, "", "why the trace could not be read; empty where it could"),
    Column("warnings", WORDS, "", "what of the trace was lost"),
    Column("format", WORD, "", "darshan, dftracer, recorder or strace"),
    Column("tracer", WORD, "", "version of the tracer"),
    Column("source", WORD, "", "what the numbers are from: counters or events"),
    Column("job", WORD, "", "the scheduler's number of the job; missing with --anonymous"),
    Column("user", WORD, "", "user as the log's name says it, else the number; with --anonymous a pseudonym"),
    Column("executable", WORD, "", "name of the program, without its folder"),
    Column("command", WORD, "", "program and arguments; missing with --anonymous"),
    Column("start", NUMBER, "s", "when it began, seconds since 1970 (DuckDB: to_timestamp)"),
    Column("end", NUMBER, "s", "when it ended, seconds since 1970"),
    Column("run_s", NUMBER, "s", "run time"),
    Column("ranks", COUNT, "", "processes"),
    Column("hosts", COUNT, "", "nodes; Darshan tells them with DXT only"),
    Column("core_s", NUMBER, "s", "what all processes had together: run time times processes, of an MPI job"),
)  # fmt: skip

NUMBERS = (
    Column("apis", WORDS, "", "layers that were called: posix, stdio, mpiio, hdf5"),
    Column("bytes_read", COUNT, "B", "bytes read through the lowest layer"),
    Column("bytes_written", COUNT, "B", "bytes written through the lowest layer"),
    Column("reads", COUNT, "", "read calls"),
    Column("writes", COUNT, "", "write calls"),
    Column("files", COUNT, "", "files"),
    Column("shared_files", COUNT, "", "files that several processes used"),
    Column("read_s", NUMBER, "s", "time in reads, summed over the processes"),
    Column("write_s", NUMBER, "s", "time in writes and syncs, summed over the processes"),
    Column("metadata_s", NUMBER, "s", "time in metadata calls, summed over the processes"),
    Column("io_s", NUMBER, "s", "time in all of these (through MPI-IO: in its calls, in which ranks wait)"),
    Column("io_share", NUMBER, "1", "io_s as a share of core_s"),
    Column("metadata_share", NUMBER, "1", "metadata_s as a share of io_s"),
    Column("read_bandwidth", NUMBER, "B/s", "bytes_read over read_s: what one process gets in a call"),
    Column("write_bandwidth", NUMBER, "B/s", "bytes_written over write_s"),
    Column("read_size", NUMBER, "B", "mean size of a read"),
    Column("write_size", NUMBER, "B", "mean size of a write"),
    Column("read_p50", COUNT, "B", "median size of a read; from counters: the least of its class of sizes"),
    Column("write_p50", COUNT, "B", "median size of a write, as read_p50"),
    Column("small_share", NUMBER, "1", "reads and writes below 1 MiB, of all whose size is known"),
    Column("random_share", NUMBER, "1", "reads and writes that go backwards in a file, of all placed ones"),
)  # fmt: skip

MOUNT = (
    Column("mount", WORD, "", "mount point"),
    Column("type", WORD, "", "type of the file system"),
    Column("files", COUNT, "", "files on it"),
    Column("bytes_read", COUNT, "B", "bytes read"),
    Column("bytes_written", COUNT, "B", "bytes written"),
    Column("io_s", NUMBER, "s", "time in calls, summed over the processes"),
)

FINDING = (
    Column("rule", WORD, "", "what was found (docs/traces.md, Findings)"),
    Column("severity", WORD, "", "problem, hint or note"),
    Column("seconds", NUMBER, "s", "what it costs at most, summed over the processes"),
    Column("share", NUMBER, "1", "the same as a share of core_s"),
    Column("sentence", WORD, "", "the finding; missing with --anonymous"),
    Column("advice", WORD, "", "what to try; missing with --anonymous"),
)

VERDICT = (
    Column("kind", WORD, "", "what kind of I/O the job does: see kind_reason, and traces/survey/kinds.py"),
    Column("kind_reason", WORD, "", "the numbers that decided it"),
    Column("worst_rule", WORD, "", "the gravest finding, of several the costliest"),
    Column("worst_severity", WORD, "", "its severity"),
    Column("worst_sentence", WORD, "", "its sentence; missing with --anonymous"),
    Column("gain_rule", WORD, "", "the costliest finding"),
    Column("gain_core_s", NUMBER, "s", "what that one costs at most, summed over the processes: findings"
           " may be about the same calls, and so are not added up; never more than core_s"),
    Column("mounts", ROWS, "", "file systems touched, where the log holds the table of mounts", MOUNT),
    Column("findings", ROWS, "", "all findings, the gravest first", FINDING),
)  # fmt: skip

JOBS = (*SOURCE, *JOB, *NUMBERS, *VERDICT)
UNITS = {column.name: column.unit for column in JOBS}
