"""The page: one HTML file with everything in it. What it says is computed here; templates/ has its looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import yaml

import tiercel
from tiercel.pages.environment import environment
from tiercel.pages.secured import unbroken, unturned
from tiercel.report import packing, page_tables, words
from tiercel.report.cell_limits import Limits
from tiercel.report.columns import storages
from tiercel.report.data import Number, Record, Results
from tiercel.report.evidence import by_place, pack
from tiercel.report.figures import left_out
from tiercel.report.findings import AUDIENCES, Finding
from tiercel.report.picture import Picture
from tiercel.report.sections import Section
from tiercel.report.unfinished import Unfinished
from tiercel.report.verdict import Verdict
from tiercel.site.model import Site
from tiercel.site.simulated import real_name
from tiercel.units import format_duration, format_size

#: Words for the severity of a finding, in the order in which the page shows them.
SEVERITIES = {
    "failure": "failed",
    "claim": "proven",
    "hint": "likely",
    "fact": "measured",
    "caution": "note",
    "open": "undecided",
}
_SHOWN = 4
#: Sentences of a section that are shown outside its details.
_LEAD = 1


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before anything else; None where the study has nothing of it."""

    verdict: Verdict | None
    picture: Picture | None
    limits: Limits
    """Limits on the use of single cells."""


def page(
    results: Results,
    site: Site,
    first: FirstScreen,
    pictures: list[Picture],
    findings: list[Finding],
    parts: Sequence[Section] = (),
    evidence: Mapping[str, Any] | None = None,
    missing: Unfinished | None = None,
) -> str:
    """Return the page as text. Everything from data is escaped; only our own figures are markup."""
    study, glance = results.study, page_tables.glance(results)
    made = environment("tiercel.report")
    rows = made.get_template("rows.html.j2")
    numbers, comparisons = (
        packing.cut(table) if table else None
        for table in (page_tables.numbers(results), page_tables.comparisons(results))
    )
    later = packing.later(pictures)
    packed = {
        **by_place(evidence or {"numbers": {}, "runs": {}, "whole": True}),
        "rows": {
            name: unbroken(unturned(rows.render(t=found.rest)))
            for name, found in (("numbers", numbers), ("comparisons", comparisons))
            if found and found.rest.rows
        },
        "figures": {p.name: unturned(p.svg) for p in pictures if p.name in later}
        | {f"other-{p.name}": unturned(p.other) for p in pictures if p.other and p.name not in later},
    }
    return made.get_template("report.html.j2").render(
        title=study.title or study.study,
        study=study,
        site=site,
        simulated=site.simulated,
        imported=_imported(results),
        first=first,
        missing=missing,
        results=results,
        counts=_counts(results),
        sampled=_sampled(results),
        audiences=_audiences(findings),
        severities=SEVERITIES | ({"fact": "simulated"} if site.simulated else {}),
        shown=_SHOWN,
        lead=_LEAD,
        glance=glance,
        glance_kinds={cell.kind for _, cells in glance.rows for cell in cells} if glance else set(),
        experiments=_figures(results, pictures),
        left_out=left_out(results),
        parts=parts,
        ratios=[p for p in pictures if not p.experiment],
        numbers=numbers,
        comparisons=comparisons,
        later=later,
        behind=packing.behind(
            results,
            [
                *([first.picture] if first.picture else []),
                *pictures,
                *(p for part in parts for p in part.all_pictures),
            ],
        ),
        packed=pack(packed),
        floors=page_tables.floors(results),
        agreement=page_tables.agreement(results),
        checks=_checks(results),
        failed=page_tables.failed(results),
        storages=page_tables.storages(results, site),
        machine=_machine(results, site),
        conditions=page_tables.conditions(results),
        provenance=_provenance(results, site),
        definition=yaml.safe_dump(
            _set(study.model_dump(mode="json", exclude_defaults=True)), sort_keys=False, allow_unicode=True
        ),
    )


def _set(value: Any) -> Any:
    """Return a study's keys without those of its workload files that nobody set: null, or empty."""
    if isinstance(value, dict):
        kept = ((key, _set(each)) for key, each in value.items())
        return {key: each for key, each in kept if each not in (None, "", [], {})}
    return [_set(each) for each in value] if isinstance(value, list) else value


def _imported(results: Results) -> bool:
    """Return whether all numbers were measured elsewhere, by no run of this project."""
    return bool(results.numbers) and all(n.origin == "imported" for n in results.numbers)


def _counts(results: Results) -> list[str]:
    said = [words.count(results.ok, "run")] if len(results.runs) else []
    if results.traced:
        said.append(f"{results.traced} traced")
    if results.failed:
        said.append(f"{len(results.failed)} failed")
    said.append(words.count(results.total, "result"))
    said.append(words.count(len(storages(list(results.stacks))), "storage system"))  # not its layers
    when = _time_range(results)
    return [*said, when] if when else said


