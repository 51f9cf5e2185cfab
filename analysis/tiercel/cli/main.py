"""Entry point of ``tiercel``."""

from __future__ import annotations

import sys

import typer

import tiercel
from tiercel.cli import (
    advise,
    cache,
    compare,
    dl,
    dl_verify,
    engines,
    measure,
    placement,
    results,
    share,
    site,
    stack,
    trace,
)
from tiercel.errors import UserError
from tiercel.runs.batch import Interrupted

app = typer.Typer(
    name="tiercel",
    help="Evaluates HPC storage end to end.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
measure.register(app)
advise.register(app)
results.register(app)
compare.register(app)
placement.register(app)
app.add_typer(site.app, name="site")
app.add_typer(stack.app, name="stack")
app.add_typer(engines.app, name="engines")
app.add_typer(cache.app, name="cache")
app.add_typer(share.app, name="share")
dl_verify.register(dl.app)
app.add_typer(dl.app, name="dl")
app.add_typer(trace.app, name="trace")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tiercel {tiercel.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print it."),
) -> None:
    """Evaluates HPC storage end to end."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 the user's mistake, 130 interrupted."""
    try:
        app()
    except UserError as error:
        print(f"tiercel: {error}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, Interrupted):
        print("tiercel: interrupted: the same command goes on where it stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
