"""Groups of files of traced workloads: what each did on each storage, and where it is best used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from tiercel.placement.copying import Amount, Rates, Staging, staging
from tiercel.report.data import Results
from tiercel.report.recommend.copying import of_groups
from tiercel.report.recommend.model import LITTLE, SYNCED, Calls, GroupAdvice, Recommendation
from tiercel.report.room import free_bytes
from tiercel.traced import load_trace_groups
from tiercel.traced.tables import GROUPS


def groups_of(results: Results, folder: Path) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the file groups of the traced runs of this study's main engines, by experiment and workload."""
    if not (folder / GROUPS).exists():
        return {}
    table = load_trace_groups(folder, results.study.study)
    if table.empty:
        return {}
    table = table.copy()
    table["storage_stack"] = [
        s if n == "none" else f"{s}+{n}" for s, n in zip(table["storage"], table["layer"], strict=True)
    ]
    current = set(results.runs["configuration"])
    table = table[table["configuration"].isin(current)]
    found = {}
    for (experiment, workload), rows in table.groupby(["experiment", "workload"], sort=False):
        key = (str(experiment), str(workload))
        found[key] = rows[rows["engine"] == results.main_engine(*key)]
    return found


def group_advice(
    results: Results, made: Recommendation, rates: Mapping[str, Rates], groups: pd.DataFrame | None
) -> Iterator[GroupAdvice]:
    if groups is None:
        return
    numbers = ["read_s", "write_s", "metadata_s", "sync_s", "size", "files", "bytes_read", "bytes_written"]
    found = groups[numbers].astype("float64")
    found = found.where(found.abs() < math.inf)
    seconds = found[["read_s", "write_s", "metadata_s", "sync_s"]].sum(axis=1)
    groups = groups.assign(
        seconds=seconds, size=found["size"], files=found["files"].fillna(0),
        of_files=found["metadata_s"].fillna(0) > seconds / 2,
        moved=found[["bytes_read", "bytes_written"]].sum(axis=1),
    )  # fmt: skip
    at_home = groups[groups["storage_stack"] == made.home]
    whole = at_home["seconds"].sum()
    for row in at_home.sort_values("seconds", ascending=False).to_dict("records"):
        same = groups[groups["group"] == row["group"]].groupby("storage_stack")
        calls = {
            str(k): Calls(float(v["seconds"].sum()), int(v["files"].sum()), float(v["moved"].sum()))
            for k, v in same
        }
        share = float(row["seconds"] / whole) if whole else 0.0
        target, stage = made.home, None
        # What costs no time decides nothing.
        if made.faster and made.unknown != SYNCED and share >= LITTLE and made.faster in calls:
            target = made.faster
            stage = _group_staging(made, of_groups(pd.DataFrame([row])), share, rates)
        free = free_bytes(results, target)
        yield GroupAdvice(
            made.of, str(row["group"]), int(row["files"]), float(row["size"]),
            _same_work(calls, made.home, bool(row["of_files"])), share, target, stage,
            target == made.home or free is None or not row["size"] > free, calls,
        )  # fmt: skip


def _same_work(calls: Mapping[str, Calls], home: str, of_files: bool) -> dict[str, float]:
    """Return the time in calls on each stack for as many files (`of_files`), or bytes, as at home."""
    found = {}
    for stack, c in calls.items():
        mine, at_home = (c.files, calls[home].files) if of_files else (c.bytes, calls[home].bytes)
        found[stack] = c.seconds * at_home / mine if mine and at_home else c.seconds
    return found


def _group_staging(
    made: Recommendation, amount: Amount, share: float, rates: Mapping[str, Rates]
) -> Staging | None:
    """Return what using one group elsewhere costs and saves: its share of the time of the whole.

    What a file's life saves is known for the workload, not for its groups: files and directories differ.
    """
    if made.staging is None:
        return None
    per = made.staging.per
    saved = made.staging.saved * share if per == "use" else math.nan
    reading = made.reading.times(share) if made.reading is not None else None
    stage = staging(made.home, made.faster, amount, rates, saved, reading=reading, per=per)
    return stage if math.isfinite(stage.seconds_in + stage.seconds_out) else None


def work_notes(results: Results, groups: Sequence[GroupAdvice]) -> Iterator[str]:
    """Yield the counts of groups whose traced runs did not do the same work."""
    said = [
        f"{g.group}: " + ", ".join(f"{c.files:,} on {results.name(s)}" for s, c in g.calls.items())
        for g in groups if g.share >= LITTLE and len({c.files for c in g.calls.values()}) > 1
    ]  # fmt: skip
    if said:
        yield (
            "A phase that ends after a time does more on a faster storage. The times of groups of files are "
            f"for as many files (or bytes) as at home; files in the traced runs: {'; '.join(said)}."
        )
