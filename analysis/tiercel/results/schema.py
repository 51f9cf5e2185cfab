"""The columns of ``observations.parquet`` and ``runs.parquet``: names, types, units, meaning.

One row of observations is what one phase of one run gave (tidy: every configuration value is a
column of its own). One row of runs is one execution, failed ones included.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column. `kind` is a pandas dtype; `unit` is empty for words and counts."""

    name: str
    kind: str
    unit: str
    meaning: str
    #: Of a column of kind ROWS, which holds a list of rows: their columns.
    columns: tuple[Column, ...] = ()


WORD, COUNT, NUMBER, FLAG, WORDS, ROWS = "string", "Int64", "float64", "boolean", "list", "rows"

#: What determines the run: the same in both tables.
IDENTITY = (
    Column("run", WORD, "", "name of the run: words and the hash of everything that determines it"),
    Column("configuration", WORD, "", "hash shared by the repetitions and twins of a configuration"),
    Column("origin", WORD, "", "measured, imported or simulated"),
    Column("site", WORD, "", "site"),
    Column("study", WORD, "", "study"),
    Column("experiment", WORD, "", "experiment of the study"),
    Column("workload", WORD, "", "name of the workload in the experiment"),
    Column("title", WORD, "", "the workload's title for people"),
    Column("storage", WORD, "", "storage system under test"),
    Column("storage_label", WORD, "", "the storage's name for people"),
    Column("storage_type", WORD, "", "file-system type"),
    Column("medium", WORD, "", "disk, memory or network"),
    Column("layer", WORD, "", "layers in front of the storage, none without"),
    Column("engine", WORD, "", "program that did the I/O"),
    Column("engine_version", WORD, "", "its version"),
    Column("launcher", WORD, "", "what started the processes"),
    Column("nodes", COUNT, "", "nodes"),
    Column("processes_per_node", COUNT, "", "processes on each node"),
    Column("processes", COUNT, "", "processes in all"),
    Column("repetition", COUNT, "", "0, 1, ... of the configuration"),
    Column("twin", WORD, "", "a; b for the second half of an A/A pair"),
    Column(
        "look", COUNT, "", "0: planned by the study; 1, 2, ...: measured further because of what was seen"
    ),
    Column("traced", FLAG, "", "ran under a tracer: never counted in statistics"),
)

#: The workload's features; missing where they do not apply (data or metadata).
FEATURES = (
    Column("api", WORD, "", "posix or mpiio"),
    Column("collective", FLAG, "", "collective MPI-IO"),
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
    Column("items_per_process", COUNT, "", "files (or folders) of one process in metadata experiments"),
    Column("write_bytes", COUNT, "B", "bytes written to each file in metadata experiments"),
    Column("phase_time", NUMBER, "s", "what a phase aims at, so that the amount follows from the speed"),
    Column("dl_workload", WORD, "", "deep-learning workload file"),
    Column("dl_settings", WORD, "", "keys of that file that the study overrides"),
    Column("format", WORD, "", "format of the dataset's files"),
    Column("scale", NUMBER, "1", "scale that was asked for; 1 is the workload file's full size"),
    Column("data_scale", NUMBER, "1", "bytes of an epoch, as a share of the workload file's"),
    Column("compute_scale", NUMBER, "1", "computation of an epoch, as a share of the workload file's"),
    Column("read_threads", COUNT, "", "readers of each process"),
    Column("batch_size", COUNT, "", "samples of one step of one process"),
    Column("computation_time", NUMBER, "s", "emulated computation of one step"),
)

#: Of these, how much there is to do: it may follow from the scale, or from the storage (phase_time).
AMOUNTS = ("bytes_per_process", "items_per_process")

