"""The timeline of calls by rank: a table, a figure, one HTML file that works offline, a file for Perfetto."""

from __future__ import annotations

import gzip
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tiercel.deferred import pd
from tiercel.errors import UserError
from tiercel.traces.analysis.common import UNSIZED, bytes_of, with_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tiercel.traces.frame import Filter, IOFrame, Ranks

#: Blocks that a person can look at, and a browser draw at once.
BLOCKS = 20_000
#: Colours of kinds, the same in figure and page; distinguishable with the common colour blindnesses.
COLOURS = {
    "read": "#0072b2", "write": "#d55e00", "metadata": "#e69f00", "sync": "#cc79a7", "compute": "#009e73",
    "pseudo": "#dddddd", "other": "#bbbbbb",
}  # fmt: skip
#: Spans of the program other than computation cover everything else, and what is done to pseudo-files is no
#: I/O: they are drawn only when asked for.
_DRAWN = "kind NOT IN ('other', 'pseudo')"


def timeline(frame: IOFrame, rank: Ranks = None, filter: Filter = None, blocks: int = BLOCKS) -> pd.DataFrame:
    """Return blocks to draw: rank, start, end, kind, function, file, bytes, calls.

    When there are more than `blocks` events, calls of one function by one rank that begin within the same
    part of the job become one block (`calls` says how many, `file` is then that of one of them). Without a
    filter, spans of the program other than computation, and calls on pseudo-files, are left out.
    """
    if blocks < 1:
        raise UserError(f"blocks: must be 1 or more, not {blocks}")
    chosen = frame.select(rank, filter)
    if filter is None:
        chosen = chosen.select(filter=_DRAWN)
    count = len(chosen)
    if count <= blocks:
        table = chosen.query(
            'SELECT rank, time AS start, time + coalesce(duration, 0) AS "end", kind, function, file, '
            f"CASE WHEN NOT ({UNSIZED}) THEN coalesce(size, 0)::BIGINT END AS bytes, 1 AS calls FROM events "
            'ORDER BY rank, start, "end" DESC'
        )
    else:
        table = _merged(chosen, blocks)
    return with_units(table, {"start": "s", "end": "s", "bytes": "B"})


