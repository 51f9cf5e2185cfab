"""Which rows of a survey are asked about: by time, and by a condition in SQL."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

import duckdb
import pandas as pd

from tiercel.errors import UserError
from tiercel.traces.engine import DEFAULT_MEMORY, connection, quoted, reason
from tiercel.traces.survey.schema import JOBS


def choose(
    table: pd.DataFrame, path: Path, since: str | None, until: str | None, where: str | None
) -> pd.DataFrame:
    """Return the rows of jobs that began at `since` or later and before `until` (2026-11-03,
    2026-11-03T14:00, in this machine's time zone), and meet the condition `where` on the columns of the table
    at `path`.

    UserError for what is no time and no condition. A trace whose time is not known began at no time.
    """
    check_choice(since, until, where)
    if since is not None:
        table = table[table["start"] >= _seconds("--since", since)]
    if until is not None:
        table = table[table["start"] < _seconds("--until", until)]
    if where is None:
        return table
    with connection(DEFAULT_MEMORY) as db:
        try:
            rows = db.execute(
                f"SELECT log FROM read_parquet([{quoted(str(path))}]) WHERE ({where}\n)"
            ).fetchall()
        except duckdb.Error as error:
            names = ", ".join(column.name for column in JOBS)
            raise UserError(f"--filter {where!r}: {reason(error)} (columns: {names})") from None
    return table[table["log"].isin([row[0] for row in rows])]


def check_choice(since: str | None, until: str | None, where: str | None) -> None:
    """UserError for what is no time, times that no job fits between, or an empty condition: known before
    thousands of traces are read."""
    first = _seconds("--since", since) if since is not None else -math.inf
    end = _seconds("--until", until) if until is not None else math.inf
    if first >= end:
        raise UserError(f"--since {since} is not before --until {until}: no job begins between them")
    if where is not None and not where.strip():
        raise UserError("--filter: is empty")


def _seconds(option: str, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UserError(f"{option} {text}: write 2026-11-03 or 2026-11-03T14:00") from None
