"""The dataset of a sweep: one row for each configuration, its throughput and uncertainty on every system.

``sweep.parquet`` and ``sweep.json`` (where it comes from) in ``results/<site>/placement/<study>/``.
Columns: the features (see ``features``), the readable levels, and for each system S: ``bandwidth:S`` (median
over the repetitions, bytes/s), ``low:S``, ``high:S`` (smallest and largest), ``error:S`` (standard error of
the base-2 logarithm) and ``repetitions:S``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tiercel
from tiercel.atomic_file import drafted
from tiercel.errors import UserError, suggest
from tiercel.placement.features import NAMES, of_sweep
from tiercel.results.validity import FLAGS

FORMAT = 2
TABLE, PROVENANCE = "sweep.parquet", "sweep.json"
#: What its model says of applications, beside the sweep. Here, not with who writes it: the report needs the
#: name alone, and models take seconds to import.
KEPT = "applications.json"
#: Weight, in repetitions, of the spread that all configurations of a system share (moderation, as in
#: G. K. Smyth, "Linear models and empirical Bayes methods", 2004): three values alone tell no spread.
_PRIOR = 4.0
#: Columns for each system.
_OF_SYSTEM = ("bandwidth", "low", "high", "error", "repetitions")
_LEVELS = [
    "api", "collective", "file_view", "preallocate", "layout", "unique_directories", "pattern",
    "transfer_size", "bytes_per_process", "fsync",
]  # fmt: skip


def placement_folder(results: Path, study: str) -> Path:
    """Return where the dataset, the model and the plans of a sweep lie."""
    return results / "placement" / study


def build_sweep(results: Path, study: str) -> pd.DataFrame:
    """Make the dataset of `study` from the site's tables, write it, and return it.

    Numbers with a flag of severity invalid do not enter, nor configurations that lack a system; the
    provenance counts both. UserError when fewer than two systems or ten configurations are left.
    """
    from tiercel.results.observations import load_observations, load_runs  # noqa: PLC0415 -- pyarrow

    observations, runs = load_observations(results), load_runs(results)
    rows = observations[
        (observations["study"] == study)
        & (observations["role"] == "measured")
        & (observations["twin"] == "a")
        & ~observations["traced"].astype(bool)
        & observations["operation"].isin(["read", "write"])
        & observations["bandwidth"].notna()
    ]
    if rows.empty:
        raise UserError(f"{results}: no data runs of study {study}: run `tiercel evaluate --study {study}`")
    table, provenance = sweep_of(rows)
    failed = runs[(runs["study"] == study) & (runs["status"] != "ok")]
    provenance["failed_runs"] = {str(reason): int(n) for reason, n in failed["reason"].value_counts().items()}
    provenance["runs"] = int((runs["study"] == study).sum())
    folder = placement_folder(results, study)
    folder.mkdir(parents=True, exist_ok=True)
    with drafted(folder / TABLE) as draft:
        table.to_parquet(draft)
    provenance["sha256"] = _digest(folder / TABLE)
    (folder / PROVENANCE).write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    return load_sweep(folder)


def sweep_of(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the dataset in measured observations of one study, and where it comes from."""
    invalid = {code for code, flag in FLAGS.items() if flag.severity == "invalid"}
    bad = rows["flags"].map(lambda flags: bool(invalid.intersection(flags)))
    flags = rows["flags"].explode().value_counts()
    good = rows[~bad].copy()
    # A rebuilt engine is another one: numbers of the newest alone, so that none is compared with another's.
    version = good["engine_version"].iloc[good["began"].argmax()] if len(good) else ""
    older = good["engine_version"] != version
    good = good[~older]
    good["system"] = np.where(good["layer"] == "none", good["storage"], good["storage"] + "+" + good["layer"])
    good["key"] = good["experiment"] + "/" + good["workload"] + "/" + good["processes"].astype(str)
    systems = sorted(good["system"].unique())
    sites = sorted(good["site"].unique())
    engines = sorted((good["engine"] + " " + good["engine_version"]).unique())
    if len(systems) < 2:
        raise UserError(
            f"the sweep has {len(systems)} storage system ({', '.join(systems) or 'none'}): placement "
            "needs two or more"
        )
    if good["engine"].nunique() > 1:
        raise UserError(f"the sweep mixes engines ({', '.join(engines)}): use one engine for a sweep")
    values = (
        good.groupby(["key", "system"])["bandwidth"]
        .apply(lambda v: np.log2(v.to_numpy(dtype=float)))
        .unstack("system")
    )
    whole = values.dropna()
    if len(whole) < 10:
        raise UserError(
            f"only {len(whole)} of {len(values)} configurations have numbers on all of {', '.join(systems)}: "
            "finish the sweep (tiercel evaluate), or look at its failed runs (tiercel show)"
        )
    first = good.drop_duplicates("key").set_index("key").loc[whole.index]
    table = pd.concat(
        [
            first[["experiment", "workload"]],
            of_sweep(first).add_prefix("f:"),
            first[[*_LEVELS, "operation", "access"]],
        ],
        axis=1,
    )
    table["processes"] = first["processes"].astype(int)
    for system in systems:
        table = table.join(numbers_of(whole[system], system))
    provenance = {
        "format": FORMAT,
        "tiercel": tiercel.__version__,
        "site": sites[0] if len(sites) == 1 else sites,
        "study": str(rows["study"].iloc[0]),
        "origin": sorted(rows["origin"].unique()),
        "engine": engines,
        "systems": systems,
        "labels": {s: str(n) for s, n in good.groupby("system")["storage_label"].first().items()},
        "storage": {
            s: {"type": str(r["storage_type"]), "medium": str(r["medium"])}
            for s, r in good.groupby("system")[["storage_type", "medium"]].first().iterrows()
        },
        "kernel": sorted(good["kernel"].dropna().unique()),
        "host": sorted(good["host"].dropna().unique()),
        "began": float(good["began"].min()),
        "ended": float(good["began"].max()),
        "configurations": len(table),
        "left_out": {
            "configurations that lack a system": sorted(set(values.index) - set(whole.index)),
            "numbers flagged invalid": int(bad.sum()),
            "numbers of older engine versions": int(older.sum()),
        },
        "flags": {str(k): int(v) for k, v in flags.items() if isinstance(k, str)},
    }
    return table, provenance


