"""Commands on sites: what is known, what was found, a new one."""
# ruff: noqa: PLC0415 (models take a while to import, and `--help` needs none)

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.children import end_with
from tiercel.cli.console import print_json
from tiercel.cli.options import Changes, Json, Study
from tiercel.project import project_root
from tiercel.units import format_size

if TYPE_CHECKING:
    from tiercel.site.facts import Fact
    from tiercel.site.model import Site

app = typer.Typer(help="Describe, check and calibrate machines.", no_args_is_help=True)


@app.command("list")
def list_sites(as_json: Json = False) -> None:
    """List the sites in site-configs/: those that can be measured, then retired machines.

    Sites of retired machines document published studies. They can be planned and simulated.
    """
    from tiercel.site.load import described_sites

    sites = described_sites(project_root())
    if as_json:
        print_json([{"site": name, **_summary(site)} for name, site in sites.items()])
        return
    width = max(map(len, sites), default=0)
    rows = {name: _summary(site) for name, site in sites.items()}
    for name, row in rows.items():
        if row["retired"] is None:
            print(f"{name:{width}}  {row['description']}".rstrip())
    retired = {name: row for name, row in rows.items() if row["retired"] is not None}
    if retired:
        print("\nretired machines, for published studies:")
    for name, row in retired.items():
        print(f"{name:{width}}  {row['description']} (until {row['retired']})")


def _summary(site: Site | str) -> dict[str, Any]:
    """Return what a list says of a site; of one that cannot be read the reason."""
    if isinstance(site, str):
        return {"description": f"cannot be read: {site}", "scheduler": None, "retired": None}
    scheduler = site.scheduler.name if site.scheduler else None
    return {"description": site.description, "scheduler": scheduler, "retired": site.retired}


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the site: lower-case letters, digits and dashes.")],
    scheduler: Annotated[
        str, typer.Option(help="Scheduler, or none. Default: the one found on this machine.")
    ] = "",
) -> None:
    """Create the folder of a site from what this machine reports. Open questions become comments.

    Example: tiercel site new my-cluster
    """
    from tiercel.schedulers import schedulers
    from tiercel.site import load_site
    from tiercel.site.new import new_site
    from tiercel.site.survey import survey

    if scheduler not in ("", "none"):
        schedulers.get(scheduler)  # UserError for an unknown one, before the machine is looked at
    root, found = project_root(), survey(scheduler)
    scripts = schedulers.get(found.scheduler).scripts if found.scheduler not in ("", "sbatch") else {}
    folder = new_site(name, root, found, scripts)
    load_site(name, root)
    print(f"wrote {folder.relative_to(root)} and the link {name}")
    for question in found.questions:
        print(f"question: {question}")
    print(f"next: edit {folder.relative_to(root)}/site.yaml, then `tiercel site check {name}`")


