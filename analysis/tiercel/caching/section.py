"""Node-local caching: whether the layer cachevol is worth turning on, and from which epoch it pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tiercel.pages.tables import table
from tiercel.pages.words import count
from tiercel.report.data import over_scales, stack_key
from tiercel.report.sections.base import Context, Section, sections
from tiercel.units import format_bandwidth

_OPERATIONS = ("hdf5-write", "hdf5-read-first", "hdf5-read-later")
#: A gain below this is no reason to turn anything on.
WORTH = 1.05
#: Without any epoch that pays among so many, none is claimed.
_MOST_EPOCHS = 1000


@dataclass(frozen=True)
class Pair:
    """One workload on one storage, plain and through the layer; medians in bytes a second."""

    storage: str
    workload: str
    """Experiment, workload, processes and the layer's options, with slashes between them."""
    title: str
    operation: str
    plain: float
    cached: float
    sure: bool = True
    """Whether the study's comparison of the two is decided: what could be chance is no advice."""

    @property
    def ratio(self) -> float:
        return self.cached / self.plain


@sections.register("caching")
def caching(context: Context) -> Section | None:
    """Return the section, or None where nothing ran both plain and through cachevol."""
    everything = context.results.observations
    rows = everything[everything["operation"].isin(_OPERATIONS)]
    rows = rows[(rows["twin"] == "a") & (rows["origin"] == "measured") & ~rows["traced"].astype(bool)]
    decided = {
        (row["experiment"], row["workload"], row["operation"], frozenset((row["stack_a"], row["stack_b"])))
        for row in over_scales(context.results.comparisons)
        if row["origin"] == "measured" and row["verdict"] != "undecided"
    }
    pairs = told_apart(_pairs(rows, decided), context.results.experiment_title)
    if not pairs:
        return None
    stacks = [stack_key(s, layer) for s, layer in zip(rows["storage"], rows["layer"], strict=True)]
    # Drawing takes a second to import, and a study without caching draws none of it.
    from tiercel.caching.section_figures import caching_pictures  # noqa: PLC0415

    heads = ("Storage", "Workload", "What", "Plain HDF5", "With cachevol", "Ratio", "Sure")
    lines = [
        [p.storage, p.title, _WHAT[p.operation], (format_bandwidth(p.plain), p.plain),
         (format_bandwidth(p.cached), p.cached), (f"{p.ratio:.2f}", p.ratio),
         "decided" if p.sure else "undecided"]
        for p in pairs
    ]  # fmt: skip
    return Section(
        "caching",
        "Node-local caching",
        tuple(_advice(pairs)),
        tuple(caching_pictures(context, rows.assign(stack=stacks))),
        tables=(table("Medians of the observed bandwidth", heads, lines, ("Ratio",)),),
        notes=(
            "Observed write bandwidth is bytes over the time from creating to closing the file, without the "
            "emulated computation (equation 1 of HDF5 Cache VOL, 2022).",
            "An epoch pays once all epochs up to it took less time than with plain HDF5.",
        ),
    )


_WHAT = {"hdf5-write": "write", "hdf5-read-first": "first epoch", "hdf5-read-later": "later epochs"}


def _pairs(rows: pd.DataFrame, decided: set[Any]) -> Iterator[Pair]:
    keys = ["storage", "experiment", "workload", "operation", "processes"]
    for key, group in rows.groupby(keys, sort=True):
        plain = group[group["layer"] == "none"]["bandwidth"].median()
        label, title = str(group["storage_label"].iloc[0]), str(group["title"].iloc[0] or key[2])
        for layer, through in group[group["layer"].str.split().str[0] == "cachevol"].groupby("layer"):
            cached, options = through["bandwidth"].median(), str(layer).removeprefix("cachevol").strip()
            if plain > 0 and cached > 0:  # false for NaN: not run
                where = f"{key[1]}/{key[2]}/{key[4]}/{options}"
                shown = f"{title} ({options})" if options else title
                sides = frozenset((str(key[0]), stack_key(str(key[0]), str(layer))))
                sure = (key[1], key[2], key[3], sides) in decided
                yield Pair(label, where, shown, str(key[3]), plain, cached, sure)


def told_apart(pairs: Iterator[Pair], heading: Callable[[str], str]) -> list[Pair]:
    """Return the pairs with titles that tell them apart: by what experiments are called, and by processes."""

    def by_experiment(p: Pair) -> str:
        return f"{heading(p.workload.split('/')[0])}: {p.title}"

    def by_processes(p: Pair) -> str:
        return f"{p.title} ({count(int(p.workload.split('/')[2]), 'process', 'processes')})"

    found = list(pairs)
    for told, part in ((by_experiment, 0), (by_processes, 2)):
        parts: dict[tuple[str, str, str], set[str]] = {}
        for p in found:
            parts.setdefault((p.storage, p.operation, p.title), set()).add(p.workload.split("/")[part])
        found = [
            replace(p, title=told(p)) if len(parts[p.storage, p.operation, p.title]) > 1 else p for p in found
        ]
    return found


def pays_from(first: Pair, later: Pair) -> int | None:
    """Return the first epoch by whose end the layer has saved time, or None where there is none.

    The time of an epoch is one over its bandwidth; all epochs read the same bytes.
    """
    lost, saved = 1 / first.cached - 1 / first.plain, 1 / later.plain - 1 / later.cached
    if lost < 0:
        return 1
    if saved <= 0:
        return None
    epoch = 1 + int(lost / saved) + 1
    return epoch if epoch <= _MOST_EPOCHS else None


def _advice(pairs: list[Pair]) -> Iterator[str]:
    reads = {(p.storage, p.workload, p.operation): p for p in pairs}
    chance: dict[str, list[str]] = {}
    for p in pairs:
        who = f"{p.storage}, {p.title}"
        if not p.sure and p.operation != "hdf5-read-first":
            what = "later epochs" if p.operation == "hdf5-read-later" else "writes"
            chance.setdefault(p.storage, []).append(f"{p.title} ({what} {p.ratio:.2f})")
        elif p.operation == "hdf5-write":
            if p.ratio >= WORTH:
                yield f"{who}: worth turning on, {p.ratio:.1f} times the bandwidth of plain HDF5."
            else:
                yield f"{who}: not worth turning on ({p.ratio:.2f} of plain HDF5)."
        elif p.operation == "hdf5-read-later":
            first = reads.get((p.storage, p.workload, "hdf5-read-first"))
            epoch = pays_from(first, p) if first else None
            if epoch is None or p.ratio < WORTH:
                yield f"{who}: not worth turning on; later epochs {p.ratio:.2f} of plain HDF5."
            elif first and not first.sure:
                yield (
                    f"{who}: worth turning on for many epochs, later ones {p.ratio:.1f} times plain HDF5; "
                    "what the first one costs is undecided, so from which epoch it pays, too."
                )
            else:
                yield (
                    f"{who}: worth turning on, and it pays from epoch {epoch}; "
                    f"later epochs {p.ratio:.1f} times plain HDF5."
                )
    for storage, cases in chance.items():
        yield (
            f"{storage}: undecided, as what was measured could be chance (times the bandwidth of plain "
            f"HDF5): {'; '.join(cases)}."
        )
