"""The report's tables and figures for a paper: booktabs tables, and figures as PDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.pages.tables import Cell, Table
from tiercel.report import page_tables
from tiercel.report.data import Results
from tiercel.report.picture import Picture


@dataclass(frozen=True)
class Shown:
    """What a paper's table shows of one of the page."""

    above: tuple[str, ...]
    """Columns that a line says for the rows under it."""
    each: tuple[str, ...]
    words: str = "{0}, {1}"
    """How that line says them."""


#: What a paper's tables hold of those of the page: in a line of their own above the rows that share them, and
#: in each row. All of it side by side is wider than a page.
_NUMBERS = Shown(("Workload", "Operation"), ("Storage", "Scale", "Origin", "n", "Median", "Interval"))
_COMPARISONS = Shown(
    ("Workload", "Operation", "A", "B"),
    ("Scale", "Origin", "Ratio A to B", "Interval", "Noise", "p", "Verdict"),
    "{0}, {1}: {2} (A) against {3} (B)",
)
_NUMBERS_SAY = (
    "Medians of n repetitions, with the interval of the median and the probability that it covers the "
    "true one."
)
_COMPARISONS_SAY = (
    "Ratios of geometric means with their 95 % intervals. Noise: 95 % of the ratios of two layout sessions "
    "of one configuration; p: corrected for all comparisons of the study (Holm). The report says why an "
    "answer is undecided."
)
_VERDICT = "Verdict"
#: The column that a table leaves out where all rows have the same.
_CONSTANT = "Origin"
#: Lines of one table; the others go into tables that continue it. A longtable would break over pages by
#: itself, but papers in two columns refuse it.
_ONE_PAGE = 40
_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "×": r"$\times$", "–": "--",
    "µ": r"\textmu{}", "…": r"\ldots{}", "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "∞": r"$\infty$",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"{\char34}", "[": "{[}",
}  # fmt: skip
#: Letters on which pdfLaTeX stops, and what sets them with the others and a question mark with it.
_FOREIGN = re.compile("[^\x00-\u017f]+")
_BEYOND = (
    r"\providecommand{\tiercelbeyond}[1]{\ifdefined\directlua#1\else\ifdefined\XeTeXversion#1\else?\fi\fi}"
)


def write_latex(results: Results, pictures: Iterable[Picture], folder: Path) -> Path:
    """Write ``folder``/numbers.tex, comparisons.tex and figures/*.pdf in place of earlier ones; return it.

    A table needs ``\\usepackage{booktabs}``. It is as wide as the page, in papers of one column and of two.
    """
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    for path in (*figures.glob("*.pdf"), *folder.glob("*.tex")):
        path.unlink(missing_ok=True)  # another report of the same results may have been quicker
    for picture in pictures:
        picture.write_pdf(figures)
    tables = (
        ("numbers", page_tables.numbers(results), _NUMBERS, _NUMBERS_SAY),
        ("comparisons", page_tables.comparisons(results), _COMPARISONS, _COMPARISONS_SAY),
    )
    for name, table, columns, caption in tables:
        if table is not None:
            said = tabular(replace(table, caption=caption), columns, f"tab:{name}")
            write_text(folder / f"{name}.tex", said)
    return folder


def tabular(table: Table, shown: Shown, label: str) -> str:
    """Return a table as LaTeX with these of its columns; rows of one line above stand together."""
    lines = _lines(table, shown, label)
    foreign = any(r"\tiercelbeyond{" in line for line in lines)
    return "\n".join([*lines[:1], *([_BEYOND] if foreign else []), *lines[1:]]) + "\n"


def _lines(table: Table, shown: Shown, label: str) -> list[str]:
    wanted = [name for name in (*shown.above, *shown.each) if name != _CONSTANT or name in table.columns]
    at = {name: table.columns.index(name) for name in wanted}
    names = [name for name in shown.each if name in at]
    kinds = "".join("r" if name in table.numeric else "l" for name in names)
    head = " & ".join(escaped(name) for name in names) + r" \\"
    groups: dict[str, list[str]] = {}  # the line above, and its rows
    for _, cells in table.rows:
        above = shown.words.format(*(cells[at[name]].text for name in shown.above))
        row = " & ".join(escaped(_text(name, cells[at[name]])) for name in names) + r" \\"
        groups.setdefault(above, []).append(row)
    # Of no width, so that a long title does not draw a column out.
    wide = rf"\multicolumn{{{len(names)}}}{{l}}"
    lines = [r"% needs \usepackage{booktabs}"]
    for number, page in enumerate(_pages(groups)):
        caption = rf"\caption{{{escaped(table.caption)}}}\label{{{label}}}"
        if number:  # under the number of the table that it continues
            caption = rf"\addtocounter{{table}}{{-1}}\caption{{(continued) {escaped(table.caption)}}}"
        body: list[str] = []
        for above, rows in page:
            body += [*([r"\addlinespace"] if body else []), rf"{wide}{{{_above(above)}}} \\", *rows]
        lines += [
            r"\begin{table*}", r"\centering", r"\small", caption, rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table*}",
        ]  # fmt: skip
    return lines


def _pages(groups: Mapping[str, list[str]]) -> Iterator[list[tuple[str, list[str]]]]:
    """Yield the groups (the line above, its rows) of each table; a long group continues in the next one."""
    page: list[tuple[str, list[str]]] = []
    used = 0
    for above, rows in groups.items():
        for start in range(0, len(rows), _ONE_PAGE - 1):
            part = rows[start : start + _ONE_PAGE - 1]
            if page and used + 1 + len(part) > _ONE_PAGE:
                yield page
                page, used = [], 0
            page.append((above, part))
            used += 1 + len(part)
    if page:
        yield page


def _above(text: str) -> str:
    return rf"\makebox[0pt][l]{{\parbox[t]{{0.75\linewidth}}{{\raggedright\emph{{{escaped(text)}}}}}}}"


def _text(column: str, cell: Cell) -> str:
    """The words of a cell; of a verdict the first: its reason is a sentence or two."""
    return cell.text.partition(":")[0] if column == _VERDICT else cell.text


def escaped(text: str) -> str:
    """Return a text that LaTeX sets as it is, on one line; pdfLaTeX has Latin letters alone (`_BEYOND`)."""
    return _FOREIGN.sub(
        lambda found: rf"\tiercelbeyond{{{found[0]}}}",
        "".join(_ESCAPED.get(c, c if c.isprintable() else " ") for c in text),
    )
