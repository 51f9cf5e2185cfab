"""Commands that hand results on: artifact packs them, reproduce makes them again from what was packed."""
# What they need takes seconds to import: each command imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site, Study
from tiercel.cli.panels import HAND_ON
from tiercel.errors import one_line
from tiercel.project import checkout, project_root
from tiercel.units import format_size

#: How many files of a kind are named.
_SHOWN = 10


def register(app: typer.Typer) -> None:
    for command in (artifact, reproduce):
        app.command(rich_help_panel=HAND_ON)(command)


def artifact(
    site: Site = "local",
    study: Study = "quick",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Archive to write. Default: SITE-STUDY-artifact.tar.gz."),
    ] = None,
    slim: Annotated[bool, typer.Option("--slim", help="Leave out raw traces and keep their tables.")] = False,
    title: Annotated[str | None, typer.Option(help="Title of the results.")] = None,
    author: Annotated[
        list[str] | None, typer.Option(help="'Family, Given; ORCID; affiliation; its URL' (repeat).")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="SPDX identifier of the licence: CC-BY-4.0.")] = None,
    description: Annotated[str | None, typer.Option(help="One sentence that describes the results.")] = None,
    keyword: Annotated[list[str] | None, typer.Option(help="Keyword (repeat).")] = None,
    doi: Annotated[str | None, typer.Option(help="DOI, if an archive has reserved one.")] = None,
    repository: Annotated[str | None, typer.Option(help="URL of the sources: https://...")] = None,
    date: Annotated[str | None, typer.Option(help="Date of publication. Default: today.")] = None,
    citation: Annotated[
        Path | None, typer.Option(help="CITATION.cff to include. Default: the file of the project.")
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(help="Clone of the installed version of tiercel."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Pack the results of a study and the files that reproduce them (RO-Crate).

    Example: tiercel artifact --study quick --author 'Doe, Jane'
    """
    if sources is None:
        checkout()  # before packages are asked for that would not help
    from tiercel.artifact import pack
    from tiercel.artifact.metadata import Given
    from tiercel.artifact.pack import default_name

    given = Given(title, author or (), licence, date, description, doi, keyword or (), repository)
    target = output or Path(default_name(site, study))
    packed = pack(site, study, project_root(), target, given, citation, slim, sources)
    if as_json:
        print_json({
            "path": str(packed.path), "sha256": packed.sha256, "bytes": packed.size, "runs": packed.runs,
            "slim": packed.slim, "notes": list(packed.notes),
        })  # fmt: skip
        return
    print(f"{packed.path}: {packed.runs} runs, {format_size(packed.size)}")
    print(f"sha256 {packed.sha256}")
    for note in packed.notes:
        print(f"Note: {one_line(note)}")


def reproduce(
    where: Annotated[Path, typer.Argument(metavar="ARTIFACT", help="Its archive, or the folder in it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new folder for what is made again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild the tables and figures of an artifact and compare them byte for byte.

    Exit code 1: a file is not the one that was packed, or is not made the same.
    """
    from tiercel.artifact import reproduce as make_again

    scratch = output.absolute().parent if output else Path(tempfile.gettempdir())
    answer = make_again(where, scratch if scratch.is_dir() else Path(tempfile.gettempdir()), output)
    if as_json:
        print_json({
            "reproduced": answer.reproduced, "changed": list(answer.damage.changed),
            "lost": list(answer.damage.missing), "foreign": list(answer.damage.added),
            "same": list(answer.same), "different": list(answer.different), "missing": list(answer.missing),
            "added": list(answer.added), "other_versions": list(answer.other_versions),
            "notes": list(answer.notes),
        })  # fmt: skip
    elif answer.damage:
        _say(answer.damage.lines())
        print("not made again: these are not the files that were packed")
    else:
        _say([f"{path}: differs" for path in answer.different])
        _say([f"{path}: was published, and is not made" for path in answer.missing])
        _say([f"{path}: is made, and was not published" for path in answer.added])
        if answer.other_versions and not answer.reproduced:
            _say([f"another version here: {each}" for each in answer.other_versions])
        total = len(answer.same) + len(answer.different) + len(answer.missing)
        print(
            f"{len(answer.same)} of {total} published files are made again from the raw files, byte for byte"
        )
    if not answer.reproduced:
        raise typer.Exit(1)


def _say(lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        print(one_line(line))
    if len(lines) > _SHOWN:
        print(f"and {len(lines) - _SHOWN} more")
