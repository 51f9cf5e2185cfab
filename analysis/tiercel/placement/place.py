"""From one trace to a plan: which file on which system, how sure, why, and what it gains.

plan = place("run/trace", site="lassen")
plan.groups, plan.files        # pandas tables
plan.write(Path("plan"))       # placement.csv, plan.json, stage.sh, burst-buffer.map
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tiercel.errors import UserError, suggest
from tiercel.placement.dataset import placement_folder
from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import NAMES, files_of
from tiercel.placement.groups import SYSTEM_FOLDERS, bundles_of, groups_of
from tiercel.placement.model import PlacementModel
from tiercel.placement.optimise import assign
from tiercel.placement.predict import predict_groups
from tiercel.project import project_root, results_folder
from tiercel.site import load_site
from tiercel.site.model import Site
from tiercel.traces import IOFrame, open_trace

#: Files are copied in pieces of this size when they are staged.
_COPY = 2**20


@dataclass(frozen=True)
class Plan:
    """`groups`: one row for each file group; `files`: one for each file; `summary`: totals, for people and
    JSON."""

    site: Site
    home: str
    groups: pd.DataFrame
    files: pd.DataFrame
    summary: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    def write(self, folder: Path) -> list[Path]:
        """Write the plan's files into `folder` and return their paths."""
        from tiercel.placement.staging import write_plan  # noqa: PLC0415 -- staging imports this file

        return write_plan(self, folder)


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
    home = home or _home(site, model.systems, files, notes)
    groups = groups_of(files.index)
    bundles = bundles_of(groups, facts["renamed"], together)
    table = predict_groups(model, files, groups, home, confidence)
    table["bundle"] = bundles.reindex(table.index)
    table["size"] = facts["size"].groupby(groups).sum().reindex(table.index)
    stage = (
        _staging(model, files, facts, groups, home)
        if staging
        else pd.DataFrame(0.0, index=table.index, columns=model.systems)
    )
    table["staged_in"] = facts["input"].groupby(groups).sum().reindex(table.index)
    table["staged_out"] = facts["output"].groupby(groups).sum().reindex(table.index)
    limits = _capacities(site, model.systems, home, capacity or {}, notes)
    gap = _choose(table, model.systems, stage, limits, home)
    if gap > 1e-6:
        notes.append(
            f"the assignment is within {gap:.2%} of the best: the solver's time limit ended the search"
        )
    per_file = _per_file(table, files, groups, facts)
    summary = _summary(table, model, home, limits, site)
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


def _home(site: Site, systems: list[str], files: pd.DataFrame, notes: list[str]) -> str:
    moved = files["bytes_read"] + files["bytes_written"]
    mounts = {s: site.storages[s].mount.rstrip("/") for s in systems if s in site.storages}
    there = dict.fromkeys(mounts, 0.0)
    for file, count in moved.items():
        on = max(
            (s for s, m in mounts.items() if str(file).startswith(m + "/")),
            key=lambda s: len(mounts[s]),
            default=None,
        )
        if on:
            there[on] += float(count)
    if any(there.values()):
        return max(there, key=lambda s: there[s])
    found = max(systems, key=lambda s: _room(site, s) or 0.0)
    notes.append(
        f"no traced file lies on a storage of site {site.site}, so {found} (most room) is taken as their "
        "home: --home"
    )
    return found


def _room(site: Site, system: str) -> float | None:
    """Return the bytes that may still be written to a system, None where nothing says."""
    import os  # noqa: PLC0415

    storage = site.storages.get(system.partition("+")[0])
    if storage is None:
        return None
    try:
        existing = next(p for p in (storage.scratch_path(), *storage.scratch_path().parents) if p.exists())
        space = os.statvfs(existing)
    except (OSError, UserError):
        return float(storage.capacity) if storage.capacity else None
    total = space.f_blocks * space.f_frsize
    free = space.f_bavail * space.f_frsize - (1 - storage.fill_limit) * total
    return max(0.0, min(free, float(storage.capacity)) if storage.capacity else free)


def _capacities(
    site: Site, systems: list[str], home: str, given: Mapping[str, int], notes: list[str]
) -> dict[str, float]:
    limits = {}
    for system in systems:
        room = given.get(system, float("inf") if system == home else _room(site, system))
        if room is None:
            notes.append(
                f"how much room {system} has is not known: no limit is assumed (--capacity {system}=SIZE)"
            )
        limits[system] = float("inf") if room is None else float(room)
    return limits


def _staging(
    model: PlacementModel, files: pd.DataFrame, facts: dict[str, Any], groups: pd.Series, home: str
) -> pd.DataFrame:
    """Return seconds to copy each group in and out again: shape (groups, systems)."""
    out = pd.DataFrame(0.0, index=groups.unique(), columns=model.systems)
    sums = {name: facts[name].groupby(groups).sum() for name in ("input", "output")}
    counts = {name: (facts[name] > 0).groupby(groups).sum() for name in ("input", "output")}
    for name in ("input", "output"):
        amount, count = sums[name].reindex(out.index), counts[name].reindex(out.index)
        moving = amount > 0
        if not moving.any():
            continue
        each = (amount / count.clip(lower=1))[moving]
        read = model.throughput_model.predict(_copying(each, "RO"))
        write = model.throughput_model.predict(_copying(each, "WO"))
        for system in model.systems:
            source, target = (home, system) if name == "input" else (system, home)
            if system != home:
                out.loc[moving, system] += amount[moving] * (1 / read[source] + 1 / write[target])
    return out


