"""`--help` of every command: what it lists, how wide it is, and what it need not load."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from tiercel.cli import panels
from tiercel.cli.main import app


def commands(command: TyperCommand | TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


ALL = list(commands(typer.main.get_command(app)))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_each_command_says_what_it_takes(path: tuple[str, ...]) -> None:
    """Every option with its words, in lines that a terminal of 80 columns shows whole."""
    found = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}, prog_name="tiercel")
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert lines[0].startswith("Usage: tiercel")
    assert "Options" in lines and "  -h, --help" in found.output
    assert max(map(len, lines)) <= 80
    assert "<bool>" not in found.output and "\033" not in found.output
    told = found.output.split("Options", 1)[1]
    for option in re.findall(r"^  (-\S.*?)(?:  |$)", told, flags=re.M):
        assert re.search(re.escape(option) + r"\s+\S", told), f"nothing is said of {option}"


def test_commands_stand_under_what_people_want() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    at = [output.index(f"\n{panel}\n") for panel in (panels.EVALUATE, panels.UNDERSTAND, panels.IMPROVE)]
    assert at == sorted(at)
    assert at[0] < output.index("  evaluate ") < at[1] < output.index("  compare ") < at[2]


def test_a_letter_means_one_thing() -> None:
    """-n is the number of processes wherever it is: no command makes it anything else."""
    meanings: dict[str, set[str]] = {}
    program = typer.main.get_command(app)
    for path in ALL:
        command = program
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        for parameter in command.params:
            long = max(parameter.opts, key=len)
            for letter in (name for name in parameter.opts if len(name) == 2):
                meanings.setdefault(letter, set()).add(long)
    assert meanings["-n"] == {"--processes"}
    assert {letter: names for letter, names in meanings.items() if len(names) > 1} == {}


@pytest.mark.parametrize("words", [[], ["evaluate"], ["site"], ["trace", "summary"]], ids=" ".join)
def test_help_loads_nothing_that_draws_or_judges(words: list[str]) -> None:
    """rich, or pydantic, takes longer to load than everything else that a command line needs."""
    program = (
        f"import sys\nfrom tiercel.cli.main import app\napp({[*words, '--help']}, standalone_mode=False)\n"
        "heavy = {'rich', 'pygments', 'pandas', 'numpy', 'snakemake', 'yaml', 'pydantic'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_bold_and_colour_on_a_terminal_that_wants_them(extra: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    program = "from tiercel.cli.help import HEADING, _styled; print(_styled('Options', HEADING))"
    environment = {"TERM": "xterm", "PATH": "/usr/bin", **extra}
    done = subprocess.Popen([sys.executable, "-c", program], stdout=theirs, env=environment)
    assert done.wait(timeout=60) == 0
    assert (b"\033[1mOptions\033[0m" in os.read(ours, 100)) == coloured
    os.close(ours), os.close(theirs)
