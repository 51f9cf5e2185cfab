"""What the rows of a survey say: what kinds of I/O there are, who is slow and why, who would gain most.

Core-hours are seconds summed over processes, over 3600. What a finding costs is an upper bound, several may
be about the same calls, and so the sums of rules overlap; those of users and executables take of each job
the costliest finding alone.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pandas as pd

from tiercel.errors import UserError, suggest
from tiercel.traces.analysis.imbalance import judged
from tiercel.traces.findings.base import HINT
from tiercel.traces.survey.kinds import KINDS
from tiercel.traces.survey.schema import MOUNT
from tiercel.traces.survey.table import findings_of
from tiercel.units import format_bandwidth, format_latency

By = Literal["executable", "user", "rule"]
#: Stands for the executable or user of jobs whose logs do not tell it.
_NOT_TOLD = "(not told)"
RANKINGS: tuple[By, ...] = ("executable", "user", "rule")
#: Of fewer like jobs nobody can say which is out of line.
_LIKE = 5
_HOUR = 3600.0
_PARTS = {"read_s": ("reads", "bytes_read"), "write_s": ("writes", "bytes_written"),
          "metadata_s": ("metadata calls", "")}  # fmt: skip


def answers(table: pd.DataFrame, by: By | None = None, limit: int = 10) -> dict[str, Any]:
    """Return the page as plain values; `limit` (0: all) is for each list, `by` leaves one ranking alone.

    `table` is a survey's (`load_survey`), or those of its rows that are asked about.
    """
    if by is not None and by not in RANKINGS:
        raise UserError(f"--by {by}: {suggest(by, RANKINGS)}")
    if limit < 0:
        raise UserError(f"--limit {limit}: 0 (all) or more")
    read = table[table["reason"] == ""]
    rankings = {
        "rules": lambda: rules(read), "executables": lambda: gains(read, "executable"),
        "users": lambda: gains(read, "user"),
    }  # fmt: skip
    wanted = [name for name in rankings if by is None or name == f"{by}s"]
    whole = {
        "jobs": len(table),
        "read": len(read),
        "warned": int(read["warnings"].map(len).gt(0).sum()),
        "unreadable": _head(unreadable(table), limit),
        "began": _number(read["start"].min()),
        "ended": _number(read["end"].max()),
        **_bytes(read),
        "bytes_unknown": int(read[list(_BYTES)].isna().any(axis=1).sum()),
        **_hours(read),
    }
    page = {name: _head(rankings[name](), limit) for name in wanted}
    if by is None:
        page |= {"kinds": kinds(read), "mounts": _head(mounts(read), limit), "slow": _head(slow(read), limit)}
    return whole | page


def _head(rows: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    return rows[:limit] if limit else rows


_BYTES = ("bytes_read", "bytes_written")


def _bytes(rows: pd.DataFrame) -> dict[str, int | None]:
    """Return the bytes of the jobs that tell them; None where there are jobs and none does."""
    return {
        name: int(known.sum()) if len(known := rows[name].dropna()) or not len(rows) else None
        for name in _BYTES
    }


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _hours(rows: pd.DataFrame) -> dict[str, Any]:
    """Return core-hours in all and in I/O; the share is of jobs that tell both."""
    both = rows[rows["core_s"].notna() & rows["io_s"].notna()]
    whole, io = float(both["core_s"].sum()), float(both["io_s"].sum())
    return {
        "core_hours": float(rows["core_s"].sum()) / _HOUR,
        "io_core_hours": float(rows["io_s"].sum()) / _HOUR,
        "io_share": io / whole if whole > 0 else None,
    }


def unreadable(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return reasons why traces could not be read, numbers in them as #, with how many and an example."""
    lost = table[table["reason"] != ""]
    alike = lost["reason"].map(lambda reason: re.sub(r"\d+", "#", reason))
    found = [
        {"reason": str(rows["reason"].iloc[0]), "jobs": len(rows), "example": rows["path"].iloc[0]}
        for _, rows in lost.groupby(alike, sort=False)
    ]
    return sorted(found, key=lambda each: -each["jobs"])


