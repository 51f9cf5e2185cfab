"""Options that several commands share."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, overload

import typer

from tiercel.errors import UserError
from tiercel.units import parse_size


def on_files(folder: Path | None) -> Path | None:
    """As callback of an option that names a folder: UserError for one in object storage, which would be made
    here under that name."""
    if folder is not None and folder.parts[:1] == ("s3:",):
        raise UserError(f"{folder}: an object-storage prefix does not work here: name a folder")
    return folder


def split_words(option: str, text: str | None) -> list[str]:
    """Return the words of a command that an option gives as one, as a shell splits them; none without it."""
    try:
        return shlex.split(text or "")
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


Site = Annotated[str, typer.Option("--site", "-s", help="Site, a folder of site-configs/.")]
Study = Annotated[str, typer.Option("--study", help="Study, a name in workflows/studies/ or a YAML file.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change the hardware: [STORAGE.]STAGE.KEY=VALUE, [STORAGE.]STAGE=none or STORAGE=SITE.STORAGE "
        "(repeat).",
    ),
]
#: MPI counts processes in 32 bits, and so do schedulers.
MOST_PROCESSES = 2**31 - 1
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@overload
def size_of(option: str, text: str) -> int: ...
@overload
def size_of(option: str, text: str | None) -> int | None: ...
def size_of(option: str, text: str | None) -> int | None:
    """Return the bytes that an option says (``400MiB``), None where it is not given."""
    if text is None:
        return None
    try:
        size = parse_size(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None
    if size == 0:
        raise UserError(f"{option} {text}: must be larger than 0")
    return size
