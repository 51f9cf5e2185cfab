"""Commands on sites: what is known, what was found, a new one."""
# ruff: noqa: PLC0415 (models take a while to import, and `--help` needs none)

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.project import project_root
from tiercel.units import format_size

app = typer.Typer(help="The machines that are evaluated.", no_args_is_help=True)


@app.command("list")
def list_sites(as_json: Json = False) -> None:
    """Name the sites under site-configs/."""
    from tiercel.site import known_sites

    names = known_sites(project_root())
    if as_json:
        print_json(list(names))
        return
    print("\n".join(names))


@app.command()
def new(name: Annotated[str, typer.Argument(help="Lower-case letters, digits, dashes.")]) -> None:
    """Write a site folder for this machine from what is found; questions stay in it as comments."""
    from tiercel.site import load_site
    from tiercel.site.new import new_site
    from tiercel.site.survey import survey

    root, found = project_root(), survey()
    folder = new_site(name, root, found)
    load_site(name, root)
    print(f"wrote {folder.relative_to(root)} and the link {name}")
    for question in found.questions:
        print(f"question: {question}")
    print(f"next: edit {folder.relative_to(root)}/site.yaml, then `tiercel site check {name}`")


@app.command()
def check(site: Annotated[str, typer.Argument()] = "local", as_json: Json = False) -> None:
    """Say what of a site's folder does not fit this machine; exit code 1 when something does not."""
    from tiercel.runs.site_check import problems
    from tiercel.site import load_site

    root = project_root()
    found = problems(load_site(site, root), root)
    if as_json:
        print_json({"site": site, "problems": found})
        raise typer.Exit(1 if found else 0)
    for problem in found:
        print(f"tiercel: site {site}: {problem}", file=sys.stderr)
    if found:
        raise typer.Exit(1)
    print(f"site {site}: nothing amiss from here")


@app.command()
def show(site: Annotated[str, typer.Argument()] = "local", as_json: Json = False) -> None:
    """Show a site: nodes, launcher, storage systems; for a discovered one what was left out and why."""
    from rich.console import Console
    from rich.table import Table

    from tiercel.site import load_site
    from tiercel.site.discover import discover

    found = load_site(site, project_root())
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    console = Console()
    console.print(f"[bold]{found.site}[/bold]  {found.description}")
    memory = format_size(found.memory_per_node) if found.memory_per_node else "unknown"
    console.print(f"{found.nodes} node(s), {found.processes_per_node} processes per node, {memory} memory")
    table = Table()
    for heading in ("storage", "type", "mount", "scratch", "size", "options"):
        table.add_column(heading, overflow="fold")
    for name, storage in found.storages.items():
        size = format_size(storage.capacity) if storage.capacity else "unknown"
        table.add_row(name, storage.type, storage.mount, storage.scratch, size, storage.options)
    console.print(table)
    if found.discover:
        for point, reason in discover(found.exclude).skipped.items():
            console.print(f"left out: {point}: {reason}", markup=False)