@app.command()
def check(
    site: Annotated[str, typer.Argument(help="Site, a folder of site-configs/.")] = "local",
    submit: Annotated[
        bool,
        typer.Option("--submit", help="Run the checks in small jobs on the nodes of the site."),
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0.1, max=1e6, help="With --submit: minutes to wait for the jobs.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Compare the folder of a site with this machine. The exit code is 1 if they differ.

    Example: tiercel site check my-cluster --submit
    """
    from tiercel.errors import UserError
    from tiercel.runs.site_check import problems
    from tiercel.site import load_site
    from tiercel.site.simulated import real_name

    root = project_root()
    loaded = load_site(site, root)
    if loaded.simulated:
        raise UserError(f"site {site}: a simulated site cannot be checked: name {real_name(site)}")
    found = problems(loaded, root, storages=not submit)
    facts: list[Fact] = []
    if submit and not found:  # else no job would get anywhere
        facts, found = _submitted(loaded, root, wait * 60)
    if as_json:
        print_json({"site": site, "problems": found, **({"facts": _rows(facts)} if facts else {})})
        raise typer.Exit(1 if found else 0)
    if facts:
        _print_facts(facts)
    for problem in found:
        print(f"tiercel: site {site}: {problem}", file=sys.stderr)
    if found:
        raise typer.Exit(1)
    print(f"site {site}: no problem found {'on its nodes' if submit else 'on this machine'}")


def _submitted(site: Site, root: Path, patience: float) -> tuple[list[Fact], list[str]]:
    """Carry out the checklist; return the site's facts, and what does not fit."""
    from tiercel.checklist.submit import check_on_nodes
    from tiercel.site.facts import facts_of, write_facts

    measured = check_on_nodes(site, root, patience)
    write_facts(measured, root)
    return facts_of(site, measured), measured.problems


@app.command("check-job", hidden=True)
def check_job(
    site: Annotated[str, typer.Option()],
    nodes: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="File to write when the job is done.")],
    parent: Annotated[
        int, typer.Option(help="Process ID of the Snakemake that started the job; the job ends with it.")
    ],
) -> None:
    """Run one job of the checklist (called by Snakemake)."""
    from tiercel.checklist.job import carry_out
    from tiercel.site import load_site

    end_with(parent)
    root = project_root()
    carry_out(load_site(site, root), nodes, root, root / output)


@app.command()
def show(
    site: Annotated[str, typer.Argument(help="Site, a folder of site-configs/.")] = "local",
    as_json: Json = False,
) -> None:
    """Show the nodes, launcher and storage systems of a site, and the source of each fact.

    For a discovered site it also lists the mounts that are left out, with the reason.
    """
    from rich.console import Console
    from rich.table import Table

    from tiercel.pages.words import count
    from tiercel.site import load_site
    from tiercel.site.discover import discover
    from tiercel.site.facts import facts_of, read_facts

    root = project_root()
    found = load_site(site, root)
    facts = facts_of(found, read_facts(site, root))
    if as_json:
        print_json({**found.model_dump(mode="json"), "facts": _rows(facts)})
        return
    console = Console()
    console.print(f"[bold]{found.site}[/bold]  {found.description}")
    memory = format_size(found.memory_per_node) if found.memory_per_node else "unknown"
    per_node = count(found.processes_per_node, "process", "processes")
    console.print(f"{count(found.nodes, 'node')}, {per_node} per node, {memory} memory")
    table = Table()
    for heading in ("storage", "type", "mount", "scratch", "size", "options"):
        table.add_column(heading, overflow="fold")
    for name, storage in found.storages.items():
        size = format_size(storage.capacity) if storage.capacity else "unknown"
        table.add_row(name, storage.type, storage.mount, storage.scratch, size, storage.options)
    console.print(table)
    for name, unmeasured in found.unmeasured.items():
        console.print(f"not measured: {name}: {unmeasured.reason}", markup=False)
    if not found.discover or any(fact.standing == "measured" for fact in facts):
        _print_facts(facts)
    if found.discover:
        for point, reason in discover(found.exclude).skipped.items():
            console.print(f"not measured: {point}: {reason}", markup=False)


