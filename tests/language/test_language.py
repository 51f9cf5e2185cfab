"""User-visible texts follow the language guide: no word or opening of ``forbidden.yaml``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from tiercel.cli.main import app
from tiercel.pages.terms import TERMS
from tiercel.results.validity import FLAGS

from ..conftest import CHECKOUT

FORBIDDEN = yaml.safe_load((Path(__file__).parent / "forbidden.yaml").read_text())
PACKAGE = CHECKOUT / "analysis" / "tiercel"
#: Pages that follow the guide already.
PAGES = ("README.md", "docs/index.md", "docs/glossary.md", "docs/questions/read-the-report.md")
#: Calls whose texts a user reads.
SPEAKING = {"UserError", "RunFailed", "Interrupted", "JobBroken", "OutOfTime", "print", "Option", "Argument"}
#: Modules whose sentences a reader of the report sees.
SENTENCES = (
    "report/findings", "report/sections", "report/figures.py", "report/page_tables.py",
    "report/cell_limits.py", "report/terminal.py", "report/unfinished.py", "runs/status_words.py",
)  # fmt: skip


def _literals(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a node; what an f-string puts in is `{}`."""
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
        yield "".join(map(str, parts))
        node = ast.Tuple([v for v in node.values if not isinstance(v, ast.Constant)])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each for each in body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ] or [ast.Pass()]  # fmt: skip
    return tree


def messages() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        tree = _without_docstrings(ast.parse(path.read_text()))
        if name.startswith(SENTENCES):
            yield from ((name, text) for text in _literals(tree) if " " in text)
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                if (called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")) in SPEAKING:
                    yield from ((f"{name}:{node.lineno}", text) for text in _literals(node) if " " in text)


def helps() -> Iterator[tuple[str, str]]:
    def below(command: Any, name: str) -> Iterator[tuple[str, str]]:
        yield name, command.help or ""
        yield from (
            (name, parameter.help) for parameter in command.params if getattr(parameter, "help", None)
        )
        for key, each in getattr(command, "commands", {}).items():
            yield from below(each, f"{name} {key}")

    return below(typer.main.get_command(app), "tiercel")


def templates() -> Iterator[tuple[str, str]]:
    for path in sorted((PACKAGE / "report" / "templates").glob("*.j2")):
        source = re.sub(
            r"(?s)\{#.*?#\}|\{%.*?%\}|<style>.*?</style>|<script>.*?</script>", " ", path.read_text()
        )
        source = re.sub(r"\{\{.*?\}\}", "{}", source)
        attributes = " ".join(re.findall(r'(?:aria-label|title)="([^"]*)"', source))
        yield path.name, re.sub(r"<[^>]*>", " ", source) + attributes


def pages() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`|\]\([^)]*\)", " ", (CHECKOUT / page).read_text())
        yield page, text


def tables() -> Iterator[tuple[str, str]]:
    yield from (("flag", f"{flag.title}. {flag.advice}") for flag in FLAGS.values())
    yield from (("term", meaning) for meaning in TERMS.values())


SOURCES = (messages, helps, templates, pages, tables)


def faults(text: str) -> list[str]:
    """Return the forbidden words and openings of a text."""
    words = "|".join((*FORBIDDEN["words"], *FORBIDDEN["identifiers"]))
    found = [match[0] for match in re.finditer(rf"(?<![\w-])(?:{words})(?![\w-])", text, re.IGNORECASE)]
    openings = "|".join(FORBIDDEN["openings"])
    for match in re.finditer(rf"(?:^|[.:!] )({openings}) [^?\n.]*[^?\n]", text):
        question = text[match.start() :].split(".", maxsplit=1)[0].rstrip().endswith("?") or "?" in match[0]
        found += [] if question else [match[1]]
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_texts_use_plain_words(source: Any) -> None:
    allowed = {each["text"] for each in FORBIDDEN["exceptions"]}
    texts = [(where, text) for where, text in source() if text not in allowed]
    assert texts
    assert not [f"{where}: {found}: {text[:120]}" for where, text in texts if (found := faults(text))]


def test_there_are_few_exceptions() -> None:
    assert len(FORBIDDEN["exceptions"]) <= 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The report says nothing.", ["says"]),
        ("Where files lie is unknown.", ["Where"]),
        ("Where do I put my files?", []),
        ("standalone, reminder", []),
        ("same command goes on", ["goes on"]),
    ],
)
def test_faults_are_found(text: str, expected: list[str]) -> None:
    assert faults(text) == expected
