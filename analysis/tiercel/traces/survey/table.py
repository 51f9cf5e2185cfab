"""From a folder of traces to ``survey.parquet``: only traces that are new or changed are read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tiercel.errors import UserError
from tiercel.locked import FileLock
from tiercel.results.table import code_signature, known_rows, load_table, write_table
from tiercel.traces.child import LATE
from tiercel.traces.readers.darshan import NEEDED
from tiercel.traces.survey.find import Found, find_traces
from tiercel.traces.survey.journal import Journal
from tiercel.traces.survey.pool import Limits, Row, memory_each, read_here, read_on_cluster
from tiercel.traces.survey.private import named, survey_key
from tiercel.traces.survey.row import DEFECT
from tiercel.traces.survey.schema import FINDING, JOBS, UNITS

_HOW = "tiercel trace survey FOLDER"
_HELD = "another `tiercel trace survey` fills this table: wait until it has ended, or name another one (-o)"
#: What makes the rows: a change there makes them anew.
_CODE = ("traces",)
#: Begins the signature of every survey's table.
_MARK = "survey"

Progress = Callable[[int, int], None]


def survey(
    folder: Path | str, output: Path | str = "survey.parquet", *, jobs: int | None = None, client: Any = None,
    anonymous: bool = False, seconds: float = 120.0, progress: Progress | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Bring the table `output` up to date with the traces below `folder` and return it (units in ``attrs``).

    Only traces that are new or changed are read: `jobs` at a time (default: the cores of this process), each
    in a child process that one trace may break, for `seconds` at most; or on the workers of a Dask `client`.
    A trace that cannot be read has a row with its reason. What was read is kept at any interruption.
    `anonymous`: pseudonyms for users, and no paths, commands and sentences. `progress` is called with how
    many of the traces are done, and how many there are. ``attrs["lost"]`` has a sentence for each folder that
    cannot be looked at. UserError where `folder` has no traces, or another survey fills the table.
    """
    folder, output = Path(folder), Path(output)
    key = survey_key() if anonymous else None
    found, lost = find_traces(folder, key or "")
    signature = _signature(folder, key)
    _refuse_other(output, signature)
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: at least one is needed")
    jobs = jobs or len(os.sched_getaffinity(0))
    limits = Limits(seconds, memory_each(jobs), key)
    try:
        with FileLock(output.with_name(f".{output.name}.lock"), _HELD):
            with Journal(output, signature) as journal:
                rows = _current(found, [*(known_rows(output, signature) or ()), *journal.rows()])
                missing = [each for each in found if each.log not in rows]
                made = (
                    read_on_cluster(missing, limits, client) if client else read_here(missing, limits, jobs)
                )
                try:
                    with contextlib.closing(made):
                        _fill(rows, made, journal, len(found), progress)
                finally:  # also when interrupted: what there is, is a table
                    ordered = [rows[each.log] for each in found if each.log in rows]
                    write_table(output, ordered, JOBS, signature)
            journal.path.unlink(missing_ok=True)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else f"{output}: "
        raise UserError(f"{where}{error.strerror or error}: run the same command again to resume") from None
    table = load_survey(output)
    table.attrs["lost"] = lost
    return table


def load_survey(path: Path | str) -> pd.DataFrame:
    """Return a survey's table, units in ``attrs["units"]``; UserError where it is not there or damaged."""
    table = load_table(Path(path), _HOW, "log")
    table.attrs["units"] = dict(UNITS)
    return table


def load_findings(path: Path | str) -> pd.DataFrame:
    """Return a survey's findings, a row each: log, path, user, executable, then `schema.FINDING`."""
    return findings_of(load_survey(path))


def findings_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the findings of these rows of a survey, as `load_findings` does."""
    names = ["log", "path", "user", "executable", "core_s"]
    columns = [column.name for column in FINDING]
    rows = [
        [*(job[name] for name in names), *(finding[column] for column in columns)]
        for job in table[[*names, "findings"]].to_dict("records")
        if job["findings"] is not None
        for finding in job["findings"]
    ]
    return pd.DataFrame(rows, columns=[*names, *columns]).astype({"seconds": float, "share": float})


def _fill(rows: dict[str, Row], made: Any, journal: Journal, whole: int, progress: Progress | None) -> None:
    for row in made:
        journal.add(row)
        rows[row["log"]] = row
        if progress:
            progress(len(rows), whole)


def _current(found: list[Found], known: list[Row]) -> dict[str, Row]:
    """Return the known rows of traces that are there and have not changed, by name."""
    states = {each.log: (each.size, each.stamp) for each in found}
    return {
        row["log"]: row
        for row in known
        if states.get(row["log"]) == (row["log_bytes"], row["log_stamp"]) and not _ours(row["reason"])
    }


def _ours(reason: str) -> bool:
    """Say whether a trace was not read for what is no fault of its, or for want of time, of which there may
    be more now: it is tried again."""
    return NEEDED in reason or reason.startswith((DEFECT, LATE))


def _signature(folder: Path, key: str | None) -> str:
    """Name the folder (which a table may not tell), how its rows are made, and the code that makes them."""
    place = named(os.fsencode(folder.resolve()), key or "")
    return f"{_MARK} {place} {'anonymous' if key else 'plain'} {code_signature(_CODE)}"


def _refuse_other(output: Path, signature: str) -> None:
    """UserError where `output` is there and no survey of the same folder."""
    if not output.parent.is_dir():
        raise UserError(f"{output.parent}: no such folder")
    if not output.exists():
        return
    try:
        said = (pq.read_schema(output).metadata or {}).get(b"tiercel", b"").decode()
    except pa.ArrowException:
        raise UserError(
            f"{output}: is damaged, or no table at all: remove it, or name another file (-o)"
        ) from None
    if not said.startswith(f"{_MARK} "):
        raise UserError(f"{output}: is there and is no survey: name another file (-o)")
    if said.split()[1] != signature.split()[1]:
        raise UserError(f"{output}: is the survey of another folder: name another file (-o)")
