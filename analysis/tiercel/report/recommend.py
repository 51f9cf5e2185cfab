"""Recommendations: for each workload class and each traced run's groups of files, where they belong and why.

What a measurement of this study decides comes from the ranking of its class (the same as on the first
screen). Where the site has a trained placement model, its opinion stands beside it, and decides alone only
where the measurement did not. Copying in and out is counted at the rates that this study measured: valid
numbers only, by what the fewest processes and the best scale did, and cold where files come from a storage
that keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tiercel.placement.copying import Amount, Rates, Span, Staging, each_of, staging
from tiercel.plain import plain
from tiercel.report import words
from tiercel.report.classes import WorkloadClass, in_sentence
from tiercel.report.data import NOT_COLD, Results
from tiercel.report.verdict import free_bytes
from tiercel.results.schema import FEATURES
from tiercel.site.model import Site
from tiercel.statistics.lives import LIFE
from tiercel.statistics.ranking import Advice, Outcome, Standing
from tiercel.statistics.select import flag_list
from tiercel.traced import load_trace_groups
from tiercel.traced.tables import GROUPS
from tiercel.units import format_latency

if TYPE_CHECKING:
    from tiercel.placement.model import PlacementModel
    from tiercel.placement.recommend import Opinion

#: One use of a class without a trace: what copying it is counted for.
_EXAMPLE = 1024**3
#: A traced run that read less of the bytes that the engine counted does not show the whole epoch.
_WHOLE = 0.99
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
    """Of using `faster`; None as well where the study does not tell what copying costs (see `unknown`)."""
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
    unknown: str = ""
    """Why nothing is said of copying although `faster` is; else empty."""
    reading: Span | None = None
    """What reading the inputs at home took in the workload itself, cold."""


@dataclass(frozen=True)
class Calls:
    """What a traced run did to a group of files on one storage."""

    seconds: float
    """Time in calls, summed over processes."""
    files: int
    bytes: float
    """Moved: read and written."""


@dataclass(frozen=True)
class GroupAdvice:
    """One group of files of a traced workload."""

    of: WorkloadClass
    group: str
    files: int
    size: float
    seconds: Mapping[str, float]
    """Time in calls on each stack, summed over processes, for as much work as the traced run did at home:
    a phase that ends after a time does more on a faster storage."""
    share: float
    """Of the time in calls of its traced run at home."""
    target: str
    """Where it is best used; the home where nothing else is proven."""
    staging: Staging | None
    fits: bool
    calls: Mapping[str, Calls] = field(default_factory=dict)
    """By stack: what the traced run did, as it was."""


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
    return made, advised, [*_copying_notes(results, made), *_work_notes(results, advised), *notes]


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
    stage, unknown, reading = None, "", None
    if faster:
        per = "file" if found.operation == LIFE else "use"
        reading = _reading(results, found, home, amount, groups) if found.operation == "train" else None
        saved = _saved(results, found, home, faster, amount, traced)
        stage = staging(home, faster, amount, rates, saved, reading=reading, per=per)
        unknown = _unknown(stage)
    if unknown:
        stage = None
    known = site.storages.get(home.partition("+")[0])
    return Recommendation(
        found, judged, home, ranking.advice[home] in ("use", "only"), faster, stage, amount, traced,
        free_bytes(results, faster or home), home not in results.memory,
        known is None or site.nodes == 1 or not site.node_local(known), unknown, reading,
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


def _valid(results: Results) -> pd.DataFrame:
    """Return the measured rows that may decide something: first of A/A pairs, valid, traced ones too."""
    rows = results.named_rows
    banned = set(results.excluded)
    valid = ~rows["flags"].map(lambda flags: bool(banned & set(flag_list(flags)))).astype(bool)
    kept = rows[(rows["origin"] == "measured") & (rows["role"] == "measured") & (rows["twin"] == "a") & valid]
    return kept.assign(cold=[not NOT_COLD & set(flag_list(flags)) for flags in kept["flags"]])


def _rates(results: Results) -> dict[str, Rates]:
    """Return what one process needs on each stack to read and write large files, open and create small ones.

    From medians: at the most that of the fewest processes, at the least the best of any scale. Ordered reads,
    unsynced or once synced writes, and of the metadata workloads the one whose files have content. Its files
    were written just before they are read, so reading them says nothing of cold files: on what is no memory,
    only what that takes at the least.
    """
    rows = _valid(results)
    rows = rows[~rows["traced"].astype(bool)]
    ordered = rows["pattern"].fillna("sequential") == "sequential"
    chosen = {
        "read": rows[(rows["operation"] == "read") & ordered],
        "write": rows[(rows["operation"] == "write") & ordered & (rows["fsync"] != "write")],
        "open": _small(rows, ("file-read", "file-stat")),
        "create": _small(rows, ("file-create",)),
    }
    found: dict[str, dict[str, Span]] = {}
    for kind, table in chosen.items():
        column = "bandwidth" if kind in ("read", "write") else "operation_rate"
        rate = table[column].astype("float64")
        for (storage, layer), some in table[(rate > 0) & (rate < math.inf)].groupby(["storage", "layer"]):
            stack = str(storage) if layer == "none" else f"{storage}+{layer}"
            cold = True
            if stack not in results.memory and kind in ("read", "open"):
                cold = kind == "read" and bool(some["cold"].any())
                some = some[some["cold"]] if cold else some  # noqa: PLW2901
            by_scale = some.groupby("processes")[column].median().astype("float64")
            fewest = int(by_scale.index.min())
            # A copier that reads ahead may be as fast as many processes, not faster.
            least = each_of(float(by_scale.max())).least
            most = each_of(float(by_scale[fewest]), fewest, cold=cold).most
            found.setdefault(stack, {})[kind] = Span(least, most)
    return {stack: Rates(**kinds) for stack, kinds in found.items()}


def _reading(
    results: Results, found: WorkloadClass, home: str, amount: Amount, groups: pd.DataFrame | None
) -> Span | None:
    """Return what a training's own cold first epoch at home says of reading its files with one process.

    At the least the time in which any process read: one alone is no faster. At the most that of all its
    readers one after the other, or what they spent in calls together, which a traced cold run knows. None
    where no epoch was proven cold.
    """
    rows = _valid(results)
    stack = rows["storage"].where(rows["layer"] == "none", rows["storage"] + "+" + rows["layer"])
    rows = rows[
        (rows["experiment"] == found.experiment) & (rows["workload"] == found.workload)
        & (rows["engine"] == results.main_engine(found.experiment, found.workload))
        & (rows["operation"] == "train") & (stack == home) & rows["cold"]
    ]  # fmt: skip
    at_home = groups[groups["storage_stack"] == home] if groups is not None else None
    traced = at_home is not None and len(at_home) > 0
    if traced and at_home is not None:  # what is copied are the files of this run
        rows = rows[rows["processes"] == int(at_home["processes"].iloc[0])]
    plain_rows = rows[~rows["traced"].astype(bool)]
    if plain_rows.empty:
        return None
    plain_rows = plain_rows[plain_rows["processes"] == plain_rows["processes"].min()]
    seconds = {k: float(plain_rows[k].astype("float64").median()) for k in ("io_time", "total_time")}
    moved = float(plain_rows["bytes_moved"].astype("float64").median())
    readers = pd.to_numeric(plain_rows["read_threads"], errors="coerce").fillna(1).clip(lower=1).max()
    least = seconds["io_time"] if seconds["io_time"] > 0 else 0.0
    most = (least or seconds["total_time"]) * float(plain_rows["processes"].iloc[0]) * float(readers)
    if traced and at_home is not None:
        whole = float(at_home["bytes_read"].astype("float64").sum()) >= _WHOLE * moved
        if whole and rows["traced"].astype(bool).any():
            calls = float(at_home[["read_s", "metadata_s"]].astype("float64").sum().sum())
            most = min(most, max(calls, least)) if calls > 0 else most
    span = Span(least, most).times(1.0 if traced else amount.bytes_in / moved if moved > 0 else math.nan)
    return span if math.isfinite(span.most) else None


def _unknown(stage: Staging) -> str:
    """Return why `stage` says nothing of use, or ""."""
    if not math.isfinite(stage.seconds_in):
        return "not all that copying its files in takes has a valid number, of cold files"
    if not math.isfinite(stage.seconds_out):
        return "not all that copying its results home takes has a valid number"
    return "" if math.isfinite(stage.saved) else "no valid numbers at one scale say what a use saves"


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


def _saved(
    results: Results, found: WorkloadClass, home: str, target: str, amount: Amount, traced: bool
) -> float:
    """Return the seconds that one use of `amount` on `target` saves, by its rates at the largest scale.

    NaN where a rate is missing, not valid, no positive number, or of another scale than the other.
    """
    a, b = found.numbers.get(home), found.numbers.get(target)
    if a is None or b is None or a.invalid or b.invalid:
        return math.nan
    if (a.nodes, a.processes) != (b.nodes, b.processes):
        return math.nan
    spent, instead = each_of(float(a.median)).least, each_of(float(b.median)).least
    if found.operation == LIFE:
        return spent - instead  # for each file
    used = amount.bytes_in or amount.bytes_out
    if a.metric != "bandwidth":
        used = _samples(results, found, home, used, traced)
    return used * (spent - instead)


def _samples(results: Results, found: WorkloadClass, home: str, size: float, traced: bool) -> float:
    """Return how many samples one use reads: those of an epoch, or as many of them as `size` bytes hold.

    An epoch moves more bytes than its files have (formats are read in pieces, some twice), so the files of a
    traced run are not counted by their bytes: one use of them is its epoch.
    """
    rows = _valid(results)
    stack = rows["storage"].where(rows["layer"] == "none", rows["storage"] + "+" + rows["layer"])
    rows = rows[
        (rows["experiment"] == found.experiment) & (rows["workload"] == found.workload)
        & (rows["operation"] == found.operation) & (stack == home)
        & (rows["processes"] == found.numbers[home].processes)
    ]  # fmt: skip
    samples, moved = (float(rows[k].astype("float64").median()) for k in ("samples", "bytes_moved"))
    if traced:
        return samples
    return samples * size / moved if moved > 0 else math.nan


# What is to be said of it.


def _copying_notes(results: Results, made: Sequence[Recommendation]) -> Iterator[str]:
    """Yield sentences on what copying is counted at, and on what nobody knows."""
    if any(r.faster for r in made):
        yield (
            "Gains are factors over all scales; what one use saves is counted at the largest scale alone, "
            "that of the most processes."
        )
    counted = [r for r in made if r.staging is not None and r.staging.seconds_in + r.staging.seconds_out > 0]
    if counted:
        least = [
            f"{in_sentence(r.of.name)} {format_latency(r.staging.least_in + r.staging.least_out)}"
            for r in counted if r.staging is not None
        ]  # fmt: skip
        yield (
            "Copying is counted at the most that the measurements allow for one process and files that are "
            f"not in memory, so it pays from that use on or before. At the least: {words.listed(least)}."
        )
    if any(r.reading is not None and r.staging is not None for r in made):
        yield (
            "A training's files are read for copying as in its own cold first epoch: at the least in the "
            "time in which any process read, at the most in the sum over all its readers."
        )
    for r in made:
        if r.unknown:
            yield f"Nothing is said of copying for {in_sentence(r.of.name)}: {r.unknown}."


def _work_notes(results: Results, groups: Sequence[GroupAdvice]) -> Iterator[str]:
    """Yield the counts of groups whose traced runs did not do the same work."""
    said = [
        f"{g.group}: " + ", ".join(f"{c.files:,} on {results.name(s)}" for s, c in g.calls.items())
        for g in groups if g.share >= LITTLE and len({c.files for c in g.calls.values()}) > 1
    ]  # fmt: skip
    if said:
        yield (
            "A phase that ends after a time does more on a faster storage. The times of groups of files are "
            f"for as many files (or bytes) as at home; files in the traced runs: {'; '.join(said)}."
        )


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
    numbers = ["read_s", "write_s", "metadata_s", "sync_s", "size", "files", "bytes_read", "bytes_written"]
    found = groups[numbers].astype("float64")
    found = found.where(found.abs() < math.inf)
    seconds = found[["read_s", "write_s", "metadata_s", "sync_s"]].sum(axis=1)
    groups = groups.assign(
        seconds=seconds, size=found["size"], files=found["files"].fillna(0),
        of_files=found["metadata_s"].fillna(0) > seconds / 2,
        moved=found[["bytes_read", "bytes_written"]].sum(axis=1),
    )  # fmt: skip
    at_home = groups[groups["storage_stack"] == made.home]
    whole = at_home["seconds"].sum()
    for row in at_home.sort_values("seconds", ascending=False).to_dict("records"):
        same = groups[groups["group"] == row["group"]].groupby("storage_stack")
        calls = {
            str(k): Calls(float(v["seconds"].sum()), int(v["files"].sum()), float(v["moved"].sum()))
            for k, v in same
        }
        share = float(row["seconds"] / whole) if whole else 0.0
        target, stage = made.home, None
        # What costs no time decides nothing.
        if made.faster and share >= LITTLE and made.faster in calls:
            target = made.faster
            stage = _group_staging(made, _of_groups(pd.DataFrame([row])), share, rates)
        free = free_bytes(results, target)
        yield GroupAdvice(
            made.of, str(row["group"]), int(row["files"]), float(row["size"]),
            _same_work(calls, made.home, bool(row["of_files"])), share, target, stage,
            target == made.home or free is None or not row["size"] > free, calls,
        )  # fmt: skip


def _same_work(calls: Mapping[str, Calls], home: str, of_files: bool) -> dict[str, float]:
    """Return the time in calls on each stack for as many files (`of_files`), or bytes, as at home."""
    found = {}
    for stack, c in calls.items():
        mine, at_home = (c.files, calls[home].files) if of_files else (c.bytes, calls[home].bytes)
        found[stack] = c.seconds * at_home / mine if mine and at_home else c.seconds
    return found


def _group_staging(
    made: Recommendation, amount: Amount, share: float, rates: Mapping[str, Rates]
) -> Staging | None:
    """Return what using one group elsewhere costs and saves: its share of the time of the whole.

    What a file's life saves is known for the workload, not for its groups: files and directories differ.
    """
    if made.staging is None:
        return None
    per = made.staging.per
    saved = made.staging.saved * share if per == "use" else math.nan
    reading = made.reading.times(share) if made.reading is not None else None
    stage = staging(made.home, made.faster, amount, rates, saved, reading=reading, per=per)
    return stage if math.isfinite(stage.seconds_in + stage.seconds_out) else None


# For machines.


def as_json(
    results: Results, made: Sequence[Recommendation], groups: Sequence[GroupAdvice], notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything as plain values; missing numbers are null."""
    found = {
        "study": results.study.study,
        "workloads": [_plain(results, r) for r in made],
        "groups": [
            {
                "experiment": g.of.experiment, "workload": g.of.workload, "group": g.group,
                "files": g.files, "bytes": g.size,
                # For the work done at home, so they can be compared; what each run did stands below.
                "seconds_in_calls": dict(g.seconds), "share_of_time": g.share,
                "traced": {s: _calls(c) for s, c in g.calls.items()},
                "storage": g.target, "fits": g.fits, "staging": _staging(g.staging),
            }
            for g in groups
        ],
        "notes": list(notes),
    }  # fmt: skip
    made_plain: dict[str, Any] = plain(found)
    return made_plain


