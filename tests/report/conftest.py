"""A report of synthetic data, built once."""

from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.synthetic import Synthetic, site, study

from tiercel.report.build import build
from tiercel.results.validity import FLAGS

#: Elements that have no end tag.
_VOID = {"meta", "link", "br", "hr", "img", "input", "use", "path", "rect", "line", "circle"}


class Page(HTMLParser):
    """What a browser would find: ids, texts, attributes, tables as lists of rows."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.ids, self.tags, self.attributes, self.tables = [], [], [], []
        self.open, self.texts, self.scripts = [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag, f"</{tag}> closes another element"
        if tag in ("td", "th"):  # its text may be in several elements
            self.tables[-1][-1][-1] = " ".join(self.tables[-1][-1][-1].split())

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
            return
        self.texts.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    def rows(self, *columns):
        """Return the rows, as dicts, of the first table that has these columns."""
        for table in self.tables:
            if set(columns) <= set(table[0]):
                return [dict(zip(table[0], row, strict=True)) for row in table[1:]]
        raise AssertionError(f"no table with {columns}")


@dataclass
class Built:
    folder: Path
    path: Path
    html: str
    page: Page


@pytest.fixture(scope="session")
def build_page(tmp_path_factory):
    """Return a function that builds the report of synthetic data."""

    def make(data, flags=FLAGS, of_study=None, of_site=None):
        folder = data.write(tmp_path_factory.mktemp("results"))
        path = build(folder, of_site or site(), of_study or study(), flags)
        html = path.read_text(encoding="utf-8")
        return Built(folder, path, html, Page(html))

    return make


@pytest.fixture(scope="session")
def whole(build_page):
    return build_page(Synthetic().whole())
