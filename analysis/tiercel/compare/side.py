"""One side of a comparison: its rows, narrowed to what was asked for, and what must be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.compare.places import Place
from tiercel.compare.spelling import Spelling
from tiercel.compare.tables import Tables
from tiercel.errors import UserError, suggest
from tiercel.results import schema
from tiercel.results.current import current_runs
from tiercel.results.raw import RawStore
from tiercel.results.reasons import by_reason
from tiercel.results.validity import TOO_FEW
from tiercel.statistics.select import flag_list

_WORDS = ("study", "storage", "engine", "origin")


@dataclass(frozen=True)
class Side:
    """The rows of one side. `name` is unique among the sides."""

    name: str
    spelling: Spelling
    place: Place
    observations: pd.DataFrame
    runs: pd.DataFrame
    version: str
    absent: frozenset[str]
    notes: tuple[str, ...]
    failures_known: bool
    """Whether there is a table of runs: without it, runs that failed are not seen."""

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """When the first and the last of its runs began, seconds since the epoch; None if unknown."""
        began = pd.to_numeric(self.runs["started"], errors="coerce").dropna()
        return (float(began.min()), float(began.max())) if len(began) else None

    @cached_property
    def failed(self) -> pd.DataFrame:
        """Its runs without numbers."""
        return self.runs[self.runs["status"] == "failed"]

    def names(self, column: str) -> list[str]:
        """Return the different values of a column of its observations, sorted."""
        return sorted({str(v) for v in self.observations[column].dropna()})


def names_of(spellings: Sequence[Spelling]) -> list[str]:
    """Return a short name for each side: a folder's own, with as many of its parents as tell it apart."""
    parts = [_parts(s.where) for s in spellings]
    for depth in range(1, 1 + max(map(len, parts))):
        names = ["/".join(p[-depth:]) + s.text[len(s.where) :] for p, s in zip(parts, spellings, strict=True)]
        if len(set(names)) == len({s.text for s in spellings}):
            return [_readable(name) for name in names]
    return [_readable(s.text) for s in spellings]


def _parts(where: str) -> tuple[str, ...]:
    """Return the parts of a path; of one that ends in no name (``.``, ``..``), of what it stands for."""
    path = Path(where)
    return path.resolve().parts if path.name in ("", "..") else path.parts


def _readable(name: str) -> str:
    """Return the name with bytes that are no text (a folder may have any) written out."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def make_side(name: str, spelling: Spelling, place: Place, tables: Tables) -> Side:
    """Return a side with what its spelling asks for; UserError where that leaves nothing."""
    # A table that does not know layers (or an imported one) had none.
    runs, observations = (
        table.assign(layer=table["layer"].fillna("none")) for table in (tables.runs, tables.observations)
    )
    if observations.empty and runs.empty:
        raise UserError(f"{name}: its tables are empty: nothing was measured")
    runs, observations = _of_dates(spelling, runs, observations)
    for column in _WORDS:
        if wanted := getattr(spelling, column):
            runs = _only(spelling, column, wanted, runs, observations)
            observations = _rows(observations, observations[column] == wanted)
    if spelling.layer:
        runs, observations = _with_layer(spelling, runs, observations)
    kept, superseded = _current(runs)
    # In an order of their own: the order of a file must not change a number.
    observations = _of_runs(observations, kept).sort_values(["run", "phase"], kind="stable")
    if observations.empty:
        raise UserError(f"{name}: no run has a result ({_failures(kept) or 'none has finished'})")
    notes = _notes(tables, place, kept, superseded, observations, spelling)
    return Side(
        name,
        spelling,
        place,
        observations,
        kept,
        tables.version,
        tables.absent,
        tuple(notes),
        tables.has_runs,
    )


def day(seconds: float) -> str:
    """Return the day of a moment, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _rows(table: pd.DataFrame, keep: Any) -> pd.DataFrame:
    return table[pd.Series(keep, index=table.index).fillna(False).astype(bool)]


