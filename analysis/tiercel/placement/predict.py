"""What is expected of the files of a trace: time on every system, the better one, how sure, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tiercel.placement.estimate import Estimator
from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import parts_of
from tiercel.placement.spent import LITTLE, hold
from tiercel.units import format_latency, format_share

_ANY = 1e30


def predict_groups(
    estimator: Estimator,
    files: pd.DataFrame,
    groups: pd.Series,
    home: str,
    confidence: float = CONFIDENCE,
    spent: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return one row for each group of files (index: group).

    `files` is from ``features.files_of``, `groups` names each file's group, `home` is the system that files
    stay on unless another is better with `confidence` and beyond the noise floor; `spent` is what the trace
    measured there, for groups that lie there (``spent.spent_on``, summed by group). Columns: files,
    bytes_read, bytes_written, `seconds:S` (expected time in I/O calls on system S; `data:S` and `sync:S`
    are its parts), traced and before (s on `home`: by the trace, and expected before it was held against
    that; missing where it was not), system, gain (share of the time on `home` that is saved), gain_low and
    gain_high (90 %), confidence, decided, outside, held, rests_on, reason.
    """
    if "syncs" not in files:
        writes = files["bytes_written"] / files["transfer_size"].clip(lower=1)
        files = files.assign(syncs=files["syncs_per_write"] * writes)
    parts = parts_of(files)
    data, sync = estimator.data_seconds(parts), estimator.sync_seconds(files)
    group, own = parts["file"].map(groups).to_numpy(), groups.reindex(files.index).to_numpy()
    table = pd.concat(
        [data.groupby(group).sum().add_prefix("data:"), sync.groupby(own).sum().add_prefix("sync:")], axis=1
    )
    table.index.name = "group"
    by_group = files.groupby(own)
    table.insert(0, "files", by_group.size())
    for column in ("bytes_read", "bytes_written"):
        table[column] = by_group[column].sum()
    words = pd.concat(
        [
            pd.DataFrame({"group": group, "words": estimator.outside(parts), "seconds": data[home]}),
            pd.DataFrame({"group": own, "words": estimator.outside_syncs(files), "seconds": sync[home]}),
        ]
    )
    table["outside"] = _outside(words).reindex(table.index)
    rests_on = _shares(
        [*group, *own],
        [*estimator.rests_on(parts), *estimator.syncs_rest_on(files)],
        [*data[home], *sync[home]],
    )
    table["rests_on"] = [max(rests_on[str(g)], key=rests_on[str(g)].__getitem__) for g in table.index]
    for column in ("traced", "before"):
        table[column] = np.nan
    table["held"], table["refused"] = "", ""
    if spent is not None:
        hold(table, spent, estimator.systems, home)
        both = (table["outside"] != "") & (table["refused"] != "")
        table["outside"] += both.map({True: "; ", False: ""}) + table["refused"]
    for system in estimator.systems:
        table[f"seconds:{system}"] = table[f"data:{system}"] + table[f"sync:{system}"]
    rows = [
        _decision(estimator, row, home, confidence, rests_on[str(name)]) for name, row in table.iterrows()
    ]
    return table.drop(columns="refused").join(pd.DataFrame(rows, index=table.index))


def _outside(words: pd.DataFrame) -> pd.Series:
    """Return why each group cannot be told: empty while what cannot takes little of its time.

    Some odd bytes (a database's header) say nothing about where the file belongs.
    """
    # What nothing at all is known of may take any time.
    seconds = words["seconds"].where((words["words"] == "") | (words["seconds"] > 0), _ANY)
    unknown = seconds.where(words["words"] != "", 0.0).groupby(words["group"]).sum()
    share = unknown / seconds.groupby(words["group"]).sum()
    first = words.groupby("group")["words"].agg(lambda said: next((w for w in said if w), ""))
    return first.where(share > LITTLE, "")


def _shares(group: Any, names: list[str], seconds: Any) -> dict[str, dict[str, float]]:
    """Return for each group the share of its time that each of `names` stands for."""
    found: dict[str, dict[str, float]] = {}
    for key, name, took in zip(group, names, seconds, strict=True):
        own = found.setdefault(str(key), {})
        if name:
            own[name] = own.get(name, 0.0) + float(took)
    for own in found.values():
        whole = sum(own.values()) or 1.0
        own.update({name: took / whole for name, took in own.items()})
    return found


def _decision(
    estimator: Estimator, row: pd.Series, home: str, confidence: float, rests_on: Mapping[str, float]
) -> dict[str, object]:
    times = {s: float(row[f"seconds:{s}"]) for s in estimator.systems}
    best = min(times, key=lambda s: (times[s], s != home))
    others = [s for s in estimator.systems if s != best]
    rival = home if best != home else min(others, key=lambda s: times[s])
    ratio = float(np.log2(times[rival] / times[best])) if times[best] > 0 else 0.0
    judged = estimator.judge(best, rival, ratio, rests_on)
    took = f"{format_latency(times[best])} against {format_latency(times[rival])} on {rival}"
    decided = False
    if row["outside"]:
        # No error is known out there, so no confidence either.
        reason = (
            f"{row['outside']}; {best} would be expected faster: {took}" if best != home else row["outside"]
        )
    elif ratio <= judged.floor:
        reason = f"{best} and {rival} do not differ by more than noise ({took})"
    elif judged.doubt:
        reason = f"{best} is expected faster ({took}), but {judged.doubt}"
    elif judged.confidence < confidence:
        reason = f"{best} is expected faster ({took}), but only {format_share(judged.confidence)} sure"
    else:
        decided, reason = True, f"{best} is expected faster: {took}"
    if row["held"]:
        reason += f" ({row['held']})"
    system = best if decided else home
    moved = best != home
    at_home = times[home] or 1.0
    return {
        "best": best,
        "system": system,
        "gain": 1 - times[system] / at_home,
        "gain_of_best": 1 - times[best] / at_home,
        "gain_low": 1 - 2.0**-judged.low if moved else 0.0,
        "gain_high": 1 - 2.0**-judged.high if moved else 0.0,
        "confidence": judged.confidence,
        "decided": decided,
        "reason": reason,
    }
