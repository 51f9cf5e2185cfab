"""A side's two tables in the columns of this version of tiercel, whichever wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from tiercel.columns import WORD, WORDS, Column
from tiercel.compare.places import OBSERVATIONS, RUNS
from tiercel.errors import UserError, suggest
from tiercel.results import schema
from tiercel.results.observations import load_observations, load_runs
from tiercel.results.table import Damaged

ORIGINS = ("measured", "imported", "simulated")

#: Without these a row says nothing that could be compared.
_NEEDED = ("run", "configuration", "origin", "experiment", "workload", "operation", "storage")
_KINDS = {WORDS: "object", WORD: "object"}


@dataclass(frozen=True)
class Tables:
    """Observations and runs in the columns of this version."""

    observations: pd.DataFrame
    runs: pd.DataFrame
    version: str
    """Version of tiercel that wrote them, empty where the file does not say."""
    absent: frozenset[str]
    """Columns of observations that the file does not have."""
    has_runs: bool = True


def read_tables(folder: Path, source: Path) -> Tables:
    """Read the tables in `folder`; `source` is the name that messages give them. Raises UserError."""
    observations = _read(folder / OBSERVATIONS, source)
    version = _version(folder / OBSERVATIONS)
    known = {c.name for c in schema.OBSERVATIONS}
    absent = known - set(observations.columns)
    if lacking := [name for name in _NEEDED if name in absent]:
        raise UserError(f"{source}: {OBSERVATIONS}: no column {', '.join(lacking)}: not a table of tiercel's")
    observations = _columns(observations, schema.OBSERVATIONS, f"{source}: {OBSERVATIONS}")
    strange = sorted(set(observations["origin"].map(str)) - set(ORIGINS))
    if strange:
        raise UserError(f"{source}: {OBSERVATIONS}: origin {strange[0]!r}: {suggest(strange[0], ORIGINS)}")
    has_runs = (folder / RUNS).is_file()
    runs = _read(folder / RUNS, source) if has_runs else _runs_of(observations)
    runs = _columns(runs, schema.RUNS, f"{source}: {RUNS}")
    return Tables(observations, runs, version, frozenset(absent), has_runs)


def _read(path: Path, source: Path) -> pd.DataFrame:
    load = load_observations if path.name == OBSERVATIONS else load_runs
    try:
        str(path).encode()
    except UnicodeEncodeError:  # pyarrow opens no such file
        raise UserError(
            f"{source}: the folder's name is not UTF-8: rename it, or make a link to it, or an archive of it"
        ) from None
    try:
        return load(path.parent)
    except Damaged as error:
        # Of an archive the table lies in a folder that is gone when the message is read.
        reason = error.reason.replace(str(path), path.name)
        hint = "make it again with `tiercel collect`" if source == path.parent else "pack the results anew"
        raise UserError(f"{source}: {path.name} is damaged ({reason}): {hint}") from None


def _version(path: Path) -> str:
    metadata = pq.read_schema(path).metadata or {}
    return str(metadata.get(b"tiercel", b"").decode(errors="replace").partition("/")[0])


def _columns(table: pd.DataFrame, columns: tuple[Column, ...], where: str) -> pd.DataFrame:
    """Return the table with exactly these columns, in their kinds; what it lacks is missing in every row."""
    table = table.reindex(columns=[c.name for c in columns])
    try:
        return table.astype({c.name: _KINDS.get(c.kind, c.kind) for c in columns})
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: a column holds what does not belong there: {error}") from None


def _runs_of(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each run that has observations: without runs.parquet no failure is known."""
    runs = observations.drop_duplicates("run")
    return runs.assign(status="ok", reason="", started=runs["began"])
