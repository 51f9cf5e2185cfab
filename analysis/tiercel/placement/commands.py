"""Commands on placement: a program's plan, the sweep's dataset, the model, its evaluation, applications."""
# scikit-learn, pandas and DuckDB take seconds to import, and other commands need none of them.
# ruff: noqa: PLC0415

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site, split_words
from tiercel.errors import UserError
from tiercel.pages.words import count
from tiercel.project import project_root, results_folder
from tiercel.units import format_latency, format_share, format_size, parse_size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

app = typer.Typer(
    help="Place the files of a traced program on the best storage.",
    no_args_is_help=True,
)


def register(to: typer.Typer) -> None:
    """Add the commands to ``tiercel``."""
    to.add_typer(app, name="place", rich_help_panel=panels.IMPROVE)


def _name(study: str | None) -> str | None:
    """Return the name of a study, which its file has too: other commands take either."""
    return Path(study).stem if study is not None and study.endswith((".yaml", ".yml")) else study


Sweep = Annotated[
    str, typer.Option("--study", callback=_name, help="Study of the sweep: a name or a YAML file.")
]
Basis = Annotated[
    str | None,
    typer.Option(
        "--study",
        callback=_name,
        help="Study with a model, a sweep or measurements. Default: the first found, in this order.",
        show_default=False,
    ),
]
Systems = Annotated[
    list[str] | None, typer.Option("--system", help="Use only this storage (repeat; at least two).")
]
Trace = Annotated[Path, typer.Argument(metavar="TRACE", help="Trace of the program.", show_default=False)]
Home = Annotated[
    str | None, typer.Option("--home", help="Storage that holds the files before and after the run.")
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of splits and models.")]
DEFAULT_STUDY = "placement-sweep"


@app.command()
def plan(
    trace: Trace,
    site: Site = "local",
    study: Basis = None,
    home: Home = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.5, max=1.0, help="Move a file only above this confidence.")
    ] = 0.9,
    capacity: Annotated[
        list[str] | None,
        typer.Option("--capacity", help="Limit the space of a storage: STORAGE=SIZE (repeat)."),
    ] = None,
    together: Annotated[
        list[str] | None,
        typer.Option("--together", help="Keep files that match this pattern on one storage (repeat)."),
    ] = None,
    staging: Annotated[
        bool, typer.Option("--staging/--no-staging", help="Include the time to copy files in and out.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the plan's files.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend a storage for each file of a traced program, with the expected gain.

    Example: tiercel place plan trace/ --home nfs
    """
    from rich.console import Console

    from tiercel.placement.place import place as make_plan
    from tiercel.placement.staging import group_rows, write_plan

    plan = make_plan(
        trace, site, study=study, home=home, confidence=confidence, capacity=_sizes(capacity or []),
        together=together or [], staging=staging,
    )  # fmt: skip
    written = write_plan(plan, output) if output else []
    rows = group_rows(plan)
    if as_json:
        print_json({**plan.summary, "notes": list(plan.notes), "rows": rows})
        return
    console = Console()
    table = _table("files", "of", "system", "gain", "sure", "why")
    # What stays and takes no time is not worth a row here; --json has it.
    shown = [r for r in rows if r["system"] != plan.home or _at_home(plan, r) >= 0.01 * _at_home(plan, *rows)]
    measured = any(row["rests_on"] != plan.summary["basis"] for row in rows)
    for row in shown:
        table.add_row(
            row["group"], str(row["files"]), row["system"], format_share(row["expected_gain"]),
            format_share(row["confidence"]),
            f"{row['reason']}; {row['rests_on']}" if measured else row["reason"],
        )  # fmt: skip
    console.print(table)
    if hidden := [r for r in rows if r not in shown]:
        console.print(
            f"{sum(r['files'] for r in hidden)} more files stay and take "
            f"{format_latency(_at_home(plan, *hidden))} in all",
            markup=False,
        )
    _print_totals(console, plan)
    for note in plan.notes:
        console.print(note, markup=False)
    for path in written:
        console.print(str(path), markup=False)


@app.command()
def sweep(site: Site = "local", study: Sweep = DEFAULT_STUDY, as_json: Json = False) -> None:
    """Build the dataset of a sweep from its results, one row for each configuration."""
    from tiercel.placement.dataset import build_sweep
    from tiercel.placement.score import fastest_shares
    from tiercel.results.observations import collect
    from tiercel.site.measured import measured_folder

    results = measured_folder(site, project_root())
    collect(results)
    table = build_sweep(results, study)
    provenance = table.attrs["provenance"]
    left = provenance["left_out"]
    if as_json:
        print_json({
            "path": str(table.attrs["path"]), "configurations": len(table), "systems": table.attrs["systems"],
            "left_out": left, "failed_runs": provenance["failed_runs"], "fastest": fastest_shares(table),
        })  # fmt: skip
        return
    print(f"{table.attrs['path']}: {len(table)} configurations on {', '.join(table.attrs['systems'])}")
    if missing := left["configurations that lack a system"]:
        print(f"left out: {len(missing)} configurations without numbers on every system ({missing[0]}...)")
    if left["numbers flagged invalid"]:
        print(f"left out: {left['numbers flagged invalid']} numbers flagged invalid")
    for reason, runs in provenance["failed_runs"].items():
        print(f"failed: {count(runs, 'run')}: {reason}")


@app.command()
def train(
    site: Site = "local",
    study: Sweep = DEFAULT_STUDY,
    seed: Seed = 0,
    systems: Systems = None,
    as_json: Json = False,
) -> None:
    """Train the placement model and save it with its data, accuracy, regret and limits."""
    from tiercel.placement.evaluate import eliminate, evaluate_sweep, importances
    from tiercel.placement.model import PlacementModel

    folder, table = _sweep(site, study, systems)
    model = PlacementModel.train(table, seed=seed)
    model.card["evaluation"] = evaluate_sweep(table, seed)
    model.card["importances"] = importances(table, seed=seed).reset_index().to_dict("records")
    model.card["elimination"] = eliminate("decision-tree", table, seed)
    path = model.save(folder, folder)
    if as_json:
        print_json(model.card)
        return
    _print_evaluation(model.card["evaluation"])
    for note in model.notes:
        print(note)
    print(path)


@app.command()
def evaluate(
    site: Site = "local", study: Sweep = DEFAULT_STUDY, seed: Seed = 0, systems: Systems = None,
    home: Home = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Print the accuracy, regret and abstention of every model, and the results of real applications."""
    from tiercel.placement.applications.score import keep, score_applications
    from tiercel.placement.evaluate import evaluate_sweep
    from tiercel.placement.model import PlacementModel

    folder, table = _sweep(site, study, systems)
    answer: dict[str, Any] = {"sweep": evaluate_sweep(table, seed), "applications": None}
    try:
        model = PlacementModel.train(table, seed=seed)
        answer["applications"] = score_applications(model, results_folder(project_root(), site), home)
        if not systems:
            keep(folder, answer["applications"], table)
    except UserError as error:
        answer["applications_note"] = str(error)
    if as_json:
        print_json(answer)
        return
    _print_evaluation(answer["sweep"])
    if answer["applications"]:
        _print_applications(answer["applications"])
    else:
        print(answer["applications_note"])


@app.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
def apps(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="Your own program, after --. {folder} stands for its folder on each storage.",
            show_default="tiercel's",
        ),
    ] = None,
    site: Site = "local",
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Run only this application (repeat).")
    ] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, help="Repetitions of each variant on each storage.")
    ] = 5,
    prepare: Annotated[
        str | None,
        typer.Option(help="Command that prepares the input before each run, untraced."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of COMMAND in tables.", show_default="its program's")
    ] = "",
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Start COMMAND on every core with the launcher of the site.")
    ] = False,
) -> None:
    """Trace real applications on every storage, to validate the model."""
    from tiercel.launchers import resolve
    from tiercel.placement.applications.measure import available, lacks_tracer, measure, show_progress
    from tiercel.placement.applications.own import OwnCommand
    from tiercel.site import load_site

    root = project_root()
    described = load_site(site, root)
    launcher = resolve(described.launcher, described.launcher_options)
    own = None
    if command:
        if only:
            raise UserError("--only selects built-in applications: remove it, or remove the command")
        own = OwnCommand(command, split_words("--prepare", prepare), name, parallel)
        if parallel and not launcher.mpi:
            raise UserError(f"--parallel: launcher {launcher.name} of site {site} has no MPI")
        if reason := lacks_tracer(own):
            raise UserError(f"{own.name}: {reason}")
        count = 1
    elif prepare or name or parallel:
        raise UserError("--prepare, --name and --parallel are of a command: give it after --")
    else:
        found, notes = available(only, launcher)
        for note in notes:
            print(note, file=sys.stderr)
        if not found:
            raise UserError("no application is installed that could be measured")
        count = len(found)
    ran, failed = show_progress(measure(described, results_folder(root, site), repetitions, only, own=own))
    print(f"{ran} runs now, {failed} failed; {count} application{'s' if count > 1 else ''}")
    if failed:
        raise typer.Exit(1)


