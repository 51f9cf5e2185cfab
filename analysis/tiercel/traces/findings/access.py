"""Where files are accessed: at random, in a file that is striped or shared."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.traces.findings.base import Case, Finding, Severity, percent, rules
from tiercel.units import format_size

#: Drishti's limit for random operations; some jumps (a header, a new phase) are in every program.
RANDOM = 0.2
#: Fewer jumps than this cost little.
ENOUGH = 100


@rules.register("random-access")
def random_access(case: Case) -> Iterator[Finding]:
    table = case.frame.access_pattern(api=case.layer)
    table = table[table["random"] >= RANDOM * table["total"].clip(lower=1)]
    if table.empty or int(table["random"].sum()) < ENOUGH:
        return
    files = case.frame.query(
        "SELECT file, count(DISTINCT rank) AS ranks, avg(size) AS mean_size, sum(size)::BIGINT AS bytes "
        f"FROM events WHERE kind IN ('read', 'write') AND size > 0 AND api = '{case.layer}' GROUP BY file"
    ).set_index("file")
    table = table.join(files, how="inner").sort_values("random", ascending=False)
    narrow = table["mean_size"] < case.storage.stripe
    whose: tuple[tuple[bool, Severity, str], ...] = (
        (True, "problem", "shared by several ranks"),
        (False, "hint", "of one rank each"),
    )
    for shared, severity, where in whose:
        rows = table[narrow & ((table["ranks"] > 1) == shared)]
        if rows.empty or (jumps := int(rows["random"].sum())) < ENOUGH:
            continue
        total = int(rows["total"].sum())
        mean = float(rows["bytes"].sum()) / total
        yield Finding(
            "random-access",
            severity,
            f"{jumps:,} of {total:,} accesses ({percent(jumps / total)}) to "
            f"{len(rows)} file(s) {where} jump backwards, {format_size(mean)} at a time, less than a stripe "
            f"({format_size(case.storage.stripe)}): read-ahead and striping do not help them.",
            "Sort accesses by offset, read whole blocks and pick from memory, use collective MPI-IO, or put "
            "these files on node-local flash or a burst buffer (paper 003: random access favours them).",
            rows.reset_index(),
        )
