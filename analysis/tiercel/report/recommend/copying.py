"""What using another storage copies, how long that takes at rates that this study measured, what it saves.

Valid numbers only: by what the fewest processes and the best scale did, and cold where files come from a
storage that keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from tiercel.placement.copying import Amount, Rates, Span, Staging, each_of
from tiercel.report import words
from tiercel.report.classes import WorkloadClass, in_sentence
from tiercel.report.data import NOT_COLD, Results
from tiercel.report.recommend.model import Recommendation
from tiercel.statistics.lives import LIFE
from tiercel.statistics.select import flag_list
from tiercel.units import format_latency

#: One use of a class without a trace: what copying it is counted for.
_EXAMPLE = 1024**3
#: A traced run that read less of the bytes that the engine counted does not show the whole epoch.
_WHOLE = 0.99


def _valid(results: Results) -> pd.DataFrame:
    """Return the measured rows that may decide something: first of A/A pairs, valid, traced ones too."""
    rows = results.named_rows
    banned = set(results.excluded)
    valid = ~rows["flags"].map(lambda flags: bool(banned & set(flag_list(flags)))).astype(bool)
    kept = rows[(rows["origin"] == "measured") & (rows["role"] == "measured") & (rows["twin"] == "a") & valid]
    return kept.assign(cold=[not NOT_COLD & set(flag_list(flags)) for flags in kept["flags"]])


def rates_of(results: Results) -> dict[str, Rates]:
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


def reading_of(
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


def why_unknown(stage: Staging) -> str:
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


def amount_of(found: WorkloadClass, groups: pd.DataFrame | None) -> tuple[Amount, bool]:
    """Return what one use of a class' files copies: as its traced run at home shows, else 1 GiB of data."""
    if groups is not None and len(groups):
        return of_groups(groups), True
    if found.operation == LIFE:
        return Amount(), False  # made and removed by the program
    if found.operation == "write":
        return Amount(1, 0, 1, _EXAMPLE), False
    return Amount(1, _EXAMPLE), False


def of_groups(groups: pd.DataFrame) -> Amount:
    into, out = (groups[name].astype("float64").fillna(0) for name in ("input_bytes", "output_bytes"))
    files = groups["files"].astype("float64").fillna(0)
    return Amount(
        float(files[into > 0].sum()), float(into.sum()), float(files[out > 0].sum()), float(out.sum())
    )


def saved_by(
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


def copying_notes(results: Results, made: Sequence[Recommendation]) -> Iterator[str]:
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
