"""Commands that plan and measure: evaluate, plan, check, batch, clean."""
# What they need takes a second to import, and `--help` needs none of it: each command imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from tiercel.runs.planning import Project

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
    retry: Annotated[bool, typer.Option("--retry-failed", help="Run the failed runs again.")] = False,
    decide: Annotated[
        bool,
        typer.Option(
            "--decide", help="After the study, repeat the undecided comparisons that more runs can decide."
        ),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", min=0.1, max=1e6, help="Time limit of --decide in minutes (10)."),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Simulate the site from its topology. Results go to SITE-simulated."),
    ] = False,
    changes: Changes = None,
) -> None:
    """Measure the storage of a site and write the report.

    Example: tiercel evaluate --site local --study quick

    Run the command again to resume after an interruption. It uses Snakemake.
    """
    from tiercel.runs.batch import retry_failed
    from tiercel.runs.lock import EvaluationLock
    from tiercel.runs.planning import check_site, make_plan, plan_of
    from tiercel.site import load_site
    from tiercel.site.discover import holding
    from tiercel.site.profile import check_profile, profile_of
    from tiercel.site.simulated import simulated_name
    from tiercel.stack import prepare
    from tiercel.study.load import load_study
    from tiercel.workflow import make_ready

    if minutes is not None and not decide:
        raise UserError("--minutes needs --decide: add --decide, or remove --minutes")
    need("snakemake")
    root = project_root()
    site = simulated_name(site) if simulate else site
    site = _supposed(site, changes, root) if changes else site
    simulated = load_site(site, root).simulated  # UserError for an unknown site, with those that there are
    if decide and simulated:
        raise UserError(
            "--decide: a simulation returns the same number each time: remove --decide or --simulate"
        )
    if not simulated:
        check_profile(site, root)
        load_study(study, root)  # a wrong name is an error now, not after hours of building
        prepare(site, root)
    project = make_plan(site, study, root)
    check_site(project)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(provided(root, "Snakefile"))]
    if simulated:  # a profile is of a machine
        command += [*_ON_THIS_MACHINE, "--quiet", "all", "--config", f"site={site}", f"study={study}"]
        print("\n".join(f"tiercel: {note}" for note in project.notes), file=sys.stderr)
    else:
        command += ["--profile", profile_of(site, root), "--quiet", "all", "--config", f"study={study}"]
    with EvaluationLock(results_folder(root, site)), holding(project.plan.site.storages):
        make_ready(project, root)
        if retry:
            retry_failed(project, results_folder(root, site))
        code = _carry_out(project, command, root)
        if not code and (decide or project.plan.study.decide is not None):
            # Only now: it brings the report's modules, which nobody needs while runs are measured.
            from tiercel.cli.deciding import further_looks

            for _ in further_looks(project, root, 60 * (minutes or 10.0) if decide else None):
                code = _carry_out(plan_of(project.plan.site, project.plan.study, root), command, root)
                if code:
                    break
    if code < 0:
        raise UserError(
            f"site {site}: signal {-code} ended the workflow: run the same command again to resume"
        )
    if code:
        hint = f"run `tiercel status --site {site} --study {study}` for the reasons, then this command again"
        print(
            f"tiercel: site {site}: the workflow failed (exit code {code}): {hint}",
            file=sys.stderr,
        )
        raise typer.Exit(code)
    show(site=site, study=study)


def _carry_out(project: Project, command: list[str], root: Path) -> int:
    """Have Snakemake carry out a plan for which the site is ready; return its exit code."""
    from tiercel.runs.workflow import run_workflow
    from tiercel.workflow import hand_over

    hand_over(project, root)
    return run_workflow([*command, "announce=false"], root)


def _supposed(site: str, changes: list[str], root: Path) -> str:
    """Return the name of a simulated site with other hardware; UserError for changes that cannot be made."""
    from tiercel.site import load_site
    from tiercel.site.load import suppose
    from tiercel.site.simulated import real_name
    from tiercel.site.supposition import read_supposition, write_supposition

    if not load_site(site, root).simulated:
        raise UserError("--set changes a simulated site only: add --simulate, or use `tiercel site whatif`")
    if read_supposition(site, root):
        raise UserError(
            f"site {site}: already has changed hardware: give all --set options together, for the real site"
        )
    suppose(load_site(real_name(site), root), changes, root)  # before anything is written
    name = write_supposition(site, changes, root)
    print(f"tiercel: {real_name(site)} with {', '.join(changes)}: site {name}", file=sys.stderr)
    return name