def _copying(sizes: pd.Series, history: str) -> pd.DataFrame:
    rows = pd.DataFrame(0.0, index=sizes.index, columns=list(NAMES))
    piece = sizes.clip(upper=_COPY, lower=1)
    rows["transfer_size"] = np.log2(piece)
    rows["accesses_per_open"] = np.log2((sizes / piece).clip(lower=1))
    rows["bytes_per_open"] = rows["transfer_size"] + rows["accesses_per_open"]
    rows[history] = 1.0
    return rows


def _choose(
    table: pd.DataFrame, systems: list[str], stage: pd.DataFrame, limits: dict[str, float], home: str
) -> float:
    """Set each group's system by the optimiser, and say where capacity, staging or company decided."""
    stage = stage.reindex(table.index)
    for system in systems:
        table[f"staging:{system}"] = stage[system]
    numbers = sorted(table["bundle"].unique())
    cost = np.zeros((len(numbers), len(systems)))
    allowed = np.ones_like(cost, dtype=bool)
    size = np.zeros(len(numbers))
    sure: dict[int, bool] = {}
    for row, number in enumerate(numbers):
        members = table[table["bundle"] == number]
        size[row] = members["size"].sum()
        for column, system in enumerate(systems):
            cost[row, column] = (members[f"seconds:{system}"] + members[f"staging:{system}"]).sum()
            # A group whose better system is not sure stays at home; a bundle moves when its sure members
            # gain.
            if system != home:
                allowed[row, column] = bool(
                    (members["decided"] & (members["best"] != home)).any()
                    and not (members["outside"] != "").any()
                )
        sure[number] = bool(allowed[row].sum() > 1)
    capacity = np.array([limits[s] for s in systems])
    answer = assign(cost, size, capacity, allowed)
    free = assign(cost, size, np.full(len(systems), np.inf), allowed)
    for row, number in enumerate(numbers):
        chosen, wished = systems[answer.system[row]], systems[free.system[row]]
        members = table["bundle"] == number
        alone = table.loc[members, "system"]
        table.loc[members, "system"] = chosen
        for group in alone.index[alone != chosen]:
            if wished != chosen:
                why = f"{wished} has no room left"
            elif members.sum() > 1 and chosen != home:
                why = f"kept together with {int(members.sum()) - 1} other groups, which gain more there"
            elif members.sum() > 1 and not sure[number]:
                why = "kept together with groups that must stay"
            else:
                why = "copying in and out costs more than it gains"
            table.loc[group, "reason"] = f"on {chosen}: {why} (alone: {table.loc[group, 'reason']})"
    spent = pd.Series(
        at_system(table, "seconds") + at_system(table, "staging"),
        index=table.index,
    )
    at_home = table[f"seconds:{home}"]
    table["saved_seconds"] = at_home - spent
    table["gain"] = 1 - spent / at_home
    return answer.gap


def _per_file(
    table: pd.DataFrame, files: pd.DataFrame, groups: pd.Series, facts: dict[str, Any]
) -> pd.DataFrame:
    own = table.loc[groups.reindex(files.index).to_numpy()]
    return pd.DataFrame(
        {
            "group": own.index, "system": own["system"].to_numpy(), "gain": own["gain"].to_numpy(),
            "confidence": own["confidence"].to_numpy(), "bytes": facts["size"].to_numpy(),
            "input": (facts["input"] > 0).to_numpy(), "output": (facts["output"] > 0).to_numpy(),
            "reason": own["reason"].to_numpy(),
        },
        index=files.index,
    )  # fmt: skip


def _summary(
    table: pd.DataFrame, model: PlacementModel, home: str, limits: dict[str, float], site: Site
) -> dict[str, Any]:
    at_home = float(table[f"seconds:{home}"].sum())
    moved = table[table["system"] != home]
    used = table.groupby("system")["size"].sum()
    return {
        "site": site.site, "home": home, "systems": model.systems, "model": model.card["data"]["study"],
        "groups": len(table), "files": int(table["files"].sum()),
        "moved_groups": len(moved), "moved_files": int(moved["files"].sum()),
        "undecided_groups": int((~table["decided"].astype(bool)).sum()),
        "outside_groups": int((table["outside"] != "").sum()),
        "expected_seconds_at_home": at_home,
        "expected_seconds": at_home - float(table["saved_seconds"].sum()),
        "expected_gain": float(table["saved_seconds"].sum() / at_home) if at_home else 0.0,
        "staging_seconds": float(at_system(table, "staging").sum()),
        "bytes": {s: int(used.get(s, 0)) for s in model.systems},
        "capacity": {s: (None if np.isinf(v) else int(v)) for s, v in limits.items()},
    }  # fmt: skip


def at_system(groups: pd.DataFrame, quantity: str) -> NDArray[np.float64]:
    """Return column ``quantity:SYSTEM`` of every group at its own system."""
    names = list(groups.columns)
    columns = [names.index(f"{quantity}:{system}") for system in groups["system"]]
    return np.array([groups.iat[row, column] for row, column in enumerate(columns)], dtype=np.float64)
