"""What the report has of a paper: its figures that the study gets, and its numbers beside ours."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from tiercel.errors import UserError
from tiercel.pages import words
from tiercel.pages.tables import Table, table
from tiercel.papers.book import read_book
from tiercel.papers.load import load_papers
from tiercel.papers.model import Item, Paper, Statement
from tiercel.papers.verdicts import row, told, told_ours
from tiercel.report.sections.base import Block, Context, Section, sections

_STATES = {"whole": "complete", "part": "with differences", "missing": "missing", "drawing": ""}


@sections.register("papers")
def papers(context: Context) -> Section | None:
    """Return the section, or None for a study that repeats no paper: one that names no source."""
    if not context.results.study.source:
        return None
    study = context.results.study.study
    found = [(paper, items) for paper in load_papers() if (items := list(items_of(paper, study)))]
    if not found:
        return None
    names = words.listed([f"{p.name} (paper {p.paper}, {p.by})" for p, _ in found])
    return Section(
        "papers",
        "Comparison with the paper",
        (f"This study repeats figures and tables of {names}.",),
        notes=(
            "The results are those of `tiercel claims`, not of this report: it lists their machine and date. "
            "Run `tiercel papers` for the commands at the size of the paper.",
        ),
        blocks=tuple(_block(paper, items) for paper, items in found),
    )


def _block(paper: Paper, items: list[Item]) -> Block:
    folded: list[tuple[str, tuple[Table, ...]]] = [
        (f"{words.listed([i.item for i in items])}: coverage and differences", (_items(items),))
    ]
    if asked := [s for s in paper.statements if {i.item for i in items} & set(s.items)]:
        folded += [("Statements of the paper", tuple(_statements(paper, asked)))]
    return Block(f"{paper.title} ({paper.name})", folded=tuple((w, t) for w, t in folded if t))


def items_of(paper: Paper, study: str) -> Iterator[Item]:
    """Yield the items of a paper that a study is evaluated for."""
    for item in paper.items:
        commands = [shlex.split(c) for c in (*item.paper_size, *item.quick, *item.simulated)]
        if any(words[1:2] == ["evaluate"] and study in words for words in commands):
            yield item


def _items(items: list[Item]) -> Table:
    heads = ("Item", "Content", "In this report", "Coverage", "Differences")
    rows = [[i.item, i.shows, i.figure.removeprefix("report, "), _STATES[i.state], i.lacks] for i in items]
    return table(
        "Figures and tables of the paper. Coverage: how much of each this study repeats", heads, rows
    )


def _statements(paper: Paper, asked: list[Statement]) -> Iterator[Table]:
    try:
        book = read_book()
    except UserError:  # a damaged book is told by `tiercel claims`, and hides no other result
        return
    rows = [row(paper, statement, book) for statement in asked]
    lines = [
        [r["says"], r["quantity"], told(r["value"], r["unit"]), told_ours(r),
         _verdict(r),
         r["date"] or "", r["id"]]
        for r in rows
    ]  # fmt: skip
    yield table(
        "Statements of the paper. Each with the result here and its verdict",
        ("Statement", "Quantity", "Paper", "Here", "Verdict", "Date", "Name"),
        lines,
    )


def _verdict(r: dict[str, Any]) -> str:
    found = r["verdict"] if r["ours"] is None or r["how"] == "published" else f"{r['verdict']} ({r['how']})"
    return found if r["verdict"] == "holds" else f"{found}: {r['why']}"