def kinds(read: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what kinds of I/O the jobs do, by number of jobs."""
    found = [
        {"kind": str(kind), "meaning": KINDS[str(kind)], "jobs": len(rows),
         **_bytes(rows), **_hours(rows)}
        for kind, rows in read.groupby("kind", sort=False)
    ]  # fmt: skip
    return sorted(found, key=lambda each: -each["jobs"])


def mounts(read: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what was done on each file system, by core-hours in I/O; of logs that know their mounts."""
    rows = [each for jobs in read["mounts"] if jobs is not None for each in jobs]
    table = pd.DataFrame(rows, columns=[column.name for column in MOUNT])
    found = [
        {"mount": mount, "type": kind, "jobs": len(each), "files": int(each["files"].sum()),
         **_bytes(each),
         "io_core_hours": float(each["io_s"].sum()) / _HOUR}
        for (mount, kind), each in table.groupby(["mount", "type"])
    ]  # fmt: skip
    return sorted(found, key=lambda each: -each["io_core_hours"])


def rules(read: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each rule's jobs and what it costs at most, and the executable that loses most by it."""
    findings = findings_of(read)
    # No job can lose more than its processes had.
    findings["lost"] = findings["seconds"].clip(upper=findings["core_s"].fillna(np.inf))
    whole = float(read["core_s"].sum())
    found = []
    for rule, rows in findings.groupby("rule", sort=False):
        programs = rows.groupby("executable")["lost"].sum().sort_values(ascending=False)
        lost = float(rows["lost"].sum())
        found.append({
            "rule": str(rule), "jobs": int(rows["log"].nunique()),
            "problems": int(rows.loc[rows["severity"] == "problem", "log"].nunique()),
            "core_hours": lost / _HOUR if rows["lost"].notna().any() else None,
            "share": lost / whole if whole > 0 and rows["lost"].notna().any() else None,
            "most": str(programs.index[0]) if len(programs) and programs.iloc[0] > 0 else None,
        })  # fmt: skip
    return sorted(found, key=lambda each: (-(each["core_hours"] or 0.0), -each["jobs"]))


def gains(read: pd.DataFrame, by: str) -> list[dict[str, Any]]:
    """Return executables or users (`by`), those first that could gain most, with the main reason."""
    found = []
    for name, rows in read.groupby(by, sort=False, dropna=False):
        by_rule = rows.groupby("gain_rule")["gain_core_s"].sum().sort_values(ascending=False)
        rule = str(by_rule.index[0]) if len(by_rule) else None
        mine = rows[rows["gain_rule"] == rule].sort_values("gain_core_s", ascending=False, kind="stable")
        worst = mine.iloc[0] if len(mine) else None
        whole = float(rows["core_s"].sum())
        gain = float(rows["gain_core_s"].sum())
        found.append({
            by: str(name) if pd.notna(name) else _NOT_TOLD, "jobs": len(rows), **_hours(rows),
            "gain_core_hours": gain / _HOUR,
            "gain_share": gain / whole if whole > 0 else None, "rule": rule,
            "rule_jobs": len(mine), "rule_core_hours": float(by_rule.iloc[0]) / _HOUR if rule else None,
            "sentence": None if worst is None else _sentence(worst, rule),
            "example": None if worst is None else worst["path"],
        })  # fmt: skip
    return sorted(found, key=lambda each: -each["gain_core_hours"])


def _sentence(job: Any, rule: str | None) -> str | None:
    return next((each["sentence"] for each in job["findings"] if each["rule"] == rule), None)


def slow(read: pd.DataFrame) -> list[dict[str, Any]]:
    """Return jobs whose processes spend much longer in I/O than those of like jobs: of the same executable,
    with as many processes and bytes within a factor of two or so. Those first that lost most."""
    jobs = read[read["executable"].notna() & read["ranks"].notna() & read["io_s"].notna()].copy()
    jobs["ranks"] = jobs["ranks"].astype(float)
    jobs["each"] = jobs["io_s"] / jobs["ranks"]
    moved = (jobs["bytes_read"] + jobs["bytes_written"]).astype(float)
    scale = [np.log2(jobs["ranks"]).round(), np.log2(moved + 1).round()]
    found = []
    for _, like in jobs.groupby([jobs["executable"], *scale], sort=False):
        if len(like) < _LIKE:
            continue
        ratios, verdicts = judged(like["each"].to_numpy(dtype=np.float64))
        for ratio, verdict, (_, job) in zip(ratios, verdicts, like.iterrows(), strict=True):
            median = job["each"] / ratio
            noticed = pd.isna(job["run_s"]) or job["each"] - median >= HINT * job["run_s"]
            if verdict == "slow" and noticed:
                others = like.drop(index=job.name)
                found.append(_slow_job(job, others, median, ratio))
    return sorted(found, key=lambda each: -each["lost_core_hours"])


def _slow_job(job: Any, others: pd.DataFrame, median: float, ratio: float) -> dict[str, Any]:
    each = {part: others[part] / others["ranks"] for part in _PARTS}
    more = {part: float(job[part] / job["ranks"] - each[part].median()) for part in _PARTS}
    part = max(more, key=lambda name: more[name])
    what, moved = _PARTS[part]
    mine, theirs = float(job[part] / job["ranks"]), float(each[part].median())
    why = f"{what} take {format_latency(mine)} a process, the others' {format_latency(theirs)}"
    if moved and job[moved] and float(others[moved].sum()) > 0 and job[part] > 0:
        rates = (others[moved].astype(float) / others[part].where(others[part] > 0)).dropna()
        why += (
            f" ({format_bandwidth(float(job[moved]) / float(job[part]))} in calls against "
            f"{format_bandwidth(float(rates.median()))})"
        )
    return {
        **{name: job[name] for name in ("log", "path", "job", "user", "executable")},
        "start": _number(job["start"]), "ranks": int(job["ranks"]), "like_jobs": len(others),
        "io_s_each": float(job["each"]), "median_s": float(median), "ratio": float(ratio),
        "part": part.removesuffix("_s"), "why": why,
        "lost_core_hours": float((job["each"] - median) * job["ranks"]) / _HOUR,
    }  # fmt: skip
