"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from tiercel.errors import UserError
from tiercel.units import parse_size

Site = Annotated[str, typer.Option("--site", "-s", help="A site under site-configs/.")]
Study = Annotated[str, typer.Option("--study", help="A study under workflows/studies/, or a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def size_of(option: str, text: str | None) -> int | None:
    """Return the bytes that an option says (``400MiB``), None where it is not given."""
    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None
