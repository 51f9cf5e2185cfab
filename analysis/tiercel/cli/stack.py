"""Commands on the programs that Spack builds for a site."""

# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site
from tiercel.errors import UserError
from tiercel.project import project_root

if TYPE_CHECKING:
    from tiercel.stack.environment import Environment
    from tiercel.stack.lock import Lock

app = typer.Typer(help="Build the programs of a site with Spack.", no_args_is_help=True)

Parts = Annotated[
    str, typer.Option("--parts", help="Parts to build: any of engines, analysis, layers, tracing, dl.")
]
Packages = Annotated[
    Path | None,
    typer.Option("--packages", help="Local clone of Spack's packages, for machines without network."),
]
Mirror = Annotated[str, typer.Option("--mirror", help="Folder or URL of a source mirror to try first.")]


def _environment(site: str) -> Environment:
    from tiercel.stack.environment import Environment
    from tiercel.stack.parts import scope_folder

    root = project_root()
    scope_folder(root, site)
    return Environment(root, site)


@app.command("concretize")
def resolve(
    site: Site = "local",
    parts: Parts = "",
    packages: Packages = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Resolve again and ignore an existing lock file.")
    ] = False,
) -> None:
    """Resolve a site's stack to results/SITE/stack/spack.lock (on any machine)."""
    from tiercel.stack.concretize import concretize
    from tiercel.stack.parts import chosen_parts
    from tiercel.stack.spack import find_spack

    environment = _environment(site)
    chosen = chosen_parts(environment.root, site, parts)
    lock = concretize(find_spack(), environment, chosen, packages, fresh=fresh)
    _say(environment, lock, chosen)


@app.command()
def install(
    site: Site = "local",
    parts: Parts = "",
    packages: Packages = None,
    mirror: Mirror = "",
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers at a time.")] = None,
) -> None:
    """Build the stack of a site, on that site. Run it again to resume after a failure."""
    from tiercel.stack import install as build
    from tiercel.stack.concretize import concretize
    from tiercel.stack.mirror import mirror_url
    from tiercel.stack.parts import chosen_parts
    from tiercel.stack.spack import find_spack

    environment = _environment(site)
    chosen = chosen_parts(environment.root, site, parts)
    spack, url = find_spack(), mirror_url(mirror)
    lock = concretize(spack, environment, chosen, packages, url)
    folders = build.install(spack, environment, lock, chosen, jobs)
    print(f"the stack of {site} is built: its programs are in {', '.join(map(str, folders))}")


@app.command()
def mirror(
    to: Annotated[Path, typer.Option("--to", help="The folder that takes the sources.")],
    site: Site = "local",
    parts: Parts = "",
    packages: Packages = None,
) -> None:
    """Collect the sources of a stack in a folder, for a machine without network."""
    from tiercel.stack.concretize import concretize
    from tiercel.stack.mirror import create_mirror
    from tiercel.stack.parts import chosen_parts
    from tiercel.stack.spack import find_spack

    environment = _environment(site)
    chosen = chosen_parts(environment.root, site, parts)
    spack = find_spack()
    concretize(spack, environment, chosen, packages)
    files = create_mirror(spack, environment, chosen, to)
    print(f"{to}: {files} files; on the site: tiercel stack install --site {site} --mirror {to}")


@app.command()
def status(site: Site = "local", as_json: Json = False) -> None:
    """Show which parts of a site's stack are resolved and built, and their sources."""
    from tiercel.stack.concretize import recorded
    from tiercel.stack.install import built_lock, program_folders
    from tiercel.stack.lock import read_lock
    from tiercel.stack.prepare import is_installed
    from tiercel.stack.spack import find_spack, spack_program

    environment = _environment(site)
    record = recorded(environment)
    lock = read_lock(environment.lock) if environment.lock.exists() else None
    parts = record.get("parts", [])
    built = bool(lock) and built_lock(environment) == environment.lock_digest()
    try:
        spack = find_spack().version if spack_program() else None
    except UserError as error:
        spack = str(error)
    if as_json:
        content = {
            "site": site, "spack": spack, "parts": parts, "built": built,
            "current": bool(lock) and is_installed(environment, parts),
            "summary": lock.summary() if lock else None,
            "folders": [str(f) for f in program_folders(environment, lock)] if lock and built else [],
        }  # fmt: skip
        print_json(content)
        return
    print(f"Spack: {spack or 'none (SPACK_ROOT or PATH)'}")
    if lock is None:
        print(f"the stack of {site} is not resolved yet: tiercel stack concretize --site {site}")
        return
    _say(environment, lock, parts)
    print("built" if built else f"not built to its end: tiercel stack install --site {site}")


def _say(environment: Environment, lock: Lock, parts: list[str]) -> None:
    summary = lock.summary()
    architectures = ", ".join(f"{count} for {name}" for name, count in summary["architectures"].items())
    print(f"{environment.site} ({', '.join(parts)}): {summary['nodes']} packages, {architectures}")
    externals = ", ".join(f"{name}@{e['version']}" for name, e in summary["externals"].items())
    print(f"{summary['to_build']} to build; from the site: {externals or 'none'}")
    print(environment.lock)
