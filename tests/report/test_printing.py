"""The report as PDF, printed by a real Chromium; and what is said where there is none."""

import re

import pytest
from tests.report.browser import CHROMIUM

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
