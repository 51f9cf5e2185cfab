"""The tables of the section on traced runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from tiercel.pages.tables import Table, table
from tiercel.report import words
from tiercel.report.sections.trace_cells import Row, cell, cost_interval, count, known, ratio, share
from tiercel.units import format_bandwidth, format_latency, format_size

#: Groups of files of one workload that are shown; the table on disk has all.
_GROUPS = 12
_ACCESS = {"RO": "read once", "WO": "written once", "RAR": "read again", "RAW": "read after writing",
           "WAR": "written after reading", "WAW": "written again"}  # fmt: skip


def overview(rows: Sequence[Row]) -> Table:
    """Return one row for each workload and storage: what the calls did, and what tracing cost."""
    computes = any(known(row["compute_s"]) for row in rows)
    columns = ["Workload", "Storage", "Calls", "Read", "Written", "Transfer", "Metadata", "Syncs",
               "I/O", "Throughput"]  # fmt: skip
    columns += ["Overlapped", "Application"] if computes else []
    columns.append("Tracing")
    body = []
    for row in rows:
        spent = sum(row[f"{kind}_s"] for kind in ("read", "write", "metadata", "sync"))
        cells = [
            row["heading"], row["label"], cell(row["calls"], count), cell(row["bytes_read"], format_size),
            cell(row["bytes_written"], format_size), _median(row),
            cell(ratio(row["metadata_s"], spent), share),
            cell(ratio(row["sync_s"], spent), share), cell(row["io_s"], format_latency),
            cell(row["system_throughput"] or None, format_bandwidth),
        ]  # fmt: skip
        if computes:
            cells.append(cell(ratio(row["overlapped_io_s"], row["io_s"]), words.percent))
            cells.append(cell(row["app_throughput"], format_bandwidth))
        body.append([*cells, _cost(row)])
    # A column in which nothing happened anywhere only takes room.
    mostly_nothing = ("Read", "Written", "Syncs")
    kept = [
        place for place, name in enumerate(columns)
        if name not in mostly_nothing or any(cells[place][1] > 0 for cells in body)
    ]  # fmt: skip
    columns, body = [columns[i] for i in kept], [[cells[i] for i in kept] for cells in body]
    caption = "I/O of the traced runs. Each at the largest scale of its workload; transfer: median size"
    return table(caption, columns, body, columns[2:])


def _median(row: Row) -> tuple[str, float]:
    """Return the median size of the kind of transfer that there is most of."""
    if not known(row["calls"]):
        return words.MISSING, -1.0
    kind = "read" if row["reads"] >= row["writes"] else "write"
    return cell(row[f"{kind}_p50"], format_size)


def _cost(row: Row) -> tuple[str, float]:
    if not known(row["cost"]):
        return words.MISSING, -1.0
    return f"{words.times(row['cost'])} ({cost_interval(row)})", float(row["cost"])


def calls_table(rows: Sequence[Row]) -> Table:
    """Return number, summed and wall-clock time, and sizes of calls, by storage and kind."""
    kinds = {"read": "reads", "write": "writes", "metadata": "metadata_calls", "sync": "syncs"}
    columns = ["Storage", "Kind", "Calls", "Wall clock", "Sum", "10 % at most", "Median", "90 % at most"]
    body = []
    for row in rows:
        for kind, counted in kinds.items():
            if not row[counted]:
                continue
            sizes = [cell(row.get(f"{kind}_p{percent}"), format_size) for percent in (10, 50, 90)]
            body.append(
                [row["label"], kind, cell(row[counted], count), cell(row[f"{kind}_wall_s"], format_latency),
                 cell(row[f"{kind}_s"], format_latency), *sizes]
            )  # fmt: skip
    caption = (
        "Calls by kind. Wall clock: time with at least one process in such a call. Sum: over all processes"
    )
    return table(caption, columns, body, columns[2:])


def groups_table(groups: pd.DataFrame, labels: Mapping[str, str]) -> Table:
    """Return the groups of files of a workload, those with most time in calls first."""
    columns = ["Files", "Number", "Storage", "Calls", "Read", "Written", "Time in calls", "Access", "Random"]
    spent = groups[["read_s", "write_s", "metadata_s", "sync_s"]].sum(axis=1)
    names = groups["group"].map(spent.groupby(groups["group"]).sum()).rename("total")
    ordered = groups.assign(spent=spent, total=names).sort_values(
        ["total", "group"], ascending=[False, True], kind="stable"
    )
    shown = list(dict.fromkeys(ordered["group"]))[:_GROUPS]
    body = [
        [row["group"], cell(row["files"], count), labels[row["run"]], cell(row["calls"], count),
         cell(row["bytes_read"], format_size), cell(row["bytes_written"], format_size),
         cell(row["spent"], format_latency), _ACCESS.get(row["access"], words.MISSING),
         cell(row["random_share"], words.percent)]
        for row in ordered[ordered["group"].isin(shown)].to_dict("records")
    ]  # fmt: skip
    left = groups["group"].nunique() - len(shown)
    more = f" {left} more groups are in trace-groups.parquet." if left else ""
    caption = (
        f"Groups of files. By name (* is any number); random: accesses that go backwards in a file.{more}"
    )
    return table(caption, columns, body, ("Number", "Calls", "Read", "Written", "Time in calls", "Random"))
