"""Commands on the five papers: what each shows and how it is got here, and which statements hold."""
# ruff: noqa: PLC0415 (pydantic takes a quarter of a second to import)

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated, Any

import typer

from tiercel.cli import panels
from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.errors import UserError
from tiercel.project import project_root

#: What `tiercel papers` says for `how`.
_HOW = {"none": "not here"}
#: Columns of a terminal from which on a table of all statements has room for their texts.
_ROOM = 110


def register(app: typer.Typer) -> None:
    """Add the commands to the root."""
    app.command(rich_help_panel=panels.UNDERSTAND)(papers)
    app.command(rich_help_panel=panels.UNDERSTAND)(claims)


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
    for p in found:
        _print_items(p, all_of_it=paper is not None)
    counts = Counter(_HOW.get(i.how, i.how) for p in found for i in p.items)
    states = Counter(i.state for p in found for i in p.items)
    print(f"{counts.total()} items: {_counted(counts)}; of them {_counted(states)}")
    if also := sum(bool(i.simulated) for p in found for i in p.items):
        print(
            f"{also} of the measured items can also be simulated at the size of the paper (not counted here)"
        )
    if paper is None:
        print("Run `tiercel papers NAME` for the commands, parameters and missing parts of each item.")


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
    from tiercel.papers.load import find_statements
    from tiercel.papers.measure import measure as carry_out
    from tiercel.papers.verdicts import VERDICTS, counts_of, row

    chosen = find_statements(ids or [])
    root = project_root()
    failed: list[str] = []
    if measure:
        failed = carry_out(
            [s for _, s in chosen], root, lambda line: print(line, file=sys.stderr, flush=True)
        )
    book = read_book()
    rows = [row(p, s, book, root) for p, s in chosen]
    counts = counts_of(rows)
    if as_json:
        print_json({"counts": counts, "statements": rows})
    else:
        _print_claims(rows)
        ways = {v: f" ({_counted(Counter(by))})" for v, by in counts["by_how"].items() if by}
        said = ", ".join(f"{counts[v]} {v}{ways.get(v, '')}" for v in VERDICTS if counts[v])
        print(
            count(len(rows), "statement")
            + f": {said}"
            + (f"; {counts['stale']} stale" if counts["stale"] else "")
        )
        if not ids:
            print("Run `tiercel claims ID` for bounds, command, date and machine. Use --measure to repeat.")
    if failed:
        raise UserError("; ".join(failed))


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def _print_items(paper: Any, all_of_it: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{paper.paper} {paper.name}[/bold]: {paper.title} ({paper.by})", highlight=False)
    if not all_of_it:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("item", "section", "answer", "state", "what it shows"):
            table.add_column(heading, no_wrap=heading != "what it shows")
        for i in paper.items:
            table.add_row(i.item, i.section, _HOW.get(i.how, i.how), i.state, i.shows)
        console.print(table)
        print()
        return
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
        _print_lines(console, 11, [(word, text) for word, text in lines if text and text != "none"])
    print()


def _filled(console: Any, text: str, start: str, indent: int) -> str:
    """Return a text behind `start` as lines of the terminal's width, all but the first with an indent."""
    from textwrap import fill

    return fill(text, console.width - 1, initial_indent=start, subsequent_indent=" " * indent,
                break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _print_lines(console: Any, width: int, lines: list[tuple[str, str]]) -> None:
    """Print words with their texts: commands in one line, to be copied, and prose as wide as it is read."""
    for word, text in lines:
        start = f"  {word:<{width}} "
        if text.startswith("tiercel "):
            print(start + text)
        else:
            print(_filled(console, text, start, len(start)))


def _print_claims(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if len(rows) <= 3:
        for r in rows:
            _print_claim(console, r)
        return
    cells = [_cells(r) for r in rows]
    if console.width < _ROOM:
        for name, paper, ours, verdict, text in cells:
            figures = ", ".join(filter(None, [paper and f"paper {paper}", ours and f"ours {ours}"]))
            print(_filled(console, "; ".join(filter(None, [verdict, figures])), f"{name:<9}  ", 11))
            print(_filled(console, text, " " * 11, 11))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("statement", "paper says", "ours", "verdict", "what it says, or why"):
        table.add_column(heading, no_wrap=heading in ("statement", "verdict"))
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _cells(r: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """Return a statement's name, the paper's figure, ours, the verdict, and what it says or why it is so."""
    from tiercel.papers.verdicts import told, told_ours

    ours = "" if r["ours"] is None else told_ours(r) + _mark(r)
    verdict = r["verdict"] + (", stale" if r["stale"] else "")
    text = {"holds": r["says"], "fails": f"{r['says']}. Why not: {r['why']}"}.get(r["verdict"], r["why"])
    return r["id"], told(r["value"], r["unit"]), ours, verdict, text


def _worked_out(r: dict[str, Any]) -> str | None:
    if r["formula"] is None:
        return None
    return f"{r['formula']} with " + ", ".join(f"{name} {value:g}" for name, value in r["figures"].items())


def _mark(r: dict[str, Any]) -> str:
    """Return what a figure is that was not measured."""
    return "" if r["how"] == "measured" else f", {r['how']}"


def _print_claim(console: Any, r: dict[str, Any]) -> None:
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
        ("found", f"{r['date']}, {r['machine']}" if r["date"] else None),
        ("stale", "what it rests on has changed since" if r["stale"] else None),
    ]
    print(f"{r['id']}: {r['verdict']}")
    _print_lines(console, 9, [("says", r["says"]), *((word, text) for word, text in lines if text)])
