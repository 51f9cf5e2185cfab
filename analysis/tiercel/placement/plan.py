"""A plan: which file group lies on which system, with what it gains, as tables for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tiercel.placement.estimate import Estimator
from tiercel.placement.features import readable, whole_files
from tiercel.placement.room import character_of
from tiercel.site.model import Site


@dataclass(frozen=True)
class PlacementPlan:
    """`groups`: a row for each file group; `files`: one for each file; `summary`: totals as plain values.

    `made_folders`: folders that the program makes itself.
    """

    site: Site
    home: str
    groups: pd.DataFrame
    files: pd.DataFrame
    summary: dict[str, Any]
    notes: tuple[str, ...] = field(default=())
    made_folders: tuple[str, ...] = ()


def file_table(
    table: pd.DataFrame, files: pd.DataFrame, groups: pd.Series, facts: dict[str, Any]
) -> pd.DataFrame:
    """Return one row for each file: what its group was given, and its features (`features.FEATURES`).

    Features are in bytes, counts and shares, as in the paper's prediction (003, figure 9).
    """
    own = table.loc[groups.reindex(files.index).to_numpy()]
    given = pd.DataFrame(
        {
            "group": own.index, "system": own["system"].to_numpy(), "gain": own["gain"].to_numpy(),
            "confidence": own["confidence"].to_numpy(), "bytes": facts["size"].to_numpy(),
            "input": (facts["input"] > 0).to_numpy(), "output": (facts["output"] > 0).to_numpy(),
            "made": facts["made"].to_numpy(), "reason": own["reason"].to_numpy(),
        },
        index=files.index,
    )  # fmt: skip
    return given.join(readable(whole_files(files)))


def summary_of(
    table: pd.DataFrame, estimator: Estimator, home: str, limits: dict[str, float], site: Site
) -> dict[str, Any]:
    """Return the plan's totals. Times in seconds of I/O calls, sizes in bytes.

    `traced_seconds_at_home` is what the trace itself measured there, of the groups that lay there, and
    `expected_seconds_before` what was expected of these before it was held against that.
    """
    at_home = float(table[f"seconds:{home}"].sum())
    moved = table[table["system"] != home]
    used = table.groupby("system")["size"].sum()
    held = table["traced"].notna()
    return {
        "site": site.site, "home": home, "systems": estimator.systems, "model": estimator.study,
        "basis": estimator.basis,
        "groups": len(table), "files": int(table["files"].sum()),
        "moved_groups": len(moved), "moved_files": int(moved["files"].sum()),
        "undecided_groups": int((~table["decided"].astype(bool)).sum()),
        "outside_groups": int((table["outside"] != "").sum()),
        "expected_seconds_at_home": at_home,
        "expected_seconds": at_home - float(table["saved_seconds"].sum()),
        "expected_gain": float(table["saved_seconds"].sum() / at_home) if at_home else 0.0,
        "held_groups": int(held.sum()),
        "corrected_groups": int((table["held"] != "").sum()),
        "traced_seconds_at_home": float(table.loc[held, "traced"].sum()) if held.any() else None,
        "expected_seconds_before": float(table.loc[held, "before"].sum()) if held.any() else None,
        "staging_seconds": float(at_system(table, "staging").sum()),
        "bytes": {s: int(used.get(s, 0)) for s in estimator.systems},
        "capacity": {s: (None if np.isinf(v) else int(v)) for s, v in limits.items()},
        "storages": {
            s: {**character_of(site, s), "bytes": int(used.get(s, 0)),
                "capacity_left": None if np.isinf(v) else int(v - used.get(s, 0))}
            for s, v in limits.items()
        },
    }  # fmt: skip


def at_system(groups: pd.DataFrame, quantity: str) -> NDArray[np.float64]:
    """Return column ``quantity:SYSTEM`` of every group at its own system."""
    names = list(groups.columns)
    columns = [names.index(f"{quantity}:{system}") for system in groups["system"]]
    return np.array([groups.iat[row, column] for row, column in enumerate(columns)], dtype=np.float64)
