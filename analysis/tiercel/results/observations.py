"""From the raw folders to the two tables: ``observations.parquet`` and ``runs.parquet``.

The tables hold every finished run of the site. They grow: a run that is in them already is not parsed
again, unless its record is newer or the code has changed that its rows hang on (`results.code`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.columns import COUNT, WORD, Column
from tiercel.engines import Measurement
from tiercel.errors import RunFailed, UserError
from tiercel.results import code, schema
from tiercel.results.measured import measurements_of, workload_of
from tiercel.results.raw import RECORD, RawRun, RawStore
from tiercel.results.sessions import mark_sessions
from tiercel.results.table import as_frame, known_rows, load_table, misfit, write_table
from tiercel.results.validity import CACHE_BEHIND, ONE_CACHE, TOO_FEW, behind_share, flags_of

_OBSERVED = [c.name for c in schema.OBSERVATIONS]
_STAMP, _CODE = "record_stamp", "record_code"
_RUNS = (
    *schema.RUNS,
    Column(_STAMP, COUNT, "ns", "modification time of record.json when it was read"),
    Column(_CODE, WORD, "", "the code that read the engine's results (results.code)"),
)
_HOW = "tiercel collect"


@dataclass(frozen=True)
class Gathered:
    """The rows of both tables, as plain values."""

    observations: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    problems: tuple[str, ...] = ()
    """Why finished runs are not in them: one sentence each."""

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return (observations, runs) as they would be loaded."""
        return as_frame(self.observations, schema.OBSERVATIONS), as_frame(self.runs, _RUNS)