#: What a phase gave (engines.base.Measurement).
NUMBERS = (
    Column("operation", WORD, "", "write, read, file-create, file-stat, directory-create..."),
    Column("role", WORD, "", "measured; setup for phases that only prepare the measured one"),
    Column("phase", COUNT, "", "position of the phase in the run"),
    Column("access", WORD, "", "WO, RO, RAW, WAW, RAR or WAR"),
    Column("bandwidth", NUMBER, "B/s", "bytes moved over total_time"),
    Column("operation_rate", NUMBER, "1/s", "operations over total_time"),
    Column("bytes_moved", COUNT, "B", "bytes really moved"),
    Column("bytes_expected", COUNT, "B", "bytes that were to be moved"),
    Column("operations", COUNT, "", "read, write or metadata operations done"),
    Column("total_time", NUMBER, "s", "first open to last close over all processes"),
    Column("open_time", NUMBER, "s", "first open start to last open end"),
    Column("transfer_time", NUMBER, "s", "first transfer start to last transfer end"),
    Column("close_time", NUMBER, "s", "first close start to last close end"),
    Column("latency_mean", NUMBER, "s", "mean time of one operation"),
    Column("latency_p50", NUMBER, "s", "median time of one operation"),
    Column("latency_p90", NUMBER, "s", "90 % of the operations took at most this"),
    Column("latency_p99", NUMBER, "s", "99 %"),
    Column("latency_p999", NUMBER, "s", "99.9 %"),
    Column("latency_max", NUMBER, "s", "slowest operation"),
    Column("cpu_user", NUMBER, "s", "user CPU time of all processes in the phase"),
    Column("cpu_system", NUMBER, "s", "system CPU time of all processes in the phase"),
    Column("resident_fraction", NUMBER, "1", "share of the data in the page cache just before the read"),
    Column("resident_method", WORD, "", "cachestat, mincore or none"),
    Column("memory_backed", FLAG, "", "the file system is memory (tmpfs): no read of it can be cold"),
    Column("cross_node_fraction", NUMBER, "1", "share of processes that read what another node wrote"),
    Column("task_offset", COUNT, "", "effective distance from reader to writer in processes"),
    Column("stonewall_hit", FLAG, "", "the time limit cut the phase"),
    Column("clock_skew", NUMBER, "s", "largest difference of the nodes' clocks"),
    Column("began", NUMBER, "s", "start of the phase, seconds since the epoch"),
    Column("epochs", COUNT, "", "epochs that the row is of"),
    Column("samples", COUNT, "", "samples read"),
    Column("samples_per_second", NUMBER, "1/s", "samples over time, without the excluded steps (as DLIO)"),
    Column("au", NUMBER, "1", "accelerator utilisation: computation over time, without the excluded steps"),
    Column("au_goal", NUMBER, "1", "utilisation that passes (MLPerf Storage: 0.9, CosmoFlow 0.7)"),
    Column("hit_share", NUMBER, "1", "of what was wanted of a cache: what was there"),
    Column("io_time", NUMBER, "s", "time in which at least one process read"),
    Column("overlapped_io", NUMBER, "s", "of it: hidden behind computation"),
    Column("nonoverlapped_io", NUMBER, "s", "of it: not hidden; what the application waits for"),
    Column("compute_time", NUMBER, "s", "time in which at least one process computed"),
    Column("compute_alone", NUMBER, "s", "of it: without reading beside"),
    Column("app_throughput", NUMBER, "B/s", "bytes over nonoverlapped_io: what the application perceives"),
    Column("system_throughput", NUMBER, "B/s", "bytes over io_time: what the storage delivers"),
    Column("share", NUMBER, "1", "of what all competing jobs got, in steady state"),
    Column("entitled_share", NUMBER, "1", "what the sharing policy entitles the job to"),
    Column("share_deviation", NUMBER, "1", "standard deviation of the share over intervals of 0.1 s"),
    Column("slowdown", NUMBER, "1", "throughput alone over throughput beside the others, less one"),
    Column("slowdown_allowed", NUMBER, "1", "what the policy's share allows an application's slowdown to be"),
    Column(
        "slowdown_noise", NUMBER, "1", "by how much an application's runs alone, before and after, differ"
    ),
    Column("seconds_to_share", NUMBER, "s", "last job's start until all are within 10 % of entitled"),
)

#: The conditions under which it ran (runs.context).
CONTEXT = (
    Column("host", WORD, "", "first node"),
    Column("kernel", WORD, "", "kernel release"),
    Column("mount_options", WORD, "", "options of the mount when the run began"),
    Column("journal", FLAG, "", "ext4 keeps a journal (null: another file system, or not known)"),
    Column("free_bytes", COUNT, "B", "free space of the file system when the run began"),
    Column("memory_bytes", COUNT, "B", "memory of a node that a run may use; the least of its nodes"),
    Column("memory_limit_bytes", COUNT, "B", "limit of the job's or container's control group, if any"),
    Column("site_memory_bytes", COUNT, "B", "memory of a node as the site file says"),
    Column("cores", COUNT, "", "cores of a node that a run may use; the least of its nodes"),
    Column("load1_before", NUMBER, "1", "one-minute load average when the run began"),
    Column("others_cpu", NUMBER, "1", "share of the cores that other programs used during the run"),
    Column("psi_cpu_during", NUMBER, "1", "share of the run's time in which some task waited for a core"),
    Column("psi_io_before", NUMBER, "1", "share of the last 10 s in which some task waited for I/O"),
    Column("psi_io_during", NUMBER, "1", "share of the run's time in which some task waited for I/O"),
    Column("session_layout", WORD, "", "own: every process its own session; shared"),
    Column(
        "amount_bound",
        WORD,
        "",
        "what decided how much was done: phase_time, least, storage, budget or failure (runs.amounts)",
    ),
)

OBSERVATIONS = (
    *IDENTITY,
    *FEATURES,
    *NUMBERS,
    *CONTEXT,
    Column("flags", WORDS, "", "codes of the validity checks that this number did not pass"),
)

RUNS = (
    *IDENTITY,
    Column("status", WORD, "", "ok or failed"),
    Column("reason", WORD, "", "why a failed run failed"),
    Column("started", NUMBER, "s", "seconds since the epoch"),
    Column("duration", NUMBER, "s", "of the whole run"),
    Column("engine_time", NUMBER, "s", "of the engine's commands alone"),
    Column("calibration", FLAG, "", "found how much the others do; gives no number"),
    Column("attempts", COUNT, "", "1; more where earlier attempts were interrupted"),
    *CONTEXT,
)

UNITS = {column.name: column.unit for column in (*OBSERVATIONS, *RUNS)}
