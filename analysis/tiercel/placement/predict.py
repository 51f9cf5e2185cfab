"""What a model expects of the files of a trace: time on every system, the better one, how sure, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import parts_of
from tiercel.placement.model import PlacementModel
from tiercel.units import format_latency

#: Share of a group's expected time that may lie outside the training data.
LITTLE = 0.1


def predict_groups(
    model: PlacementModel,
    files: pd.DataFrame,
    groups: pd.Series,
    home: str,
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """Return one row for each group of files (index: group).

    `files` is from ``features.files_of``, `groups` names each file's group, `home` is the system that files
    stay on unless another is better with `confidence` and beyond the noise floor. Columns: files, bytes_read,
    bytes_written, `seconds:S` (expected time in I/O calls on system S), system, gain (share of the time on
    `home` that is saved), gain_low and gain_high (90 %), confidence, decided, outside, reason.
    """
    parts = parts_of(files)
    speed = model.throughput_model.predict(parts)
    seconds = speed.rdiv(parts["bytes"], axis=0)
    group = parts["file"].map(groups)
    table = seconds.groupby(group.to_numpy()).sum().add_prefix("seconds:")
    table.index.name = "group"
    by_group = files.groupby(groups.reindex(files.index).to_numpy())
    table.insert(0, "files", by_group.size())
    for column in ("bytes_read", "bytes_written"):
        table[column] = by_group[column].sum()
    table["outside"] = _outside(model, parts, seconds[home], group).reindex(table.index)
    rows = [_decision(model, row, home, confidence) for _, row in table.iterrows()]
    return table.join(pd.DataFrame(rows, index=table.index))


def _outside(model: PlacementModel, parts: pd.DataFrame, seconds: pd.Series, group: pd.Series) -> pd.Series:
    """Return what of each group lies outside the training data: empty while it takes little of its time.

    Some odd bytes (a database's header) say nothing about where the file belongs.
    """
    words = pd.Series(model.outside(parts), index=parts.index)
    keys = group.to_numpy()
    share = seconds.where(words != "", 0.0).groupby(keys).sum() / seconds.groupby(keys).sum()
    first = words.groupby(keys).agg(lambda said: next((w for w in said if w), ""))
    return first.where(share > LITTLE, "")


def _decision(model: PlacementModel, row: pd.Series, home: str, confidence: float) -> dict[str, object]:
    learnt = model.throughput_model
    times = {s: float(row[f"seconds:{s}"]) for s in model.systems}
    best = min(times, key=lambda s: times[s])
    others = [s for s in model.systems if s != best]
    rival = home if best != home else min(others, key=lambda s: times[s])
    ratio = float(np.log2(times[rival] / times[best]))
    sure = learnt.confidence(best, rival, ratio)
    low, high = learnt.gain_interval(best, rival, ratio)
    floor = learnt.floors[best, rival]
    took = f"{format_latency(times[best])} against {format_latency(times[rival])} on {rival}"
    decided = True
    if ratio <= floor:
        decided, reason = False, f"{best} and {rival} do not differ by more than noise ({took})"
    elif sure < confidence:
        decided, reason = False, f"{best} is expected faster ({took}), but only {sure:.0%} sure"
    else:
        reason = f"{best} is expected faster: {took}"
    if row["outside"]:
        # No error of the model is known out there, so no confidence either.
        decided = False
        reason = f"outside the training data ({row['outside']}); {reason}"
    system = best if decided else home
    gain_of_best = 1 - times[best] / times[home]
    moved = best != home
    return {
        "best": best,
        "system": system,
        "gain": 1 - times[system] / times[home],
        "gain_of_best": gain_of_best,
        "gain_low": 1 - 2.0**-low if moved else 0.0,
        "gain_high": 1 - 2.0**-high if moved else 0.0,
        "confidence": sure,
        "decided": decided,
        "reason": reason,
    }
