"""Print the summary of an evaluation: results, failures, recommendations, path of the report."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.errors import one_line
from tiercel.report import words
from tiercel.report.cell_limits import cell_limits
from tiercel.report.classes import WorkloadClass, classes
from tiercel.report.data import Number, Results
from tiercel.report.figures import largest
from tiercel.report.findings import find
from tiercel.report.html import SEVERITIES
from tiercel.report.recommend import recommendations
from tiercel.report.verdict import verdict
from tiercel.results.validity import FLAGS
from tiercel.site.model import Site
from tiercel.study.model import Study
from tiercel.units import format_latency

_WIDTH = 80
#: Causes of failures to print.
_REASONS = 3

#: Cautions on numbers; those for users are in the verdict.
_CAUTION = ("caution", "engineer")


def print_summary(folder: Path, site: Site, study: Study, file: IO[str] | None = None) -> None:
    """Print the results of a study in at most 80 columns; plain text where it is no terminal."""
    results = Results.from_folder(folder, study, FLAGS)
    out = file or sys.stdout
    if out.isatty():
        width = min(_WIDTH, Console(file=out).width)
        _print(results, site, Console(file=out, width=width, highlight=False), folder)
        return
    plain = io.StringIO()
    _print(results, site, Console(file=plain, width=_WIDTH, highlight=False, color_system=None), folder)
    out.write("".join(f"{line.rstrip()}\n" for line in plain.getvalue().splitlines()))


def _print(results: Results, site: Site, console: Console, folder: Path) -> None:
    everything, results = results, results.named()
    if site.simulated:
        console.print(Text(f"{site.site}: simulated from its topology, not measured", style="bold"))
    if results.numbers:
        console.print(_table(results))
        marks = [mark for mark in _MARKS if any(mark in _marks(n) for n in results.numbers)]
        if marks:
            console.print(Text("; ".join(f"{mark} {_MARKS[mark]}" for mark in marks), style="dim"))
        console.print()
    _warnings(results, site, console)
    _verdict(everything, site, console, folder)
    traced = f"{results.traced} traced, " if results.traced else ""
    runs = f"{words.count(results.ok, 'run')} succeeded, {traced}{len(results.failed)} failed."
    console.print(Text(runs, style="bold red" if results.failed else "bold"))
    page = folder / "report" / "index.html"
    if page.is_file():
        # Not wrapped: a path in two lines cannot be opened.
        console.print(Text(f"Report: {page}"), soft_wrap=True)


def _warnings(results: Results, site: Site, console: Console) -> None:
    """Print why runs failed, and the first caution."""
    found = find(results)
    failures = [f for f in found if f.severity == "failure"]
    for_users = {f.sentence for f in found if (f.severity, f.audience) == ("caution", "user")}
    cautions = [f for f in found if (f.severity, f.audience) == _CAUTION and f.sentence not in for_users]
    for finding in (*failures[:_REASONS], *cautions[:1]):
        line = Text(f"{SEVERITIES[finding.severity]}: ", style="bold")
        console.print(line.append(one_line(finding.sentence), style="not bold"))
    more = len(failures) - _REASONS
    if more > 0:
        command = f"tiercel status --site {site.site} --study {results.study.study} --json"
        reasons = "one other reason" if more == 1 else f"{more} other reasons"
        console.print(f"failed for {reasons}: run `{command}`")


def _verdict(results: Results, site: Site, console: Console, folder: Path) -> None:
    """Print the first screen of the report: the best storage for each workload and its limits."""
    named = results.named()
    ranked = classes(named)
    found = verdict(results, site, ranked)
    if found is None:
        return
    limits = cell_limits(named, folder, ranked, recommendations(named, site, folder, ranked)[0])
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    table.add_column("workload", overflow="fold", ratio=5)
    table.add_column("keep on", overflow="fold", ratio=3)
    table.add_column("faster, but lost at restart", overflow="fold", ratio=5)
    for of, places in found.rows:
        best = of.ranking.advice[of.ranking.reference]
        home = results.name(of.ranking.reference)
        at_home = limits.get((of.key, of.ranking.reference), ())
        by_stack = dict(zip(found.stacks, places, strict=True))
        fast = [
            f"{results.name(s)} {by_stack[s].factor}"
            + (f" ({by_stack[s].interval})" if by_stack[s].interval else "")
            + "".join(f", {limit}" for limit in limits.get((of.key, s), ()))
            for s in found.stacks if by_stack[s].advice == "fastest"
        ]  # fmt: skip
        open_ones = [s for s in found.stacks if s in results.memory and by_stack[s].advice == "undecided"]
        table.add_row(
            Text(one_line(of.name)),
            Text(one_line(", ".join((_home(results, of, home, best), *at_home)))),
            Text(one_line("; ".join(fast) or ("undecided" if open_ones else ""))),
        )
    if len(found.stacks) > 1 and found.rows:  # a study of samples has none
        console.print()
        console.print(table)
    undecided = f"{found.undecided}." if found.undecided else ""
    for sentence in (found.where, found.gain, found.mind, found.silent, undecided):
        if sentence:
            console.print(Text(one_line(sentence)))


def _home(results: Results, of: WorkloadClass, home: str, best: str) -> str:
    """Return the place to keep files on; what was measured alone beside failures is none if it is memory."""
    if best in ("use", "only"):
        return home
    lost = of.lost(results.memory)
    if lost and of.ranking.reference in results.memory:
        return f"unknown: no result on {words.listed(lost)}"
    return f"{home}? (undecided)"


_MARKS = {
    "!": "failed a validity check, not compared",
    "?": "possibly from a cache",
    "i": "imported",
    "s": "simulated",
}


def _marks(n: Number) -> str:
    cold = "" if n.cold or n.invalid else "?"
    return ("!" if n.invalid else "") + cold + {"imported": "i", "simulated": "s"}.get(n.origin, "")


def _table(results: Results) -> Table:
    table = Table(
        title=Text(
            f"{one_line(results.study.title or results.study.study)}: medians at the largest scale", "bold"
        ),
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
        header_style="bold",
    )
    table.add_column("workload", overflow="fold", ratio=2)
    table.add_column("storage", overflow="fold", ratio=2)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("p99", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    rows = _rows(results)
    experiments: dict[str, set[str]] = {}
    for n in rows:
        experiments.setdefault(n.workload, set()).add(n.experiment)
    heading, before = "", ("", "")
    for n in rows:
        metadata = n.metric != "bandwidth" or n.operation.startswith(("job-", "all-jobs"))
        # Several experiments may each have a workload of this name.
        workload = n.workload if len(experiments[n.workload]) == 1 else f"{n.experiment} {n.workload}"
        name = f"  {words.operation(n.operation)}" if metadata else workload
        if metadata and workload != heading:
            table.add_row(Text(one_line(workload)))
        first = (workload, name) != before
        before, heading = (workload, name), workload
        table.add_row(
            Text(one_line(name if first else "")),
            Text(one_line(n.stack)),
            n.value,
            words.span_of(n.row),
            format_latency(n.latency_p99, 2),
            str(n.n),
            _marks(n),
        )
    return table


def _rows(results: Results) -> list[Number]:
    """Return the numbers at the largest scale of each workload and operation, by the study's main engine."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for n in results.numbers:
        if n.engine == results.main_engine(n.experiment, n.workload):
            groups.setdefault((n.experiment, n.workload, n.operation), []).append(n)
    return [n for group in groups.values() for n in largest(group)]
