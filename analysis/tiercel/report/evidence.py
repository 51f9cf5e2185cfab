"""What lies behind each number, for the page's own script: runs, their values, conditions and command lines.

It is packed (JSON, gzip, base64), so that ten thousand runs fit a page: command lines differ in little.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.engines.within import Within, reached
from tiercel.errors import RunFailed, UserError
from tiercel.pages.secured import unturned
from tiercel.pages.words import seconds
from tiercel.privacy import private
from tiercel.report import words
from tiercel.report.data import Number, Record, Results, records
from tiercel.results.measured import within
from tiercel.results.raw import RECORD, RawStore, read_json

#: Stands for a run's own name in its command lines: what repeats is not packed ten thousand times.
_SELF = "\x01"
#: The points of a curve of latencies that are recorded of every run (column, share in percent).
QUANTILES = (
    ("latency_p50", 50.0), ("latency_p90", 90.0), ("latency_p99", 99.0), ("latency_p999", 99.9),
    ("latency_max", 100.0),
)  # fmt: skip
#: Shares (in percent) at which the curve of a recorded histogram is drawn; the longest of all follows them.
SHARES = (
    0.0, *range(10, 90, 10), 90.0, 93.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.7, 99.9, 99.95, 99.97,
    99.99, 99.997, 99.999,
)  # fmt: skip
#: Points of throughput over time of one run, and of all together: beyond that neighbours are added. As many
#: processes: of more, some. Where a run had fewer than the least, a page has none of either.
_LEAST, _MOST, _POINTS = 10, 100, 60_000
#: What is shown of the conditions of a run: column, words.
_CONDITIONS = (("load1_before", "load before"), ("others_cpu", "processors used by others"))


def evidence(results: Results, folder: Path) -> dict[str, Any]:
    """Return each number with its runs, and each of these runs, as plain values.

    `folder` is the site's results. Latencies are seconds, `series` amounts and `speeds` bytes a second;
    everything else is words. `whole`: whether there was room for what went on within the runs.
    """
    latencies, hidden = _latencies(results), _hidden(results)
    numbers = {n.anchor: _number(results, n, latencies, hidden) for n in results.numbers}
    known = {str(row["run"]): row for row in records(results.runs)}
    needed = dict.fromkeys(run for n in results.numbers for run in n.runs)
    store = RawStore(folder)
    points = min(_MOST, _POINTS // max(1, len(needed)))
    points = points if points >= _LEAST else 0
    drawn = points >= len(SHARES)
    runs = {run: _run(run, known.get(run, {}), store, points, drawn=drawn) for run in needed}
    return {"numbers": numbers, "runs": runs, "shares": SHARES, "whole": points > 0}


def by_place(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return evidence with each number's runs as places in the list of runs: a name that no packing makes
    shorter, for its hash, is there once."""
    places = {run: i for i, run in enumerate(found["runs"])}
    numbers = {key: {**n, "runs": [places[run] for run in n["runs"]]} for key, n in found["numbers"].items()}
    return {**found, "numbers": numbers, "runs": list(found["runs"].items())}


def pack(content: Mapping[str, Any]) -> str:
    """Return values as the page holds them, without what is private."""
    text = private().text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    # A byte that no encoding has (a torn name) is replaced: the script could not read any of it.
    data = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=9, mtime=0)
    return base64.b64encode(data).decode("ascii")


def _number(
    results: Results,
    n: Number,
    latencies: Mapping[tuple[str, str], list[float]],
    hidden: Mapping[tuple[str, str], str],
) -> Record:
    quantiles = [latencies.get((run, n.operation), []) for run in n.runs]
    within = [hidden.get((run, n.operation), "") for run in n.runs]
    return {
        "title": unturned(n.title or n.workload),
        "operation": words.operation(n.operation),
        "storage": unturned(results.stacks[n.stack]),
        "scale": n.scale,
        "engine": f"{n.engine} {n.engine_version}".strip(),
        "origin": n.origin,
        "value": n.value,
        "of": n.operation,
        "metric": n.metric,
        "interval": f"{n.interval} ({words.percent(n.coverage)})",
        "flags": n.checks(),
        "runs": list(n.runs),
        "values": [words.value(n.metric, v) for v in n.values],
        "latencies": quantiles if any(quantiles) else [],
        "within": within if any(within) else [],
    }


def _latencies(results: Results) -> dict[tuple[str, str], list[float]]:
    """Return the recorded points of the latencies of each run's measured operation, where all are there."""
    columns = [name for name, _ in QUANTILES]
    table = results.observations
    table = table[table["role"] == "measured"]
    values = table[columns].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    found: dict[tuple[str, str], list[float]] = {}
    for run, operation, row in zip(table["run"], table["operation"], values, strict=True):
        if all(math.isfinite(v) and v > 0 for v in row):
            found[str(run), str(operation)] = [float(f"{v:.4g}") for v in row]
    return found


