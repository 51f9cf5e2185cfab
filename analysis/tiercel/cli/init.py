"""tiercel init: a project of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json


def init(
    folder: Annotated[Path, typer.Argument(help="Project folder; created if missing.")] = Path(),
    site: Annotated[list[str] | None, typer.Option(help="Site to copy (repeat). Default: local.")] = None,
    study: Annotated[list[str] | None, typer.Option(help="Study to copy (repeat). Default: quick.")] = None,
    as_json: Json = False,
) -> None:
    """Create a project folder with its own sites, studies and Snakefile.

    Files of the project override those of tiercel. Example: tiercel init my-project
    """
    from tiercel.site.project import new_project  # noqa: PLC0415

    written = new_project(folder, site or ["local"], study or ["quick"])
    if as_json:
        print_json([str(path) for path in written])
        return
    first = (site or ["local"])[0]
    for path in written:
        print(path)
    print(f"next: {'' if folder == Path() else f'cd {folder} && '}tiercel evaluate --site {first}")
