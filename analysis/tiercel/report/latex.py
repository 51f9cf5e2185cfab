"""The report's tables and figures for a paper: booktabs tables, and figures as PDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tiercel.pages.tables import Table
from tiercel.report import page_tables
from tiercel.report.data import Results
from tiercel.report.picture import Picture
from tiercel.whole import write_text

#: What a paper's tables hold of those of the page.
_NUMBERS = ("Workload", "Operation", "Storage", "Scale", "Origin", "n", "Median", "Interval")
_COMPARISONS = (
    "Workload", "Operation", "A", "B", "Scale", "Origin", "A over B", "Interval", "Noise", "p", "Verdict",
)  # fmt: skip
_NUMBERS_SAY = (
    "Medians of n repetitions, with the interval of the median and the probability that it covers the "
    "true one."
)
_COMPARISONS_SAY = (
    "Ratios of medians with their 95 % intervals. Noise: 95 % of the ratios of two placements of one "
    "configuration; p: corrected for all answers of the study (Hochberg)."
)
#: A table of more rows goes over pages.
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

    A table needs ``\\usepackage{booktabs}``, and ``longtable`` where it has more than 40 rows.
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


def tabular(table: Table, columns: Sequence[str], label: str) -> str:
    """Return a table as LaTeX with these of its columns, in their order in the table."""
    lines = _lines(table, columns, label)
    foreign = any(r"\tiercelbeyond{" in line for line in lines)
    return "\n".join([*lines[:1], *([_BEYOND] if foreign else []), *lines[1:]]) + "\n"


def _lines(table: Table, columns: Sequence[str], label: str) -> list[str]:
    kept = [i for i, name in enumerate(table.columns) if name in columns]
    names = [table.columns[i] for i in kept]
    kinds = "".join("r" if name in table.numeric else "l" for name in names)
    head = " & ".join(escaped(name) for name in names) + r" \\"
    body = [" & ".join(escaped(cells[i].text) for i in kept) + r" \\" for _, cells in table.rows]
    caption = rf"\caption{{{escaped(table.caption)}}}\label{{{label}}}"
    if len(body) > _ONE_PAGE:
        lines = [
            r"% needs \usepackage{booktabs,longtable}", rf"\begin{{longtable}}{{{kinds}}}", rf"{caption}\\",
            r"\toprule", head, r"\midrule", r"\endfirsthead", r"\toprule", head, r"\midrule", r"\endhead",
            r"\bottomrule", r"\endfoot", *body, r"\end{longtable}",
        ]  # fmt: skip
    else:
        lines = [
            r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", caption,
            rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule",
            r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
    return lines


def escaped(text: str) -> str:
    """Return a text that LaTeX sets as it is, on one line; pdfLaTeX has Latin letters alone (`_BEYOND`)."""
    return _FOREIGN.sub(
        lambda found: rf"\tiercelbeyond{{{found[0]}}}",
        "".join(_ESCAPED.get(c, c if c.isprintable() else " ") for c in text),
    )
