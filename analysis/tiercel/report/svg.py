"""A matplotlib figure as an SVG that can be part of a page: own ids, the page's colours, no outside names."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

from tiercel.report.style import INK, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What says where something is, in points: a hundredth of one cannot be seen, and six digits fill a page.
_PLACES = re.compile(r'\s(?:d|x|y|points|transform)="[^"]*"')
_FINE = re.compile(r"(\d+\.\d\d)\d+")
#: What a figure and its axes are drawn on: on a page it hid the shadow of what goes on beyond the edge.
_BACK = re.compile(
    rf'(<g id="(?:figure|axes)_\d+">\s*<g id="patch_\d+">\s*<path d="[^"]*" style="fill: ){PAPER}"'
)
_POINTS = 72
#: Width on a page at most, for each inch that was drawn: no figure's letters are larger than its neighbours'.
_REM = 5.6
_NO_DATE = {"Date": None, "Creator": None, "Format": None, "Type": None}


def render(figure: Figure) -> str:
    """Return the figure as a document of its own.

    Not by `savefig`, which draws everything once more to find out what it needs before it draws.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out = io.StringIO()
    dpi, canvas = figure.dpi, figure.canvas
    with any_letters():
        FigureCanvasSVG(figure).print_svg(out, metadata=_NO_DATE)  # type: ignore[no-untyped-call]
    figure.dpi = dpi
    figure.set_canvas(canvas)
    text = out.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)


@contextmanager
def any_letters() -> Iterator[None]:
    """Say nothing of letters that matplotlib's own font lacks: whoever shows the text has one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def inline(document: str, prefix: str, label: str) -> str:
    """Return the svg element for a page: ids under `prefix`, colours that follow the page's."""
    body = document[document.index("<svg") :]
    body = _BACK.sub(r'\1none"', body)
    body = re.sub(r"\sxmlns(:\w+)?=\"[^\"]*\"", "", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = _PLACES.sub(lambda found: _FINE.sub(r"\1", found[0]), body)
    body = body.replace(INK, "currentColor").replace(PAPER, "var(--paper)")
    body = re.sub(r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>", r'<svg viewBox="\1" @>', body, count=1)
    most = float(document.split('viewBox="', 1)[1].split()[2]) / _POINTS * _REM
    said = f'style="max-width: {most:.1f}rem" role="img" aria-label="{escape(label, quote=True)}">'
    return body.replace("@>", said, 1)
