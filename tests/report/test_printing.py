"""The report as PDF, printed by a real Chromium; and what is said where there is none."""

import re

import pytest
from tests.report.browser import CHROMIUM, asked

from tiercel.errors import UserError
from tiercel.report import printing


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_the_page_is_printed_with_all_that_is_folded(whole, tmp_path):
    page = tmp_path / "index.html"
    page.write_text(whole.html, encoding="utf-8")
    data = printing.write_pdf(page, CHROMIUM).read_bytes()
    assert data.startswith(b"%PDF-")
    # The page itself is some six sheets; with its tables unfolded it is more.
    assert max(int(n) for n in re.findall(rb"/Count (\d+)", data)) > 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "report.pdf"]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_no_table_is_wider_than_the_paper(whole, tmp_path):
    """What is beyond its right edge is lost: the verdicts of the comparisons once were."""
    # The rules for paper, at the width of a sheet of 210 mm less its margins: 703 px.
    found = asked(whole.html, tmp_path, """
      for (const sheet of document.styleSheets) for (const rule of sheet.cssRules)
        if (rule.media?.mediaText === "print") rule.media.mediaText = "all";
      document.querySelectorAll("details").forEach((d) => { d.open = true; });
      const edge = document.querySelector("main").getBoundingClientRect().right;
      const tables = [...document.querySelectorAll("main table")].filter((t) => t.getClientRects().length);
      const near = document.getElementById("scaling.scientific.write.iokernel");
      const wide = document.getElementById("metadata.shared-directory.metadata.iokernel");
      near.parentNode.append(wide);  // beside others, as where one experiment has both
      const high = (figure) => figure.querySelector("svg text").getBoundingClientRect().height;
      return { tables: tables.length, verdicts: Boolean(find("All comparisons between storage systems")),
        over: document.querySelector(".places").getBoundingClientRect().right
          - document.getElementById("verdict-factors").getBoundingClientRect().left,
        letters: high(wide) / high(near),
        beyond: tables.filter((t) => t.getBoundingClientRect().right > edge + 1)
          .map((t) => t.caption.textContent) };
    """, width=703)  # fmt: skip
    assert found["tables"] >= 8
    assert found["verdicts"]
    assert 0.8 < found["letters"] < 1.4  # a wide figure's letters are as large as those of its neighbours
    assert found["beyond"] == []
    assert found["over"] <= 0  # the first table does not lie over its picture


def test_without_a_browser_one_line_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="needs Chromium"):
        printing.browser()


def test_a_browser_that_fails_leaves_the_earlier_file(whole, tmp_path):
    page, earlier = tmp_path / "index.html", tmp_path / "report.pdf"
    page.write_text(whole.html, encoding="utf-8")
    earlier.write_bytes(b"earlier")
    with pytest.raises(UserError, match=r"printed nothing \(code 1\)"):
        printing.write_pdf(page, "/bin/false")
    assert earlier.read_bytes() == b"earlier"
