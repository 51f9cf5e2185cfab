"""The columns of ``observations.parquet`` and ``runs.parquet``: names, types, units, meaning.

One row of observations is what one phase of one run gave (tidy: every configuration value is a
column of its own). One row of runs is one execution, failed ones included.
"""

from __future__ import annotations

from tiercel.columns import COUNT, FLAG, NUMBER, WORD, WORDS, Column
from tiercel.engines import CORE, metrics
from tiercel.study.workloads.features import features

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

#: The workload's features, declared by its kind; missing where they do not apply.
FEATURES: tuple[Column, ...] = (
    *features,
    Column("phase_time", NUMBER, "s", "what a phase aims at, so that the amount follows from the speed"),
)

#: Of these, how much there is to do: it may follow from the scale, or from the storage (phase_time).
AMOUNTS = ("bytes_per_process", "items_per_process")

#: What a phase gave: what every engine may say, and what subjects measure beside.
NUMBERS = (*CORE, *metrics)

#: The conditions under which it ran (runs.context).
CONTEXT = (
    Column("host", WORD, "", "first node"),
    Column("kernel", WORD, "", "kernel release"),
    Column("mount_options", WORD, "", "options of the mount when the run began"),
    Column("journal", FLAG, "", "ext4 keeps a journal (null: another file system, or not known)"),
    Column(
        "fast_medium",
        FLAG,
        "",
        "the device may be as fast as memory by itself: NVMe, a RAM disk (null: not seen from here)",
    ),
    Column("data_age", NUMBER, "s", "from the end of writing to the read, where a study lets data rest"),
    Column("free_bytes", COUNT, "B", "free space of the file system when the run began"),
    Column("memory_bytes", COUNT, "B", "memory of a node that a run may use; the least of its nodes"),
    Column("memory_limit_bytes", COUNT, "B", "limit of the job's or container's control group, if any"),
    Column("node_memory_bytes", COUNT, "B", "memory of the node, limits aside"),
    Column("quota_bytes", COUNT, "B", "disk quota of the user (null: none, or not known)"),
    Column("quota_left_bytes", COUNT, "B", "what is left of it when the run began"),
    Column(
        "throttled", NUMBER, "1", "share of the periods in which a CPU quota was used up (null: no quota)"
    ),
    Column("stolen_cpu", NUMBER, "1", "share of the cores that the hypervisor gave to others during the run"),
    Column("site_memory_bytes", COUNT, "B", "memory of a node as the site file says"),
    Column("cores", COUNT, "", "cores of a node that a run may use; the least of its nodes"),
    Column("load1_before", NUMBER, "1", "one-minute load average when the run began"),
    Column("others_cpu", NUMBER, "1", "share of the cores that other programs used during the run"),
    Column("psi_cpu_during", NUMBER, "1", "share of the run's time in which some task waited for a core"),
    Column("psi_io_before", NUMBER, "1", "share of the last 10 s in which some task waited for I/O"),
    Column("psi_io_during", NUMBER, "1", "share of the run's time in which some task waited for I/O"),
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
    Column(
        "behind_share",
        NUMBER,
        "1",
        "of a read that is cold here: share that came from a cache behind the client (null: not to be told)",
    ),
    Column("flags", WORDS, "", "codes of the validity checks that this number did not pass"),
)

RUNS = (
    *IDENTITY,
    Column("status", WORD, "", "ok or failed"),
    Column("reason", WORD, "", "why a failed run failed"),
    Column("started", NUMBER, "s", "seconds since the epoch"),
    Column("duration", NUMBER, "s", "of the whole run, without the time that its data rested"),
    Column("engine_time", NUMBER, "s", "of the engine's commands alone"),
    Column("calibration", FLAG, "", "found how much the others do; gives no number"),
    Column("attempts", COUNT, "", "1; more where earlier attempts were interrupted"),
    *CONTEXT,
)

UNITS = {column.name: column.unit for column in (*OBSERVATIONS, *RUNS)}
