"""Recommendations: for each workload class and each traced run's groups of files, where they belong and why.

What a measurement of this study decides comes from the ranking of its class (the same as on the first
screen). Where the site has a trained placement model, its opinion stands beside it, and decides alone only
where the measurement did not. Copying in and out is counted at the rates that this study measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tiercel.placement.copying import Amount, Rates, Staging, staging
from tiercel.report.classes import WorkloadClass
from tiercel.report.data import Results
from tiercel.report.verdict import free_bytes
from tiercel.results.schema import FEATURES
from tiercel.site.model import Site
from tiercel.statistics.lives import LIFE
from tiercel.statistics.ranking import Advice, Outcome, Standing
from tiercel.traced import load_trace_groups
from tiercel.traced.tables import GROUPS

if TYPE_CHECKING:
    from tiercel.placement.model import PlacementModel
    from tiercel.placement.recommend import Opinion

#: One use of a class without a trace: what copying it is counted for.
_EXAMPLE = 1024**3
#: Files of a trace that take less of its time than this decide nothing.
LITTLE = 0.01


@dataclass(frozen=True)
class Judgement:
    """One storage for one class: what was measured, and what the model expects."""

    stack: str
    advice: Advice
    standing: Standing
    opinion: Opinion | None = None
    agreement: str = ""

    @property
    def outcome(self) -> Outcome:
        """The measurement's; the model's where the measurement is open and the model is not."""
        measured = self.standing.outcome
        if measured == "undecided" and self.opinion is not None and self.standing.rows:
            return self.opinion.outcome
        return measured

    @property
    def decided_by(self) -> str:
        """measurement, model, or "" where nothing is decided."""
        if not self.standing.rows or self.outcome == "undecided":
            return ""
        return "measurement" if self.standing.outcome != "undecided" else "model"


@dataclass(frozen=True)
class Recommendation:
    """Where the files of one class belong."""

    of: WorkloadClass
    judgements: Mapping[str, Judgement]
    home: str
    """The best storage that keeps files, by measurement; decided or not (see `decided`)."""
    decided: bool
    """`home` is ahead of every other one that keeps files, or as good; or there is no other."""
    faster: str
    """Memory that is ahead of it, by measurement or else by the model; "" for none."""
    staging: Staging | None
    """Of using `faster`."""
    amount: Amount
    """What is copied for one use of the files."""
    traced: bool
    """`amount` is that of the traced run; else an example of 1 GiB."""
    free: float | None
    """Bytes free on `faster`, or else on `home`."""
    keeps: bool
    """Files on `home` outlive a restart."""
    everywhere: bool
    """Files on `home` are seen by all nodes (or there is one node)."""


@dataclass(frozen=True)
class GroupAdvice:
    """One group of files of a traced workload."""

    of: WorkloadClass
    group: str
    files: int
    size: float
    seconds: Mapping[str, float]
    """Time in calls in the traced run on each stack, summed over processes."""
    share: float
    """Of the time in calls of its traced run at home."""
    target: str
    """Where it is best used; the home where nothing else is proven."""
    staging: Staging | None
    fits: bool


def recommendations(
    results: Results, site: Site, folder: Path, found: Sequence[WorkloadClass]
) -> tuple[list[Recommendation], list[GroupAdvice], list[str]]:
    """Return what to recommend for the measured classes and their groups of files, and notes on the model.

    `folder` is ``results/<site>``: the traces' groups and the models lie there.
    """
    classes = [c for c in found if c.origin == "measured"]
    model, notes = _model(folder, site.site)
    rates = _rates(results)
    groups = _groups(results, folder)
    made = [
        _recommendation(results, site, c, model, rates, groups.get((c.experiment, c.workload)))
        for c in classes
    ]
    advised = [each for r in made for each in _group_advice(results, r, rates, groups.get(r.of.key[:2]))]
    if model is not None:
        data = model.card["data"]
        notes.insert(0, f"Model: learnt from {data['configurations']} kinds of I/O of study {data['study']}.")
    return made, advised, notes


def _model(folder: Path, site: str) -> tuple[PlacementModel | None, list[str]]:
    if not any(folder.glob("placement/*/model.json")):
        return None, []  # importing what models need takes a second
    from tiercel.placement.recommend import best_model  # noqa: PLC0415

    return best_model(folder, site)


def _recommendation(
    results: Results,
    site: Site,
    found: WorkloadClass,
    model: PlacementModel | None,
    rates: Mapping[str, Rates],
    groups: pd.DataFrame | None,
) -> Recommendation:
    ranking = found.ranking
    judged = {s: _judgement(found, s, model) for s in ranking.standings}
    home = ranking.reference
    ahead = [
        s for s in ranking.standings if s in results.memory and s != home and judged[s].outcome == "higher"
    ]
    measured_first = sorted(ahead, key=lambda s: judged[s].decided_by != "measurement")
    faster = ranking.fastest or (measured_first[0] if measured_first else "")
    amount, traced = _amount(found, groups[groups["storage_stack"] == home] if groups is not None else None)
    stage = None
    if faster:
        stage = staging(home, faster, amount, rates, _saved(found, home, faster, amount))
    known = site.storages.get(home.partition("+")[0])
    return Recommendation(
        found, judged, home, ranking.advice[home] in ("use", "only"), faster, stage, amount, traced,
        free_bytes(results, faster or home), home not in results.memory,
        known is None or site.nodes == 1 or not site.node_local(known),
    )  # fmt: skip


def _judgement(found: WorkloadClass, stack: str, model: PlacementModel | None) -> Judgement:
    standing, advice = found.ranking.standings[stack], found.ranking.advice[stack]
    features = found.configuration
    # The model knows reads and writes of files' data; its sweeps hold nothing else.
    if model is None or not standing.rows or found.operation not in ("read", "write"):
        return Judgement(stack, advice, standing)
    if any(pd.isna(features.get(c.name)) for c in FEATURES if c.name in _ASKED):
        return Judgement(stack, advice, standing)
    from tiercel.placement.recommend import agreement, opinion  # noqa: PLC0415

    said = opinion(model, pd.DataFrame([features]), stack, standing.against)
    if said is None:
        return Judgement(stack, advice, standing)
    return Judgement(stack, advice, standing, said, agreement(standing.outcome, said.outcome))


#: Features that a model is asked by; a workload that lacks one (an imported one) is none for it.
_ASKED = ("api", "layout", "pattern", "transfer_size", "bytes_per_process", "fsync", "access")


# What is copied, and what it saves.


def _rates(results: Results) -> dict[str, Rates]:
    """Return each stack's rates of reading and writing large files and of opening and creating small ones.

    From this study's numbers at the largest scale: in-order reads, unsynced or once synced writes, and of the
    metadata workloads the one whose files have content.
    """
    rows = results.named_rows
    rows = rows[
        (rows["origin"] == "measured") & (rows["role"] == "measured") & (rows["twin"] == "a")
        & ~rows["traced"].astype(bool)
    ]  # fmt: skip
    ordered = rows["pattern"].fillna("sequential") == "sequential"
    chosen = {
        "read": rows[(rows["operation"] == "read") & ordered],
        "write": rows[(rows["operation"] == "write") & ordered & (rows["fsync"] != "write")],
        "open": _small(rows, ("file-read", "file-stat")),
        "create": _small(rows, ("file-create",)),
    }
    found: dict[str, dict[str, float]] = {}
    for kind, table in chosen.items():
        column = "bandwidth" if kind in ("read", "write") else "operation_rate"
        for (storage, layer), some in table.groupby(["storage", "layer"]):
            largest = some[some["processes"] == some["processes"].max()]
            stack = str(storage) if layer == "none" else f"{storage}+{layer}"
            found.setdefault(stack, {})[kind] = float(largest[column].median())
    return {stack: Rates(**kinds) for stack, kinds in found.items()}


def _small(rows: pd.DataFrame, operations: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the first of `operations` that there is; of files with content, where some have."""
    for operation in operations:
        some = rows[rows["operation"] == operation]
        filled = some[pd.to_numeric(some["write_bytes"], errors="coerce").fillna(0) > 0]
        if len(some):
            return filled if len(filled) else some
    return rows.iloc[:0]