def numbers_of(values: pd.Series, system: str) -> pd.DataFrame:
    """Return median, extremes and standard error of the logarithms in `values` (one array a row)."""
    count = values.map(len)
    variance = values.map(lambda v: v.var(ddof=1) if len(v) > 1 else np.nan)
    shared = float(variance.median()) if variance.notna().any() else np.nan
    freedom = (count - 1).clip(lower=0)
    spread = (_PRIOR * shared + variance.fillna(0.0) * freedom) / (_PRIOR + freedom)
    return pd.DataFrame(
        {
            f"bandwidth:{system}": 2.0 ** values.map(np.median),
            f"low:{system}": 2.0 ** values.map(np.min),
            f"high:{system}": 2.0 ** values.map(np.max),
            f"error:{system}": np.sqrt(spread / count),
            f"repetitions:{system}": count,
        }
    )


def load_sweep(folder: Path | str) -> pd.DataFrame:
    """Return the dataset in `folder`; ``table.attrs`` has `systems`, `provenance` and `path`.

    UserError when it is missing, of another format, or not the table that its provenance describes.
    """
    folder = Path(folder)
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        table = pd.read_parquet(folder / TABLE)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: no such file: run `tiercel place sweep`") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: not a complete dataset: {error}: run `tiercel place sweep`") from None
    if provenance.get("format") != FORMAT:
        raise UserError(
            f"{folder / PROVENANCE}: format {provenance.get('format')}, not {FORMAT}: run `tiercel "
            "place sweep`"
        )
    if provenance.get("sha256") != _digest(folder / TABLE):
        raise UserError(
            f"{folder / TABLE}: is not the table that {PROVENANCE} describes: run `tiercel place sweep`"
        )
    table.attrs.update(systems=provenance["systems"], provenance=provenance, path=str(folder))
    return table


def named(table: pd.DataFrame, name: Callable[[str], str]) -> pd.DataFrame:
    """Return a dataset whose systems have other names, no two the same: those for people."""
    systems = {s: name(s) for s in table.attrs["systems"]}
    parts = {f"{part}:{s}": f"{part}:{said}" for s, said in systems.items() for part in _OF_SYSTEM}
    found = table.rename(columns=parts)
    found.attrs.update(table.attrs)
    found.attrs["systems"] = list(systems.values())
    return found


def of_systems(table: pd.DataFrame, systems: list[str]) -> pd.DataFrame:
    """Return the dataset for some of its systems only. UserError for an unknown one, or fewer than two."""
    for name in systems:
        if name not in table.attrs["systems"]:
            raise UserError(
                f"{table.attrs['path']}: no system {name!r} in the sweep: "
                f"{suggest(name, table.attrs['systems'])}"
            )
    chosen = [s for s in table.attrs["systems"] if s in systems]
    if len(chosen) < 2:
        raise UserError(f"placement needs two systems or more (given: {', '.join(chosen) or 'none'})")
    found = table.copy()
    found.attrs = {**table.attrs, "systems": chosen}
    return found


def vectors(table: pd.DataFrame) -> pd.DataFrame:
    """Return the feature columns, named as in ``features.FEATURES``."""
    return table[[f"f:{name}" for name in NAMES]].set_axis(list(NAMES), axis=1)


def throughput(table: pd.DataFrame) -> pd.DataFrame:
    """Return bytes/s: one row for each configuration, one column for each system."""
    systems = table.attrs["systems"]
    return table[[f"bandwidth:{s}" for s in systems]].set_axis(systems, axis=1)


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Return standard errors of log2(bytes/s), shaped as ``throughput``."""
    systems = table.attrs["systems"]
    return table[[f"error:{s}" for s in systems]].set_axis(systems, axis=1)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