def _calls(c: Calls) -> dict[str, Any]:
    each = c.seconds / c.files if c.files else None
    return asdict(c) | {"seconds_per_file": each}


def _plain(results: Results, r: Recommendation) -> dict[str, Any]:
    return {
        "class": r.of.name, "experiment": r.of.experiment, "workload": r.of.workload,
        "operation": r.of.operation, "origin": r.of.origin,
        "storage": r.home if r.decided else None, "best_measured": r.home,
        "faster_but_volatile": r.faster or None,
        "keeps_files": r.keeps, "seen_by_all_nodes": r.everywhere, "free_bytes": r.free,
        "staging": _staging(r.staging, r), "staging_unknown": r.unknown or None,
        "staged": asdict(r.amount) | {"traced": r.traced},
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
    numbers = {k: float(row[k]) for k in ("ratio", "low", "high")}
    return numbers | {"over": _over(row), "outcome": standing.outcome}


def _over(row: Mapping[str, Any]) -> str:
    """Say which scales a ratio is over."""
    return "all scales" if row["scope"] == "all" else f"{int(row['nodes'])}x{int(row['processes_per_node'])}"


def _opinion(opinion: Opinion | None) -> dict[str, Any] | None:
    if opinion is None:
        return None
    numbers = {k: float(getattr(opinion, k)) for k in ("ratio", "low", "high", "confidence")}
    return numbers | {"outcome": opinion.outcome, "outside": opinion.outside}


def _staging(stage: Staging | None, of: Recommendation | None = None) -> dict[str, Any] | None:
    """Return a staging with its units in its names; `of` says at which scale the saving was counted."""
    if stage is None:
        return None
    found = {
        "from": stage.home, "to": stage.target,
        "seconds_in": stage.seconds_in, "seconds_in_least": stage.least_in,
        "seconds_out": stage.seconds_out, "seconds_out_least": stage.least_out,
        "saved_seconds": stage.saved, "saved_per": stage.per,
        "pays_from_use": stage.pays_from, "pays_from_use_at_best": stage.pays_at_best,
    }  # fmt: skip
    if of is None:
        return found
    number = of.of.numbers[stage.home]
    return found | {"saved_at": {"nodes": number.nodes, "processes": number.processes}}