@app.command()
def check(
    trace: Trace,
    site: Site = "local",
    study: Basis = None,
    home: Home = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, help="Repetitions of each placement.")
    ] = 5,
    as_json: Json = False,
) -> None:
    """Replay a trace before and after its plan, and compare the measured gain with the expected one."""
    from tiercel.errors import RunFailed
    from tiercel.placement.check import check_plan
    from tiercel.placement.place import place as make_plan
    from tiercel.traces import open_trace

    root = project_root()
    plan = make_plan(trace, site, study=study, home=home)
    try:
        answer = check_plan(plan, open_trace(trace), results_folder(root, site), repetitions)
    except RunFailed as error:
        raise UserError(f"{trace}: the replay failed: {error}") from None
    if as_json:
        print_json(answer)
        return
    print(
        f"time in I/O calls on the planned files: {format_latency(answer['seconds_at_home'])} with all on "
        f"{plan.home}, "
        f"{format_latency(answer['seconds_by_plan'])} by the plan: {format_share(answer['measured_gain'])} "
        "less "
        f"(expected {format_share(answer['expected_gain'])}; medians of {repetitions} replays, copying not "
        "included)"
    )
    if plan.summary["moved_files"] == 0:
        print("the plan moves nothing, so both ways are the same: their difference is this machine's noise")
    for name, calls in answer["left_out"].items():
        print(f"not replayed: {count(calls, 'call')} of {name}")