def _amount(found: WorkloadClass, groups: pd.DataFrame | None) -> tuple[Amount, bool]:
    """Return what one use of a class' files copies: as its traced run at home shows, else 1 GiB of data."""
    if groups is not None and len(groups):
        return _of_groups(groups), True
    if found.operation == LIFE:
        return Amount(), False  # made and removed by the program
    if found.operation == "write":
        return Amount(1, 0, 1, _EXAMPLE), False
    return Amount(1, _EXAMPLE), False


def _of_groups(groups: pd.DataFrame) -> Amount:
    into, out = (groups[name].astype("float64").fillna(0) for name in ("input_bytes", "output_bytes"))
    files = groups["files"].astype("float64").fillna(0)
    return Amount(
        float(files[into > 0].sum()), float(into.sum()), float(files[out > 0].sum()), float(out.sum())
    )


def _saved(found: WorkloadClass, home: str, target: str, amount: Amount) -> float:
    """Return the seconds that one use of `amount` on `target` saves, by the measured rates of the class."""
    a, b = found.numbers.get(home), found.numbers.get(target)
    if a is None or b is None:
        return math.nan
    if found.operation == LIFE:
        return 1 / _median(found, home) - 1 / _median(found, target)  # for each file
    bytes_used = amount.bytes_in or amount.bytes_out
    if a.metric != "bandwidth":
        return _saved_of_training(found, home, target, bytes_used)
    return bytes_used / _median(found, home) - bytes_used / _median(found, target)


