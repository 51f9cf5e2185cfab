"""The section of recommendations: where files belong, what decided it, and whether copying them pays."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from tiercel.pages.tables import Table, table
from tiercel.report import words
from tiercel.report.classes import in_sentence
from tiercel.report.data import Results
from tiercel.report.recommend import (
    LITTLE,
    GroupAdvice,
    Judgement,
    Recommendation,
    as_json,
)
from tiercel.report.sections.base import Context, Section, sections
from tiercel.units import format_latency, format_share, format_size

FILE = "recommendations.json"


@sections.register("recommendations")
def section(context: Context) -> Section | None:
    """Return the section and write FILE beside the page; None where no measured workload has a number."""
    results = context.results.named()
    made, groups, notes = context.recommended
    target = context.figures.parent / FILE
    if not made:
        target.unlink(missing_ok=True)
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    content = as_json(results, made, groups, notes)
    target.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    tables = [_workloads(results, made)]
    if groups:
        tables.append(_groups(results, groups))
    model = [j for r in made for j in r.judgements.values() if j.opinion is not None]
    if model:
        tables.append(_models(results, made))
    return Section(
        "recommendations",
        "Recommendations",
        tuple(_texts(results, made, model, any(context.folder.glob("placement/*/model.json")))),
        tables=tuple(tables),
        notes=(
            "Copy times use the speeds that this study measured on both storages. Savings use the medians at "
            "the largest scale. A workload without a traced run is assumed to copy 1 GiB.",
            *notes,
            f"Data: {FILE}, next to this page.",
        ),
        early=True,
    )


#: Agreement of measurement and model: words for a count of pairs.
_TOGETHER = {
    "agree": "agree",
    "disagree": "disagree (trust the measurement)",
    "the measurement alone decides": "decided by the measurement only",
    "the model alone decides": "expected by the model only",
    "both undecided": "undecided",
}


def _texts(results: Results, made: list[Recommendation], model: list[Judgement], trained: bool) -> list[str]:
    """`model`: the opinions of the placement model; `trained`: whether the site has one at all."""
    texts = []
    uses: dict[int, list[str]] = {}
    never, own = [], []
    for r in made:
        name = in_sentence(r.of.name)
        if r.copying == "nothing to copy":
            own.append(name)
        elif r.copying == "pays" and r.staging is not None and r.staging.pays_from is not None:
            uses.setdefault(r.staging.pays_from, []).append(name)
        elif r.copying == "only if results are not kept":
            never.append(name)
    for use, names in sorted(uses.items()):
        texts.append(f"Copy into memory from the {_nth(use)} use of the files: {words.listed(names)}.")
    if own:
        texts.append(f"Use another folder, nothing to copy: {words.listed(own)}.")
    if never:
        texts.append(
            f"Copying pays only if the results are not kept: {words.listed(never)}. Copying them back takes "
            "longer than memory saves."
        )
    if model:
        count = Counter(j.agreement for j in model)
        said = [f"{count[how]} {meaning}" for how, meaning in _TOGETHER.items() if count[how]]
        texts.append(
            f"Measurements and placement model for {words.count(len(model), 'pair')}: {words.listed(said)}."
        )
    elif trained:
        texts.append("The placement model of this site does not cover these workloads.")
    else:
        texts.append(
            "For other file sizes and patterns, train a placement model: run `tiercel evaluate --study "
            "placement-quick`, then `tiercel place train`."
        )
    return texts


def _workloads(results: Results, made: list[Recommendation]) -> Table:
    rows = []
    for r in made:
        home, faster = r.judgements[r.home], r.judgements.get(r.faster)
        lost = _lost(results, r)
        rows.append([
            r.of.name,
            _home(results, r),
            _gain(results, home, lost) if r.decided else _not_decided(lost, r),
            f"{results.name(r.faster)}: {_gain(results, faster, lost)}"
            if faster
            else _open_memory(results, r),
            _copy(r),
            _decided(home, faster, r.decided, lost),
            _mind(results, r),
        ])  # fmt: skip
    return table(
        "Recommendation for each workload. A question mark: not proven better than another storage",
        ("Workload", "Keep files on", "Gain", "Faster, not kept", "Copying pays", "Decided by", "Note"),
        rows,
    )


def _lost(results: Results, r: Recommendation) -> list[str]:
    """Return the places that keep files and gave no number of a class."""
    return r.of.lost(results.memory)


def _home(results: Results, r: Recommendation) -> str:
    lost = _lost(results, r)
    if lost and not r.keeps:
        return f"unknown: no result on {words.listed(lost)}"
    return results.name(r.home) if r.decided else f"{results.name(r.home)}?"


def _not_decided(lost: list[str], r: Recommendation) -> str:
    return "unknown" if lost and not r.keeps else "undecided"


def _open_memory(results: Results, r: Recommendation) -> str:
    """Return what is to be said of memory that is not proven to be ahead."""
    said = [
        f"{results.name(s)}: {'no gain' if j.outcome in ('same', 'lower') else 'undecided'}"
        for s, j in r.judgements.items()
        if s in results.memory and s != r.home and j.standing.rows
    ]
    return "; ".join(said)


def _gain(results: Results, judgement: Judgement, lost: list[str]) -> str:
    """Return ``2.1× NFS (1.9–2.3)``, by what decided it."""
    standing = judgement.standing
    if not standing.rows:
        if lost:
            return f"only storage with a result (none on {words.listed(lost)})"
        return "only storage that keeps files"
    if judgement.decided_by == "model" and judgement.opinion is not None:
        o = judgement.opinion
        return f"{words.times(o.ratio)} {results.name(o.against)} ({words.factors(o.low, o.high)}, expected)"
    if judgement.outcome == "same":
        return words.same_as(results.name(standing.against), standing.rows[0])
    row, against = standing.rows[0], results.name(standing.against)
    return f"{words.times(row['ratio'])} {against} ({words.factors(row['low'], row['high'])})"


def _decided(home: Judgement, faster: Judgement | None, decided: bool, lost: list[str]) -> str:
    by = [j.decided_by for j in (home, faster) if j is not None and j.decided_by]
    said = " and ".join(dict.fromkeys(by)) or (
        f"no other storage{' with a result' if lost else ''}"
        if decided and not home.standing.rows
        else "nothing"
    )
    opinions = {j.agreement for j in (home, faster) if j is not None and j.agreement}
    if "disagree" in opinions:
        return f"{said}; the model disagrees"
    return f"{said}; the model agrees" if opinions == {"agree"} else said


def _copy(r: Recommendation) -> Any:
    if r.staging is None:
        return ("", -1.0)
    if r.copying == "nothing to copy":
        return (r.copying, 0.0)
    pays = r.staging.pays_from
    size = format_size(r.amount.bytes_in or r.amount.bytes_out)
    cost = r.staging.seconds_in + r.staging.seconds_out
    detail = f"copying {size} takes {_seconds(cost)}, saves {_seconds(r.staging.saved)}"
    when = f"from use {pays}" if pays is not None else r.copying
    return (f"{when}: {detail}", float(pays or math.inf))


def _seconds(seconds: float) -> str:
    return format_latency(seconds) if math.isfinite(seconds) else "unknown time"


def _mind(results: Results, r: Recommendation) -> str:
    said = []
    if r.faster:
        said.append(f"{results.name(r.faster)}: lost at restart")
    if not r.keeps:
        said.append("all measured storage is memory")
    if not r.everywhere:
        said.append(f"{results.name(r.home)}: one node only")
    if r.free is not None:
        said.append(f"{format_size(r.free)} free")
    return "; ".join(said)


def _groups(results: Results, groups: list[GroupAdvice]) -> Table:
    stacks = list(dict.fromkeys(s for g in groups for s in g.seconds))
    rows = [
        [
            g.of.name, g.group, g.files, (format_size(g.size), g.size) if g.size >= 0 else ("", -1.0),
            *((_seconds(g.seconds[s]), g.seconds[s]) if s in g.seconds else ("", -1.0) for s in stacks),
            f"{results.name(g.target)}{'' if g.fits else ' (no room)'}",
            _use(g),
        ]
        for g in groups if g.share >= LITTLE
    ]  # fmt: skip
    return table(
        "Recommendation for each group of files. Times in calls of one traced run, summed over "
        f"processes.{_left_out(groups)}",
        (
            "Workload",
            "Files",
            "Count",
            "Size",
            *(f"On {results.name(s)}" for s in stacks),
            "Use",
            "Copying pays",
        ),
        rows,
        ("Count", "Size", *(f"On {results.name(s)}" for s in stacks)),
    )


def _left_out(groups: list[GroupAdvice]) -> str:
    """Say how many groups cost too little time to decide anything."""
    little = sum(g.share < LITTLE for g in groups)
    verb = "is" if little == 1 else "are"
    return f" {words.count(little, 'group')} with less than 1 % of the time {verb} left out" if little else ""


def _use(g: GroupAdvice) -> str:
    if g.staging is None:
        return ""
    if not g.staging.seconds_in and not g.staging.seconds_out:
        return "nothing to copy"
    pays = g.staging.pays_from
    return f"from use {pays}" if pays is not None else "only if results are not kept"


def _models(results: Results, made: list[Recommendation]) -> Table:
    rows = []
    for r in made:
        for j in r.judgements.values():
            if j.opinion is None:
                continue
            row, o = j.standing.rows[0], j.opinion
            rows.append([
                r.of.name, f"{results.name(j.stack)} over {results.name(o.against)}",
                (f"{words.times(row['ratio'])} ({words.factors(row['low'], row['high'])})", row["ratio"]),
                (f"{words.times(o.ratio)} ({words.factors(o.low, o.high)})", o.ratio),
                format_share(o.confidence), j.agreement, o.outside,
            ])  # fmt: skip
    return table(
        "Measurement and placement model. Measured with 95 % interval, expected with 90 % interval",
        ("Workload", "Storages", "Measured", "Model", "Confidence", "Agreement", "Outside training data"),
        rows,
        ("Measured", "Model", "Confidence"),
    )


def _nth(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}{ending}")