def _of_dates(
    spelling: Spelling, runs: pd.DataFrame, observations: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    since, until = spelling.since, spelling.until
    if since is None and until is None:
        return runs, observations

    def inside(times: pd.Series[Any]) -> pd.Series[bool]:
        # A missing time is in no span.
        return (times >= (since if since is not None else 0)) & (times < (until or float("inf")))

    mine = _rows(runs, inside(runs["started"]))
    known = observations["run"].isin(set(runs["run"]))
    keep = observations["run"].isin(set(mine["run"])) | (~known & inside(observations["began"]))
    rows = _rows(observations, keep)
    if mine.empty and rows.empty:
        days = pd.Series([day(t) for t in runs["started"].dropna()], dtype=object).value_counts().sort_index()
        there = ", ".join(f"{d} ({n})" for d, n in days.tail(8).items())
        raise UserError(f"{spelling.text}: no run began then; runs began on {there or 'no known day'}")
    return mine, rows


def _only(
    spelling: Spelling, column: str, wanted: str, runs: pd.DataFrame, observations: pd.DataFrame
) -> pd.DataFrame:
    mine = _rows(runs, runs[column] == wanted)
    if mine.empty and not bool((observations[column] == wanted).any()):
        there = {str(v) for v in (*runs[column].dropna(), *observations[column].dropna())}
        raise UserError(f"{spelling.text}: no {column} {wanted!r}: {suggest(wanted, there)}")
    return mine


def _with_layer(
    spelling: Spelling, runs: pd.DataFrame, observations: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    wanted = spelling.layer or ""
    there = {str(v) for v in (*runs["layer"].dropna(), *observations["layer"].fillna("none"))}
    chosen = {label for label in there if wanted in (label, _layer_names(label))}
    if not chosen:
        raise UserError(f"{spelling.text}: no layer {wanted!r}: {suggest(wanted, there)}")
    if len(chosen) > 1:
        shown = ", ".join(sorted(chosen))
        raise UserError(f"{spelling.text}: layer {wanted} ran with several options: name one ({shown})")
    return (
        _rows(runs, runs["layer"].isin(chosen)),
        _rows(observations, observations["layer"].fillna("none").isin(chosen)),
    )


def _layer_names(label: str) -> str:
    """Return ``fairshare`` for a label with options."""
    return "+".join(part.partition(" ")[0] for part in label.split("+"))


def _current(runs: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the runs whose configuration no later one of its site and study replaced, and how many were."""
    parts = [current_runs(mine) for _, mine in runs.groupby(["site", "study"], dropna=False, sort=True)]
    kept = pd.concat(parts) if parts else runs
    return kept, len(runs) - len(kept)


def _of_runs(observations: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    # What was imported or simulated has no run of ours: it stays.
    known = observations["configuration"].isin(set(runs["configuration"]))
    return _rows(observations, known | (observations["origin"] != "measured"))


def _failures(runs: pd.DataFrame) -> str:
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return ""
    causes = by_reason(zip(failed["run"].map(str), failed["reason"].fillna("").map(str), strict=True))
    often = "" if len(causes) == 1 else "most often: "
    return f"{_count(len(failed), 'run')} failed: {often}{causes[0].reason}"


def _notes(
    tables: Tables,
    place: Place,
    runs: pd.DataFrame,
    superseded: int,
    observations: pd.DataFrame,
    spelling: Spelling,
) -> list[str]:
    found = []
    if failures := _failures(runs):
        found.append(failures)
    if not tables.has_runs:
        found.append("has no runs.parquet: failed runs and the conditions of others are not known")
    if not place.archived and spelling.since is None and spelling.until is None:
        found += _unfinished(place.folder, tables.runs)
    few = observations[observations["flags"].map(lambda flags: TOO_FEW in flag_list(flags))]
    if not few.empty:
        where = _count(few["configuration"].nunique(), "configuration")
        found.append(f"{where} with fewer than three repetitions: unfinished, or failed in part")
    if superseded:
        found.append(
            f"{_count(superseded, 'run')} of configurations that later ones replaced are left out (@DATE "
            "takes the runs of a date)"
        )
    if tables.absent:
        said = f"tiercel {tables.version}" if tables.version else "another version of tiercel"
        names = ", ".join(c.name for c in schema.OBSERVATIONS if c.name in tables.absent)
        found.append(f"written by {said}, which has no {names}: nothing is matched by these")
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _unfinished(folder: Path, runs: pd.DataFrame) -> list[str]:
    raw = RawStore(folder)
    if not raw.folder.is_dir():
        return []
    finished = set(raw.ids())
    begun = sum(1 for p in raw.folder.iterdir() if p.is_dir() and p.name != "interrupted")
    found = []
    if open_runs := begun - len(finished):
        what = "run was cut off or goes on" if open_runs == 1 else "runs were cut off or go on"
        found.append(f"unfinished: {open_runs} {what}")
    if later := len(finished - set(runs["run"])):
        found.append(f"{_count(later, 'run')} finished since its tables were made: run `tiercel collect`")
    return found