def _sampled(results: Results) -> str:
    """Say what is not shown number by number."""
    left = results.total - len(results.numbers)
    if not left:
        return ""
    names = words.listed([results.experiment_title(e) for e in results.samples])
    return f"{words.count(left, 'result')} of designed samples ({names}) are shown as a group"


def _audiences(findings: list[Finding]) -> list[tuple[str, str, str, list[Finding]]]:
    found: list[tuple[str, str, str, list[Finding]]] = []
    for audience, (heading, question) in AUDIENCES.items():
        mine = [f for f in findings if f.audience == audience]
        mine.sort(key=lambda f: list(SEVERITIES).index(f.severity))
        if mine:
            found.append((audience, heading, question, mine))
    return found


def _figures(results: Results, pictures: list[Picture]) -> list[tuple[str, str, list[Picture]]]:
    found = []
    for experiment in results.experiments():
        mine = [p for p in pictures if p.experiment == experiment]
        if mine:
            found.append((experiment, results.experiment_title(experiment), mine))
    return found


def _checks(results: Results) -> list[Record]:
    found, shown = [], {n.anchor for n in results.numbers}
    for code, numbers in results.flags.items():
        by_stack: dict[str, list[Number]] = {}
        for n in numbers:
            by_stack.setdefault(results.stacks[n.stack], []).append(n)
        # A number of a sample is not on the page: it is counted.
        where = [
            (label, [n for n in found if n.anchor in shown], sum(n.anchor not in shown for n in found))
            for label, found in by_stack.items()
        ]
        found.append(
            {
                "flag": results.flag(code),
                "share": f"{len(numbers)} of {words.count(results.total, 'result')}",
                "where": where,
            }
        )
    return found


def _machine(results: Results, site: Site) -> list[tuple[str, str]]:
    memory = _span(results.runs["memory_bytes"], format_size)
    facts = [
        ("Site", site.site + (f": {site.description}" if site.description else "")),
        ("Nodes", str(site.nodes)),
        (
            "Cores per node",
            _span(results.runs["cores"], lambda v: f"{v:.0f}") or str(site.processes_per_node),
        ),
        ("Memory per node", memory or (format_size(site.memory_per_node) if site.memory_per_node else "")),
        ("Kernel", _several(results.runs["kernel"])),
        ("Hosts", _several(results.runs["host"])),
        ("Launcher", _several(results.runs["launcher"])),
    ]
    return [(name, value) for name, value in facts if value]


def _provenance(results: Results, site: Site) -> list[tuple[str, str]]:
    runs = results.runs
    engines = sorted(
        {f"{e} {v}".strip() for e, v in zip(runs["engine"], _texts(runs["engine_version"]), strict=True)}
    )
    duration = pd.to_numeric(runs["duration"], errors="coerce").sum() if len(runs) else 0.0
    origins = sorted({n.origin for n in results.numbers})
    facts = [
        ("Written by", f"tiercel {tiercel.__version__}"),
        ("Engines", words.listed(engines or sorted({n.engine for n in results.numbers}))),
        ("Simulated" if site.simulated else "Measured", _time_range(results)),
        (
            "Runs",
            f"{results.ok} succeeded, {results.traced} traced, {len(results.failed)} failed"
            if len(runs)
            else "",
        ),
        ("Time of all runs", format_duration(float(duration)) if duration else ""),
        ("Origin of the results", words.listed(origins)),
        (
            "Left out",
            f"{words.count(results.superseded, 'run')} of earlier versions of the study"
            if results.superseded
            else "",
        ),
        ("", "") if _imported(results) else _again(site, results.study.study),
        ("Rebuild this page", f"tiercel report --site {site.site} --study {results.study.study}"),
    ]  # fmt: skip
    return [(name, value) for name, value in facts if value]


def _again(site: Site, study: str) -> tuple[str, str]:
    if site.simulated:
        return "Simulate again", f"tiercel evaluate --site {real_name(site.site)} --study {study} --simulate"
    return "Measure again", f"snakemake --profile {site.site} --config study={study}"


def _texts(values: Iterable[Any]) -> list[str]:
    return [page_tables.text(v) for v in values]


def _several(values: pd.Series[Any]) -> str:
    """Return the different values in words; their number where they are many."""
    found = sorted(set(_texts(values)) - {""})
    return words.listed(found) if len(found) <= 4 else f"{', '.join(found[:3])} and {len(found) - 3} more"


def _span(values: pd.Series[Any], show: Any) -> str:
    numbers = pd.to_numeric(values, errors="coerce").dropna()
    if numbers.empty:
        return ""
    low, high = str(show(float(numbers.min()))), str(show(float(numbers.max())))
    return low if low == high else f"{low} to {high}"


def _time_range(results: Results) -> str:
    started = pd.to_numeric(results.runs["started"], errors="coerce").dropna()
    if started.empty:
        return ""
    first, last = (datetime.fromtimestamp(float(t), UTC) for t in (started.min(), started.max()))
    if first.date() == last.date():
        return f"{first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC"
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
