"""How `--help` looks (commands under what people want, options with their defaults), and that nothing is no
value.

Typer's own help is drawn by rich, whose import (Markdown, tracebacks, syntax) costs more than all of
tiercel's command line. Here it is plain text, with bold and colour on a terminal that wants them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial

import typer
from typer._click.core import Context, Parameter, ParameterSource
from typer._click.formatting import HelpFormatter
from typer.core import TyperCommand, TyperGroup, TyperOption

HEADING, NAME = "1", "36"  # SGR: bold, cyan
WIDTH = 110  # columns at most: longer lines are hard to read


def apply(app: typer.Typer) -> None:
    """Let an application, and every command below it, show its help this way."""
    app.rich_markup_mode = None
    app.info.cls = Group
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            apply(group.typer_instance)


def _styled(text: str, style: str) -> str:
    """Text in a style, where standard output is a terminal that shows it (no-color.org)."""
    shown = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\033[{style}m{text}\033[0m" if shown else text


def _rows(formatter: HelpFormatter, title: str, rows: Iterable[tuple[str, str]]) -> None:
    named = [(_styled(name, NAME), text) for name, text in rows]
    if not named:
        return
    formatter.write_paragraph()
    formatter.write(_styled(title, HEADING) + "\n")
    formatter.indent()
    formatter.write_dl(named)
    formatter.dedent()


def _parameters(command: TyperCommand | TyperGroup, ctx: Context, formatter: HelpFormatter) -> None:
    """Arguments and options; `<bool>` is not said of what takes no value."""
    told: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(ctx):
        if record := parameter.get_help_record(ctx):
            name, text = record
            told[parameter.param_type_name].append((name.replace(" range>", ">"), " ".join(text.split())))
    _rows(formatter, "Arguments", told["argument"])
    _rows(formatter, "Options", told["option"])


class _Values:
    """Commands whose switches are off where they are not given, and to which nothing (``--folder "$UNSET"``)
    is no value: as a path it would be the current folder.

    Typer leaves switches at None and has pydantic look at that: more to load than all the rest of a help
    page.
    """

    def get_params(self, ctx: Context) -> list[Parameter]:
        parameters: list[Parameter] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            # One that has a word for no, too (--write/--no-write), says neither where it is not given.
            switch = isinstance(parameter, TyperOption) and parameter.is_flag and not parameter.secondary_opts
            if switch and parameter.default is None:
                parameter.default = False
            if "process_value" not in vars(parameter):
                parameter.process_value = partial(_process, parameter)  # type: ignore[method-assign]
        return parameters


def _process(parameter: Parameter, ctx: Context, value: object) -> object:
    """Process what was given as typer does; BadParameter for an empty text, but in the words of a program."""
    given = (
        parameter.name is not None and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    )
    if given and parameter.nargs != -1 and "" in (value if isinstance(value, list | tuple) else (value,)):
        raise typer.BadParameter("nothing is given: an empty text", ctx=ctx, param=parameter)  # type: ignore[arg-type]
    return type(parameter).process_value(parameter, ctx, value)


class Command(_Values, TyperCommand):
    """A command."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _parameters(self, ctx, formatter)


class Group(_Values, TyperGroup):
    """A command that others belong to: they come first, under their headings."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                panels.setdefault(panel, []).append((name, command.get_short_help_str(1000)))
        longest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
        for panel, rows in panels.items():
            _rows(formatter, panel, [(name.ljust(longest), text) for name, text in rows])
        _parameters(self, ctx, formatter)
