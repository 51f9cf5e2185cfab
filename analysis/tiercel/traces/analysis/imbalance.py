"""Load imbalance over ranks and hosts: finds the slow (or fast) node by itself (paper 003, section VI.A)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiercel.deferred import pd
from tiercel.errors import UserError
from tiercel.traces.analysis.common import (
    DATA_KINDS,
    METADATA_KINDS,
    Group,
    by_key,
    io_calls,
    layer_of,
    totals,
    with_units,
)
from tiercel.traces.analysis.counters import only_data

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

#: A host stands out when its typical call takes this many times as long as on the other hosts...
RATIO = 1.5
#: ...and, where there are enough hosts to tell, lies this many scaled median deviations away.
DEVIATIONS = 3.5
_ENOUGH = 5
_TIMES = ("io_time", "metadata_time", "data_time", "finished")
_COLUMNS = {of: [word, "calls", "bytes", *_TIMES] for of, word in (("rank", "host"), ("host", "ranks"))}


def load_imbalance(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, by: str = "rank", api: str | None = None
) -> pd.DataFrame:
    """Return the load of each rank or host (`by`), and which stand out (index: `by`).

    `io_time` is the sum of durations of I/O calls (for hosts: its mean over their ranks). `ratio` compares
    with the median of the others, `verdict` is slow, fast or empty. ``attrs["imbalance"]`` is maximum over
    mean of `io_time` (1: balanced), ``attrs["slow"]`` and ``attrs["fast"]`` name those that stand out.
    """
    if by not in {"rank", "host"}:
        raise UserError(f"load imbalance is by rank or host, not by {by!r}")
    loads = _loads(frame.select(rank, filter), by, layer_of(frame, api))
    columns = _COLUMNS[by]
    table = pd.DataFrame([[load[c] for c in columns] for load in loads.values()], columns=columns,
                         index=pd.Index(list(loads), name=by))  # fmt: skip
    table = table.astype(dict.fromkeys(_TIMES, "float64"))
    if table["bytes"].isna().any():
        table["bytes"] = table["bytes"].astype("float64")
    table["ratio"], table["verdict"] = judged(table["io_time"].to_numpy(dtype=np.float64))
    with_units(table, dict.fromkeys(_TIMES, "s") | {"bytes": "B", "ratio": "1"})
    mean = float(table["io_time"].mean()) if len(table) else 0.0
    table.attrs["imbalance"] = float(table["io_time"].max()) / mean if mean > 0 else 1.0
    for verdict in ("slow", "fast"):
        table.attrs[verdict] = table.index[table["verdict"] == verdict].tolist()
    return table


def outliers(frame: IOFrame, by: str) -> dict[str, list[Any]]:
    """Return the ranks or hosts (`by`) that are slow, and those that are fast, of the lowest layer."""
    loads = _loads(frame, by, layer_of(frame, None))
    times = (load["io_time"] for load in loads.values())
    _, verdicts = judged(np.array([np.nan if each is None else each for each in times], dtype=np.float64))
    named = by_key(zip(verdicts, loads, strict=True), lambda pair: pair[0])
    return {verdict: [name for _, name in named.get(verdict, ())] for verdict in ("slow", "fast")}


def _loads(frame: IOFrame, by: str, layer: str) -> dict[Any, dict[str, Any]]:
    """Return the load of each rank or host by its number or name; None: not known."""
    ranks = by_key(io_calls(frame, layer), lambda g: g.rank)
    loads = {number: _load(number, groups, only_data(frame)) for number, groups in ranks.items()}
    if by == "rank":
        return loads
    hosts = by_key(loads.values(), lambda load: load["host"])
    return {host: _of_host(hosts[host]) for host in sorted(hosts, key=lambda host: (host is None, host))}


def _load(rank: int | None, groups: list[Group], no_metadata: bool) -> dict[str, Any]:
    """Return the load of a rank. `no_metadata`: its trace holds reads and writes only."""
    whole = totals(groups)
    return {
        "rank": rank, "host": min((g.host for g in groups if g.host is not None), default=None),
        "calls": whole.calls, "bytes": whole.bytes, "io_time": whole.seconds,
        "metadata_time": None if no_metadata else totals(groups, METADATA_KINDS).seconds,
        "data_time": totals(groups, DATA_KINDS).seconds,
        "finished": max((g.finished for g in groups if g.finished is not None), default=None),
    }  # fmt: skip


def _of_host(loads: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the load of a host: bytes and calls of its ranks together, times of a mean one."""
    moved = [load["bytes"] for load in loads]
    known = {name: [load[name] for load in loads if load[name] is not None] for name in _TIMES}
    return {
        "ranks": sum(load["rank"] is not None for load in loads),
        "calls": sum(load["calls"] for load in loads),
        "bytes": None if None in moved else sum(moved),
        **{name: float(np.mean(times)) if times else None for name, times in known.items()},
        "finished": max(known["finished"], default=None),
    }  # fmt: skip


def _medians_of_others(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return for each of two or more values the median of all others; one sort, as files may be thousands."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    ordered, others = values[order], len(values) - 1
    low, high = (others - 1) // 2, others // 2
    # Without the value itself, what lay above it moves down by one.
    return np.asarray((ordered[low + (ranks <= low)] + ordered[high + (ranks <= high)]) / 2)


def judged(times: npt.NDArray[np.float64]) -> tuple[list[float], list[str]]:
    """Return for each time its ratio to the median of the others, and slow, fast or nothing."""
    if len(times) < 2:
        return [1.0] * len(times), [""] * len(times)
    middles = _medians_of_others(times)
    spreads = np.zeros(len(times))
    if len(times) >= _ENOUGH:
        for middle in set(middles.tolist()):  # at most three
            mine = middles == middle
            spreads[mine] = 1.4826 * _medians_of_others(np.abs(times - middle))[mine]
    ratios, verdicts = [], []
    for value, middle, spread in zip(times.tolist(), middles.tolist(), spreads.tolist(), strict=True):
        ratio = value / middle if middle > 0 else 1.0
        far = abs(value - middle) > DEVIATIONS * spread
        ratios.append(ratio)
        verdicts.append("slow" if far and ratio >= RATIO else "fast" if far and ratio <= 1 / RATIO else "")
    return ratios, verdicts
