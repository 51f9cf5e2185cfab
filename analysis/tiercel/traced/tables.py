"""From the traces in the raw folder to ``traces.parquet`` and ``trace-groups.parquet``.

The tables hold every traced run of the site. They grow: a run that is in them already is not read again,
unless its record is newer or the code that reads traces has changed. What tracing cost is reckoned anew each
time, because it hangs on the untraced repetitions that were measured since.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.columns import COUNT, Column
from tiercel.errors import UserError
from tiercel.results.current import current_runs
from tiercel.results.observations import load_observations, load_runs
from tiercel.results.raw import RECORD, RawStore, read_json
from tiercel.results.table import code_signature, known_rows, load_table, write_table
from tiercel.traced import schema
from tiercel.traced.cost import NOTHING, cost_of
from tiercel.traced.row import rows_of

TRACES, GROUPS = "traces.parquet", "trace-groups.parquet"
_HOW = "tiercel trace collect"
_STAMP = Column("record_stamp", COUNT, "ns", "modification time of record.json when it was read")
#: What makes the rows: a change there makes them anew.
_CODE = ("traced", "traces", "placement/groups.py")


def collect(results: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bring both tables up to date with the raw folder and return them: (traces, groups)."""
    store = RawStore(results)
    known_traces, known_groups = _known(results)
    stamps = {run: (store.path(run) / RECORD).stat().st_mtime_ns for run in store.ids()}
    current = {row["run"] for row in known_traces if stamps.get(row["run"]) == row[_STAMP.name]}
    traces = [row for row in known_traces if row["run"] in current]
    groups = [row for row in known_groups if row["run"] in current]
    for run in sorted(stamps.keys() - current):
        if not read_json(store.path(run) / "run.json")["traced"]:
            continue
        raw = store.read(run)
        if raw:
            row, found = rows_of(raw)
            traces.append({**row, _STAMP.name: stamps[run]})
            groups += found
    _reckon_costs(results, traces)
    traces.sort(key=lambda row: str(row["run"]))
    order = {id(row): place for place, row in enumerate(groups)}
    groups.sort(key=lambda row: (str(row["run"]), order[id(row)]))
    write_table(results / TRACES, traces, (*schema.TRACES, _STAMP), _signature())
    write_table(results / GROUPS, groups, schema.GROUPS, _signature())
    return load_table(results / TRACES, _HOW), load_table(results / GROUPS, _HOW)


def load_traces(results: Path, study: str) -> pd.DataFrame:
    """Return the traced runs of a study, one row each; units in ``schema.UNITS``.

    Runs that a later configuration replaced are left out, as everywhere. UserError where the table was not
    made (`tiercel trace collect`).
    """
    return _of_study(results, study, load_table(results / TRACES, _HOW))


def load_trace_groups(results: Path, study: str) -> pd.DataFrame:
    """Return one row for each traced run of a study and group of files; else as `load_traces`."""
    return _of_study(results, study, load_table(results / GROUPS, _HOW))


def _of_study(results: Path, study: str, table: pd.DataFrame) -> pd.DataFrame:
    mine = table[table["study"] == study]
    try:
        runs = load_runs(results)
    except UserError:  # not collected: then nothing says what was replaced
        return mine.reset_index(drop=True)
    counted = set(current_runs(runs[runs["study"] == study])["configuration"])
    return mine[mine["configuration"].isin(counted)].reset_index(drop=True)


def _reckon_costs(results: Path, traces: list[dict[str, Any]]) -> None:
    try:
        observations = load_observations(results)
    except UserError:  # not collected: then nothing says what tracing cost
        observations = None
    for row in traces:
        if observations is None:
            row.update(NOTHING)
        else:
            row.update(cost_of(row["run"], row["configuration"], observations))


def _known(results: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    traces, groups = (known_rows(results / name, _signature()) for name in (TRACES, GROUPS))
    return ([], []) if traces is None or groups is None else (traces, groups)


@cache
def _signature() -> str:
    """Identify the code that made the tables."""
    return code_signature(_CODE)
