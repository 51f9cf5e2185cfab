"""Reads the papers' files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, suggest
from tiercel.papers.model import Paper, Statement

DATA = Path(__file__).parent / "data"


@cache
def load_papers() -> tuple[Paper, ...]:
    """Return all papers in the order of their numbers."""
    return tuple(parse(Paper, read_yaml(path), path.name) for path in sorted(DATA.glob("*.yaml")))


def find_paper(word: str | None) -> tuple[Paper, ...]:
    """Return the paper of that number or name, all of them for None; UserError where there is none."""
    papers = load_papers()
    if word is None:
        return papers
    found = tuple(p for p in papers if word.lower() in {p.paper, p.name.lower()})
    if not found:
        known = suggest(word, [name for p in papers for name in (p.paper, p.name.lower())])
        raise UserError(f"paper {word}: not one of the five: {known}")
    return found


def find_statements(ids: list[str]) -> list[tuple[Paper, Statement]]:
    """Return the statements of these names, all for none; UserError where one is unknown."""
    everything = {s.id: (p, s) for p in load_papers() for s in p.statements}
    for name in ids:
        if name not in everything:
            raise UserError(f"statement {name}: unknown: {suggest(name, everything)}")
    return [everything[name] for name in ids or everything]
