"""The page in a real browser: no errors, no network, tables that can be used, figures that can be asked."""

import csv
import io
import re
from importlib.resources import files

import pytest
from tests.report import browser
from tests.report.browser import CHROMIUM, OPTIONS, asked
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.pages.secured import unturned
from tiercel.report import packing
from tiercel.report.style import COLOURS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")

_FIGURE = 'document.getElementById("scaling.scientific.write.iokernel")'


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_works(whole, tmp_path, width):
    said = asked(
        whole.html, tmp_path, """
        const table = find("All results");
        const heading = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("Median"));
        const values = () => [...table.tBodies[0].rows].map((r) => Number(r.cells[heading].dataset.sort));
        const ordered = (v, sign) => v.every((x, i) => i === 0 || sign * (x - v[i - 1]) >= 0);
        const button = table.tHead.rows[0].cells[heading].querySelector("button");
        button.click(); const up = ordered(values(), 1);
        button.click(); const down = ordered(values(), -1);
        return { up, down, loaded: performance.getEntriesByType("resource").length,
          images: document.querySelectorAll("figure svg").length,
          fits: document.documentElement.scrollWidth <= innerWidth };
        """,
        width,
    )  # fmt: skip
    assert said == {"up": True, "down": True, "loaded": 0, "images": 10, "fits": True}


def test_only_the_scripts_of_the_page_run(whole, tmp_path):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', whole.html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy.partition("script-src")[2].partition(";")[0]
    said = asked(
        whole.html, tmp_path, """
        let refused = 0;
        document.addEventListener("securitypolicyviolation", () => { refused += 1; });
        const script = document.createElement("script");
        script.text = "document.title = 'run'";
        document.body.append(script);
        const made = document.createElement("div");
        made.setAttribute("onclick", "document.title = 'run'");
        document.body.append(made);
        made.click(); await soon(100);
        return { title: document.title === "run", refused: refused > 0 };
        """,
        refused=True,
    )  # fmt: skip
    assert said == {"title": False, "refused": True}


def test_a_mark_says_its_number_and_leads_to_its_runs(build_page, tmp_path):
    data = Synthetic(storages=("nvme", "shm"), processes=(1, 2))
    for storage in data.storages:
        for p, value in ((1, 100.0), (2, 300.0)):
            for i in range(3):
                data.add(
                    "scaling", "scientific", "Write", storage, p, i, "a", [], operation="write",
                    bandwidth=(value + i) * MIB, operation_rate=value, latency_p50=1e-3, latency_p90=2e-3,
                    latency_p99=3e-3, latency_p999=4e-3, latency_max=0.5,
                )  # fmt: skip
    built = build_page(data)
    said = asked(
        built.html, tmp_path, f"""
        const svg = {_FIGURE}.querySelector("svg"), tip = document.getElementById("tip");
        svg.focus();
        press(svg, "ArrowRight");
        const first = tip.textContent;
        const pale = {_FIGURE}.querySelectorAll("g.pale").length;
        const lit = document.querySelectorAll("tr.lit").length;
        press(svg, "ArrowRight");
        const second = tip.textContent;
        press(svg, "Enter");
        const dialog = document.getElementById("evidence");
        const shown = dialog.textContent, curves = dialog.querySelectorAll("polyline").length;
        const runs = dialog.querySelectorAll("ol.runs > li").length, opened = dialog.open;
        [...dialog.querySelectorAll(".only button")]
          .find((b) => b.textContent === "Only 2 processes").click();
        const hidden = [...document.querySelectorAll('tr[id^="number-"]')]
          .filter((r) => getComputedStyle(r).display === "none").length;
        return {{ first, second, pale, lit, shown, curves, runs, opened, closed: !dialog.open, hidden,
          count: document.querySelector(".choose output").textContent }};
        """,
    )  # fmt: skip
    # Two storages at 1 and 2 processes, in this order: 100, 101, 102 MiB/s have the median 101.
    assert said["first"].startswith("101 MiB/s") and "1 process" in said["first"]
    assert said["second"].startswith("301 MiB/s") and "3 runs" in said["second"]
    assert (said["pale"], said["lit"]) == (2, 1)  # the other storage's marks; this number's row
    assert (said["runs"], said["curves"]) == (3, 3)
    for words in ("300 MiB/s", "301 MiB/s", "302 MiB/s", "500 ms"):
        assert words in said["shown"]
    assert said["opened"] and said["closed"]
    assert (said["hidden"], said["count"]) == (2, "2 of 4 numbers")


