"""Reads the papers' files."""

from __future__ import annotations

from difflib import get_close_matches
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


def find_statements(words: list[str]) -> list[tuple[Paper, Statement]]:
    """Return the statements of these names, or of these papers, each once; all for none.

    UserError where a word is neither. A paper goes by its number, its name or what its statements begin with.
    """
    everything = {s.id: (p, s) for p in load_papers() for s in p.statements}
    chosen: dict[str, tuple[Paper, Statement]] = {}
    for word in words:
        known = word.lower()
        found = {
            name: (p, s) for name, (p, s) in everything.items()
            if known in {name, name.rpartition("-")[0], p.paper, p.name.lower()}
        }  # fmt: skip
        if not found:
            near = get_close_matches(known, everything, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"statement {word}: unknown: {meant}`tiercel claims` lists all")
        chosen |= found
    return list((chosen or everything).values())
