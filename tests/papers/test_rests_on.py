"""What a figure rests on: sources, without modules that only show, which nothing that decides may need."""

from __future__ import annotations

import ast
import inspect
import shlex
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tiercel.papers.book import SHOWING, digest_of
from tiercel.papers.load import load_papers

from ..cli.test_bad_input import COMMAND
from ..test_architecture import PACKAGE, SUBJECTS, imported, module_of
from .test_papers import started_by


def modules() -> dict[str, Path]:
    """Return the modules below what statements rest on, by name."""
    folders = {part for p in load_papers() for s in p.statements for part in s.answer.rests_on}
    root = PACKAGE.parents[1]
    found = [path for part in folders if part.startswith("analysis/") for path in
             ([root / part] if part.endswith(".py") else (root / part).rglob("*.py"))]  # fmt: skip
    return {module_of(path): path for path in found}


def test_what_shows_decides_nothing() -> None:
    """No other module imports one that shows; commands call those that print and draw, after the figures."""
    every = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    shows = {name for name, path in every.items() if SHOWING.fullmatch(path.name)}
    assert {"tiercel.dl.section", "tiercel.dl.showing", "tiercel.sharing.parts_figure"} <= shows
    wrong = []
    for name, path in modules().items():
        if name in shows:
            continue
        needed = imported(path, shows)
        if path.name.startswith("commands"):
            needed = {n for n in needed if n.rpartition(".")[2].startswith(("section", "findings"))}
        wrong += [f"{name} imports {other}" for other in needed]
    assert not wrong


def test_what_decides_is_rested_on() -> None:
    """What a statement's commands call, and all that this needs of a subject, is below what it names."""
    root = PACKAGE.parents[1]
    every = {
        module_of(path): path for path in PACKAGE.rglob("*.py")
        if not SHOWING.fullmatch(path.name) and path.name != "__init__.py"
    }  # fmt: skip
    for statement in (s for p in load_papers() for s in p.statements):
        parts = [root / part for part in statement.answer.rests_on]
        named = {name for name, path in every.items() if any(p == path or p in path.parents for p in parts)}
        commands = [*statement.answer.first, *statement.answer.command]
        needed = {name for c in commands for part in (c, *started_by(c)) for name in called(part, every)}
        for name in named:  # a file of commands calls for each of them what it needs: those of ours are known
            if not every[name].name.startswith("commands"):
                needed |= imported(every[name], every)
        lacks = sorted(name for name in needed - named if name.split(".")[1] in SUBJECTS)
        assert not lacks, statement.id


def called(command: str, every: Mapping[str, Path]) -> set[str]:
    """Return the modules that a command of tiercel is written in, and that its function imports."""
    words = shlex.split(command)
    current: Any = COMMAND
    if words[0] != "tiercel":
        return set()
    while hasattr(current, "commands"):
        words = words[1:]
        current = current.commands[words[0]]
    function = inspect.unwrap(current.callback)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = {function.__module__}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & set(every)


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("section_numbers.py", False),
        ("findings.py", False),
        ("parts_figure.py", False),
        ("showing.py", False),
        ("sections.py", True),
        ("score.py", True),
        ("section.yaml", True),
    ],
)
def test_what_shows_makes_nothing_stale(name: str, stale: bool, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "score.py").write_text("a = 1")
    (tmp_path / "src" / name).write_text("b = 1")
    before = digest_of(["src"], tmp_path)
    (tmp_path / "src" / name).write_text("b = 2")
    assert (digest_of(["src"], tmp_path) != before) is stale
