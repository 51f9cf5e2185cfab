"""Tables for a paper: what LaTeX would make of them, and figures as PDF."""

import re
import shutil
import subprocess

import pytest
from tests.report.synthetic import MIB, Synthetic, site, study

from tiercel.pages.tables import table
from tiercel.report.build import build
from tiercel.report.latex import Shown, escaped, tabular
from tiercel.results.validity import FLAGS


def _built(data, tmp_path):
    folder = data.write(tmp_path / "results")
    return build(folder, site(), study(), FLAGS, latex=True).parent


def _numbers(storages, values, title="Write"):
    data = Synthetic(storages=storages)
    for storage in storages:
        for i, value in enumerate(values):
            data.add(
                "scaling", "scientific", title, storage, 1, i, "a", [], operation="write",
                bandwidth=value * MIB, operation_rate=value,
            )  # fmt: skip
    return data


def test_a_small_table_is_a_booktabs_table_with_hand_computed_medians(tmp_path):
    text = (_built(_numbers(("nvme",), (100, 102, 101)), tmp_path) / "latex" / "numbers.tex").read_text()
    order = [text.index(word) for word in (r"\toprule", r"\midrule", r"\bottomrule")]
    assert order == sorted(order)
    assert r"\begin{tabular}{llrrr}" in text
    assert r"\emph{Write, write}" in text  # above its rows
    # The median of 100, 101 and 102, and of three the range with 75 %.
    row = next(line for line in text.splitlines() if line.startswith("Node-local NVMe"))
    assert row == r"Node-local NVMe & 1 process & 3 & 101 MiB/s & 100--102 MiB/s (75 \%) \\"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of the whole study, made where a figure of an earlier one lies."""
    folder = tmp_path_factory.mktemp("whole")
    old = folder / "results" / "report" / "latex" / "figures" / "old.pdf"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"")
    return _built(Synthetic().whole(), folder)


def test_a_table_of_many_rows_continues_in_others_of_the_same_number():
    """39 and 30 rows under a line each, 40 lines a table: 39 + 1, then 30 + 1; and 100 rows: 39, 39, 22."""
    lengths = {"first": 39, "second": 30, "long": 100}
    rows = [(name, "write", "here", 1, 2) for name, count in lengths.items() for _ in range(count)]
    numbers = table("All of them.", ["Workload", "Operation", "Storage", "n", "Median"], rows)
    shown = Shown(("Workload", "Operation"), ("Storage", "n", "Median"))
    text = tabular(numbers, shown, "tab:numbers")
    parts = text.split(r"\begin{table*}")[1:]
    assert [part.count("here &") for part in parts] == [39, 30, 39, 39, 22]
    assert [part.count(r"\emph{") for part in parts] == [1] * 5  # each says what its rows share
    assert [part.count(r"\addtocounter{table}{-1}") for part in parts] == [0, 1, 1, 1, 1]
    assert text.count(r"\label{tab:numbers}") == 1 and "longtable" not in text


def test_a_table_of_comparisons_has_its_ratios(report):
    text = (report / "latex" / "comparisons.tex").read_text()
    assert "Ratio A to B & Interval" in text


def test_every_figure_is_there_as_pdf_and_old_ones_are_gone(report):
    drawn = {path.stem for path in (report / "figures").glob("*.svg")}
    printed = list((report / "latex" / "figures").glob("*.pdf"))
    assert {path.stem for path in printed} == drawn
    assert all(path.read_bytes().startswith(b"%PDF-") for path in printed)


def test_names_cannot_be_commands(tmp_path):
    title = r"50% of $x$_{a} & \input{/etc/passwd} [1]" + "\n#"
    text = (_built(_numbers(("nvme",), (100,), title), tmp_path) / "latex" / "numbers.tex").read_text()
    assert r"\input" not in text
    row = next(line for line in text.splitlines() if "50" in line)
    assert not re.findall(r"(?<!\\)&", row)
    assert escaped(title.partition("\n")[0]) in row
    assert escaped(title) == (r"50\% of \$x\$\_\{a\} \& \textbackslash{}input\{/etc/passwd\} {[}1] \#")


_PAPER = r"""\documentclass{article}\usepackage[a4paper,margin=2.5cm]{geometry}\usepackage[T1]{fontenc}
\usepackage{textcomp,booktabs}\begin{document}\input{numbers.tex}\input{comparisons.tex}\end{document}"""


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex (Debian: texlive-latex-base)")
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_a_paper_with_any_name_is_set(tmp_path, columns):
    """pdfLaTeX stopped at the first letter that is not Latin: no paper at all."""
    title = "50% of $x$_{a} & [1] \u00fc \u2192 \u6f22\u5b57 \u05d0\u05d1 \U0001f600 \u2021"
    folder = _built(_numbers(("nvme", "shm"), (100, 101, 102, 103), title), tmp_path) / "latex"
    (folder / "paper.tex").write_text(_PAPER.replace("{article}", f"[{columns}]{{article}}"))
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=folder, capture_output=True, text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout  # wider than the page