@app.command()
def calibrate(
    site: Annotated[str, typer.Argument(help="Site, a folder of site-configs/.")] = "local",
    storages: Annotated[
        list[str] | None, typer.Option("--storage", help="Measure only this storage (repeat).")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=3600, help="Seconds for each of about 30 measurements.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Measure the limits of this machine's storage and save them as stages of its topology."""
    from datetime import UTC, datetime

    import tiercel
    from tiercel.checklist.stages import calibrate as measure
    from tiercel.cli.site_ceilings import print_stages
    from tiercel.errors import UserError
    from tiercel.project import results_folder
    from tiercel.runs.lock import SiteLock
    from tiercel.site import load_site
    from tiercel.site.calibrated import Calibration, read_calibration, write_calibration

    root = project_root()
    loaded, results = load_site(site, root), results_folder(root, site)
    if loaded.simulated:
        raise UserError(f"site {site}: a simulated site cannot be measured: name the real site")
    with SiteLock(results):  # a study that measures at the same time would be disturbed, and disturb
        found, notes = measure(
            loaded, results / "calibration", storages or [], seconds,
            lambda name: print(f"tiercel: measuring {name}", file=sys.stderr),
        )  # fmt: skip
    if not found:
        raise UserError(f"site {site}: nothing could be calibrated: {'; '.join(notes)}")
    before = read_calibration(site, root) if storages else None
    kept = before.storages if before else {}
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    written = Calibration(site=site, date=date, tiercel=tiercel.__version__, storages={**kept, **found})
    path = write_calibration(written, root)
    if as_json:
        rows = {name: [s.model_dump(exclude_none=True) for s in stages] for name, stages in found.items()}
        print_json({"site": site, "date": date, "storages": rows, "notes": notes})
        return
    print_stages(found)
    for sentence in notes:
        print(f"Note: {sentence}")
    print(f"wrote {path.relative_to(root)}")


@app.command()
def ceilings(
    site: Annotated[str, typer.Argument(help="Site, a folder of site-configs/.")] = "local",
    study: Study = "quick",
    as_json: Json = False,
) -> None:
    """Show the highest rate that the topology allows each workload, and the stage that limits it."""
    from tiercel.ceilings.study import configurations_of, rows_of
    from tiercel.cli.site_ceilings import print_ceilings
    from tiercel.site import load_site
    from tiercel.study.load import load_study

    root = project_root()
    # Of a simulated site too: what cannot be simulated for lack of a figure has a sentence here.
    loaded, wanted = load_site(site, root), load_study(study, root)
    rows = rows_of(configurations_of(loaded, wanted), loaded)
    if as_json:
        print_json({"site": site, "study": wanted.study, "ceilings": [row.plain() for row in rows]})
        return
    print_ceilings(rows, loaded)


@app.command()
def whatif(
    site: Annotated[str, typer.Argument(help="Site, a folder of site-configs/.")] = "local",
    changes: Changes = None,
    study: Study = "quick",
    as_json: Json = False,
) -> None:
    """Predict how other hardware would change the ceilings of a study.

    Example: tiercel site whatif lassen --set gateway.bandwidth=50GiB
    """
    from tiercel.ceilings.study import configurations_of, rows_of
    from tiercel.cli.site_ceilings import pair, print_change
    from tiercel.errors import UserError
    from tiercel.site import load_site
    from tiercel.site.load import suppose
    from tiercel.study.load import load_study

    if not changes:
        raise UserError("--set is needed: [STORAGE.]STAGE.KEY=VALUE names the change")
    root = project_root()
    loaded, wanted = load_site(site, root), load_study(study, root)
    other = suppose(loaded, changes, root)
    configurations = configurations_of(loaded, wanted)
    pairs = pair(rows_of(configurations, loaded), rows_of(configurations, other))
    if as_json:
        rows = [{"before": old.plain(), "after": new.plain()} for old, new in pairs]
        print_json({"site": site, "study": wanted.study, "set": changes, "ceilings": rows})
        return
    print_change(pairs, loaded)


def _rows(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(fact) for fact in facts]


def _print_facts(facts: Sequence[Fact]) -> None:
    """Print one row for each fact: what site.yaml says, how sure that is, and what was found."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tiercel.site.facts import summary

    table = Table(box=box.SIMPLE)
    for heading in ("fact", "site.yaml", "standing", "found, or source"):
        table.add_column(heading, overflow="fold")
    for fact in facts:
        wrong = fact.standing == "measured" and fact.problem
        table.add_row(
            fact.name,
            fact.stated,
            f"{fact.standing}, does not fit" if wrong else fact.standing,
            fact.problem or fact.found or fact.source,
        )
    console = Console()
    console.print(table)
    console.print(f"{len(facts)} facts: {summary(facts)}", markup=False)
