"""The tables of the page, as plain cells: what is shown, what it is sorted by, how it is set."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from tiercel.pages.tables import Cell, Table
from tiercel.report import words
from tiercel.report.data import Number, Record, Results, overall
from tiercel.report.figures import largest
from tiercel.results.schema import CONTEXT
from tiercel.site.model import Site
from tiercel.statistics.ranking import rank, same
from tiercel.statistics.verdict import Verdict
from tiercel.units import format_latency, format_size

_CONDITIONS = ("load1_before", "others_cpu", "psi_cpu_during", "psi_io_before", "psi_io_during")


def glance(results: Results) -> Table | None:
    """Return the table of workloads by storage systems, each at its largest scale."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for n in results.numbers:
        if n.engine == results.main_engine(n.experiment, n.workload):
            groups.setdefault((n.experiment, n.workload, n.operation, n.origin), []).append(n)
    if not groups:
        return None
    best = _best(results)
    rows = []
    for (experiment, workload, operation, origin), numbers in groups.items():
        at = {n.stack: n for n in largest(numbers)}
        first = next(iter(at.values()))
        name = results.title(experiment, workload)
        plain = first.metric == "bandwidth" and not operation.startswith(("job-", "all-jobs"))
        name = name if plain else f"{words.capital(words.operation(operation))}: {name}"
        name = name if origin == "measured" else f"{name} ({origin})"
        cells = [Cell(name), Cell(first.scale, first.processes)]
        for stack in results.stacks:
            found = at.get(stack)
            if found is None:
                cells.append(Cell(words.MISSING))
                continue
            kind = "best" if best.get((experiment, workload, operation, origin)) == stack else ""
            kind = "invalid" if found.invalid else kind
            cells.append(Cell(found.value, found.median, kind, found.anchor))
        rows.append(("", cells))
    stacks = tuple(
        f"{label} (memory)" if stack in results.memory and "memory" not in label.lower() else label
        for stack, label in results.stacks.items()
    )
    return Table(
        "Speed of each workload on each storage. Medians at the largest scale of each workload",
        ("Workload", "Scale", *stacks),
        frozenset(stacks),
        rows,
    )


