"""One figure of a report: drawn on new axes in the report's style, filed as SVG, ready for the page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tiercel.report import style, svg


@dataclass(frozen=True)
class Picture:
    """A finished figure: files in the report's folder, and its text for the page."""

    name: str
    experiment: str
    title: str
    caption: str
    svg: str
    wide: bool


def picture(
    folder: Path,
    name: str,
    title: str,
    caption: str,
    size: tuple[float, float],
    draw: Callable[[Axes], None],
    experiment: str = "",
) -> Picture:
    """Draw on new axes, write ``folder/name.svg`` and return the figure. `size` is in inches."""
    return picture_of(folder, name, title, caption, size, lambda f: draw(f.add_subplot()), experiment)


def picture_of(
    folder: Path,
    name: str,
    title: str,
    caption: str,
    size: tuple[float, float],
    draw: Callable[[Figure], None],
    experiment: str = "",
) -> Picture:
    """As `picture`, for figures of several axes: `draw` gets the figure."""
    with mpl.rc_context(cast(Any, style.parameters())):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        said = "\n".join(textwrap.wrap(title, int(size[0] * 10.5)))
        figure.suptitle(said, x=0.015, ha="left", fontsize=10, fontweight="bold")
        document = svg.render(figure)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(document, encoding="utf-8")
    inlined = svg.inline(document, f"figure-{name}", f"{title}. {caption}")
    return Picture(name, experiment, title, caption, inlined, wide=size[0] > 5)
