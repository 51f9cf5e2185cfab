"""Which numbers stand beside each other, and why some have no partner.

A **question** is one workload and operation on one stack of a side, by one engine, at some scales. Its
partner has the same features, operation and engine, on the storage that stands for its own (`stacks`); where
several have, the one of the same name. Within a pair of questions, scales are compared at which each process
moved as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tiercel.compare.rates import rates, said_of
from tiercel.compare.side import Side
from tiercel.compare.stacks import Stacks
from tiercel.results.schema import FEATURES
from tiercel.statistics.select import FEATURE_NAMES, SCALE, flag_list, metric_of, same_amount, scales, usable
from tiercel.units import format_size

Scale = tuple[int, int]

_NAMES = ("origin", "site", "study", "experiment", "workload", "operation", "engine", "storage", "layer")
_KEY = (*_NAMES, "access", "features")
_AMOUNTS = tuple(c for c in FEATURES if c.name not in FEATURE_NAMES)

# Why a number has no partner, in words that are counted.
INVALID = "left out by a validity check"
INVALID_THERE = "its partner is left out by a validity check"
FAILED_THERE = "its partner failed"
NO_STORAGE = "no storage there stands for its own"
NO_LAYER = "not measured there with its layers"
OTHER_ENGINE = "measured there by another engine"
SIMULATED = "simulated on one side only, and no simulation is compared with a measurement"
OTHER_WORKLOAD = "the workload differs there"
NO_NUMBER = "its runs gave no number"
NO_NUMBER_THERE = "its partner gave no number"
OTHER_QUANTITY = "another quantity was measured there"
OTHER_AMOUNT = "another amount of data or items there"
OTHER_ORIGIN = "its partner stands beside another number"
NO_SCALE = "not measured there at this scale"
NOT_THERE = "not measured there"
OTHER_NUMBER = "another workload there that does the same stands beside another number"
#: With these there is no valid number of the side's own.
INVALID_HERE = (INVALID, NO_NUMBER)


@dataclass(frozen=True)
class Question:
    """One workload and operation on one stack of one side, with the rows at each scale."""

    words: Mapping[str, str]
    features: Mapping[str, Any]
    scales: Mapping[Scale, pd.DataFrame]

    def __getitem__(self, name: str) -> str:
        return self.words[name]

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.words[name] for name in _KEY)

    @property
    def metric(self) -> str:
        return metric_of(pd.concat(self.scales.values()))

    @property
    def empty(self) -> bool:
        """No row of it holds a rate."""
        return not self.gives(self.metric)

    def gives(self, metric: str) -> bool:
        """Return whether any row of it holds a rate in that column."""
        return any(len(rates(rows[metric])) for rows in self.scales.values())


@dataclass(frozen=True)
class Match:
    """A question of the baseline and its partner; `scales` are those that are compared."""

    base: Question
    other: Question
    scales: tuple[Scale, ...]

    @property
    def origin(self) -> str:
        """``measured``; where the two differ, ``imported against measured``: the other's first."""
        one, two = self.other["origin"], self.base["origin"]
        return one if one == two else f"{one} against {two}"

    @property
    def metric(self) -> str:
        """The column that is compared: the other side, where it gave no rate, does not say which."""
        return self.base.metric


@dataclass(frozen=True)
class Alone:
    """A number without a partner. `reason` is one of the constants above, `detail` says more or nothing."""

    side: str
    question: Question
    scale: Scale
    reason: str
    detail: str
    whole: bool
    """The question has no partner at any scale."""

    @property
    def lost(self) -> bool:
        """The other side tried to measure it, and its runs failed."""
        return self.reason == FAILED_THERE


def questions(side: Side, excluded: Iterable[str], unknown: Iterable[str]) -> list[Question]:
    """Return what a side has numbers of, without rows with an `excluded` flag.

    `unknown`: features that some side does not know, by which therefore nothing is told apart.
    """
    observations = side.observations.copy()
    observations[list(unknown)] = pd.NA
    rows = usable(observations, excluded)
    rows = rows.assign(access=rows["access"].fillna(""))
    columns = ["title", "storage_label", "medium"]
    found = []
    for key, group in rows.groupby(list(_KEY), dropna=False, sort=True):
        last = group.iloc[-1]
        texts = {name: str(last[name]) for name in columns}
        # The title and the label are of the name; any row says them.
        names = dict(zip(_KEY, map(str, key), strict=True)) | texts
        names["title"] = names["title"] or names["workload"]
        names["storage_label"] = names["storage_label"] or names["storage"]
        first = side.observations.loc[group.index[0]]
        features = {name: first[name] for name in FEATURE_NAMES}
        found.append(Question(names, features, scales(group)))
    return found


