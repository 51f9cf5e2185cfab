"""Commands that plan and measure: evaluate, plan, check, batch, clean."""
# What they need takes a second to import, and `--help` needs none of it: each command imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tiercel.children import end_with
from tiercel.cli.console import Logged, print_json
from tiercel.cli.options import Changes, Json, Site, Study
from tiercel.cli.panels import EVALUATE
from tiercel.cli.results import show
from tiercel.errors import UserError
from tiercel.extras import need
from tiercel.project import project_root, provided, results_folder
from tiercel.units import format_size

#: Exit code (EX_TEMPFAIL of sysexits.h) of a batch that Snakemake is to submit again.
TRY_AGAIN = 75
#: What a profile says of a site without a scheduler.
_ON_THIS_MACHINE = (
    "--cores", "all", "--resources", "measuring=1", "--nolock", "--rerun-incomplete", "--keep-going",
    "--scheduler", "greedy",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    for command in (evaluate, status, plan, check, doctor, clean):
        app.command(rich_help_panel=EVALUATE)(command)
    app.command(hidden=True)(batch)


def evaluate(
    site: Site = "local",
    study: Study = "quick",
    retry: Annotated[bool, typer.Option("--retry-failed", help="Run failed runs again.")] = False,
    decide: Annotated[
        bool,
        typer.Option("--decide", help="Then measure further what is undecided, where that decides it."),
    ] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.1, max=1e6, help="With --decide: for so long (10).")
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Without the machine: by its topology. Results of SITE-simulated."),
    ] = False,
    changes: Changes = None,
) -> None:
    """Measure a site with a study through Snakemake, and report."""
    from tiercel.runs.batch import retry_failed
    from tiercel.runs.lock import EvaluationLock
    from tiercel.runs.planning import check_site, make_plan
    from tiercel.runs.workflow import run_workflow
    from tiercel.site import load_site
    from tiercel.site.discover import holding
    from tiercel.site.profile import check_profile, profile_of
    from tiercel.site.simulated import is_simulated, simulated_name
    from tiercel.stack import prepare
    from tiercel.workflow.writable import check_writable

    if minutes is not None and not decide:
        raise UserError("--minutes is for --decide: give both")
    need("snakemake")
    root = project_root()
    site = simulated_name(site) if simulate else site
    if changes:
        site = _supposed(site, changes, root)
    load_site(site, root)  # an unknown one is told with those that there are
    if decide and is_simulated(site):
        raise UserError("--decide is for what is measured: a simulation gives the same number again")
    if not is_simulated(site):
        check_profile(site, root)
        prepare(site, study, root)
    project = make_plan(site, study, root)
    check_site(project)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(provided(root, "Snakefile"))]
    if is_simulated(site):  # a profile is of a machine
        command += [*_ON_THIS_MACHINE, "--quiet", "all", "--config", f"site={site}", f"study={study}"]
        print("\n".join(f"tiercel: {note}" for note in project.notes), file=sys.stderr)
    else:
        command += ["--profile", profile_of(site, root), "--quiet", "all", "--config", f"study={study}"]
    with EvaluationLock(results_folder(root, site)), holding(project.plan.site.storages):
        check_writable(root, site, study)
        if retry:
            retry_failed(project, results_folder(root, site))
        code = run_workflow([*command, "announce=false"], root)
        if not code and (decide or project.plan.study.decide is not None):
            # Only now: it brings the report's modules, which nobody needs while runs are measured.
            from tiercel.cli.deciding import further_looks

            for _ in further_looks(project, root, 60 * (minutes or 10.0) if decide else None):
                code = run_workflow([*command, "announce=false"], root)
                if code:
                    break
    if code < 0:
        raise UserError(f"site {site}: the workflow was ended by signal {-code}: the same command goes on")
    if code:
        lacks = f"`tiercel status --site {site} --study {study}` says what lacks; the same command goes on"
        print(
            f"tiercel: site {site}: the workflow did not end well (exit code {code}): {lacks}",
            file=sys.stderr,
        )
        raise typer.Exit(code)
    show(site=site, study=study)


def _supposed(site: str, changes: list[str], root: Path) -> str:
    """Return the name of a simulated site with other hardware; UserError for changes that cannot be made."""
    from tiercel.site import load_site
    from tiercel.site.load import suppose
    from tiercel.site.simulated import is_simulated, real_name
    from tiercel.site.supposition import read_supposition, write_supposition

    if not is_simulated(site):
        raise UserError("--set is for what is simulated: give --simulate, too (or `tiercel site whatif`)")
    if read_supposition(site, root):
        raise UserError(f"site {site}: supposes something already: give all --set together, with its machine")
    suppose(load_site(real_name(site), root), changes, root)  # before anything is written
    name = write_supposition(site, changes, root)
    print(f"tiercel: {real_name(site)} with {', '.join(changes)}: site {name}", file=sys.stderr)
    return name


def status(
    site: Site = "local",
    study: Study = "quick",
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again and again until it has ended.")] = False,
) -> None:
    """Show how far a study is: done, failed and why, what goes on, how long the rest takes."""
    from tiercel.runs.planning import make_plan
    from tiercel.runs.status import status_of
    from tiercel.runs.status_words import follow, words_of

    if watch and as_json:
        raise UserError("--watch is for people: ask for --json again and again instead")
    root = project_root()
    project = make_plan(site, study, root)
    if watch:
        follow(lambda: status_of(project, root), site, study)
        return
    found = status_of(project, root)
    if as_json:
        print_json({"site": site, "study": study, **asdict(found)})
    else:
        print("\n".join(words_of(found, site, study)))