def test_the_processes_of_a_number_are_drawn(measured, tmp_path):
    """Of a real study: two processes in each of three runs, slowest and fastest also as a table."""
    said = asked(
        (measured.results / "report" / "index.html").read_text(), tmp_path, """
        const rows = [...document.querySelectorAll('tr[id^="number-"]')];
        rows.find((r) => r.textContent.includes("cold-read")).querySelector("button.ask").click();
        const dots = [...document.querySelectorAll("#evidence circle.dot")];
        const at = (name) => dots.map((d) => Number(d.getAttribute(name)));
        const figure = dots[0].closest("figure"), body = figure.querySelector("tbody");
        return { dots: dots.length, places: new Set(at("cx")).size, rows: body.rows.length,
          inside: at("cy").every((y) => y >= 20 && y <= 150), said: body.rows[0].textContent,
          label: figure.querySelector("svg").getAttribute("aria-label") };
        """,
    )  # fmt: skip
    assert (said["dots"], said["places"], said["rows"], said["inside"]) == (6, 3, 3, True)
    assert said["label"].startswith("Speed of each process: up to ") and "B/s" in said["said"]


def test_an_axis_becomes_logarithmic_and_back(whole, tmp_path):
    said = asked(
        whole.html, tmp_path, f"""
        const svg = () => {_FIGURE}.querySelector("svg");
        const labels = () => [...svg().querySelectorAll("text")].map((t) => t.textContent).join("|");
        const button = {_FIGURE}.querySelector("[data-other]");
        const [before, word] = [labels(), button.textContent];
        button.click(); const [other, back] = [labels(), button.textContent];
        svg().focus(); press(svg(), "ArrowRight");
        const tip = !document.getElementById("tip").hidden;
        button.click();
        return {{ word, back, tip, differs: before !== other, again: labels() === before }};
        """,
    )  # fmt: skip
    assert said["differs"] and said["again"] and said["tip"]
    assert {said["word"], said["back"]} == {"Logarithmic axis", "Linear axis"}


def test_tables_filter_choose_columns_and_download(whole, tmp_path):
    said = asked(
        whole.html, tmp_path, """
        const table = find("All results"), tools = table.closest(".scroll").previousElementSibling;
        const shown = () => [...table.tBodies[0].rows].filter((r) => getComputedStyle(r).display !== "none");
        const words = tools.querySelector("input[type=search]");
        words.value = "NVME read"; words.dispatchEvent(new Event("input"));
        const rows = shown().map((r) => r.textContent);
        const boxes = [...tools.querySelectorAll("label")];
        boxes.find((l) => l.textContent.trim() === "CV").querySelector("input").click();
        let blob = null;
        const made = URL.createObjectURL;
        URL.createObjectURL = (b) => { blob = b; return made.call(URL, b); };
        addEventListener("click", (e) => e.preventDefault(), { once: true });
        tools.querySelector(":scope > button").click();
        return { rows, text: await blob.text() };
        """,
    )  # fmt: skip
    assert said["rows"] and all("nvme" in r.lower() and "read" in r.lower() for r in said["rows"])
    downloaded = list(csv.DictReader(io.StringIO(said["text"].removeprefix("\ufeff"))))
    assert len(downloaded) == len(said["rows"])
    assert "Median" in downloaded[0] and "CV" not in downloaded[0]