def _at_home(plan: Any, *rows: dict[str, Any]) -> float:
    return sum(float(r["expected_seconds"][plan.home]) for r in rows)


def _print_totals(console: Console, plan: Any) -> None:
    s = plan.summary
    if s["moved_files"]:
        time = (
            f"time in I/O calls {format_latency(s['expected_seconds_at_home'])} -> "
            f"{format_latency(s['expected_seconds'])} ({format_share(s['expected_gain'])} less, copying "
            f"{format_latency(s['staging_seconds'])} included)"
        )
    else:
        time = f"time in I/O calls stays {format_latency(s['expected_seconds_at_home'])}"
    console.print(
        f"{s['moved_files']} of {s['files']} files leave {plan.home}; {time}; by the {s['basis']}",
        markup=False,
    )
    if s["traced_seconds_at_home"] is not None:
        corrected = f", {s['corrected_groups']} corrected" if s["corrected_groups"] else ""
        console.print(
            f"on {plan.home} the trace itself took {format_latency(s['traced_seconds_at_home'])} where "
            f"{format_latency(s['expected_seconds_before'])} were expected "
            f"({count(s['held_groups'], 'group')}{corrected})",
            markup=False,
        )
    for system, own in s["storages"].items():
        if system != plan.home and own["bytes"]:
            left = own["capacity_left"]
            room = "room not known" if left is None else f"{format_size(left)} left"
            words = ", ".join([f"{format_size(own['bytes'])} used, {room}", *own["words"]])
            console.print(f"{system}: {words}", markup=False)


def _sizes(words: list[str]) -> dict[str, int]:
    found = {}
    for word in words:
        system, equals, size = word.partition("=")
        try:
            found[system] = parse_size(size)
        except ValueError as error:
            raise UserError(f"--capacity {word}: {error}") from None
        if not equals:
            raise UserError(f"--capacity {word}: write SYSTEM=SIZE, as in tmpfs-dev-shm=4GiB")
    return found


def _sweep(site: str, study: str, systems: list[str] | None) -> tuple[Path, Any]:
    from tiercel.placement.dataset import load_sweep, of_systems, placement_folder
    from tiercel.site.measured import measured_folder

    folder = placement_folder(measured_folder(site, project_root()), study)
    table = load_sweep(folder)
    return folder, of_systems(table, systems) if systems else table


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _percent(value: Any) -> str:
    return "-" if value is None or math.isnan(value) else f"{100 * value:.0f}"


def _pair(right: Any, regret: Any) -> str:
    return f"{_percent(right)} / {_percent(regret)}"


def _print_evaluation(answer: dict[str, Any]) -> None:
    from rich.console import Console

    best = ", ".join(f"{s} {n}" for s, n in answer["best"].items())
    console = Console()
    console.print(
        f"{answer['configurations']} configurations; best: {best}; the best two differ beyond noise in "
        f"{answer['systems_differ']}",
        markup=False,
    )
    kinds = list(next(iter(answer["models"].values())))
    console.print("accuracy / accuracy where systems differ / regret, in %", markup=False)
    table = _table("model", *kinds)
    for name, by_kind in answer["models"].items():  # a hundredth of a percent is of no sample, and wraps
        cells = (
            " / ".join(_percent(by_kind[k][n]) for n in ("accuracy", "accuracy_where_differ", "regret"))
            for k in kinds
        )
        table.add_row(name, *cells)
    console.print(table)
    a = answer["abstention"]
    console.print(
        f"abstains in {_percent(a['abstained'])} % at {format_share(a['confidence'])} confidence; where it "
        f"decides: accuracy {_percent(a['decided']['accuracy'])} %, where systems differ "
        f"{_percent(a['decided']['accuracy_where_differ'])} %, regret {_percent(a['decided']['regret'])} %",
        markup=False,
    )
    for note in answer["notes"]:
        console.print(note, markup=False)


def _print_applications(answer: dict[str, Any]) -> None:
    from rich.console import Console

    print("right: the predicted system measured best; regret: throughput that the choice loses; all in %")
    table = _table(
        "program",
        "samples",
        "right",
        "differ",
        "where differ\nright/regret",
        "decides",
        "where decides\nright/regret",
    )
    for name, t in [*answer["applications"].items(), ("all", answer["total"])]:
        c, d = t["chosen"], t["decided"]
        table.add_row(
            name, str(c["count"]), _percent(c["accuracy"]), str(c["differing"]),
            _pair(c["accuracy_where_differ"], c["regret_where_differ"]), _percent(1 - t["abstained"]),
            _pair(d["accuracy_where_differ"], d["regret"]),
        )  # fmt: skip
    Console().print(table)
    for note in answer["notes"]:
        print(note)