def match(
    base: Side, other: Side, stacks: Stacks, excluded: Sequence[str]
) -> tuple[list[Match], list[Alone]]:
    """Return the matches of two sides, in the baseline's order, and every number without a partner."""
    unknown = sorted((base.absent | other.absent) & set(FEATURE_NAMES))
    mine, theirs = (questions(side, excluded, unknown) for side in (base, other))
    all_mine, all_theirs = (questions(side, (), unknown) for side in (base, other))
    pairs = _pairs(mine, theirs, stacks)
    matches = []
    compared: dict[int, set[Scale]] = {}
    for one, two in pairs:
        usable_scales = tuple(
            s for s in one.scales if s in two.scales and same_amount(one.scales[s], two.scales[s])
        )
        if usable_scales and _same_quantity(one, two, other.absent):
            matches.append(Match(one, two, usable_scales))
            compared[id(one)] = compared[id(two)] = set(usable_scales)
    alone = []
    partner = {id(one): two for one, two in pairs} | {id(two): one for one, two in pairs}
    for side, there, ours, all_ours, yours, all_yours, seen in (
        (base, other, mine, all_mine, theirs, all_theirs, stacks),
        (other, base, theirs, all_theirs, mine, all_mine, stacks.reversed()),
    ):
        for question in ours:
            missing = [s for s in question.scales if s not in compared.get(id(question), ())]
            for scale in missing:
                found = _why(question, scale, partner.get(id(question)), there, yours, all_yours, seen)
                alone.append(Alone(side.name, question, scale, *found, whole=id(question) not in compared))
        alone += _left_out(side, ours, all_ours, excluded)
    return sorted(matches, key=lambda m: m.base.key), alone


def _same_quantity(one: Question, two: Question, absent: frozenset[str]) -> bool:
    """Return whether the baseline has rates of a quantity that was measured on the other side, too.

    There it may have given no rate at all; but a column that the other's table does not have (`absent`) was
    not asked for.
    """
    if one.empty:
        return False
    return one.metric == two.metric or not (two.gives(one.metric) or one.metric in absent)


def _pairs(
    mine: Sequence[Question], theirs: Sequence[Question], stacks: Stacks
) -> list[tuple[Question, Question]]:
    """Return pairs of questions, each question in one at most; those of the same names first."""
    by_key: dict[tuple[str, ...], list[Question]] = {}
    for two in theirs:
        by_key.setdefault(_partner_key(two, two["storage"], two["layer"]), []).append(two)
    candidates = []
    for one in mine:
        storage = stacks.storages.get(one["storage"])
        if storage is not None:
            key = _partner_key(one, storage, stacks.layer(one["layer"]))
            candidates += [(one, two) for two in by_key.get(key, ())]
    candidates.sort(key=lambda pair: (*_distance(*pair), *sorted((pair[0].key, pair[1].key))))
    taken: set[int] = set()
    found = []
    for one, two in candidates:
        if not taken & {id(one), id(two)}:
            taken |= {id(one), id(two)}
            found.append((one, two))
    return found


def _partner_key(question: Question, storage: str, layer: str) -> tuple[str, ...]:
    return (*(question[name] for name in ("operation", "engine", "access", "features")), storage, layer)


def _distance(one: Question, two: Question) -> tuple[bool, ...]:
    """Return what two questions do not share, the most important first: a sort key, nearest first.

    Measured numbers stand beside measured ones where there are any.
    """
    names = ("origin", "workload", "experiment", "study")
    amounts = any(s in two.scales and same_amount(rows, two.scales[s]) for s, rows in one.scales.items())
    return (one["origin"] != two["origin"], not amounts, *(one[name] != two[name] for name in names[1:]))


