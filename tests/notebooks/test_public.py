"""``import tiercel as tc``: the names that stay, and what they give."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tiercel as tc
from tiercel.notebook.tables import html

from ..archives import unpacked
from ..conftest import Project

#: A name that goes breaks somebody's notebook; one that comes is for good.
PUBLIC = [
    "Advice", "Comparison", "IOFrame", "Results", "UserError", "advise", "compare", "evaluate", "results",
    "sites", "studies", "trace",
]  # fmt: skip

OF_RESULTS = {
    "comparisons", "dataset", "figure", "figures", "findings", "folder", "numbers", "observations",
    "recommendations", "report", "runs", "site", "study", "trace", "trace_groups", "traces", "verdict",
}  # fmt: skip


@pytest.fixture
def here(measured: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(measured.root)
    return measured


def test_the_public_names() -> None:
    assert sorted(tc.__all__) == PUBLIC
    assert all(callable(getattr(tc, name)) for name in PUBLIC)
    public = {n for n in dir(tc.Results) if not n.startswith("_")} | {*tc.Results.__dataclass_fields__}
    assert public == OF_RESULTS
    with pytest.raises(AttributeError, match="no attribute 'result'"):
        tc.result  # noqa: B018


def test_they_are_typed(checkout: Path) -> None:
    """The stub, which type checkers read, names each; each function says what it takes and gives."""
    package = checkout / "analysis" / "tiercel"
    stub = ast.parse((package / "__init__.pyi").read_text())
    named = {a.asname for node in stub.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert named == set(PUBLIC)
    for path in (package / "notebook").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = [a for a in (*node.args.args, *node.args.kwonlyargs) if a.arg != "self"]
                assert node.returns is not None and all(a.annotation for a in given), (path, node.name)


def test_the_package_alone_imports_nothing() -> None:
    """`tc.results` is asked for, not `import tiercel`: the command line begins with that."""
    code = (
        "import sys, tiercel; print(*{'pandas', 'numpy', 'xarray', 'rocrate'} & {*sys.modules});"
        "import tiercel.results.raw as raw; r = tiercel.results; print(r.raw is raw, callable(r))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\nTrue True\n"


def test_results_of_a_site(here: Project) -> None:
    r = tc.results("local")
    assert (r.site.site, r.study.study) == ("local", "small")
    assert repr(r).startswith("<Results of study small on local: ") and "18 runs, 0 failed" in repr(r)
    # 3 workloads on 2 storages, 3 repetitions; with the traced ones 24 runs.
    assert len(r.runs) == 24 and len(r.traces) == 6
    read = r.numbers.query("operation == 'read'")
    assert list(read["unit"]) == ["B/s"] * 2 and set(read["n"]) == {3}
    observed = r.observations.query("operation == 'read' and not traced")
    for storage, rows in observed.groupby("storage"):
        (median,) = read.loc[read["storage"] == storage, "median"]
        assert median == rows["bandwidth"].median()
        array = r.dataset.bandwidth.sel(storage=storage, operation="read", workload="scaling/cold-read")
        assert float(array.median()) == median
    assert r.report.is_file() and r.verdict and len(r.findings)


def test_units_travel_with_the_data(here: Project) -> None:
    r = tc.results("local")
    assert r.observations.attrs["units"]["bandwidth"] == r.dataset.bandwidth.attrs["units"] == "B/s"
    assert r.observations.attrs["units"]["total_time"] == "s"
    known = {"B/s", "1/s", "s", "B", "1", "ns", "%"}  # as pint reads them
    tables = (r.observations, r.runs, r.traces, r.trace_groups)
    assert {unit for table in tables for unit in table.attrs["units"].values()} <= known
    assert {v.attrs["units"] for v in r.dataset.data_vars.values()} <= known
    assert "long_name" in r.dataset.bandwidth.attrs and r.dataset.attrs["Conventions"].startswith("CF-")


def test_rich_displays(here: Project) -> None:
    r = tc.results("local")
    page = r._repr_html_()
    assert page.count("<tr") == 1 + len(r.numbers) and "cold-read" in page and "B/s" in page
    figure = next(iter(r.figures.values()))
    assert figure._repr_svg_().lstrip().startswith("<?xml") and r.figure(figure.path.stem) == figure
    frame = r.trace()
    assert isinstance(frame, tc.IOFrame) and f"{len(frame):,}" in frame._repr_html_()
    hostile = r.numbers.assign(workload="<script>")
    assert "<script>" not in html("<script>", ["<script>"], hostile, "<script>")


def test_two_sides(here: Project) -> None:
    c = tc.compare("local", storage=["main", "other"])
    verdicts = c.rows.query("kind == 'verdict' and operation == 'read'")
    (row,) = verdicts.to_dict("records")
    assert row["ratio"] > 0 and min(row["n_baseline"], row["n_other"]) > 0
    assert row["rule"] == "no replicate"  # the study has no twins
    assert "10 of 10 matched" in c.summary[0] and c.summary[0] in c._repr_html_()


def test_evaluated_from_a_cell(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is measured already: it answers with the results, and prints what the command line does."""
    r = tc.evaluate("local", "small")
    assert r.study.study == "small" and "cold-read" in capsys.readouterr().out
    with pytest.raises(tc.UserError, match="no study named 'smal'"):
        tc.evaluate("local", "smal", quiet=True)
    assert capsys.readouterr().out == ""


def test_results_of_an_artifact(here: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "artifact",
        "--study",
        "small",
        "--author",
        "A",
        "--licence",
        "MIT",
        "-o",
        str(tmp_path / "x.tar.gz"),
    )
    assert here.tiercel(*words).returncode == 0
    unpacked(tmp_path / "x.tar.gz", tmp_path)
    monkeypatch.chdir(os.sep)
    r = tc.results(tmp_path / "x")
    monkeypatch.chdir(here.root)
    pd.testing.assert_frame_equal(r.numbers, tc.results().numbers)


def test_results_of_a_folder(here: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From anywhere: the folder lies in its project, which describes the site."""
    expected = tc.results("local").numbers
    pd.testing.assert_frame_equal(tc.results(Path("results/local")).numbers, expected)
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(tc.results(here.root / "results" / "local").numbers, expected)


def test_mistakes_are_said_in_a_line(here: Project, tmp_path: Path) -> None:
    for ask, said in (
        (lambda: tc.results("nowhere"), "no site named 'nowhere', and no results of one"),
        (lambda: tc.results("local", "nothing"), "no study named"),
        (lambda: tc.results().figure("verdict"), "no figure"),
        (lambda: tc.results().trace("x"), "no traced run"),
        (lambda: tc.compare("local"), "only one side"),
        (lambda: tc.trace(tmp_path / "none.pfw"), "none.pfw"),
    ):
        with pytest.raises(tc.UserError, match=said):
            ask()
