"""``tiercel share``: the fairshare layer by hand: serve, run, bench, status, ticket, policy, simulate."""
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import Json, size_of
from tiercel.errors import UserError, suggest
from tiercel.sharing import commands_experiment, commands_policy, commands_simulate

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(help="Share storage fairly among jobs.", no_args_is_help=True)
commands_policy.register(app)
commands_simulate.register(app)
commands_experiment.register(app)


def register(to: typer.Typer) -> None:
    """Add the commands to ``tiercel``."""
    to.add_typer(app, name="share", rich_help_panel=panels.IMPROVE)


Socket = Annotated[Path, typer.Option("--socket", help="The server's Unix socket.")]
Policy = Annotated[str, typer.Option("--policy", "-p", help="fifo, size-fair, user-then-size-fair, ...")]
Scheduler = Annotated[str, typer.Option("--scheduler", help="stride, token, gift, tbf, fifo, ...")]
JobName = Annotated[
    str | None, typer.Option("--job", help="Name of the job (default: Slurm's, or the user's).")
]
Size = Annotated[int, typer.Option("--size", min=1, help="Nodes of the job.")]
Priority = Annotated[int, typer.Option("--priority", min=1, help="Weight under priority-fair.")]
User = Annotated[int | None, typer.Option("--user", min=0, help="Account the job to this user id.")]
Group = Annotated[int | None, typer.Option("--group", min=0, help="Account the job to this group id.")]
Rate = Annotated[
    str | None,
    typer.Option("--rate", help="Bandwidth limit of the storage per second: 400MiB."),
]
Prefix = Annotated[str, typer.Option("--prefix", help="Path under which the command sees the files.")]


def _check(policy: str, scheduler: str) -> list[str]:
    from tiercel.layers.fairshare.policies import SCHEDULERS, check_policy

    check_policy(policy)
    if scheduler not in SCHEDULERS:
        raise UserError(f"scheduler {scheduler!r}: {suggest(scheduler, SCHEDULERS)}")
    return ["--policy", policy, "--scheduler", scheduler]


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="`tiercel share serve -- --help` lists the options.",
)
def serve(
    options: Annotated[
        list[str], typer.Argument(help="Options of fairshare-server, as --data DIR --policy size-fair.")
    ],
) -> None:
    """Run a server until it is interrupted. Takes fairshare-server's options, or --config FILE (TOML)."""
    from tiercel.layers.fairshare.programs import required_programs

    server = str(required_programs().server)
    os.execv(server, [server, *options])


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    socket: Annotated[
        str | None, typer.Option("--socket", help="Socket path or tcp:HOST:PORT of a running server.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Start a private server for this data folder.")
    ] = None,
    policy: Policy = "user-fair",
    scheduler: Scheduler = "stride",
    job: JobName = None,
    size: Size = 1,
    priority: Priority = 1,
    user: User = None,
    group: Group = None,
    prefix: Prefix = "/fairshare",
    rate: Rate = None,
    accelerate: Annotated[
        bool, typer.Option("--accelerate", help="Move large data through shared memory (preload library).")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say how the files are mounted.")] = False,
) -> None:
    """Run a command as a job of a server. Its files are under --prefix. Returns its exit code.

    Example: tiercel share run --socket /run/fairshare.sock -- ./simulation
    """
    from tiercel.layers.fairshare.protocol import Job, tcp_address
    from tiercel.programs import as_started
    from tiercel.sharing.run import Request, run_program

    if socket and rate:
        raise UserError("--rate applies to a private server only: pass it to `share serve` instead")
    if socket and data:
        raise UserError(
            "--socket and --data exclude each other: --socket uses a running server, --data starts one"
        )
    arguments = _check(policy, scheduler)
    if rate:
        arguments += ["--rate", str(size_of("--rate", rate))]
    asked = job or size > 1 or priority > 1 or user is not None or group is not None
    ticket = Job(job or f"user-{os.getuid()}", size, priority, user, group) if asked else None
    server = None if socket is None else socket if tcp_address(socket) else Path(socket)
    code = run_program(
        Request(
            as_started(command),
            prefix,
            server,
            data,
            tuple(arguments),
            ticket,
            bool(job),
            accelerate,
            explain,
        )
    )
    raise typer.Exit(code if code >= 0 else 128 - code)