def _saved_of_training(found: WorkloadClass, home: str, target: str, size: float) -> float:
    """Return the same for a cold epoch that reads `size` bytes, by samples a second."""
    samples, moved = (found.configuration.get(name) for name in ("samples", "bytes_moved"))
    if pd.isna(samples) or pd.isna(moved) or not samples or not moved:
        return math.nan
    epoch = size * float(samples) / float(moved)
    return epoch / _median(found, home) - epoch / _median(found, target)


def _median(found: WorkloadClass, stack: str) -> float:
    return float(found.numbers[stack].median)


# Groups of files.


def _groups(results: Results, folder: Path) -> dict[tuple[str, str], pd.DataFrame]:
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


def _group_advice(
    results: Results, made: Recommendation, rates: Mapping[str, Rates], groups: pd.DataFrame | None
) -> Iterator[GroupAdvice]:
    if groups is None:
        return
    kinds = groups[["read_s", "write_s", "metadata_s", "sync_s"]].astype("float64")
    groups = groups.assign(seconds=kinds.sum(axis=1), size=groups["size"].astype("float64"))
    at_home = groups[groups["storage_stack"] == made.home]
    whole = at_home["seconds"].sum()
    for row in at_home.sort_values("seconds", ascending=False).to_dict("records"):
        same = groups[groups["group"] == row["group"]]
        seconds = {str(k): float(v) for k, v in same.groupby("storage_stack")["seconds"].sum().items()}
        share = float(row["seconds"] / whole) if whole else 0.0
        target, stage, size = made.home, None, float(row["size"])
        # What costs no time decides nothing.
        if made.faster and share >= LITTLE and made.faster in seconds:
            target = made.faster
            amount = _of_groups(pd.DataFrame([row]))
            saved = made.staging.saved * share if made.staging else math.nan
            stage = staging(made.home, target, amount, rates, saved)
        free = free_bytes(results, target)
        yield GroupAdvice(
            made.of, str(row["group"]), int(row["files"]), size, seconds, share, target, stage,
            target == made.home or free is None or not size > free,
        )  # fmt: skip


# For machines.


def as_json(
    results: Results, made: Sequence[Recommendation], groups: Sequence[GroupAdvice], notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything as plain values; missing numbers are null."""
    return {
        "study": results.study.study,
        "workloads": [_plain(results, r) for r in made],
        "groups": [
            {
                "experiment": g.of.experiment, "workload": g.of.workload, "group": g.group,
                "files": g.files, **_numbers({"bytes": g.size}),
                "seconds_in_calls": _numbers(g.seconds), "share_of_time": g.share,
                "storage": g.target, "fits": g.fits, "staging": _staging(g.staging),
            }
            for g in groups
        ],
        "notes": list(notes),
    }  # fmt: skip


def _plain(results: Results, r: Recommendation) -> dict[str, Any]:
    return {
        "class": r.of.name, "experiment": r.of.experiment, "workload": r.of.workload,
        "operation": r.of.operation, "origin": r.of.origin,
        "storage": r.home if r.decided else None, "best_measured": r.home,
        "faster_but_volatile": r.faster or None,
        "keeps_files": r.keeps, "seen_by_all_nodes": r.everywhere, "free_bytes": r.free,
        "staging": _staging(r.staging), "staged": asdict(r.amount) | {"traced": r.traced},
        "storages": {
            s: {
                "label": results.name(s), "advice": j.advice, "decided_by": j.decided_by or None,
                "against": j.standing.against or None,
                "measured": _measured(j.standing), "model": _opinion(j.opinion),
                "agreement": j.agreement or None,
            }
            for s, j in r.judgements.items()
        },
    }  # fmt: skip


def _measured(standing: Standing) -> dict[str, Any] | None:
    if not standing.rows:
        return None
    row = standing.rows[0]
    return _numbers({k: float(row[k]) for k in ("ratio", "low", "high")}) | {"outcome": standing.outcome}


def _opinion(opinion: Opinion | None) -> dict[str, Any] | None:
    if opinion is None:
        return None
    numbers = {k: float(getattr(opinion, k)) for k in ("ratio", "low", "high", "confidence")}
    return _numbers(numbers) | {"outcome": opinion.outcome, "outside": opinion.outside}


def _staging(stage: Staging | None) -> dict[str, Any] | None:
    if stage is None:
        return None
    times = {"seconds_in": stage.seconds_in, "seconds_out": stage.seconds_out, "saved_seconds": stage.saved}
    return {"from": stage.home, "to": stage.target, **_numbers(times), "pays_from_use": stage.pays_from}


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    return {k: v if math.isfinite(v) else None for k, v in values.items()}
