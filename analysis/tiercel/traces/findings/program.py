"""What it costs to load the program itself."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.traces.analysis.common import total
from tiercel.traces.findings.base import Case, Finding, rules, top
from tiercel.units import format_size

#: A compiled program with its libraries opens some dozens of files.
ENOUGH_FILES = 100


@rules.register("program-files")
def program_files(case: Case) -> Iterator[Finding]:
    """Thousands of small files that are the program's own: modules of Python, shared libraries."""
    rows = case.program
    files = 0 if rows.empty else rows["file"].nunique()
    if files < ENOUGH_FILES:
        return
    calls = int(rows[["reads", "writes", "metadata_calls"]].sum().sum())
    times = ["read_time", "write_time", "metadata_time"]
    seconds = float(rows[times].sum().sum())
    every = files + case.table["file"].nunique()
    yield from case.says(
        "program-files", seconds,
        f"{files:,} of {every:,} files are the program's own (modules, shared libraries, configuration): "
        f"{calls:,} calls, {format_size(total(rows['bytes_read']))} read: {case.costs(seconds)}. Other "
        f"findings "
        "leave these files out.",
        "Load the program from one large file (a container, a squashed image of the environment) or from "
        "node-local storage, and import fewer modules.",
        top(rows.assign(time=rows[times].sum(axis=1)), "time", ("time", "metadata_calls", "reads", "opens")),
    )  # fmt: skip
