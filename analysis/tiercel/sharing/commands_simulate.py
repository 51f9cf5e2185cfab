"""``tiercel share simulate`` and ``calibrate``: what a sharing policy would do at full scale."""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.errors import UserError
from tiercel.units import format_share, parse_duration

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

    from tiercel.sharing.scenario import Scenario

Servers = Annotated[int, typer.Option("--servers", min=1, help="Number of servers.")]
Policies = Annotated[
    list[str], typer.Option("--policy", "-p", help="Policy, for example user-then-size-fair (repeat).")
]
Schedulers = Annotated[
    list[str],
    typer.Option(
        "--scheduler",
        help="stride, token, gift, gift-published, tbf, tbf-published or fifo (repeat).",
    ),
]
File = Annotated[Path | None, typer.Option("--jobs", help="YAML file with jobs, server and link.")]
Jobs = Annotated[
    list[str] | None,
    typer.Option("--job", help="Job, for example name=a,user=ana,nodes=4,start=3s (repeat)."),
]
Time = Annotated[str | None, typer.Option(help="Simulated time: 10s (3s with more than 16 servers).")]
Interval = Annotated[
    str | None,
    typer.Option(
        help="Length of the intervals that throughput is counted in: 1s, or a tenth of the duration."
    ),
]
Lambda = Annotated[
    str | None,
    typer.Option("--lambda", help="Time between exchanges of job tables: 500ms. Default: no exchange."),
]
PerRequest = Annotated[
    bool,
    typer.Option("--per-request", help="Charge every request the same cost, as in the published ThemisIO."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Figure = Annotated[Path | None, typer.Option("--figure", help="Draw throughput over time: .png, .svg, .pdf.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``tiercel share``."""
    app.command()(simulate)
    app.command()(calibrate)


def simulate(
    servers: Servers = 1,
    policy: Policies = ["size-fair"],  # noqa: B006
    scheduler: Schedulers = ["stride"],  # noqa: B006
    file: File = None,
    job: Jobs = None,
    duration: Time = None,
    interval: Interval = None,
    lambda_: Lambda = None,
    per_request: PerRequest = False,
    seed: Seed = 1,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Simulate sharing policies and schedulers. Default: the paper's jobs of 4 and 1 nodes."""
    from rich.console import Console

    from tiercel.sharing.simulate import simulate_document

    check_figure(figure)
    scenario = scenario_of(file, job or [])
    documents = [
        simulate_document(
            scenario,
            servers=servers,
            policy=each,
            scheduler=kind,
            duration=_seconds("--duration", duration),
            interval=_seconds("--interval", interval),
            lambda_=_seconds("--lambda", lambda_),
            per_request=per_request,
            seed=seed,
        )
        for each in policy
        for kind in scheduler
    ]
    if figure:
        _draw(documents, figure)
    if as_json:
        print_json({"origin": "simulated", "simulations": documents})
        return
    console = Console()
    for document in documents:
        _show(console, document)


def calibrate(
    measurements: Annotated[
        Path | None,
        typer.Argument(help="YAML or JSON file with measured throughputs. Default: those of the paper."),
    ] = None,
    predict: Annotated[list[int], typer.Option(min=1, help="Number of servers to predict (repeat).")] = [128],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Fit the simulator to measurements on few servers, and predict many servers."""
    from rich.console import Console
    from rich.table import Table

    from tiercel.sharing.calibrate import PAPER, PAPER_128, read_measurements
    from tiercel.sharing.calibrate import calibrate as fit

    answer = fit(read_measurements(measurements) if measurements else PAPER, predict)
    if measurements is None:
        answer["published"] = {"servers": 128, "throughput": PAPER_128}
    if as_json:
        print_json(answer)
        return
    console = Console()
    server = answer["server"]
    console.print(
        f"Simulated; fitted: {', '.join(answer['fitted'])} (error {format_share(answer['error'], 1)}). A "
        "server moves "
        f"{server['bandwidth'] / 1e9:.3g} GB/s a direction and takes {server['overhead_s'] * 1e6:.3g} µs for "
        f"a request; a process's file lies in {answer['pieces']} pieces "
        f"({answer['plausible_pieces'][0]} to {answer['plausible_pieces'][1]} are plausible).",
        markup=False,
    )
    table = Table("servers", "measured", "simulated", "placements", "plausible", "efficiency")
    for row in answer["measurements"] + answer["predictions"]:
        known = row["throughput"]
        table.add_row(
            str(row["servers"]),
            _gigabytes(known) if known else "",
            _gigabytes(row["simulated"]),
            f"{_gigabytes(row['least'])}–{_gigabytes(row['greatest'])}",
            "–".join(_gigabytes(each) for each in row["plausible"]),
            format_share(row["efficiency"], 1),
        )
    console.print(table)
    if measurements is None:
        console.print(f"The paper measured {_gigabytes(PAPER_128)} GB/s on 128 servers. Throughputs in GB/s.")


def scenario_of(file: Path | None, jobs: list[str]) -> Scenario | None:
    """Return the jobs that a command was given, None for none."""
    from tiercel.sharing.scenario import Scenario, read_job, read_scenario

    if file and jobs:
        raise UserError("--job and --jobs: give the jobs in one way")
    if file:
        return read_scenario(file)
    return Scenario(jobs=[read_job(text) for text in jobs]) if jobs else None


def _seconds(option: str, text: str | None) -> float | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def check_figure(path: Path | None) -> None:
    """Refuse a figure's file of a kind that cannot be drawn, before anything is computed."""
    if path and path.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"{path}: a figure is a .png, .svg or .pdf file")


def save_figure(figure: Drawn, path: Path) -> None:
    """Write a figure and close it; UserError where it cannot be written."""
    import matplotlib.pyplot as plt

    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    plt.close(figure)


def _draw(documents: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import pandas as pd

    from tiercel.sharing.simulate import series_frame
    from tiercel.sharing.simulate_figure import plot_throughput

    figure = plot_throughput(pd.concat([series_frame(each) for each in documents]), documents)
    save_figure(figure, path)


def _show(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table

    console.print(
        f"{document['policy']}, {document['scheduler']}: simulated, "
        f"{_counted(document['servers'], 'server')}, {document['processes']:,} processes, "
        f"{document['end_s']:g} s, {_gigabytes(document['throughput'])} GB/s",
        markup=False,
    )
    table = Table("time", "job", "entitled", "share ± deviation", "GB/s ± deviation", "fair after")
    for phase in document["phases"]:
        for number, job in enumerate(phase["jobs"]):
            table.add_row(
                "" if number else f"{phase['begin_s']:g}–{phase['end_s']:g} s",
                job["name"],
                _percent(job["entitled"]),
                _with(_percent(job["share"]), job["share_deviation"], _percent),
                _with(_gigabytes(job["throughput"]), job["standard_deviation"], _gigabytes),
                "" if number else _fair_after(phase),
            )
    console.print(table)
    for note in document["notes"]:
        console.print(f"note: {note}", markup=False)


def _fair_after(phase: dict[str, Any]) -> str:
    if len(phase["jobs"]) < 2 or phase["jobs"][0]["entitled"] is None:
        return ""
    reached = phase["time_to_fairness_s"]
    return "never" if reached is None else f"{reached:g} s"


def _percent(part: float | None) -> str:
    return "–" if part is None else format_share(part, 2)


def _with(value: str, deviation: float | None, show: Callable[[float], str]) -> str:
    return value if deviation is None else f"{value} ± {show(deviation)}"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _gigabytes(throughput: float) -> str:
    return f"{throughput / 1e9:.4g}" if throughput >= 1e9 else f"{throughput / 1e9:.3f}"