def test_a_table_sorts_numbers_of_which_some_are_missing_and_downloads_them_as_they_are(tmp_path):
    """They were sorted as words (10 before 9), and a number below zero was downloaded as a text."""
    cells = [
        ("9 s", ' data-sort="9"'), ("", ""), ("-40.5\u00a0%", ' data-sort="-0.405"'),
        ("10 s", ' data-sort="10"'), ("\u2013", ""), ("-2+3+cmd|' /C'", ' data-sort="3"'),
    ]  # fmt: skip
    rows = "".join(f"<tr><td>{text}</td><td{sort}>{text}</td></tr>" for text, sort in cells)
    script = (files("tiercel.pages") / "templates" / "page.js").read_text()
    said = asked(
        '<!doctype html>\n<html data-asked="ready"><head>\n<meta charset="utf-8">\n</head><body><main><div '
        'class="scroll"><table class="sortable"><caption>T</caption><thead><tr><th>A<th>B</tr></thead><tbody>'
        f"{rows}</tbody></table></div></main><script>{script}</script></body></html>",
        tmp_path, """
        const table = find("T"), column = () => [...table.tBodies[0].rows].map((r) => r.cells[1].textContent);
        const button = table.tHead.rows[0].cells[1].querySelector("button");
        button.click(); const up = column(); button.click(); const down = column();
        let blob = null;
        const made = URL.createObjectURL;
        URL.createObjectURL = (b) => { blob = b; return made.call(URL, b); };
        addEventListener("click", (e) => e.preventDefault(), { once: true });
        document.querySelector(".tools > button").click();
        return { up, down, csv: await blob.text() };
        """,
    )  # fmt: skip
    assert [text for text in said["up"] if text not in ("", "\u2013")] == [
        "-40.5\u00a0%", "-2+3+cmd|' /C'", "9\u00a0s", "10\u00a0s",
    ]  # fmt: skip
    assert set(said["up"][4:]) == set(said["down"][4:]) == {"", "\u2013"}
    assert said["down"][0] == "10\u00a0s"
    lines = said["csv"].split("\r\n")
    assert "-40.5 %,-40.5 %" in lines and "'-2+3+cmd|' /C','-2+3+cmd|' /C'" in lines


def test_on_a_phone_the_first_table_is_a_table_for_who_hears_it(whole, tmp_path, monkeypatch):
    """Set as blocks, and without its head, it was none in some browsers."""
    monkeypatch.setattr(browser, "OPTIONS", (*OPTIONS, "--enable-blink-features=ComputedAccessibilityInfo"))
    said = asked(
        whole.html, tmp_path, """
        const table = document.querySelector(".places"), count = {};
        for (const e of [table, ...table.querySelectorAll("tr, th, td")]) {
          count[e.computedRole] = (count[e.computedRole] ?? 0) + 1;
          if (!e.getAttribute("role")) count.none = (count.none ?? 0) + 1;
        }
        return { count, block: getComputedStyle(table).display, rows: table.rows.length,
          columns: table.rows[0].cells.length };
        """,
        width=360,
    )  # fmt: skip
    rows, columns = said["rows"], said["columns"]
    assert said["block"] == "block"
    assert said["count"] == {
        "table": 1, "row": rows, "columnheader": columns, "rowheader": rows - 1,
        "cell": (rows - 1) * (columns - 1),
    }  # fmt: skip


def test_names_with_markup_do_nothing_when_they_are_asked(build_page, tmp_path):
    evil = "</template><img src=x onerror=document.title='run'><script>document.title='run'</script>"
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm")).whole()
    for row in (*data.observations, *data.runs):
        row["storage_label"], row["title"] = f"{row['storage']} {evil}", f"{row['workload']} {evil}"
    said = asked(
        build_page(data).html, tmp_path, """
        const button = document.querySelector("button.ask");
        button.click(); await soon(200);
        return { images: document.querySelectorAll("img").length, title: document.title === "run",
          told: document.getElementById("evidence").textContent.includes("onerror") };
        """,
    )  # fmt: skip
    assert said == {"images": 0, "title": False, "told": True}


