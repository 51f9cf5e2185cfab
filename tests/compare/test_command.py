"""The command: sentences and exit codes, the page, JSON; each bad input is one line and exit code 2."""

import csv
import json
import math
import re
import sys

import pytest

from tests.compare.sides import later, pair, together, write
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
    assert "What differs: kernel (6.1, 6.8)." in out
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
        (("two", "one"), "slower", 0),
    ],
)
def test_fail_on_is_exit_code_1(run, two, sides, wanted, code):
    assert run(*sides, "--fail-on", wanted)[0] == code


def test_json_holds_all_of_it_and_no_nan(run, two, tmp_path):
    code, out, _ = run("one", "two", "--json")
    found = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert code == 0
    (compared,) = found["comparisons"]
    assert compared["outcomes"] == {"measured": {"slower": 1, "faster": 0, "undecided": 1}}
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
    assert page.text.index("1 slower beyond noise") < page.text.index("What differs between")
    with (tmp_path / "page" / "tables" / "ratios-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(float(r["ratio"]) for r in rows) == pytest.approx([0.5, 1.0])


def test_a_page_replaces_an_earlier_one(run, two, tmp_path):
    page = tmp_path / "page"
    (page / "figures").mkdir(parents=True)
    (page / "figures" / "ratio-9-9.svg").write_text("<svg/>")
    run("one", "two", "-o", page)
    assert [p.name for p in (page / "figures").iterdir()] == ["ratio-1-1.svg"]


def test_origins_are_told_apart_by_words_and_marks(run, tmp_path):
    write(tmp_path / "results" / "one", together([pair(), pair(origin="simulated", factor=3.0)]))
    write(tmp_path / "results" / "two", together([later(), later(origin="simulated", factor=1.5)]))
    _, out, _ = run("one", "two")
    assert "two against one, measured: 1 of 1 matched: nothing is slower" in joined(out)
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
        assert "one+cachevol against one+none: 1 of 1 matched: none slower beyond noise, 1 faster" in joined(
            out
        )


def test_three_sides_are_each_held_against_the_first(run, two, tmp_path):
    write(tmp_path / "third", later(factor=2.0, began=2e9))
    code, out, _ = run("one", "two", tmp_path / "third", "--json")
    answers = [(p["baseline"], p["other"]) for p in json.loads(out)["comparisons"]]
    assert (code, answers) == (0, [("one", "two"), ("one", "third")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("one",), "one: one side alone"),
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


def test_values_that_are_not_there_make_no_ratio(run, tmp_path):
    """A rate of zero has no ratio; it is said, not drawn, and no number of the answer is infinite."""
    zero = later().assign(bandwidth=0.0)
    write(tmp_path / "results" / "one", pair())
    write(tmp_path / "results" / "two", zero)
    code, out, _ = run("one", "two", "--json")
    (row,) = json.loads(out)["comparisons"][0]["matches"]
    assert (code, row["ratio"], row["reason"]) == (0, None, "a value of zero")
    assert math.isfinite(row["median_baseline"])


def joined(text):
    return " ".join(text.split())
