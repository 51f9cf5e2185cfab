"""From one trace to a plan: which file on which system, how sure, why, and what it gains.

plan = place("run/trace", site="lassen")
plan.groups, plan.files        # pandas tables
write_plan(plan, Path("plan"))  # placement.csv, plan.json, stage.py, burst-buffer.map
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.errors import UserError, suggest
from tiercel.placement.basis import basis_of
from tiercel.placement.choose import choose, staging_seconds
from tiercel.placement.estimate import Estimator
from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import files_of
from tiercel.placement.groups import SYSTEM_FOLDERS, bundles_of, groups_of
from tiercel.placement.plan import PlacementPlan, file_table, summary_of
from tiercel.placement.predict import predict_groups
from tiercel.placement.room import capacities, character_of, home_of, mounts_of
from tiercel.placement.spent import spent_on, under_home
from tiercel.project import project_root, results_folder
from tiercel.site import load_site
from tiercel.site.model import Site
from tiercel.traces import IOFrame, open_trace
from tiercel.units import format_share


def place(
    trace: Path | str,
    site: str = "local",
    *,
    study: str | None = None,
    home: str | None = None,
    confidence: float = CONFIDENCE,
    capacity: Mapping[str, int] | None = None,
    together: Iterable[str] = (),
    staging: bool = True,
    root: Path | None = None,
) -> PlacementPlan:
    """Return the plan for the program of a trace on a site.

    `home` is the system where the files live before and after the program (default: the one that most of the
    traced files lie on, else the one with most room). `capacity` limits systems to so many bytes (default:
    the site file's, else the free space; none for the home, where the files are anyway). `staging` counts
    the time to copy inputs in and results out. What is expected comes from `study`: its model, its sweep, or
    else its measurements; by default from the first of these that the site has (``basis.basis_of``).
    """
    root = root or project_root()
    machine = load_site(site, root)
    estimator = basis_of(results_folder(root, site), machine.site, study)
    return plan_of(open_trace(trace), machine, estimator, home, confidence, capacity or {}, together, staging)


def plan_of(
    frame: IOFrame,
    site: Site,
    estimator: Estimator,
    home: str | None = None,
    confidence: float = CONFIDENCE,
    capacity: Mapping[str, int] | None = None,
    together: Iterable[str] = (),
    staging: bool = True,
) -> PlacementPlan:
    """As `place`, from an open trace and a loaded model or measurements."""
    for name in [*([home] if home else []), *(capacity or {})]:
        if name not in estimator.systems:
            raise UserError(
                f"the {estimator.basis} of site {site.site} knows no system {name!r}: "
                f"{suggest(name, estimator.systems)}"
            )
    notes = [*frame.warnings, *estimator.notes]
    files = files_of(frame)
    own = ~files.index.str.startswith(SYSTEM_FOLDERS) | files.index.str.startswith(_mounted(site))
    if not own.all():
        notes.append(f"{int((~own).sum())} files of the operating system (/usr, /proc...) are left out")
    files = files[own]
    if files.empty:
        raise UserError("the trace shows only files of the operating system: nothing to place")
    facts = _facts(frame, files.index)
    home = home or home_of(site, estimator.systems, files, notes)
    groups = groups_of(files.index)
    bundles = bundles_of(groups, facts["renamed"], together)
    spent = _spent(frame, site, estimator, files, groups, home, notes)
    table = predict_groups(estimator, files, groups, home, confidence, spent)
    table["bundle"] = bundles.reindex(table.index)
    table["size"] = facts["size"].groupby(groups).sum().reindex(table.index)
    stage = (
        staging_seconds(estimator, files, facts, groups, home)
        if staging
        else pd.DataFrame(0.0, index=table.index, columns=estimator.systems)
    )
    table["staged_in"] = facts["input"].groupby(groups).sum().reindex(table.index)
    table["staged_out"] = facts["output"].groupby(groups).sum().reindex(table.index)
    limits = capacities(site, estimator.systems, home, capacity or {}, notes)
    gap = choose(table, estimator.systems, stage, limits, home)
    if gap > 1e-6:
        notes.append(
            f"the assignment is within {format_share(gap, 2)} of the best: the solver's time limit ended the "
            "search"
        )
    for system in estimator.systems:
        if system != home and (words := character_of(site, system)["words"]):
            there = table["system"] == system
            table.loc[there, "reason"] += f" ({', '.join(words)})"
    layered = sorted(s for s in set(table["system"]) - {home} if "+" in s)
    notes += [f"{s}: run the program through that layer; staging only puts the files there" for s in layered]
    per_file = file_table(table, files, groups, facts)
    summary = summary_of(table, estimator, home, limits, site)
    return PlacementPlan(site, home, table, per_file, summary, tuple(notes), tuple(facts["made_folders"]))


def _spent(
    frame: IOFrame,
    site: Site,
    estimator: Estimator,
    files: pd.DataFrame,
    groups: pd.Series,
    home: str,
    notes: list[str],
) -> pd.DataFrame | None:
    """Return what the trace measured of the groups that lay at home whole (index: group), else None."""
    spent = spent_on(frame, files)
    if spent is None:
        notes.append("the trace has no times of calls, so expected times are not held against it")
        return None
    there = pd.Series(under_home(files.index, mounts_of(site, list(site.storages)), home), files.index)
    own = groups.reindex(files.index).to_numpy()
    whole = there.groupby(own).all()
    if not whole.all():
        notes.append(
            f"{int((~whole).sum())} of {len(whole)} groups of files did not lie on {home} when they were "
            "traced, so their expected times are not held against the trace"
        )
    return spent.groupby(own).sum()[whole] if whole.any() else None


def _mounted(site: Site) -> tuple[str, ...]:
    """Return the storage systems that are mounted in a folder of the operating system (/dev/shm)."""
    mounts = (s.mount.rstrip("/") + "/" for s in site.storages.values())
    return tuple(m for m in mounts if m.startswith(SYSTEM_FOLDERS))


def _facts(frame: IOFrame, names: pd.Index) -> dict[str, Any]:
    """Return what staging and capacity need of each file: size, bytes to bring in, bytes to keep, renames."""
    table = frame.query(
        "SELECT file, max(\"offset\" + size) FILTER (kind IN ('read', 'write') AND \"offset\" >= 0) AS "
        "extent, "
        "coalesce(sum(size) FILTER (kind = 'write'), 0) AS written, "
        "max(time) FILTER (kind = 'write') AS last_write, "
        "max(time) FILTER (regexp_matches(function, '^(unlink|unlinkat|remove)$')) AS unlinked, "
        "count(*) FILTER (regexp_matches(function, '^(rename|renameat2?|link|linkat)$')) AS renames, "
        "arg_min(kind, time) FILTER (kind IN ('read', 'write')) AS first "
        "FROM events WHERE file IS NOT NULL AND api <> 'app' GROUP BY file"
    ).set_index("file")
    renamed = [str(f) for f in table.index[table["renames"] > 0]]
    folders = frame.query(
        "SELECT DISTINCT file FROM events WHERE regexp_matches(function, '^mkdir(at)?$') AND file IS NOT NULL"
    )
    table = table.reindex(names)
    size = table["extent"].fillna(table["written"]).fillna(0).astype(float)
    # What is read before anything was written was there before the program.
    found = table["first"] == "read"
    return {
        "size": size,
        "input": size.where(found, 0.0),
        # What was written after it was last removed is there after the program.
        "output": size.where((table["written"] > 0) & ~(table["unlinked"] >= table["last_write"]), 0.0),
        "made": ~found | (table["renames"] > 0) | table["unlinked"].notna(),
        "renamed": renamed,
        "made_folders": sorted(str(f).rstrip("/") for f in folders["file"]),
    }
