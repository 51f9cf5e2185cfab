"""The application table: predicted against measured best, sample by sample, with totals (section VII.B)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tiercel.placement.applications.truth import load_samples
from tiercel.placement.dataset import KEPT
from tiercel.placement.model import PlacementModel
from tiercel.placement.predict import predict_groups
from tiercel.placement.score import differ, score
from tiercel.results.raw import write_json


def score_applications(
    model: PlacementModel, results: Path, home: str | None = None, cache: Path | None = None
) -> dict[str, Any]:
    """Return rows, totals by application, and the total, as plain values for JSON.

    `chosen` is the system with the shortest expected time, as the paper's model chooses; `plan` is what a
    plan does: it stays at `home` (default: the first system) where it is not sure.
    """
    table, more = load_samples(results, model.systems, cache)
    home = home or model.systems[0]
    parts = []
    for folder, files in more["files"].items():
        found = predict_groups(model, files, files["group"], home)
        parts.append(found.set_axis([f"{folder}/{g}" for g in found.index]))
    predicted = pd.concat(parts).reindex(table.index)
    table["chosen"], table["plan"] = predicted["best"], predicted["system"]
    table["decided"], table["confidence"] = predicted["decided"].astype(bool), predicted["confidence"]
    table["reason"] = predicted["reason"]
    speed = table[[f"bandwidth:{s}" for s in model.systems]].to_numpy()
    table["best"] = np.array(model.systems, dtype=object)[speed.argmax(axis=1)]
    table["differ"] = differ(table)
    totals = {str(a): _totals(part, model.systems) for a, part in table.groupby("application")}
    rows = [
        {
            "application": r["application"], "variant": r["variant"], "group": r["group"],
            "files": int(r["files"]),
            "bytes": int(r["bytes"]), **{f"bandwidth:{s}": float(r[f"bandwidth:{s}"]) for s in model.systems},
            "best": r["best"], "differ": bool(r["differ"]), "chosen": r["chosen"],
            "right": bool(r["best"] == r["chosen"]),
            "plan": r["plan"], "decided": bool(r["decided"]), "confidence": float(r["confidence"]),
            "reason": r["reason"],
        }
        for _, r in table.iterrows()
    ]  # fmt: skip
    return {
        "home": home,
        "rows": rows,
        "applications": totals,
        "total": _totals(table, model.systems),
        "notes": more["notes"],
    }


def keep(folder: Path, scored: dict[str, Any], sweep: pd.DataFrame) -> None:
    """Write what :func:`score_applications` returned beside the sweep, with the sweep's digest."""
    write_json(folder / KEPT, scored | {"sweep": sweep.attrs["provenance"]["sha256"]})


def _totals(part: pd.DataFrame, systems: list[str]) -> dict[str, Any]:
    part = part.copy()
    part.attrs["systems"] = systems
    clear = part["differ"].to_numpy(dtype=bool)
    decided = part[part["decided"]].copy()
    decided.attrs["systems"] = systems
    return {
        "chosen": score(part, part["chosen"].to_numpy(dtype=object), clear).row(),
        "plan": score(part, part["plan"].to_numpy(dtype=object), clear).row(),
        "decided": score(
            decided, decided["plan"].to_numpy(dtype=object), decided["differ"].to_numpy(dtype=bool)
        ).row(),
        "abstained": float(1 - part["decided"].mean()),
    }