def test_names_that_turn_the_line_or_have_no_end_change_nothing_else(build_page, tmp_path):
    """A right-to-left override in a title showed "402 runs" as "snur 204"; 300 letters made the page wide."""
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm")).whole()
    for row in (*data.observations, *data.runs):
        row["storage_label"], row["title"] = f"{row['storage']} \u202e{'n' * 300}", f"\u2067{'t' * 300}"
    long = {"title": f"Study \u202e{'s' * 300}"}
    # The links on top name experiments.
    named = {key: each.model_copy(update=long) for key, each in study().experiments.items()}
    of_study = study().model_copy(update={**long, "experiments": named})
    page = build_page(data, of_study=of_study).html
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)
    said = asked(
        page, tmp_path, """
        document.querySelector("button.ask").click();
        const told = document.getElementById("evidence").textContent;
        document.querySelector("dialog").close();
        return { turned: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(told), marked: told.includes("\\ufffd"),
          fits: document.documentElement.scrollWidth <= innerWidth };
        """,
        width=360,
    )  # fmt: skip
    assert said == {"turned": False, "marked": True, "fits": True}


def test_a_number_stays_behind_a_name_from_right_to_left(tmp_path):
    """`unturned` marks where such a name ends, once; without the mark the 400 is shown before the name."""
    hebrew = "\u05d0\u05d1 \u05d2\u05d3"
    text = unturned(f"on {hebrew}: 400 GiB")
    assert text == unturned(text) == f"on {hebrew}\u200e: 400 GiB"
    said = asked(
        '<!doctype html>\n<html data-asked="ready"><head>\n<meta charset="utf-8">\n</head>'
        f"<body><p>on {hebrew}: 400 GiB</p></body></html>",
        tmp_path, f"""
        const text = document.querySelector("p").firstChild;
        const left = (words) => {{
          const range = document.createRange(), at = text.data.indexOf(words);
          range.setStart(text, at); range.setEnd(text, at + words.length);
          return range.getBoundingClientRect().left;
        }};
        return [left("on"), left("{hebrew}"), left("400"), left("GiB")];
        """,
    )  # fmt: skip
    assert said == sorted(said)


def test_a_link_reaches_a_row_that_is_not_shown(whole, tmp_path):
    """Its storage is not chosen, or its table is filtered: it is shown all the same."""
    said = asked(
        whole.html, tmp_path, """
        const table = find("All results");
        const words = table.closest(".scroll").previousElementSibling.querySelector("input");
        const link = document.querySelector('#glance a[href^="#number-"]');
        const row = document.querySelector(link.getAttribute("href"));
        const shown = () => row.getClientRects().length > 0;
        const storage = document.getElementById("choose-storage");
        const values = [...storage.options].map((o) => o.value);
        storage.value = values.find((v) => v && !row.textContent.includes(v));
        storage.dispatchEvent(new Event("change"));
        const chosen = shown(); link.click(); const reached = shown();
        words.value = "no such row"; words.dispatchEvent(new Event("input"));
        const filtered = shown(); link.click();
        return { chosen, reached, filtered, again: shown(), storage: storage.value, words: words.value };
        """,
    )  # fmt: skip
    assert said == {
        "chosen": False, "reached": True, "filtered": False, "again": True, "storage": "", "words": "",
    }  # fmt: skip


def test_rows_that_were_packed_are_sorted_and_filtered_as_the_others(build_page, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "ROWS", 3)
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm")).whole()
    said = asked(
        build_page(data).html, tmp_path, """
        const table = find("All results"), button = table.tHead.rows[0].cells[0].querySelector("button");
        button.click(); button.click();
        const numbers = [...table.tBodies[0].rows].map((r) => Number(r.id.slice(7)));
        return { rows: numbers.length, down: numbers.every((n, i) => i === 0 || n < numbers[i - 1]) };
        """,
    )  # fmt: skip
    assert said["rows"] > 3
    assert said["down"]


