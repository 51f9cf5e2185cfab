"""One trace as a row of the table (`schema.JOBS`)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.errors import UserError, one_line
from tiercel.plain import plain
from tiercel.traces.analysis.tally import processes_time
from tiercel.traces.findings import Finding, explain
from tiercel.traces.findings.base import SEVERITIES
from tiercel.traces.frame import IOFrame, read_once
from tiercel.traces.readers.darshan import NO_DXT
from tiercel.traces.sources import Sources
from tiercel.traces.survey.find import Found
from tiercel.traces.survey.kinds import kind_of
from tiercel.traces.survey.numbers import numbers_of
from tiercel.traces.survey.private import pseudonym
from tiercel.traces.survey.schema import FINDING, JOBS

#: Begins the reason of a row that a defect of this program cost.
DEFECT = "an error of tiercel's own"
#: Darshan names a log USER_PROGRAM_idJOB-PROCESS_...
_USER = re.compile(r"(.+)_id\d+")


def row_of(found: Found, key: str | None = None) -> dict[str, Any]:
    """Return a trace's row; one that cannot be read gives a row that says why.

    With a `key` it is anonymous: no path, command or sentence, and a pseudonym for the user.
    """
    row = empty_row(found)
    try:
        with tempfile.TemporaryDirectory(prefix="tiercel-survey-") as name:
            files = tuple(Path(file) for file in found.files)
            frame = read_once(Sources(found.reader, files, files), Path(name))
            row |= _job(frame, found) | _rest(frame)
    except MemoryError:
        row["reason"] = "needs more memory than one trace is given"
    except UserError as error:
        row["reason"] = one_line(str(error)).removeprefix(f"{found.path}: ")
    except Exception as error:  # a defect costs one trace, and says so, and not a survey of thousands
        row["reason"] = one_line(f"{DEFECT}: {type(error).__name__}: {error}")
    if row["core_s"] and row["io_s"] is not None:
        row["io_share"] = row["io_s"] / row["core_s"]
        if row["gain_core_s"] is not None:  # no job can gain more than its processes had
            row["gain_core_s"] = min(row["gain_core_s"], row["core_s"])
    row["kind"], row["kind_reason"] = kind_of(row)
    return plain(_anonymous(row, found, key) if key else row)  # type: ignore[no-any-return]


def empty_row(found: Found, reason: str = "") -> dict[str, Any]:
    """Return a row without numbers."""
    return dict.fromkeys((column.name for column in JOBS), None) | {
        "log": found.log, "path": found.path, "log_bytes": found.size, "log_stamp": found.stamp,
        "format": found.reader, "reason": reason, "warnings": [],
    }  # fmt: skip


def _job(frame: IOFrame, found: Found) -> dict[str, Any]:
    said: Mapping[str, Any] = frame.metadata
    command = str(said.get("command") or "").strip()
    program = Path(command.split()[0]).name if command else None
    run = said.get("run_time") if "run_time" in said else frame.job_time if len(frame) else None
    took, ranks = processes_time(frame) or (None, said.get("ranks"))
    hosts = None
    if len(frame):
        hosts = int(frame.query("SELECT count(DISTINCT host) AS hosts FROM events")["hosts"].iloc[0])
    # Darshan's time 0 is the job's start; of other traces nothing is known before the first event.
    start = said.get("epoch") if "run_time" in said else frame.began
    return {
        "warnings": [w for w in frame.warnings if not w.startswith(NO_DXT)],
        "tracer": str(said.get("darshan_version") or said.get("version") or "") or None,
        "job": str(said["job"]) if said.get("job") is not None else None,
        "user": _user(found, program, said.get("user")),
        "executable": program,
        "command": command or None,
        "start": start,
        "end": start + run if start is not None and run is not None else None,
        "run_s": run,
        "ranks": int(ranks) if ranks else None,
        "hosts": hosts or None,
        "core_s": took,
    }


def _user(found: Found, program: str | None, number: Any) -> str | None:
    """Return the user's name as the log's own name says it, else the number that the log holds."""
    if found.reader == "darshan" and program and (named := _USER.match(Path(found.path).name)):
        name, cut, rest = named[1].rpartition(f"_{program}")
        if cut and not rest:
            return name
    return None if number is None else str(number)


def _rest(frame: IOFrame) -> dict[str, Any]:
    findings = explain(frame)
    worst = min(findings, key=_gravity, default=None)
    costly = [f for f in findings if f.seconds is not None]
    most = max(costly, key=lambda finding: finding.seconds or 0.0, default=None)
    return numbers_of(frame) | {
        "findings": [
            {column.name: getattr(finding, column.name) for column in FINDING} for finding in findings
        ],
        "worst_rule": worst and worst.rule,
        "worst_severity": worst and worst.severity,
        "worst_sentence": worst and worst.sentence,
        "gain_rule": most and most.rule,
        "gain_core_s": most and most.seconds,
    }


def _gravity(finding: Finding) -> tuple[int, float]:
    return SEVERITIES.index(finding.severity), -(finding.seconds or 0.0)


def _anonymous(row: dict[str, Any], found: Found, key: str) -> dict[str, Any]:
    """Take out what tells who it was. Names of logs and files hold users' names, and sentences hold those."""

    def clean(text: str) -> str:
        # The longest first: a folder's name may be part of a file's.
        told = {word for path in (found.path, *found.files) for word in (path, Path(path).name)}
        for word in sorted(filter(None, told), key=len, reverse=True):
            text = text.replace(word, "LOG")
        return text

    stands = row["user"] and pseudonym(row["user"], key)
    mounts = row["mounts"] and [
        {
            **each,
            "mount": "/".join(stands if part == row["user"] else part for part in each["mount"].split("/")),
        }
        for each in row["mounts"]
    ]
    findings = row["findings"] and [{**each, "sentence": None, "advice": None} for each in row["findings"]]
    return row | {
        "path": None,
        "job": None,
        "command": None,
        "user": stands,
        "worst_sentence": None,
        "mounts": mounts,
        "findings": findings,
        "reason": clean(row["reason"]),
        "warnings": [clean(w) for w in row["warnings"]],
    }
