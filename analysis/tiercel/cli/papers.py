"""Commands on the five papers: what each shows and how it is got here, and which statements hold."""
# ruff: noqa: PLC0415 (pydantic takes a quarter of a second to import)

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.errors import UserError
from tiercel.project import project_root

#: What `tiercel papers` says for `how`.
_HOW = {"none": "not here"}


def register(app: typer.Typer) -> None:
    """Add the commands to the root."""
    app.command(rich_help_panel=panels.HAND_ON)(papers)
    app.command(rich_help_panel=panels.HAND_ON)(claims)


def papers(
    paper: Annotated[
        str | None, typer.Argument(help="Number or name of a paper (004, vast). Default: all five.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the tables and figures of the five papers and how to reproduce each.

    Example: tiercel papers vast
    """
    from tiercel.papers.load import find_paper

    found = find_paper(paper)
    if as_json:
        print_json([
            {"paper": p.paper, "name": p.name, **i.model_dump(),
             "statements": [s.id for s in p.statements if i.item in s.items]}
            for p in found for i in p.items
        ])  # fmt: skip
        return
    if paper is None:
        _print_papers(found)
    else:
        _print_items(found[0])


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Statements (themis-01) or papers (vast). Default: all.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run the commands of the statements and record the results.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show which statements of the five papers hold on this machine.

    Example: tiercel claims vast
    """
    from tiercel.pages.words import count
    from tiercel.papers.book import read_book
    from tiercel.papers.load import find_statements, load_papers
    from tiercel.papers.measure import measure as carry_out
    from tiercel.papers.verdicts import counts_of, row

    chosen = find_statements(ids or [])
    failed: list[str] = []
    if measure:
        failed = carry_out(
            [s for _, s in chosen], project_root(), lambda line: print(line, file=sys.stderr, flush=True)
        )
    book = read_book()
    rows = [row(p, s, book) for p, s in chosen]
    if as_json:
        print_json({"counts": counts_of(rows), "statements": rows})
    elif not ids:
        for each in load_papers():
            mine = [r for r in rows if r["paper"] == each.paper]
            said = f"{each.name}, {count(len(mine), 'statement')}: {_counted(counts_of(mine))}"
            print(_filled(said, f"{each.paper} ", 4))
        print("Run `tiercel claims vast` for the statements of one paper, `tiercel claims vast-01` for one.")
    else:
        _print_claims(rows)
    if failed:
        raise UserError("; ".join(failed))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def _print_papers(papers: Iterable[Any]) -> None:
    """Print of each paper what to start, how much of it is repeated, and what became of its statements."""
    from tiercel.papers.book import read_book
    from tiercel.papers.verdicts import counts_of, row

    book = read_book()
    for p in papers:
        rows = [row(p, s, book) for s in p.statements]
        quick = [command for i in p.items for command in i.quick]
        first = next((c for c in quick if c.startswith("tiercel evaluate ")), quick[0])
        print(f"{p.paper} {p.name}: {p.title} ({p.by})")
        print(f"  Start:      {first}")
        print(f"  Items:      {_counted(Counter(i.state for i in p.items))} (of {len(p.items)})")
        print(f"  Statements: {_counted(counts_of(rows))} (of {len(rows)})\n")
    print("Run `tiercel papers vast` for each figure of a paper: its command, its size, what is missing.")


def _print_items(paper: Any) -> None:
    from rich.console import Console

    console = Console()
    console.print(f"[bold]{paper.paper} {paper.name}[/bold]: {paper.title} ({paper.by})", highlight=False)
    for i in paper.items:
        console.print(f"\n[bold]{i.item}[/bold] ({i.section}): {i.shows}", highlight=False)
        lines = [
            ("answer", f"{_HOW.get(i.how, i.how)}, {i.state}"),
            ("parameters", i.parameters),
            *(("paper size", command) for command in i.paper_size),
            *(("quick", command) for command in i.quick),
            *(("simulated", command) for command in i.simulated),
            ("drawn", i.figure),
            ("lacks", i.lacks),
        ]
        _print_lines(11, [(word, text) for word, text in lines if text and text != "none"])


def _filled(text: str, start: str, indent: int) -> str:
    """Return a text behind `start` as lines of the terminal's width, all but the first with an indent."""
    from textwrap import fill

    from rich.console import Console

    return fill(text, Console().width - 1, initial_indent=start, subsequent_indent=" " * indent,
                break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _print_lines(width: int, lines: list[tuple[str, str]]) -> None:
    """Print words with their texts: commands in one line, to be copied, and prose as wide as it is read."""
    for word, text in lines:
        start = f"  {word:<{width}} "
        if text.startswith("tiercel "):
            print(start + text)
        else:
            print(_filled(text, start, len(start)))


def _print_claims(rows: list[dict[str, Any]]) -> None:
    from tiercel.papers.verdicts import told, told_ours

    if len(rows) <= 3:
        for r in rows:
            _print_claim(r)
        return
    for r in rows:
        found = r["ours"] is not None
        figures = f" (paper {told(r['value'], r['unit'])}, ours {told_ours(r)})" if found else ""
        start = f"{r['id']:<9}  "
        print(_filled(f"{r['verdict']}: {r['says']}{figures}", start, len(start)))


def _worked_out(r: dict[str, Any]) -> str | None:
    if r["formula"] is None:
        return None
    return f"{r['formula']} with " + ", ".join(f"{name} {value:g}" for name, value in r["figures"].items())


def _print_claim(r: dict[str, Any]) -> None:
    from tiercel.papers.verdicts import told, told_ours

    low, high = r["at_least"], r["at_most"]
    bounds = " and ".join(
        f"{word} {value:g}" for word, value in (("at least", low), ("at most", high)) if value is not None
    )
    lines = [
        ("where", f"paper {r['paper']}, {r['where']}"),
        ("quantity", r["quantity"]),
        ("paper", told(r["value"], r["unit"])),
        ("ours", None if r["ours"] is None else f"{told_ours(r)}, {r['how']}"),
        ("holds if", f"{bounds} ({r['bounds']})" if bounds else None),
        ("note", r["why"]),
        *(("before", command) for command in r["first"]),
        *(("command", command) for command in r["command"]),
        ("figures", _worked_out(r)),
        ("found", f"{r['date']}, tiercel {r['version']}, {r['machine']}" if r["date"] else None),
    ]
    print(f"{r['id']}: {r['verdict']}")
    _print_lines(9, [("says", r["says"]), *((word, text) for word, text in lines if text)])
