"""The command: sentences and exit codes, the page, JSON; each bad input is one line and exit code 2."""

import csv
import json
import math
import os
import re
import sys
import tarfile
from collections import Counter

import pytest

from tests.compare.sides import failed, later, pair, runs_of, together, write
from tests.report.conftest import Page
from tiercel.cli.main import main

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs `tiercel compare` in an empty project: (exit code, stdout, stderr)."""
    (tmp_path / "Snakefile").touch()
    (tmp_path / "site-configs" / "lassen").mkdir(parents=True)
    (tmp_path / "site-configs" / "lassen" / "site.yaml").touch()
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["tiercel", "compare", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return command


@pytest.fixture
def two(tmp_path):
    """A baseline, and a side on which reading is half as fast, with another kernel and a scale more."""
    one = together([pair(), pair(operation="read", access="RO")])
    other = together([later(), later(operation="read", access="RO", factor=0.5), later(nodes=2)])
    write(tmp_path / "results" / "one", one, kernel="6.1", cores=8)
    write(tmp_path / "results" / "two", other, kernel="6.8", cores=8)


def test_the_answer_in_the_terminal(run, two):
    code, out, _ = run("one", "two")
    assert code == 0
    assert "two against one: 2 of 2 matched: 1 slower beyond noise (worst: write on fast, 0.50×)" in joined(
        out
    )
    assert "Differences: kernel (6.1, 6.8)." in out
    assert "cores 8" in joined(out)
    assert "Numbers without a partner: 1 not measured there at this scale." in out
    assert re.search(r"▼ write +fast +0\.50× .* slower", out)
    assert "different sessions" in joined(out)
    assert all(len(line) <= 100 for line in out.splitlines() if not line.startswith("Page: "))


@pytest.mark.parametrize(
    ("sides", "wanted", "code"),
    [
        (("one", "two"), "slower", 1),
        (("one", "two"), "different", 1),
        (("one", "two"), "faster", 0),
        (("two", "one"), "faster", 1),
        (("two", "one"), "slower", 4),  # the baseline has a scale that was not measured again
    ],
)
def test_fail_on_is_the_exit_code(run, two, sides, wanted, code):
    assert run(*sides, "--fail-on", wanted)[0] == code


def test_json_holds_all_of_it_and_no_nan(run, two, tmp_path):
    code, out, _ = run("one", "two", "--json")
    found = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert code == 0
    (compared,) = found["comparisons"]
    assert compared["outcomes"] == {"measured": {"lost": 0, "slower": 1, "faster": 0, "undecided": 1}}
    slower = next(m for m in compared["matches"] if m["outcome"] == "slower")
    assert (slower["operation"], slower["median_baseline"], slower["median_other"]) == ("read", 100.0, 50.0)
    assert slower["ratio"] == pytest.approx(0.5)
    assert len(slower["runs_baseline"]) == 5
    assert compared["reasons"] == {"not measured there at this scale": 1}
    kernel = next(c for c in found["circumstances"] if c["name"] == "kernel")
    assert (kernel["differs"], kernel["values"]) == (True, ["6.1", "6.8"])
    assert found["page"] == str(tmp_path / "results" / "comparisons" / "one--two" / "index.html")


def test_the_page_is_whole_inert_and_offline(run, two, tmp_path):
    run("one", "two", "-o", tmp_path / "page")
    html = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    for tag, name, value in page.attributes:
        assert name not in ("src", "srcset", "data", "action") and not name.startswith("on"), (tag, name)
        assert "http" not in value
        if name == "href" and value.startswith("#"):
            assert value[1:] in page.ids
        elif name == "href":
            assert (tmp_path / "page" / value).is_file()
    (kernel,) = page.rows("Circumstance", "one", "two")
    assert (kernel["Circumstance"], kernel["one"], kernel["two"]) == ("Kernel", "6.1", "6.8")
    first = page.rows("Workload", "Ratio", "Verdict")[0]
    assert (first["Baseline"], first["Other"], first["Ratio"]) == ("100 B/s", "50 B/s", "0.50×")
    assert first["Verdict"] == "▼ slower"
    said = " ".join(page.text.split())
    assert said.index("1 slower beyond noise") < said.index("Differences between the sides")
    with (tmp_path / "page" / "tables" / "ratios-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(float(r["ratio"]) for r in rows) == pytest.approx([0.5, 1.0])


def test_a_page_replaces_an_earlier_one_and_nothing_else(run, two, tmp_path):
    """Three sides give two pairs and their tables; of two sides one is gone, notes are not."""
    page = tmp_path / "page"
    write(tmp_path / "third", later(factor=2.0, began=2e9))
    assert run("one", "two", tmp_path / "third", "-o", page)[0] == 0
    (page / "tables" / "mine.csv").write_text("a,b")
    (page / "notes.txt").write_text("x")
    assert {p.name for p in (page / "figures").iterdir()} == {"ratio-1-1.svg", "ratio-2-1.svg"}
    assert run("one", "two", "-o", page)[0] == 0
    assert [p.name for p in (page / "figures").iterdir()] == ["ratio-1-1.svg"]
    assert {p.name for p in (page / "tables").iterdir()} == {
        "mine.csv", "ratios-1.csv", "without-partner-1.csv",
    }  # fmt: skip
    assert (page / "notes.txt").read_text() == "x"


@pytest.mark.parametrize(
    "name", ["index.html", "tables/summary.csv", "figures/bandwidth.svg", "comparison.json", "notes.txt"]
)
def test_a_folder_of_somebody_else_is_not_touched(run, two, tmp_path, name):
    theirs = tmp_path / "report" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    code, out, err = run("one", "two", "-o", tmp_path / "report")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "name an empty folder with --output" in err
    assert theirs.read_text() == "theirs"
    assert [p for p in (tmp_path / "report").rglob("*") if p.is_file()] == [theirs]


def test_a_file_that_is_no_comparisons_is_not_written_over(run, two, tmp_path):
    """A table of that name, put beside an earlier page, is on no list."""
    page = tmp_path / "page"
    run("one", "two", "-o", page)
    listed = json.loads((page / "comparison.json").read_text())
    listed["files"].remove("tables/ratios-1.csv")
    (page / "comparison.json").write_text(json.dumps(listed))
    (page / "tables" / "ratios-1.csv").write_text("mine")
    code, _, err = run("one", "two", "-o", page)
    assert code == 2 and "ratios-1.csv: is there and not a comparison's" in err
    assert (page / "tables" / "ratios-1.csv").read_text() == "mine"


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_output_on_a_file_is_one_line(run, two, tmp_path, where):
    (tmp_path / "file").write_text("x")
    code, out, err = run("one", "two", "-o", tmp_path / where)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert (tmp_path / "file").read_text() == "x"


def test_folders_of_one_name_have_pages_of_their_own(run, two, tmp_path):
    pages = []
    for parent, factor in (("p1", 0.9), ("p2", 0.8)):
        write(tmp_path / parent / "r", later(factor=factor))
        _, out, _ = run("one", f"{parent}/r", "--json")
        pages.append(json.loads(out)["page"])
    assert pages[0] != pages[1]
    assert all("comparisons/one--r-" in page for page in pages)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_answer_needs_no_page(run, two, tmp_path, words):
    """Where the page cannot be written (results/ of somebody else) the answer is printed all the same."""
    (tmp_path / "results" / "comparisons").write_text("not a folder")
    code, out, err = run("one", "two", "--fail-on", "slower", *words)
    assert (code, err.count("\n")) == (1, 1)
    assert "the page cannot be written" in err
    if words:
        assert json.loads(out)["page"] is None
    else:
        assert "1 slower beyond noise" in joined(out) and "Page:" not in out


def test_a_name_that_is_no_text_is_written_out(run, two, tmp_path):
    """Parquet files below such a folder cannot be opened; an archive can have any name."""
    folder = write(tmp_path / "latin", later())
    archive = tmp_path / os.fsdecode(b"caf\xe9.tar")
    with tarfile.open(archive, "w") as packed:
        packed.add(folder, "latin")
    code, out, _ = run("one", archive)
    assert code == 0
    assert "caf\\xe9.tar against one: " in joined(out)
    folder.rename(tmp_path / os.fsdecode(b"caf\xe9"))
    code, out, err = run("one", os.fsdecode(b"caf\xe9"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the folder's name is not UTF-8: rename it" in err


def test_the_current_folder_has_a_name(run, two, tmp_path, monkeypatch):
    write(tmp_path / "here", later())
    monkeypatch.chdir(tmp_path / "here")
    assert "here against one: " in run("../results/one", ".")[1]


def test_outcomes_can_be_counted_from_the_verdicts(run, tmp_path):
    """One workload at two scales (a verdict, two details) and one at one: two verdicts."""
    write(tmp_path / "results" / "one", together([pair(), pair(nodes=2), pair(operation="read")]))
    write(
        tmp_path / "results" / "two", together([later(factor=0.5), later(nodes=2), later(operation="read")])
    )
    _, out, _ = run("one", "two", "--json")
    (compared,) = json.loads(out)["comparisons"]
    kinds = [(m["kind"], m["scope"]) for m in compared["matches"]]
    assert sorted(kinds) == [("detail", "scale")] * 2 + [("verdict", "all"), ("verdict", "scale")]
    counted = Counter(m["outcome"] for m in compared["matches"] if m["kind"] == "verdict")
    assert {k: n for k, n in compared["outcomes"]["measured"].items() if n} == dict(counted)


def test_origins_are_told_apart_by_words_and_marks(run, tmp_path):
    write(tmp_path / "results" / "one", together([pair(), pair(origin="simulated", factor=3.0)]))
    write(tmp_path / "results" / "two", together([later(), later(origin="simulated", factor=1.5)]))
    _, out, _ = run("one", "two")
    assert "two against one, measured: 1 of 1 matched: nothing is proven slower" in joined(out)
    assert "two against one, simulated: 1 of 1 matched: 1 slower" in joined(out)
    page = Page((tmp_path / "results" / "comparisons" / "one--two" / "index.html").read_text())
    assert {row["Origin"] for row in page.rows("Ratio", "Origin")} == {"measured", "simulated"}
    assert "The numbers are simulated." in page.text
    figures = tmp_path / "results" / "comparisons" / "one--two" / "figures"
    assert len(list(figures.glob("*.svg"))) == 2


def test_nothing_in_the_data_runs_on_the_page(run, tmp_path):
    write(tmp_path / "results" / "one", pair(title=EVIL, storage_label=EVIL), kernel="6.1")
    write(tmp_path / "results" / "two", later(title=EVIL, storage_label=EVIL), kernel=EVIL)
    code, _, _ = run("one", "two", "-o", tmp_path / "page")
    assert code == 0
    page = Page((tmp_path / "page" / "index.html").read_text(encoding="utf-8"))
    assert "img" not in page.tags
    assert page.tags.count("script") == 1


def test_storages_of_one_side_against_each_other(run, tmp_path):
    write(tmp_path / "results" / "one", together([pair(), pair(storage="slow", factor=0.5)]))
    for words in (("--storage", "fast,slow"), ("--storage", "fast", "--storage", "slow")):
        _, out, _ = run("one", *words)
        assert "one:storage=slow against one:storage=fast: 1 of 1 matched: 1 slower" in joined(out)
        assert "are of one session" in joined(out)


def test_a_layer_is_held_against_none(run, tmp_path):
    write(tmp_path / "results" / "one", together([pair(), pair(layer="cachevol", factor=2.0)]))
    for words in (("one", "one+cachevol"), ("one", "--layer", "none,cachevol")):
        _, out, _ = run(*words)
        assert "one+cachevol against one+none: 1 of 1 matched: none proven slower, 1 faster" in joined(out)


def test_three_sides_are_each_held_against_the_first(run, two, tmp_path):
    write(tmp_path / "third", later(factor=2.0, began=2e9))
    code, out, _ = run("one", "two", tmp_path / "third", "--json")
    answers = [(p["baseline"], p["other"]) for p in json.loads(out)["comparisons"]]
    assert (code, answers) == (0, [("one", "two"), ("one", "third")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("one",), "one: only one side"),
        (("one", "one"), "one: the same as one: give a side other dates"),
        (("one", "results/one"), "the same as one"),
        (("one", "lassen"), "site lassen: nothing measured yet: run `tiercel evaluate --site lassen`"),
        (("one", "nowhere"), "no such site, folder or archive"),
        (("one", "two@2020"), "no run began then"),
        (("one", "two", "--study", "other"), "no study 'other'"),
        (("one", "two", "--storage", "a,b"), "--storage: several are compared of one side"),
        (("one", "two", "--storage-map", "fast"), "write BASELINE=OTHER"),
        (("one", "two", "--storage-map", "a=b"), "one has no 'a'"),
        (("one", "two", "--margin", "5"), "--margin 5: write a share"),
        (("one", "two+cachevol"), "no layer 'cachevol'"),
        (("one", "two", "--fail-on", "maybe"), "--fail-on maybe: write slower, faster or different"),
        (("one", "two", "--storage-map", "a=x,b=x"), "--storage-map b=x: x is mapped twice"),
        (("one", "two", "--storage-map", "a=x,a=y"), "--storage-map a=y: a is mapped twice"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, two, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("tiercel: ") and err.count("\n") == 1
    assert said in err


def test_nothing_matched_is_exit_code_2_with_the_reasons(run, tmp_path):
    write(tmp_path / "results" / "one", pair(storage="gpfs"))
    write(tmp_path / "results" / "two", later(storage="lustre"))
    code, _, err = run("one", "two")
    assert code == 2
    assert "two against one: nothing matched: of 2 numbers 2 no storage there stands for its own" in err
    assert "--storage-map" in err
    assert run("one", "two", "--storage-map", "gpfs=lustre")[0] == 0


@pytest.mark.parametrize(
    "value", [0.0, math.nan, *(pytest.param(other, marks=pytest.mark.nightly) for other in (-5.0, math.inf))]
)
def test_a_side_without_rates_is_lost_and_that_fails(run, tmp_path, value):
    """No rate has no ratio; it is said first, not drawn, and no number of the answer is infinite."""
    write(tmp_path / "results" / "one", together([pair(), pair(operation="read")]))
    write(tmp_path / "results" / "two", together([later().assign(bandwidth=value), later(operation="read")]))
    code, out, _ = run("one", "two", "--fail-on", "slower", "--json")
    compared = json.loads(out)["comparisons"][0]
    row = next(m for m in compared["matches"] if m["operation"] == "write")
    assert (code, row["ratio"], row["outcome"], row["no_rate_other"]) == (1, None, "lost", 5)
    assert "of 5 repetitions 5 are" in row["reason"]
    assert compared["outcomes"]["measured"] == {"lost": 1, "slower": 0, "faster": 0, "undecided": 1}
    _, out, _ = run("one", "two")
    assert "two against one: 1 lost, without a rate (write on fast: of 5 repetitions 5 are" in joined(out)
    assert run("one", "two", "--fail-on", "faster")[0] == 0
    assert run("two", "one", "--fail-on", "different")[0] == 4  # a baseline without a rate decides nothing


def test_a_single_value_that_is_no_rate_is_left_out_and_said(run, tmp_path):
    """Of 100 times 0.98 to 1.02 one repetition is zero: the median of the other four is 100.5."""
    two = later()
    two.loc[0, "bandwidth"] = 0.0
    write(tmp_path / "results" / "one", pair())
    write(tmp_path / "results" / "two", two)
    code, out, _ = run("one", "two", "--fail-on", "slower", "--json")
    found = json.loads(out)
    (row,) = found["comparisons"][0]["matches"]
    assert (code, row["outcome"], row["no_rate_other"], row["n_other"]) == (0, "undecided", 1, 4)
    assert row["ratio"] == pytest.approx(1.005, rel=1e-3)
    assert any(said.startswith("two: 1 value of 1 row missing") for said in found["remarks"])


def test_failed_runs_are_lost_and_what_was_never_planned_is_not(run, tmp_path):
    """All runs on one storage failed; another storage of the baseline is not on the other side at all."""
    ours = together([pair(), pair(storage="disk"), pair(storage="tape")])
    write(tmp_path / "results" / "one", ours)
    kept = later()
    runs = together([runs_of(kept), failed(later(storage="disk"), "Input/output error")])
    write(tmp_path / "results" / "two", kept, runs)
    code, out, _ = run("one", "two", "--fail-on", "slower")
    assert code == 1
    assert (
        "two against one: 1 lost, their runs failed (Input/output error); 1 of one without a partner; "
        "1 of 3 matched"
    ) in joined(out)
    assert json.loads(run("one", "two", "--json")[1])["comparisons"][0]["lost"] == 1
    write(tmp_path / "results" / "two", kept)
    code, _, err = run("one", "two", "--fail-on", "slower")
    assert code == 4 and "no power: 2 numbers of the baseline without a partner" in err
    assert run("two", "one", "--fail-on", "slower")[0] == 0


def test_where_nothing_is_left_but_failures_it_fails(run, tmp_path):
    write(tmp_path / "results" / "one", pair())
    kept = later(storage="other")
    write(tmp_path / "results" / "two", kept, together([runs_of(kept), failed(later())]))
    code, out, _ = run("one", "two", "--fail-on", "slower")
    assert code == 1
    assert "1 lost, their runs failed (no space left); nothing matched" in joined(out)


def joined(text):
    return " ".join(text.split())


def test_another_layout_of_sessions_is_told(run, tmp_path):
    write(tmp_path / "results" / "one", pair(), session_layout="own")
    write(tmp_path / "results" / "two", later(), session_layout="shared")
    assert "sessions of processes (own, shared)" in joined(run("one", "two")[1])