def status(
    site: Site = "local",
    study: Study = "quick",
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until the study ends.")] = False,
) -> None:
    """Show the progress of a study: runs done, failed and remaining, and the time left.

    Example: tiercel status --watch
    """
    from tiercel.runs.planning import make_plan
    from tiercel.runs.status import status_of
    from tiercel.runs.status_words import follow, words_of

    if watch and as_json:
        raise UserError("--watch does not work with --json: remove one of them")
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
    cost: Annotated[bool, typer.Option("--cost", help="Estimate time and core-hours.")] = False,
    probing: Annotated[
        bool,
        typer.Option("--probe", help="With --cost: measure for a minute first. These runs count."),
    ] = False,
    jobs: Annotated[bool, typer.Option("--jobs", help="List the jobs for the scheduler.")] = False,
) -> None:
    """Show the runs of a study without starting them.

    Example: tiercel plan --cost
    """
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
            raise UserError("--probe needs --cost: add --cost, or remove --probe")
        probe(project, results_folder(root, site))
    if cost:
        print_cost(project, results_folder(root, site), as_json)
        return
    if as_json:
        print_json([run.row() for run in project.plan.runs])
        return
    print_plan(project, root)


def check(site: Site = "local", study: Study = "quick", as_json: Json = False) -> None:
    """Check mounts, permissions, space, engines and launcher before a study runs."""
    from tiercel.runs.planning import check_site, make_plan

    project = make_plan(site, study, project_root())
    check_site(project)
    if as_json:
        print_json({"site": site, "study": project.plan.study.study, "runs_at_most": len(project.plan.runs)})
        return
    print(f"site {site} can run study {study}: at most {len(project.plan.runs)} runs")


def batch(
    site: Annotated[str, typer.Option()],
    study: Annotated[str, typer.Option()],
    name: Annotated[str, typer.Option()],
    stamp: Annotated[Path, typer.Option(help="File to write when the batch is done.")],
    minutes: Annotated[
        float | None, typer.Option(help="Time limit of the job; the batch stops before it.")
    ] = None,
    parent: Annotated[
        int | None,
        typer.Option(help="Process ID of the Snakemake that started the batch; the batch ends with it."),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="File that receives a copy of the messages.")] = None,
) -> None:
    """Run one job of the plan (called by Snakemake)."""
    from tiercel.runs.batch import OutOfTime, run_batch
    from tiercel.runs.execute import JobBroken
    from tiercel.runs.planning import here
    from tiercel.workflow.plan import workflow_plan

    if parent is not None:
        end_with(parent)
    if log is not None:
        sys.stderr = Logged(sys.stderr, log)
    root = project_root()
    project = workflow_plan(site, study, root, make=False).project
    chosen = project.plan.batch(name)
    if chosen is None:
        raise UserError(
            f"batch {name}: the study or the site was planned again since the workflow began; "
            "run `tiercel evaluate` again (finished runs are kept)"
        )
    try:
        counts = run_batch(
            here(project, chosen, root), chosen, results_folder(root, site), minutes and minutes * 60
        )
    except (OutOfTime, JobBroken) as error:
        print(f"tiercel: {error}; the next job resumes the batch", file=sys.stderr)
        raise typer.Exit(TRY_AGAIN) from None
    if counts["over budget"]:
        print(
            f"tiercel: {counts['over budget']} runs skipped: the budget limits.core_hours is used up",
            file=sys.stderr,
        )
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps(counts) + "\n")


def doctor(as_json: Json = False) -> None:
    """List the tools that tiercel can use, which are missing, and how to install them."""
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
                console.print(Padding(Text(f"install: {part.get}"), (0, 0, 0, 4)))
    here = sum(bool(part.found) for part in found)
    rest = f"required and missing: {', '.join(lacking)}" if lacking else "the missing ones are optional"
    console.print(f"\n{here} of {len(found)} tools found; {rest}", highlight=False)
    if lacking:
        raise typer.Exit(1)


def clean(site: Site = "local", study: Study = "quick") -> None:
    """Remove files that killed runs left in the scratch folders of a site."""
    from tiercel.runs.lock import SiteLock
    from tiercel.runs.objects import left_prefixes, remove_run_prefix
    from tiercel.runs.planning import make_plan
    from tiercel.runs.scratch import leftovers, remove_run_folder

    root = project_root()
    project = make_plan(site, study, root)
    if project.plan.site.simulated:
        raise UserError(f"site {site}: a simulated site has no scratch folders")
    with SiteLock(results_folder(root, site), patience=0.0):
        for stack in {c.stack.name: c.stack for c in project.plan.configurations}.values():
            if project.plan.site.node_local(stack.storage):
                print(f"{stack.name}: node-local: the next job on each node removes its leftover files")
                continue
            if stack.storage.objects:
                for prefix in left_prefixes(stack):
                    print(f"removed {prefix} ({remove_run_prefix(prefix)} objects)")
                continue
            for folder in leftovers(stack):
                size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
                remove_run_folder(folder)
                print(f"removed {folder} ({format_size(size)})")