@app.command()
def status(socket: Socket, as_json: Json = False) -> None:
    """Show the jobs of a server with their entitled and actual shares."""
    from rich.console import Console
    from rich.table import Table

    from tiercel.layers.fairshare.protocol import Connection
    from tiercel.units import format_share, format_size

    with Connection(socket) as connection:
        found = connection.status()
    if as_json:
        print_json(found)
        return
    table = Table(title=f"{found['policy']} by {found['scheduler']}, {found['open_files']} open files")
    for name in ("job", "user", "group", "size", "clients", "share", "read", "written", "operations"):
        table.add_column(name)
    for row in sorted(found["jobs"], key=lambda row: str(row["job"])):
        share = "-" if row["share"] is None else format_share(row["share"], 1)
        table.add_row(
            row["job"], str(row["user"]), str(row["group"]), str(row["size"]), str(row["clients"]), share,
            format_size(row["bytes_read"]), format_size(row["bytes_written"]), str(row["operations"]),
        )  # fmt: skip
    Console().print(table)


@app.command()
def reload(socket: Socket) -> None:
    """Make a server read its options again. Clients stay connected."""
    from tiercel.layers.fairshare.protocol import Connection

    with Connection(socket) as connection:
        print(connection.reload())


@app.command()
def drop(
    job: Annotated[str, typer.Argument(help="Name of the job, from `share status`.")],
    socket: Socket,
    user: Annotated[int | None, typer.Option("--user", min=0, help="Only the job of this user id.")] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0, max=1e6, help="Minutes until the job may connect again.")
    ] = 10.0,
) -> None:
    """Disconnect a job and block it for a while. Its programs get EACCES."""
    from tiercel.layers.fairshare.protocol import Connection

    with Connection(socket) as connection:
        known = [row["job"] for row in connection.status()["jobs"] if user in (None, row["user"])]
        if minutes > 0 and job not in known:
            whose = "" if user is None else f" of user {user}"
            raise UserError(f"{socket}: no job {job!r}{whose}: {suggest(job, known)}")
        ended = connection.send_away(job, user, minutes * 60)
    left = f"it is not let in for {minutes:g} minutes" if minutes > 0 else "it is let in again"
    print(f"{job}: {ended} connections ended; {left}")