def _best(results: Results) -> dict[tuple[str, ...], str]:
    """Return the stack that is claimed ahead of every other one that keeps its files."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for row in overall(results):
        if row["engine"] == results.main_engine(row["experiment"], row["workload"]):
            key = (row["experiment"], row["workload"], row["operation"], row["origin"])
            groups.setdefault(key, []).append(row)
    found = {key: rank(rows, results.memory) for key, rows in groups.items()}
    return {key: r.winner for key, r in found.items() if r and r.winner and r.winner not in results.memory}


def numbers(results: Results) -> Table | None:
    if not results.numbers:
        return None
    columns = ["No.", "Experiment", "Workload", "Operation", "Storage", "Scale", "Origin", "n", "Median",
               "Interval", "CV", "p50", "p99", "Checks", "Outliers", "Engine"]  # fmt: skip
    # Provenance has the version of an engine that has only one.
    versions = {(n.engine, n.engine_version) for n in results.numbers}
    several = {engine: sum(e == engine for e, _ in versions) > 1 for engine, _ in versions}
    rows = []
    for n in results.numbers:
        i = int(n.anchor.removeprefix("number-"))
        checks = ", ".join(n.checks())
        cells = [
            Cell(str(i), i),
            Cell(n.experiment),
            Cell(n.title or n.workload, kind="title"),
            Cell(words.operation(n.operation), kind="short"),
            Cell(results.stacks[n.stack], kind="name"),
            Cell(n.scale, kind="short", sort=n.nodes * 1e6 + n.processes_per_node),
            Cell(n.origin, kind="" if n.origin == "measured" else "mark"),
            Cell(str(n.n), n.n),
            Cell(n.value, n.median, "invalid" if n.invalid else "strong"),
            Cell(f"{n.interval} ({words.percent(n.coverage)})", n.high - n.low),
            Cell(words.percent(n.cv), _sortable(n.cv)),
            Cell(_latency(n.latency_p50), _sortable(n.latency_p50)),
            Cell(_latency(n.latency_p99), _sortable(n.latency_p99)),
            Cell(checks, len(n.flags), "mark long" if n.invalid else "long"),
            Cell(", ".join(words.value(n.metric, v) for v in n.outliers), len(n.outliers)),
            Cell(f"{n.engine} {n.engine_version}".strip() if several[n.engine] else n.engine),
        ]
        rows.append((n.anchor, cells))
    numeric = {"No.", "n", "Median", "Interval", "CV", "p50", "p99"}
    table = Table(
        "All results. Interval: of the median, with its coverage. CV: standard deviation over mean. p50, "
        "p99: "
        "time of one operation",
        tuple(columns),
        frozenset(numeric),
        rows,
    )
    return _without_constant(table, {"Origin": "measured", "Engine": None, "Outliers": "", "Checks": ""})


def comparisons(results: Results) -> Table | None:
    columns = ["Experiment", "Workload", "Operation", "A", "B", "Scale", "Engine", "Origin", "n",
               "Amounts", "Ratio A to B", "Interval", "Noise", "Detectable", "p", "Verdict"]  # fmt: skip
    rows = []
    for row in results.comparisons:
        everywhere = row["scope"] == "all"
        at = "all" if everywhere else words.scale(int(row["nodes"]), int(row["processes_per_node"]))
        place = 1e9 if everywhere else float(row["nodes"]) * 1e6 + float(row["processes_per_node"])
        verdict = {"higher": "A is faster", "lower": "B is faster"}.get(row["verdict"], "")
        cells = [
            Cell(row["experiment"]),
            Cell(results.title(row["experiment"], row["workload"]), kind="title"),
            Cell(words.operation(row["operation"]), kind="short"),
            Cell(results.name(row["stack_a"])),
            Cell(results.name(row["stack_b"])),
            Cell(at, place, "short"),
            Cell(row["engine"]),
            Cell(row["origin"], kind="" if row["origin"] == "measured" else "mark"),
            Cell(f"{row['n_a']}, {row['n_b']}", row["n_a"]),
            Cell(_amounts(row), kind="short"),
            Cell(words.times(row["ratio"]), _sortable(row["ratio"]), "strong" if verdict else ""),
            Cell(words.factors(row["low"], row["high"]), _sortable(row["low"])),
            Cell(_noise(row), _sortable(row["floor_high"])),
            Cell(words.times(row["detectable"]), _sortable(row["detectable"])),
            Cell(f"{row['p_corrected']:.2g}", _sortable(row["p_corrected"])),
            Cell(verdict or _undecided(row), verdict, "title"),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    table = Table(
        "All comparisons between storage systems. Detectable: found with a chance of 80 %. p: corrected for "
        "all comparisons. "
        "Amounts: work of each process, A : B, where it differs",
        tuple(columns),
        frozenset({"n", "Ratio A to B", "Interval", "Noise", "Detectable", "p"}),
        rows,
    )
    return _without_constant(table, {"Origin": "measured", "Engine": None, "Amounts": ""})


def _amounts(row: Record) -> str:
    """Say how much each side did, where that differs."""
    amounts = [row.get(f"amount_{side}", math.nan) for side in "ab"]
    if any(math.isnan(amount) for amount in amounts):
        return ""
    data = row["operation"] in ("read", "write")
    a, b = (format_size(amount) if data else words.count(int(amount), "item") for amount in amounts)
    return f"{a} : {b}"


def _undecided(row: Record) -> str:
    if same(row):
        return f"equal {words.within(row)}"
    v = Verdict.of(row)
    return "; ".join(part for part in (v.confidence(), v.action()) if part)


def floors(results: Results) -> Table | None:
    sources = {
        "own": "replicates of this configuration and its storage",
        "storage": "replicates on this storage",
        "study": "replicates of the study",
        "none": "no replicate",
    }
    rows = []
    for row in results.floors:
        cells = [
            Cell(row["experiment"]),
            Cell(results.title(row["experiment"], row["workload"]), kind="title"),
            Cell(words.operation(row["operation"]), kind="short"),
            Cell(results.name(row["stack"])),
            Cell(row["engine"]),
            Cell(_noise(row), _sortable(row["floor_high"] if "floor_high" in row else row["high"])),
            Cell(str(row["n"]), row["n"]),
            Cell(sources[row["source"]]),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    columns = ("Experiment", "Workload", "Operation", "Storage", "Engine", "Noise", "n", "From")
    caption = "Noise. 95 % of the ratios of two replicates of one configuration are in this range"
    table = Table(caption, columns, frozenset({"Noise", "n"}), rows)
    return _without_constant(table, {"Engine": None})


def agreement(results: Results) -> Table | None:
    rows = []
    for row in results.agreement:
        cells = [
            Cell(row["experiment"]),
            Cell(results.title(row["experiment"], row["workload"]), kind="title"),
            Cell(words.operation(row["operation"]), kind="short"),
            Cell(results.name(row["stack"])),
            Cell(words.scale(int(row["nodes"]), int(row["processes_per_node"]))),
            Cell(f"{row['engine_a']} over {row['engine_b']}"),
            Cell(words.value(row["metric"], row["median_a"]), row["median_a"]),
            Cell(words.value(row["metric"], row["median_b"]), row["median_b"]),
            Cell(words.times(row["ratio"]), _sortable(row["ratio"]), "strong"),
            Cell(words.factors(row["low"], row["high"]), _sortable(row["low"])),
            Cell(_noise(row), _sortable(row["floor_high"])),
            Cell("yes" if row["within_floor"] else "no", kind="" if row["within_floor"] else "mark"),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    columns = ("Experiment", "Workload", "Operation", "Storage", "Scale", "Engines", "First", "Second",
               "Ratio", "Interval", "Noise", "Within noise")  # fmt: skip
    caption = "Ratios between engines. Same workload, scale and storage; interval 95 %"
    return Table(caption, columns, frozenset({"First", "Second", "Ratio", "Interval", "Noise"}), rows)


def failed(results: Results) -> Table | None:
    rows = []
    for run in results.failed:
        cells = [
            Cell(run["run"], kind="code"),
            Cell(words.stack(text(run["storage_label"]) or run["storage"], run["layer"])),
            Cell(text(run["title"]) or run["workload"]),
            Cell(words.scale(int(run["nodes"]), int(run["processes_per_node"]))),
            Cell(text(run["reason"]) or "unknown: no reason recorded"),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    caption = "Failed runs. The folder raw/RUN contains the output of the engine"
    return Table(caption, ("Run", "Storage", "Workload", "Scale", "Reason"), frozenset(), rows)


def storages(results: Results, site: Site) -> Table | None:
    rows = []
    for storage, runs in results.runs.groupby("storage", sort=True):
        known = site.storages.get(str(storage))
        last = runs.iloc[-1]
        capacity = known.capacity if known else None
        options = text(last["mount_options"]) or (known.options if known else "")
        free = pd.to_numeric(runs["free_bytes"]).min()
        cells = [
            Cell(text(last["storage_label"]) or str(storage)),
            Cell(text(last["storage_type"])),
            Cell(text(last["medium"])),
            Cell(known.mount if known else words.MISSING, kind="code"),
            Cell(format_size(capacity) if capacity else words.MISSING, capacity or 0),
            Cell(format_size(float(free)) if pd.notna(free) else words.MISSING, _sortable(free)),
            Cell(("yes" if known.shared else "no") if known else words.MISSING),
            Cell(options or words.MISSING, kind="code"),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    columns = (
        "Storage",
        "Type",
        "Medium",
        "Mounted at",
        "Capacity",
        "Least free",
        "Shared",
        "Mount options",
    )
    return Table(
        "Storage systems of this study. Shared: visible on all nodes",
        columns,
        frozenset({"Capacity", "Least free"}),
        rows,
    )


def conditions(results: Results) -> Table | None:
    meanings = {column.name: column for column in CONTEXT}
    rows = []
    for name in _CONDITIONS:
        if name not in results.runs:
            continue
        values = pd.to_numeric(results.runs[name], errors="coerce").dropna()
        if values.empty:
            continue
        show = (lambda v: f"{v:.2f}") if name.startswith("load") else words.percent
        three = (values.min(), values.median(), values.max())
        cells = [
            Cell(words.capital(meanings[name].meaning)),
            *(Cell(show(float(v)), float(v)) for v in three),
        ]
        rows.append(("", cells))
    if not rows:
        return None
    columns = ("Condition", "Minimum", "Median", "Maximum")
    return Table(
        "Load and pressure during the runs. Over all runs of the study", columns, frozenset(columns[1:]), rows
    )


# Small parts.


def _without_constant(table: Table, dropped: dict[str, str | None]) -> Table:
    """Return the table without columns that say the same in every row (None: whatever they say)."""
    keep = []
    for i, name in enumerate(table.columns):
        texts = {cells[i].text for _, cells in table.rows}
        constant = len(texts) == 1 and name in dropped and dropped[name] in (None, *texts)
        if not constant:
            keep.append(i)
    rows = [(anchor, [cells[i] for i in keep]) for anchor, cells in table.rows]
    return Table(table.caption, tuple(table.columns[i] for i in keep), table.numeric, rows)


def _noise(row: Record) -> str:
    low, high = (row["floor_low"], row["floor_high"]) if "floor_low" in row else (row["low"], row["high"])
    return words.factors(low, high) if math.isfinite(high) else "unknown"


def _latency(seconds: float) -> str:
    return format_latency(seconds) if math.isfinite(seconds) else words.MISSING


def _sortable(value: Any) -> float:
    return float(value) if pd.notna(value) and math.isfinite(float(value)) else -1.0


def text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