def _hidden(results: Results) -> dict[tuple[str, str], str]:
    """Return what the aggregate of each run's measured operation hides, in words, where that is recorded."""
    table = results.observations
    table = table[table["role"] == "measured"]
    names = ("slowest_process", "slowest_rank", "longest_pause", "cpu_user", "cpu_system", "total_time")
    if not {*names, "processes"} <= set(table.columns):  # a table of before they were recorded
        return {}
    plain: Any = table[[*names, "processes"]].apply(pd.to_numeric, errors="coerce").astype(float)
    return {
        (str(run), str(operation)): said
        for run, operation, row in zip(table["run"], table["operation"], records(plain), strict=True)
        if (said := _hides(row))
    }


def _hides(row: Record) -> str:
    said = []
    if math.isfinite(row["slowest_process"]):
        rank, share = int(row["slowest_rank"]), words.percent(row["slowest_process"])
        said.append(f"the slowest process (number {rank}) reached {share} of the others' speed")
    if row["longest_pause"] > 0:
        said.append(f"nothing ended for {seconds(row['longest_pause'])}")
    busy = (row["cpu_user"] + row["cpu_system"]) / (row["total_time"] * row["processes"] or math.nan)
    if math.isfinite(busy):
        said.append(f"its processes computed {words.percent(min(1.0, busy))} of the time")
    return "; ".join(said)


def _within(run: str, store: RawStore) -> list[Within]:
    """Return what went on within a run's phases; nothing where its engine records none, or it is damaged."""
    try:
        raw = store.read(run)
        return within(raw) if raw else []
    except (RunFailed, UserError):
        return []


def _over_time(phase: Within, points: int) -> list[float]:
    """Return [seconds of an interval, amount a second in each ...]: so many at most, neighbours added."""
    wide = -(-len(phase.amounts) // points)
    width = wide * phase.interval
    sums = [sum(phase.amounts[i : i + wide]) for i in range(0, len(phase.amounts), wide)]
    return [width, *(_short(amount / width) for amount in sums)]


def spread(phase: Within, points: int) -> list[float]:
    """Return the speeds of a phase's processes (bytes a second), the slowest first.

    At most so many, evenly chosen with both ends; none of a single one.
    """
    ordered = sorted(phase.speeds.values())
    last, steps = len(ordered) - 1, min(len(ordered), points) - 1
    return [_short(ordered[place * last // steps]) for place in range(steps + 1)] if steps > 0 else []


def curve(phase: Within) -> list[float]:
    """Return what one operation took at most (s): of each of SHARES beyond which there is one, and of all."""
    count = sum(many for _, _, many in phase.durations)
    shares = [share for share in SHARES if (100 - share) * count > 100]
    return [_short(reached(phase.durations, share / 100)) for share in [*shares, 100.0]] if shares else []


def _short(rate: float) -> float:
    return float(f"{rate:.3g}")


def _run(run: str, row: Mapping[str, Any], store: RawStore, points: int, *, drawn: bool) -> Record:
    path = store.path(run) / RECORD
    steps = read_json(path)["steps"] if path.is_file() else []
    said = []
    for column, meaning in _CONDITIONS:
        value = row.get(column)
        if value is not None and pd.notna(value):
            said.append(f"{meaning} {float(value):.2f}")
    phases = _within(run, store) if points and path.is_file() else []
    started, duration = (float(row.get(name) or math.nan) for name in ("started", "duration"))
    return {
        "when": f"{datetime.fromtimestamp(started, UTC):%Y-%m-%d %H:%M:%S} UTC" if started > 0 else "",
        "took": seconds(duration) if duration > 0 else "",
        "conditions": "; ".join(said),
        "folder": f"../raw/{run}/" if path.is_file() else "",
        "series": {p.operation: _over_time(p, points) for p in phases if p.amounts},
        "speeds": {p.operation: found for p in phases if (found := spread(p, points))},
        "curves": {p.operation: found for p in phases if drawn and (found := curve(p))},
        "commands": [_command(step).replace(run, _SELF) for step in steps],
    }


def _command(step: Mapping[str, Any]) -> str:
    """Return a step as a line for a shell."""
    set_first = [f"{name}={value}" for name, value in (step.get("environment") or {}).items()]
    return shlex.join([*(["env", *set_first] if set_first else []), *map(str, step["argv"])])