@pytest.mark.parametrize("how", ["sort", "search", "choose"])
def test_what_asks_a_table_asks_its_packed_rows_too(build_page, tmp_path, monkeypatch, how):
    """The last number, and the numbers of the last scale, are among those that the page holds packed."""
    monkeypatch.setattr(packing, "ROWS", 6)
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm"))
    data.data("scaling", "scientific", "Write", "write", "sequential", 3)
    data.data("scaling", "last", "Last of all", "read", "sequential", 4)
    said = asked(
        build_page(data).html, tmp_path, f"""
        const table = find("All results"), tools = table.closest(".scroll").previousElementSibling;
        const shown = () => [...table.tBodies[0].rows].filter((r) => getComputedStyle(r).display !== "none")
          .map((r) => r.id);
        const button = table.tHead.rows[0].cells[0].querySelector("button");
        const select = document.getElementById("choose-workload");
        if ("{how}" === "sort") {{ button.click(); button.click(); }}
        if ("{how}" === "search") {{
          const own = tools.querySelector("input[type=search]");
          own.value = "last of"; own.dispatchEvent(new Event("input"));
        }}
        if ("{how}" === "choose") {{
          select.value = "Last of all"; select.dispatchEvent(new Event("change"));
        }}
        return {{ shown: shown(), said: document.querySelector('[data-more="numbers"]') !== null }};
        """,
    )  # fmt: skip
    last = [f"number-{i}" for i in (5, 6, 7, 8)]
    if how == "sort":
        assert said["shown"] == [f"number-{i}" for i in range(8, 0, -1)]
    else:
        assert said["shown"] == last
    assert not said["said"]  # nothing says any more that rows are left out


def test_a_link_shows_the_heading_that_it_leads_to(whole, tmp_path):
    """Not below the bar that stays on top of the page."""
    said = asked(
        whole.html, tmp_path, """
        document.documentElement.style.scrollBehavior = "auto";
        location.hash = "#experiment-fsync"; await soon(300);
        return { bar: document.querySelector(".choose").getBoundingClientRect().bottom,
          heading: document.querySelector("#experiment-fsync h2").getBoundingClientRect().top };
        """,
    )  # fmt: skip
    assert 0 < said["bar"] <= said["heading"]


def test_the_runs_of_a_number_fit_a_phone(build_page, tmp_path):
    data = Synthetic(storages=("nvme",), processes=(1, 2))
    for i in range(3):
        data.add(
            "scaling", "scientific", "Write", "nvme", 1, i, "a", [], operation="write",
            bandwidth=(100.0 + i) * MIB, operation_rate=100.0, latency_p50=1.11e-3, latency_p90=2.22e-3,
            latency_p99=3.33e-3, latency_p999=4.44e-3, latency_max=0.555,
        )  # fmt: skip
    said = asked(
        build_page(data).html, tmp_path, """
        document.querySelector("button.ask").click();
        const dialog = document.getElementById("evidence");
        dialog.style.width = "320px";
        dialog.querySelectorAll("details").forEach((d) => { d.open = true; });
        return { wide: dialog.scrollWidth, room: dialog.clientWidth };
        """,
        360,
    )  # fmt: skip
    assert said["wide"] <= said["room"]


def test_a_page_without_numbers_has_nothing_to_choose(build_page, tmp_path):
    data = Synthetic(storages=("nvme",))
    data.fail("nvme", "ended with code 1")
    said = asked(build_page(data).html, tmp_path, 'return document.querySelectorAll(".choose").length;')
    assert said == 0


def test_what_the_page_holds_packed_is_unpacked_and_runs_nothing(build_page, tmp_path, monkeypatch):
    """Rows beyond the first by a link to one of them, all figures before the page is printed."""
    monkeypatch.setattr(packing, "ROWS", 3)
    monkeypatch.setattr(packing, "DRAWN", 0)
    evil = "</template><img src=x onerror=document.title='run'>"
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm")).whole()
    for row in (*data.observations, *data.runs):
        row["storage_label"] = f"{row['storage']} {evil}"
    page = build_page(data)
    last = max(int(n) for n in re.findall(r"number-(\d+)", page.html))
    said = asked(
        page.html, tmp_path, f"""
        const rows = () => find("All results").tBodies[0].rows.length;
        const later = () => document.querySelectorAll("[data-later]").length;
        const before = rows(), packed = later();
        location.hash = "#number-{last}"; await soon(300);
        dispatchEvent(new Event("beforeprint"));
        return {{ before, after: rows() > before, reached: Boolean(document.getElementById("number-{last}")),
          packed: packed > 0, drawn: later() === 0,
          button: document.querySelector('[data-more="numbers"]') === null,
          images: document.querySelectorAll("img").length, title: document.title === "run" }};
        """,
    )  # fmt: skip
    assert said == {
        "before": 3, "after": True, "reached": True, "packed": True, "drawn": True, "button": True,
        "images": 0, "title": False,
    }  # fmt: skip