def collect(results: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bring both tables up to date with the raw folder and return (observations, runs).

    A finished run whose files can no longer be parsed becomes a failed one with that reason.
    """
    known_observations, known_runs = _known(results)
    found = _gather(results, known_observations, known_runs)
    if known_runs and not found.runs and not RawStore(results).folder.exists():
        raise UserError(
            f"{RawStore(results).folder}: is gone, and the tables still have {len(known_runs)} runs of it: "
            "put it back, or move the tables away"
        )
    write_table(results / "observations.parquet", found.observations, schema.OBSERVATIONS, code.of_all())
    write_table(results / "runs.parquet", found.runs, _RUNS, code.of_all())
    return load_observations(results), load_runs(results)


def look(results: Path, before: Gathered | None = None) -> Gathered:
    """Return what `collect` would make now, and write nothing: somebody may be measuring.

    `before`: what an earlier look found, so that only new runs are read. A run that is damaged, or moved away
    while it is read, is left out and named.
    """
    problems: list[str] = []
    known = (before.observations, before.runs) if before else _known(results)
    return replace(_gather(results, *known, problems), problems=tuple(problems))


def _gather(
    results: Path,
    known_observations: list[dict[str, Any]],
    known_runs: list[dict[str, Any]],
    problems: list[str] | None = None,
) -> Gathered:
    """Return known rows that still hold, and those of the other finished runs.

    A run that cannot be read is a sentence in `problems`; without that, UserError.
    """
    store = RawStore(results)
    stamps = {run_id: stamp for run_id in store.ids() if (stamp := _stamp(store, run_id)) is not None}
    current = {
        r["run"]
        for r in known_runs
        if stamps.get(r["run"]) == r[_STAMP] and r[_CODE] == code.of_engine(str(r["engine"]))
    }
    # A column that is new is empty in the rows that hang on older code alone.
    observations = [dict.fromkeys(_OBSERVED) | o for o in known_observations if o["run"] in current]
    runs = [r for r in known_runs if r["run"] in current]
    for run_id in sorted(stamps.keys() - current):
        try:
            raw = store.read(run_id)
        except UserError as error:
            if problems is None:
                raise
            problems.append(str(error))
            continue
        if raw:
            rows, run = _rows(raw)
            observations += rows
            runs.append({**run, _STAMP: stamps[run_id], _CODE: code.of_engine(run["engine"])})
    _check_origins(runs, store.folder)
    _mark_too_few(observations)
    _mark_one_cache(observations)
    _mark_behind(observations)
    mark_sessions(observations)
    observations.sort(key=lambda r: (r["run"], r["phase"]))
    runs.sort(key=lambda r: str(r["run"]))
    return Gathered(observations, runs)


def _stamp(store: RawStore, run_id: str) -> int | None:
    """Return when the record of a run was written; None for one that was moved away meanwhile."""
    try:
        return (store.path(run_id) / RECORD).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def load_observations(results: Path) -> pd.DataFrame:
    """Return the observations of a site; one row for each phase of each run, units in ``schema.UNITS``."""
    return load_table(results / "observations.parquet", _HOW)


def load_runs(results: Path) -> pd.DataFrame:
    """Return the runs of a site; one row for each execution, failed ones included."""
    return load_table(results / "runs.parquet", _HOW)


def _rows(raw: RawRun) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        identity = identity_of(raw.run)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{raw.folder / 'run.json'}: not a complete run ({error!r}): move the folder away"
        ) from None
    context = {column.name: raw.context.get(column.name) for column in schema.CONTEXT}
    if wrong := misfit({**identity, **context}, (*schema.IDENTITY, *schema.CONTEXT)):
        raise wrong
    status, reason = raw.record["status"], raw.record["reason"]
    measurements: list[Measurement] = []
    features: Mapping[str, Any] = {}
    calibration = bool(raw.run.get("calibration"))
    if status == "ok" and not calibration:
        try:
            measurements = measurements_of(raw)
            features = workload_of(raw.run).features(raw.run["nodes"], raw.run["processes_per_node"])
        except RunFailed as failure:
            status, reason = "failed", str(failure)
    rows = []
    for measurement in measurements:
        given = {**identity, **features, **context, **measurement.row()}
        if unknown := given.keys() - set(_OBSERVED):
            raise ValueError(f"not declared as columns: {', '.join(sorted(unknown))}")
        row = dict.fromkeys(_OBSERVED) | given
        row["phase_time"] = raw.context.get("phase_time")
        row["flags"] = flags_of(row)
        rows.append(row)
    record = raw.record
    run = {
        **identity, **context, "status": status, "reason": reason, "started": record["started"],
        "duration": record["duration"], "engine_time": record["engine_time"],
        "attempts": record["attempts"], "calibration": calibration,
    }  # fmt: skip
    return rows, run


def identity_of(run: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of ``schema.IDENTITY`` of the run in a ``run.json``."""
    storage, workload = run["storage"], run["workload"]
    return {
        "run": run["run"], "configuration": run["configuration"], "origin": run.get("origin", "measured"),
        "site": run["site"], "study": run["study"], "experiment": run["experiment"],
        "workload": run["name"], "title": workload.get("title") or run["name"],
        "storage": storage["name"], "storage_label": storage["label"] or storage["name"],
        "storage_type": storage["type"], "medium": storage["medium"],
        "layer": "+".join(row["label"] for row in run["layers"]) or "none", "engine": run["engine"],
        "engine_version": run["engine_version"], "launcher": run["launcher"], "nodes": run["nodes"],
        "processes_per_node": run["processes_per_node"],
        "processes": run["nodes"] * run["processes_per_node"], "repetition": run["repetition"],
        "twin": run["twin"], "look": run.get("look", 0), "traced": run["traced"],
    }  # fmt: skip


def _check_origins(runs: list[dict[str, Any]], folder: Path) -> None:
    """Raise UserError where what was simulated lies among what was measured."""
    first = {str(run["origin"]): str(run["run"]) for run in runs}
    if "simulated" in first and len(first) > 1:
        other = next(name for origin, name in first.items() if origin != "simulated")
        raise UserError(
            f"{folder}: {first['simulated']} is simulated and {other} is not: move one of them away "
            "(simulated results need a separate folder)"
        )


def _mark_too_few(observations: list[dict[str, Any]], least: int = 3) -> None:
    """Set or clear the flag that hangs on all repetitions of a configuration."""
    counts: dict[tuple[str, str, str], int] = {}
    for row in observations:
        if not row["traced"] and row["twin"] == "a":
            key = (row["configuration"], row["operation"], row["role"])
            counts[key] = counts.get(key, 0) + 1
    for row in observations:
        few = (
            row["origin"] != "simulated"  # a model gives the same number again
            and not row["traced"]
            and counts.get((row["configuration"], row["operation"], row["role"]), 0) < least
        )
        others = [f for f in row["flags"] if f != TOO_FEW]
        row["flags"] = [*others, TOO_FEW] if few else others


def _mark_one_cache(observations: list[dict[str, Any]]) -> None:
    """Set or clear the flag of data that fits in the page cache on some storages only.

    It is of studies that aim at a time: elsewhere all storages move the same.
    """
    same = ("study", "experiment", "workload", "operation", "engine", "nodes", "processes_per_node")
    aimed: dict[tuple[Any, ...], list[tuple[dict[str, Any], bool]]] = {}
    for row in observations:
        size, memory = row["bytes_per_process"], row["memory_bytes"]
        counts = row["role"] == "measured" and row["medium"] != "memory" and not row["direct"]
        if row["phase_time"] is not None and counts and None not in (size, memory):
            fits = size * row["processes_per_node"] < memory
            aimed.setdefault(tuple(row[name] for name in same), []).append((row, fits))
    for rows in aimed.values():
        some = len({fits for _, fits in rows}) > 1
        for row, fits in rows:
            others = [f for f in row["flags"] if f != ONE_CACHE]
            row["flags"] = [*others, ONE_CACHE] if some and fits else others


def _mark_behind(observations: list[dict[str, Any]]) -> None:
    """Say of each cold read what came from a cache behind the client, and set or clear its flag.

    Runs that saw misses tell what a miss takes on their storage: where all touches of another run took less
    than half of that, none was one.
    """
    misses: dict[tuple[Any, ...], list[float]] = {}
    where = ("site", "storage", "layer", "nodes", "origin")
    for row in observations:
        if row["behind_miss_time"] is not None:
            misses.setdefault(tuple(row[name] for name in where), []).append(row["behind_miss_time"])
    for row in observations:
        seen = misses.get(tuple(row[name] for name in where))
        row["behind_share"] = behind_share(row, min(seen) / 2 if seen else None)
        found = [f for f in flags_of(row) if f == CACHE_BEHIND]
        row["flags"] = [*(f for f in row["flags"] if f != CACHE_BEHIND), *found]


def _known(results: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of both tables, or none: where one cannot be used the raw folder has everything."""
    tables = [known_rows(results / name, code.of_all()) for name in ("observations.parquet", "runs.parquet")]
    observations, runs = tables
    return ([], []) if observations is None or runs is None else (observations, runs)
