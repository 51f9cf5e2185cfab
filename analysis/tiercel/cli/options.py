"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Site = Annotated[str, typer.Option("--site", "-s", help="A site under site-configs/.")]
Study = Annotated[str, typer.Option("--study", help="A study under workflows/studies/, or a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
