"""Load imbalance over ranks and hosts: finds the slow (or fast) node by itself (paper 003, section VI.A)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
_COLUMNS = ["rank", "host", "calls", "bytes", "io_time", "metadata_time", "data_time", "finished"]


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
    chosen = frame.select(rank, filter)
    ranks = pd.DataFrame(
        [_load(number, groups) for number, groups in by_key(
            io_calls(chosen, layer_of(frame, api)), lambda g: g.rank).items()],
        columns=_COLUMNS,
    ).astype({"host": object, **dict.fromkeys(_COLUMNS[4:], "float64")})  # fmt: skip
    if ranks["bytes"].isna().any():
        ranks["bytes"] = ranks["bytes"].astype("float64")
    if only_data(frame):
        ranks["metadata_time"] = np.nan
    if by == "host":
        table = ranks.groupby("host", dropna=False).agg(
            ranks=("rank", "count"),
            calls=("calls", "sum"),
            bytes=("bytes", _whole_sum),
            io_time=("io_time", "mean"),
            metadata_time=("metadata_time", "mean"),
            data_time=("data_time", "mean"),
            finished=("finished", "max"),
        )
    else:
        table = ranks.set_index("rank")
    table["ratio"], table["verdict"] = judged(table["io_time"].to_numpy(dtype=np.float64))
    units = dict.fromkeys(("io_time", "metadata_time", "data_time", "finished"), "s") | {
        "bytes": "B",
        "ratio": "1",
    }
    with_units(table, units)
    mean = float(table["io_time"].mean()) if len(table) else 0.0
    table.attrs["imbalance"] = float(table["io_time"].max()) / mean if mean > 0 else 1.0
    for verdict in ("slow", "fast"):
        table.attrs[verdict] = table.index[table["verdict"] == verdict].tolist()
    return table


def _load(rank: int | None, groups: list[Group]) -> tuple[Any, ...]:
    """Return the row of a rank, in the order of `_COLUMNS`."""
    whole = totals(groups)
    seconds = (totals(groups, kinds).seconds for kinds in (METADATA_KINDS, DATA_KINDS))
    return (
        rank, min((g.host for g in groups if g.host is not None), default=None), whole.calls, whole.bytes,
        whole.seconds, *seconds, max((g.finished for g in groups if g.finished is not None), default=None),
    )  # fmt: skip


def _whole_sum(values: pd.Series[float]) -> float:
    return values.sum(skipna=False)


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
        for middle in np.unique(middles):  # at most three
            mine = middles == middle
            spreads[mine] = 1.4826 * _medians_of_others(np.abs(times - middle))[mine]
    ratios, verdicts = [], []
    for value, middle, spread in zip(times.tolist(), middles.tolist(), spreads.tolist(), strict=True):
        ratio = value / middle if middle > 0 else 1.0
        far = abs(value - middle) > DEVIATIONS * spread
        ratios.append(ratio)
        verdicts.append("slow" if far and ratio >= RATIO else "fast" if far and ratio <= 1 / RATIO else "")
    return ratios, verdicts
