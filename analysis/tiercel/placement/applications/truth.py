"""From the traces of the applications to samples: each file group's measured throughput on every system.

As in section VII.B of paper 003: files of one run with the same features are one sample, its truth is the
system on which it measured faster; the model sees one trace, taken on one system.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tiercel.errors import UserError
from tiercel.placement.applications.measure import RECORD
from tiercel.placement.dataset import numbers_of
from tiercel.placement.features import files_of, whole_files
from tiercel.placement.groups import groups_of, pattern_of
from tiercel.results.raw import read_json
from tiercel.traces import open_trace


def load_samples(
    results: Path, systems: list[str], cache: Path | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return samples (rows: application/variant/group) on `systems`, and files by sample for predictions.

    The table has `bandwidth:S`... as ``dataset.load_sweep``; ``files`` maps each variant to its ``files_of``
    table. UserError when no application was run on all systems.
    """
    root = results / "placement" / "applications"
    variants = sorted(p for p in root.glob("*.*") if p.is_dir())
    rows, files, notes = [], {}, []
    for folder in variants:
        values, seen, why = _variant(folder, systems, cache)
        if why:
            notes.append(f"{folder.name} left out: {why}")
            continue
        files[folder.name] = seen
        rows.append(values)
    if not rows:
        raise UserError(
            f"{root}: no application was measured on all of {', '.join(systems)}: run `tiercel place "
            "apps`" + (f" ({notes[0]})" if notes else "")
        )
    whole = pd.concat(rows)
    table = whole[["application", "variant", "group", "bytes", "files"]].copy()
    for system in systems:
        table = table.join(numbers_of(whole[system], system))
    table.attrs["systems"] = systems
    return table, {"files": files, "notes": notes}


def _variant(
    folder: Path, systems: list[str], cache: Path | None
) -> tuple[pd.DataFrame | None, pd.DataFrame | None, str]:
    measured: dict[str, list[pd.DataFrame]] = {s: [] for s in systems}
    seen: pd.DataFrame | None = None
    for run in sorted(folder.iterdir()):
        system = run.name.rpartition(".r")[0]
        if system not in measured or not (run / RECORD).exists():
            continue
        record = read_json(run / RECORD)
        if record["status"] != "ok":
            continue
        frame = open_trace(run / "trace", cache=cache).where(f"starts_with(file, '{_sql(record['data'])}/')")
        times = _times(frame)
        if times.empty:
            return None, None, "its trace shows no reads or writes of its files"
        times.index = times.index.str.removeprefix(record["data"] + "/")
        measured[system].append(times)
        if seen is None and system == systems[0]:
            seen = files_of(frame)
            seen.index = seen.index.str.removeprefix(record["data"] + "/")
    if lacking := [s for s, runs in measured.items() if not runs]:
        return None, None, f"no good run on {', '.join(lacking)}"
    assert seen is not None
    groups = _merged(groups_of(seen.index), seen)
    seen["group"] = groups
    logs: dict[str, pd.Series] = {}
    for system, runs in measured.items():
        speeds = [_speed(run, seen) for run in runs]
        together = pd.concat(speeds, axis=1)
        logs[system] = pd.Series(
            [np.log2(v[~np.isnan(v)]) for v in together.to_numpy(dtype=float)],
            index=together.index,
            dtype=object,
        )
    values = pd.DataFrame(logs)
    values = values.dropna()
    application, _, variant = folder.name.partition(".")
    by_group = seen.groupby("group")
    values["application"], values["variant"], values["group"] = application, variant, values.index
    values["bytes"] = (by_group["bytes_read"].sum() + by_group["bytes_written"].sum()).reindex(values.index)
    values["files"] = by_group.size().reindex(values.index)
    values.index = pd.Index([f"{folder.name}/{g}" for g in values.index])
    return values, seen, ""


def _times(frame: Any) -> pd.DataFrame:
    """Return bytes and seconds in I/O calls of each file that was read or written (index: file)."""
    table = frame.query(
        "SELECT file, api, coalesce(sum(size) FILTER (kind IN ('read', 'write')), 0)::DOUBLE AS bytes, "
        "sum(duration) FILTER (kind IN ('read', 'write', 'metadata', 'sync')) AS seconds FROM events "
        "WHERE api IN ('posix', 'stdio') GROUP BY file, api"
    )
    # Buffered calls contain the system calls that they cause: count those alone, where the trace has them.
    has = set(table.loc[(table["api"] == "posix") & (table["bytes"] > 0), "file"])
    table = table[(table["api"] == "posix") | ~table["file"].isin(has)]
    found: pd.DataFrame = table.groupby("file")[["bytes", "seconds"]].sum()
    return found


def _speed(run: pd.DataFrame, seen: pd.DataFrame) -> pd.Series:
    """Return bytes/s of each group; names of temporary files differ from run to run, so by pattern."""
    known = seen["group"].to_dict()
    by_pattern = dict(zip(_patterns(seen.index), seen["group"], strict=True))
    group: Any = [
        known.get(f) or by_pattern.get(p) for f, p in zip(run.index, _patterns(run.index), strict=True)
    ]
    sums = run.assign(group=group).dropna(subset=["group"]).groupby("group")[["bytes", "seconds"]].sum()
    sums = sums[(sums["bytes"] > 0) & (sums["seconds"] > 0)]
    return sums["bytes"] / sums["seconds"]


def _patterns(names: pd.Index) -> list[str]:
    return [pattern_of(name) for name in names]


def _merged(groups: pd.Series, seen: pd.DataFrame) -> pd.Series:
    """Return groups joined where their features agree to a quarter of a power of two: they are one sample."""
    means = (whole_files(seen).groupby(groups.to_numpy()).mean() * 4).round()
    names = means.apply(tuple, axis=1)
    first: dict[Any, Any] = {}
    for group, key in names.items():
        first.setdefault(key, group)
    joined: pd.Series = groups.map({group: first[key] for group, key in names.items()})
    return joined


def _sql(text: str) -> str:
    return text.replace("'", "''")
