"""From one trace to a plan: which file on which system, how sure, why, and what it gains.

plan = place("run/trace", site="lassen")
plan.groups, plan.files        # pandas tables
plan.write(Path("plan"))       # placement.csv, plan.json, stage.sh, burst-buffer.map
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.errors import UserError, suggest
from tiercel.placement.choose import choose, staging_seconds
from tiercel.placement.dataset import placement_folder
from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import files_of
from tiercel.placement.groups import SYSTEM_FOLDERS, bundles_of, groups_of
from tiercel.placement.model import PlacementModel
from tiercel.placement.plan import Plan, file_table, summary_of
from tiercel.placement.predict import predict_groups
from tiercel.placement.room import capacities, home_of
from tiercel.project import project_root, results_folder
from tiercel.site import load_site
from tiercel.site.model import Site
from tiercel.traces import IOFrame, open_trace


def place(
    trace: Path | str,
    site: str = "local",
    *,
    study: str = "placement-sweep",
    home: str | None = None,
    confidence: float = CONFIDENCE,
    capacity: Mapping[str, int] | None = None,
    together: Iterable[str] = (),
    staging: bool = True,
    root: Path | None = None,
) -> Plan:
    """Return the plan for the program of a trace on a site.

    `home` is the system where the files live before and after the program (default: the one that most of the
    traced files lie on, else the one with most room). `capacity` limits systems to so many bytes (default:
    the site file's, else the free space; none for the home, where the files are anyway). `staging` counts
    the time to copy inputs in and results out.
    """
    root = root or project_root()
    machine = load_site(site, root)
    model = PlacementModel.load(placement_folder(results_folder(root, site), study), machine.site)
    return plan_of(open_trace(trace), machine, model, home, confidence, capacity or {}, together, staging)


def plan_of(
    frame: IOFrame,
    site: Site,
    model: PlacementModel,
    home: str | None = None,
    confidence: float = CONFIDENCE,
    capacity: Mapping[str, int] | None = None,
    together: Iterable[str] = (),
    staging: bool = True,
) -> Plan:
    """As `place`, from an open trace and a loaded model."""
    for name in [*([home] if home else []), *(capacity or {})]:
        if name not in model.systems:
            raise UserError(
                f"the model of site {site.site} knows no system {name!r}: {suggest(name, model.systems)}"
            )
    notes = [*frame.warnings, *model.notes]
    files = files_of(frame)
    own = ~files.index.str.startswith(SYSTEM_FOLDERS)
    if not own.all():
        notes.append(f"{int((~own).sum())} files of the operating system (/usr, /proc...) are left out")
    files = files[own]
    if files.empty:
        raise UserError("the trace shows only files of the operating system: nothing to place")
    facts = _facts(frame, files.index)
    home = home or home_of(site, model.systems, files, notes)
    groups = groups_of(files.index)
    bundles = bundles_of(groups, facts["renamed"], together)
    table = predict_groups(model, files, groups, home, confidence)
    table["bundle"] = bundles.reindex(table.index)
    table["size"] = facts["size"].groupby(groups).sum().reindex(table.index)
    stage = (
        staging_seconds(model, files, facts, groups, home)
        if staging
        else pd.DataFrame(0.0, index=table.index, columns=model.systems)
    )
    table["staged_in"] = facts["input"].groupby(groups).sum().reindex(table.index)
    table["staged_out"] = facts["output"].groupby(groups).sum().reindex(table.index)
    limits = capacities(site, model.systems, home, capacity or {}, notes)
    gap = choose(table, model.systems, stage, limits, home)
    if gap > 1e-6:
        notes.append(
            f"the assignment is within {gap:.2%} of the best: the solver's time limit ended the search"
        )
    per_file = file_table(table, files, groups, facts)
    summary = summary_of(table, model, home, limits, site)
    return Plan(site, home, table, per_file, summary, tuple(notes))


def _facts(frame: IOFrame, names: pd.Index) -> dict[str, Any]:
    """Return what staging and capacity need of each file: size, bytes to bring in, bytes to keep, renames."""
    table = frame.query(
        "SELECT file, max(\"offset\" + size) FILTER (kind IN ('read', 'write') AND \"offset\" >= 0) AS "
        "extent, "
        "coalesce(sum(size) FILTER (kind = 'write'), 0) AS written, "
        "count(*) FILTER (regexp_matches(function, '^(unlink|unlinkat|remove)$')) AS unlinks, "
        "count(*) FILTER (regexp_matches(function, '^(rename|renameat2?|link|linkat)$')) AS renames, "
        "arg_min(kind, time) FILTER (kind IN ('read', 'write')) AS first "
        "FROM events WHERE file IS NOT NULL AND api <> 'app' GROUP BY file"
    ).set_index("file")
    renamed = [str(f) for f in table.index[table["renames"] > 0]]
    table = table.reindex(names)
    size = table["extent"].fillna(table["written"]).fillna(0).astype(float)
    # What is read before anything was written was there before the program.
    found = table["first"] == "read"
    return {
        "size": size,
        "input": size.where(found, 0.0),
        "output": size.where((table["written"] > 0) & (table["unlinks"] == 0), 0.0),
        "renamed": renamed,
    }