def _why(
    question: Question,
    scale: Scale,
    partner: Question | None,
    there: Side,
    valid: Sequence[Question],
    everything: Sequence[Question],
    stacks: Stacks,
) -> tuple[str, str]:
    """Return (reason, detail) why a question has no partner on side `there` at a scale."""
    storage = stacks.storages.get(question["storage"])
    if storage is None:
        return NO_STORAGE, f"there: {', '.join(there.names('storage'))}"
    layer = stacks.layer(question["layer"])
    reason = _failure(question, scale, storage, layer, there)
    if reason and (partner is None or scale not in partner.scales):
        return FAILED_THERE, reason
    if layer not in there.names("layer"):
        return NO_LAYER, f"there: {', '.join(there.names('layer'))}"
    if partner is not None and scale in partner.scales:
        return _why_beside(question, scale, partner)
    on_stack = [q for q in everything if (q["storage"], q["layer"]) == (storage, layer)]
    same = [q for q in on_stack if _partner_key(q, storage, layer) == _partner_key(question, storage, layer)]
    if any(scale in q.scales for q in same) and not any(
        scale in q.scales for q in valid if q.key in {s.key for s in same}
    ):
        return INVALID_THERE, ""
    if partner is not None or same:
        if partner is None and any(scale in q.scales for q in same):
            return (
                OTHER_NUMBER if any(q["origin"] == question["origin"] for q in same) else OTHER_ORIGIN
            ), ""
        scales_there = sorted({s for q in same for s in q.scales})
        return NO_SCALE, f"there: {', '.join(_scale(s) for s in scales_there)}"
    named = [
        q for q in on_stack
        if all(q[n] == question[n] for n in ("experiment", "workload", "operation"))
    ]  # fmt: skip
    for two in named:
        if two["engine"] == question["engine"]:
            return OTHER_WORKLOAD, _differing(question, two)
    alike = [q for q in on_stack if all(q[n] == question[n] for n in ("operation", "features"))]
    if {q["origin"] == "simulated" for q in alike} == {question["origin"] != "simulated"}:
        return SIMULATED, ""
    engines = {q["engine"] for q in alike}
    if engines - {question["engine"]}:
        return OTHER_ENGINE, f"{question['engine']} here, {', '.join(sorted(engines))} there"
    return NOT_THERE, ""


def _why_beside(question: Question, scale: Scale, partner: Question) -> tuple[str, str]:
    """Return why a question is not compared at a scale at which its partner was measured, too."""
    rows, there = question.scales[scale], partner.scales[scale]
    if question.empty:
        return NO_NUMBER, said_of(rows[question.metric])
    if partner.empty:
        return NO_NUMBER_THERE, said_of(there[partner.metric])
    if partner.metric != question.metric and same_amount(rows, there):
        return OTHER_QUANTITY, f"{question.metric} here, {partner.metric} there"
    return OTHER_AMOUNT, _amounts(rows, there)


def _failure(question: Question, scale: Scale, storage: str, layer: str, there: Side) -> str:
    """Return why the run that would be the partner failed; empty where none did."""
    names = {n: question[n] for n in ("origin", "experiment", "workload", "engine")} | {
        "storage": storage,
        "layer": layer,
    }
    failed = there.failed
    for name, value in names.items():
        failed = failed[failed[name] == value]
    for name, number in zip(SCALE, scale, strict=True):
        failed = failed[failed[name] == number]
    if failed.empty:
        return ""
    reason = failed["reason"].iloc[0]
    return str(reason) if isinstance(reason, str) and reason else "no reason recorded"


def _left_out(
    side: Side, valid: Sequence[Question], everything: Sequence[Question], excluded: Sequence[str]
) -> list[Alone]:
    """Return numbers of which a validity check left no repetition."""
    kept = {(q.key, scale) for q in valid for scale in q.scales}
    known = {q.key for q in valid}
    found = []
    for question in everything:
        for scale, rows in question.scales.items():
            if (question.key, scale) not in kept:
                flags = Counter(f for cell in rows["flags"] for f in flag_list(cell) if f in set(excluded))
                detail = ", ".join(sorted(flags))
                whole = question.key not in known
                found.append(Alone(side.name, question, scale, INVALID, detail, whole))
    return found


def _amounts(mine: pd.DataFrame, theirs: pd.DataFrame) -> str:
    said = []
    for column in _AMOUNTS:
        one, two = mine[column.name].iloc[0], theirs[column.name].iloc[0]
        if str(one) != str(two):
            what = "of each process" if column.unit else "items of each process"
            said.append(f"{_amount(one, column.unit)} {what} here, {_amount(two, column.unit)} there")
    return "; ".join(said)


def _amount(value: Any, unit: str) -> str:
    if pd.isna(value):
        return "an unknown number"
    return format_size(float(value)) if unit else f"{value:,}"


def _differing(one: Question, two: Question) -> str:
    said = []
    for column in FEATURES:
        mine, theirs = one.features.get(column.name), two.features.get(column.name)
        if column.name in FEATURE_NAMES and str(mine) != str(theirs):
            said.append(
                f"{column.name}: {_feature(mine, column.unit)} here, {_feature(theirs, column.unit)} there"
            )
    if one["access"] != two["access"]:
        said.append(f"access: {one['access'] or 'unknown'} here, {two['access'] or 'unknown'} there")
    return "; ".join(said)


def _feature(value: Any, unit: str) -> str:
    if pd.isna(value):
        return "none"
    return format_size(float(value)) if unit == "B" else str(value)


def _scale(scale: Scale) -> str:
    return f"{scale[0]} × {scale[1]}"