def test_every_explained_term_leads_to_its_meaning(whole, tmp_path):
    """For who has no mouse: a link that the keyboard reaches, to an entry that says the same."""
    said = asked(
        whole.html, tmp_path, """
        const terms = [...document.querySelectorAll("a.term")];
        const entry = (term) => document.getElementById(term.hash.slice(1))?.nextElementSibling;
        return { some: terms.length > 0, reached: terms.every((t) => t.tabIndex === 0),
          same: terms.every((t) => entry(t).textContent === t.title) };
        """,
    )  # fmt: skip
    assert said == {"some": True, "reached": True, "same": True}


_CONTRAST = """
  const plain = (colour) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d");
    context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = plain(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_marks_stand_out(whole, tmp_path, dark):
    """WCAG 2.1 AA: text 4.5 to 1, large text and what a figure draws 3 to 1, against what is behind it."""
    said = asked(
        whole.html, tmp_path, _CONTRAST + """
        document.querySelectorAll("details").forEach((d) => { d.open = true; });
        const poor = new Map();
        let texts = 0;
        for (const element of document.querySelectorAll("body *:not(script, style, template)")) {
          const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
          const style = getComputedStyle(element);
          if (!own || !element.getClientRects().length || style.visibility === "hidden") continue;
          const svg = element instanceof SVGElement;
          const size = parseFloat(style.fontSize);
          const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
          const found = ratio(plain(svg ? style.fill : style.color), behind(element));
          texts += 1;
          const what = `${element.tagName}.${element.className} ${style.color}`;
          if (found < (large ? 3 : 4.5)) poor.set(what, found);
        }
        const marks = new Map();
        for (const mark of document.querySelectorAll('figure g[id*="-number-"] :is(use, path)')) {
          const style = getComputedStyle(mark);
          const drawn = style.stroke !== "none" ? style.stroke : style.fill;
          marks.set(drawn, ratio(plain(drawn), behind(mark.closest("figure"))));
        }
        const paper = behind(document.querySelector("figure"));
        return { texts, poor: [...poor], marks: [...marks], paper };
        """,
        dark=dark,
    )  # fmt: skip
    assert (said["paper"][0] < 60) is dark  # it is the page that was asked for
    assert said["texts"] > 300 and said["marks"]
    assert not said["poor"]
    assert not [mark for mark in said["marks"] if mark[1] < 3]


@pytest.mark.parametrize("paper", ["#ffffff", "#1b2026"])
def test_every_colour_of_a_stack_stands_out(paper):
    """Figures of the tests have three stacks; 3 to 1 holds for all eight colours on both papers."""

    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return sum(v * w for v, w in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    css = (files("tiercel.pages") / "templates" / "page.css").read_text()
    assert f"--paper: {paper}" in css
    for colour in COLOURS:
        high, low = sorted((light(colour), light(paper)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3, colour


@pytest.mark.parametrize("width", [500, 1280])
def test_an_open_table_in_a_finding_does_not_widen_the_page(whole, tmp_path, width):
    """Evidence of traced runs is one: its columns made a page of 1,387 px in a window of 1,280."""
    said = asked(
        whole.html, tmp_path, """
        const place = document.querySelector(".findings li").lastElementChild;
        place.append(find("All results").closest(".scroll").cloneNode(true));
        document.querySelectorAll("details").forEach((d) => { d.open = true; });
        const caption = find("All results").caption.firstElementChild.getBoundingClientRect();
        return { wide: document.documentElement.scrollWidth, room: innerWidth, caption: caption.right };
        """,
        width,
    )  # fmt: skip
    assert said["wide"] <= said["room"]
    assert said["caption"] <= said["room"]  # what the table is about is in sight, however wide it is


def test_the_first_picture_has_its_table_and_its_numbers(whole):
    page = whole.page
    rows = page.rows("Workload", "Storage", "Against", "Factor", "Answer")
    assert {row["Answer"] for row in rows} <= {"decided", "not decided"}
    with (whole.folder / "report" / "figures" / "verdict-factors.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