def _merged(frame: IOFrame, blocks: int) -> pd.DataFrame:
    """Merge calls that begin in the same slice; halve the slices until the blocks are few enough."""
    groups = int(
        frame.query("SELECT count(*) AS n FROM (SELECT DISTINCT rank, function FROM events)")["n"].iloc[0]
    )
    slices = max(blocks // max(groups, 1) * 4, 1)
    while True:
        width = max(frame.job_time / slices, 1e-9)
        table = frame.query(
            'SELECT rank, min(time) AS start, max(time + coalesce(duration, 0)) AS "end", kind, function, '
            f"any_value(file) AS file, {bytes_of('TRUE')} AS bytes, count(*) AS calls FROM events "
            f'GROUP BY rank, kind, function, floor(time / {width!r}) ORDER BY rank, start, "end" DESC'
        )
        if len(table) <= blocks or slices == 1:
            return table
        slices = max(slices // 2, 1)


def plot_timeline(frame: IOFrame, rank: Ranks = None, filter: Filter = None, ax: Axes | None = None) -> Axes:
    """Draw the timeline: one line for each rank, one block for each call (matplotlib).

    Computation is a thinner line below its rank's calls, where there are both: it would hide I/O behind it.
    """
    import matplotlib.pyplot as plt

    table = timeline(frame, rank, filter)
    ranks = sorted(table["rank"].unique())
    place = {number: position for position, number in enumerate(ranks)}
    if ax is None:
        _, ax = plt.subplots(figsize=(9, min(1.5 + 0.3 * len(ranks), 12)), layout="constrained")
    both = (table["kind"] == "compute").any() and (table["kind"] != "compute").any()
    for kind, colour in COLOURS.items():
        part = (-0.4, 0.8) if not both else (0.16, 0.24) if kind == "compute" else (-0.4, 0.5)
        of_kind = table[table["kind"] == kind]
        if of_kind.empty:
            continue
        for number, rows in of_kind.groupby("rank"):
            spans = list(zip(rows["start"], (rows["end"] - rows["start"]).clip(lower=1e-9), strict=True))
            ax.broken_barh(spans, (place[number] + part[0], part[1]), color=colour, linewidth=0)
        ax.barh(0, 0, color=colour, label=kind)
    shown = ranks[:: max(len(ranks) // 16, 1)]
    ax.set_yticks([place[r] for r in shown], [str(r) for r in shown])
    ax.set(xlabel="time (s)", ylabel="rank", xlim=(0, max(frame.job_time, 1e-9)))
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(COLOURS), frameon=False)
    return ax


def write_timeline(frame: IOFrame, path: Path, rank: Ranks = None, filter: Filter = None) -> Path:
    """Write the timeline as one HTML file: zoom with the wheel, move by dragging; no network needed."""
    text = timeline_page(timeline(frame, rank, filter), frame)
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def timeline_page(table: pd.DataFrame, frame: IOFrame) -> str:
    """Return the page that shows the blocks `table` (see `timeline`) of a trace."""
    title = Path(str(frame.metadata.get("path", "trace"))).name
    data = json.dumps(_compact(table, frame), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    here = files("tiercel.traces") / "viewer"
    return _PAGE.format(
        title=html.escape(title), style=(here / "timeline.css").read_text(), data=data,
        script=(here / "timeline.js").read_text(),
    )  # fmt: skip


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: timeline</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
<div id="bar"></div>
<div id="plot"><canvas id="canvas" tabindex="0" aria-label="timeline of I/O calls by rank"></canvas></div>
<div id="tip" role="status"></div>
<p id="note"></p>
<script id="data" type="application/json">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def _compact(table: pd.DataFrame, frame: IOFrame) -> dict[str, Any]:
    """Return the blocks as columns of numbers, words once each; times in whole nanoseconds."""
    functions, function_words = pd.factorize(table["function"].fillna("?"))
    paths, path_words = pd.factorize(table["file"])
    ranks = sorted({int(r) for r in table["rank"]})
    return {
        "length": frame.job_time,
        "ranks": ranks,
        "colours": COLOURS,
        "kinds": list(COLOURS),
        "functions": [str(w) for w in function_words],
        "files": [str(w) for w in path_words],
        "rank": np.searchsorted(ranks, table["rank"].to_numpy()).tolist() if len(table) else [],
        "start": (table["start"] * 1e9).round().astype("int64").tolist(),
        "duration": ((table["end"] - table["start"]) * 1e9).round().astype("int64").tolist(),
        "kind": [list(COLOURS).index(k) for k in table["kind"]],
        "function": functions.tolist(),
        "file": paths.tolist(),
        "bytes": [None if each != each else int(each) for each in table["bytes"]],  # noqa: PLR0124 -- NaN
        "calls": table["calls"].astype("int64").tolist(),
        "merged": bool((table["calls"] > 1).any()),
        "warnings": list(frame.warnings),
    }


def export_perfetto(frame: IOFrame, path: Path, rank: Ranks = None, filter: Filter = None) -> Path:
    """Write all events as a Chrome trace (JSON; gzipped when `path` ends in .gz), which Perfetto opens.

    Ranks become processes there, so that lines are in order of ranks; times are in microseconds.
    """
    chosen = frame.select(rank, filter)
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", errors="replace") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        _write_names(chosen, file)
        query = (
            'SELECT time, duration, rank, thread, function, category, kind, file, "offset", size FROM events'
        )
        for batch in chosen.batches(query, 1 << 14):
            file.write("".join(",\n" + _chrome(event) for event in batch.to_pylist()))
        file.write("\n]}\n")
    return path


def _write_names(frame: IOFrame, file: IO[str]) -> None:
    ranks = frame.query(
        "SELECT rank, min(host) AS host, min(process) AS process FROM events GROUP BY rank ORDER BY rank"
    )
    lines = [{"name": "trace", "ph": "M", "pid": 0, "args": {}}]
    for row in ranks.itertuples():
        host = f" on {row.host}" if isinstance(row.host, str) else ""
        named = {"name": f"rank {row.rank}{host}"}
        lines.append({"name": "process_name", "ph": "M", "pid": int(str(row.rank)), "args": named})
    file.write(",\n".join(json.dumps(line) for line in lines))


def _chrome(event: dict[str, Any]) -> str:
    extra = {key: event[key] for key in ("kind", "file", "offset", "size") if event[key] is not None}
    return json.dumps(
        {
            "name": event["function"] or "?", "cat": event["category"] or "", "ph": "X",
            "ts": round(event["time"] * 1e6, 3), "dur": round((event["duration"] or 0.0) * 1e6, 3),
            "pid": event["rank"], "tid": event["thread"] or 0, "args": extra,
        },
        separators=(",", ":"),
    )  # fmt: skip