@app.command()
def doctor(
    socket: Annotated[
        list[Path] | None,
        typer.Option("--socket", help="A server's socket (default: all in the runtime folders)."),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Data folder to check.")] = None,
    as_json: Json = False,
) -> None:
    """Check whether servers and clients can work on this machine. The exit code is 1 if not."""
    from dataclasses import asdict

    from rich.console import Console

    from tiercel.sharing.doctor import FAIL, WARN, examine

    found = examine(tuple(socket or ()), data)
    if as_json:
        print_json([asdict(check) for check in found])
    else:
        console, colours = Console(soft_wrap=True), {WARN: "yellow", FAIL: "red"}
        for check in found:
            state = f"[{colours.get(check.state, 'green')}]{check.state:<4}[/]"
            console.print(f"{state}  ", end="")
            console.print(f"{check.what}: {check.said}", markup=False, highlight=False)
    raise typer.Exit(1 if any(check.state == FAIL for check in found) else 0)


@app.command()
def ticket(
    socket: Socket, job: Annotated[str, typer.Option("--job", help="Name of the job.")], size: Size = 1,
    priority: Priority = 1, user: User = None, group: Group = None,
    holder: Annotated[
        str | None, typer.Option("--for", help="UID:GID who may present it (default: you).")
    ] = None,
) -> None:  # fmt: skip
    """Print the secret ticket of a job (FAIRSHARE_TICKET), for the prolog of a scheduler."""
    from tiercel.layers.fairshare.protocol import Connection, Job

    with Connection(socket) as connection:
        print(connection.ticket(Job(job, size, priority, user, group, _holder(holder))))


def _holder(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    user, _, group = text.partition(":")
    if not (user.isdigit() and group.isdigit()):
        raise UserError(f"--for {text}: two numbers, UID:GID (as `id -u`:`id -g` of the user)")
    return int(user), int(group)


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Use short rounds (about two minutes).")] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder under test (default: in memory).")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Interleaved rounds (quick: 2, else 5).")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Requests served at a time.")] = 1,
    servers: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=64, help="Also measure this number of servers, for `share calibrate` (repeat)."
        ),
    ] = None,
    rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Measure the overhead of the layer, and compare the shares with the policy."""
    from tiercel.sharing.bench import bench as measure

    if rate and not servers:
        raise UserError("--rate needs --servers: it limits the servers of that option")
    document = measure(
        rounds or (2 if quick else 5), 1.5 if quick else 5.0, data, parallel, servers or (),
        size_of("--rate", rate) or 0,
    )  # fmt: skip
    if as_json:
        print_json(document)
    else:
        _show(document)


def _show(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from tiercel.units import format_share

    console, solo = Console(), document["solo"]
    lines = (
        (
            "1 MiB written",
            "throughput_ratio",
            "of the throughput of one copy into shared memory",
            "at least 0.70",
        ),
        ("1 MiB read", "read_ratio", "of it", "at least 0.70"),
        ("4 KiB written", "latency_ratio", "times its latency", "at most 3"),
    )
    for what, name, of, target in lines:
        if solo[name] is None:
            console.print(f"{what}: not measured", highlight=False)
            continue
        low, high = solo[f"{name}_range"]
        console.print(
            f"{what}: {solo[name]:.2f} {of} (rounds {low:.2f} to {high:.2f}; target {target})",
            highlight=False,
        )
    for note in document["notes"]:
        console.print(f"note: {note}", markup=False, highlight=False)
    table = Table(title="Shares (measured against entitled)")
    heads = ("contest", "scheduler", "job", "entitled", "measured", "error", "deviation", "total/alone")
    for name in heads:
        table.add_column(name)
    for contest in document["sharing"]:
        low, high = contest["total_to_alone_range"]
        for place, job in enumerate(contest["jobs"]):
            first = place == 0
            table.add_row(
                contest["contest"] if first else "", contest["scheduler"] if first else "", job["job"],
                format_share(job["entitled"], 1), format_share(job["measured"], 1),
                format_share(job["error"], 1, "+"),
                format_share(job["deviation"], 2),
                f"{contest['total_to_alone']:.2f} ({low:.2f} to {high:.2f})" if first else "",
            )  # fmt: skip
    console.print(table)
    if document.get("scaling"):
        _show_scaling(console, document)
    if not document["deviations"]:
        return
    interval, count = document["sharing"][0]["interval"], document["sharing"][0]["intervals"]
    table = Table(title=f"Deviation of a share, job-fair, over {count} intervals of {interval:g} s")
    for name in ("scheduler", "deviation", "rounds", "of the least", "throughput's at the clients"):
        table.add_column(name)
    for row in document["deviations"]:
        low, high = row["range"]
        multiple = "" if row["multiple"] is None else f"{row['multiple']:.1f}x"
        table.add_row(
            row["scheduler"], format_share(row["deviation"], 2),
            f"{format_share(low, 2)} to {format_share(high, 2)}", multiple,
            format_share(row["rate_deviation"], 1),
        )  # fmt: skip
    console.print(table)


def _show_scaling(console: Console, document: dict[str, Any]) -> None:
    from rich.table import Table

    from tiercel.units import format_bandwidth

    rate = f", each at {format_bandwidth(document['rate'])}" if document["rate"] else ""
    table = Table(title=f"Servers on this machine{rate}")
    for name in ("servers", "processes", "throughput"):
        table.add_column(name)
    for row in document["scaling"]:
        table.add_row(
            str(row["servers"]), str(row["processes_per_node"]), format_bandwidth(row["throughput"])
        )  # fmt: skip
    console.print(table)