def plan(
    site: Site = "local",
    study: Study = "quick",
    as_json: Json = False,
    cost: Annotated[bool, typer.Option("--cost", help="What it will take: time, core-hours.")] = False,
    probing: Annotated[
        bool,
        typer.Option("--probe", help="With --cost: judge by a minute of the study's own runs, which count."),
    ] = False,
    jobs: Annotated[bool, typer.Option("--jobs", help="The jobs that a scheduler would be given.")] = False,
) -> None:
    """Show what a study would run on a site."""
    from tiercel.runs.cost_table import print_cost
    from tiercel.runs.jobs_table import print_jobs
    from tiercel.runs.plan_table import print_plan
    from tiercel.runs.planning import make_plan
    from tiercel.runs.probe import probe

    root = project_root()
    project = make_plan(site, study, root)
    if jobs:
        print_jobs(project, root, results_folder(root, site))
        return
    if probing:
        if not cost:
            raise UserError("--probe is for --cost: give both")
        probe(project, results_folder(root, site))
    if cost:
        print_cost(project, results_folder(root, site), as_json)
        return
    if as_json:
        print_json([run.row() for run in project.plan.runs])
        return
    print_plan(project, root)


def check(site: Site = "local", study: Study = "quick", as_json: Json = False) -> None:
    """Check that a site can carry out a study: mounts, permissions, space, engines, launcher."""
    from tiercel.runs.planning import check_site, make_plan

    project = make_plan(site, study, project_root())
    check_site(project)
    if as_json:
        print_json({"site": site, "study": project.plan.study.study, "runs_at_most": len(project.plan.runs)})
        return
    print(f"site {site} can run study {study}: {len(project.plan.runs)} runs at most")


def batch(
    site: Annotated[str, typer.Option()],
    study: Annotated[str, typer.Option()],
    name: Annotated[str, typer.Option()],
    stamp: Annotated[Path, typer.Option(help="Written when the batch is done.")],
    minutes: Annotated[float | None, typer.Option(help="What the job has; it stops cleanly before.")] = None,
    parent: Annotated[
        int | None, typer.Option(help="The Snakemake that started it: it ends with it.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Has what is said here too.")] = None,
) -> None:
    """Carry out one job of the plan (called by Snakemake)."""
    from tiercel.runs.batch import OutOfTime, run_batch
    from tiercel.runs.execute import JobBroken
    from tiercel.runs.planning import make_plan

    if parent is not None:
        end_with(parent)
    if log is not None:
        sys.stderr = Logged(sys.stderr, log)
    root = project_root()
    project = make_plan(site, study, root)
    chosen = project.plan.batch(name)
    if chosen is None:
        raise UserError(
            f"batch {name}: the study, the site or what is mounted has changed since the workflow began; "
            "start it again (what is measured stays)"
        )
    try:
        counts = run_batch(project, chosen, results_folder(root, site), minutes and minutes * 60)
    except (OutOfTime, JobBroken) as error:
        print(f"tiercel: {error}; submitted again, the batch goes on", file=sys.stderr)
        raise typer.Exit(TRY_AGAIN) from None
    if counts["over budget"]:
        print(
            f"tiercel: {counts['over budget']} runs left out: limits.core_hours are used up", file=sys.stderr
        )
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps(counts) + "\n")


def doctor(as_json: Json = False) -> None:
    """Show what is here of all that tiercel can use, what the rest would add, and how to get it."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from tiercel.doctor import machine, parts

    found = list(parts())
    lacking = [part.name for part in found if part.needed and not part.found]
    if as_json:
        told = [{**asdict(part), "found": part.found or None} for part in found]
        print_json({"machine": machine(), "parts": told})
        raise typer.Exit(1 if lacking else 0)
    console = Console()
    console.print(machine(), highlight=False)
    for group in dict.fromkeys(part.group for part in found):
        console.print(f"\n[bold]{group}[/bold]")
        for part in found:
            if part.group != group:
                continue
            mark, style = ("✓", "green") if part.found else ("–", "dim")
            console.print(Text.assemble((f"{mark} {part.name}", style), f"  {part.found or part.adds}"))
            if not part.found:
                console.print(Padding(Text(f"to get it: {part.get}"), (0, 0, 0, 4)))
    here = sum(bool(part.found) for part in found)
    rest = f"needed and not here: {', '.join(lacking)}" if lacking else "what is not here is optional"
    console.print(f"\n{here} of {len(found)} parts are here; {rest}", highlight=False)
    if lacking:
        raise typer.Exit(1)


def clean(site: Site = "local", study: Study = "quick") -> None:
    """Remove what killed runs left in the scratch folders of a site."""
    from tiercel.runs.lock import SiteLock
    from tiercel.runs.objects import left_prefixes, remove_run_prefix
    from tiercel.runs.planning import make_plan
    from tiercel.runs.scratch import leftovers, remove_run_folder
    from tiercel.site.simulated import is_simulated

    if is_simulated(site):
        raise UserError(f"site {site}: is simulated: nothing of it is in any scratch folder")
    root = project_root()
    project = make_plan(site, study, root)
    with SiteLock(results_folder(root, site), patience=0.0):
        for stack in {c.stack.name: c.stack for c in project.plan.configurations}.values():
            if project.plan.site.node_local(stack.storage):
                print(f"{stack.name}: node-local: the next job on each node removes what is left there")
                continue
            if stack.storage.objects:
                for prefix in left_prefixes(stack):
                    print(f"removed {prefix} ({remove_run_prefix(prefix)} objects)")
                continue
            for folder in leftovers(stack):
                size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
                remove_run_folder(folder)
                print(f"removed {folder} ({format_size(size)})")
