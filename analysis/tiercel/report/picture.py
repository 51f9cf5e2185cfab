"""One figure of a report: drawn on new axes in the report's style, filed as SVG, ready for the page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tiercel.atomic_file import drafted, write_text
from tiercel.pages.words import clipped
from tiercel.report import style, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Letters of a title that leave room for the axes; the page has the whole beside it.
_TITLE = 120
#: Inches beyond which a figure has no neighbour.
_WIDEST = 8.0


@dataclass(frozen=True)
class Picture:
    """A finished figure: files in the report's folder, and its text for the page."""

    name: str
    experiment: str
    title: str
    caption: str
    svg: str
    wide: bool
    drawn: Figure
    """What was drawn, for other formats."""
    other: str = ""
    """The same for the page with the other kind of axis (see `other_axis`)."""
    other_axis: str = ""
    """What the axis of values is in `other`: ``logarithmic`` or ``linear``."""
    data: Sequence[Mapping[str, Any]] = ()
    """The numbers that the figure shows, one row each."""

    @property
    def widest(self) -> bool:
        """Whether it takes the whole width of a page: beside another one its letters could not be read."""
        return bool(self.drawn.get_figwidth() > _WIDEST)

    def write_pdf(self, folder: Path) -> Path:
        """Write ``folder/name.pdf``, with its text as text."""
        import matplotlib as mpl

        path = folder / f"{self.name}.pdf"
        settings = cast(Any, {**style.parameters(), "pdf.fonttype": 42})
        with drafted(path) as draft, mpl.rc_context(settings), svg.any_letters():
            self.drawn.savefig(draft, format="pdf", metadata={"CreationDate": None})
        return path


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
    figure, document = _drawn(title, size, draw)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / f"{name}.svg", document)
    inlined = svg.inline(document, f"figure-{name}", f"{title}. {caption}")
    return Picture(name, experiment, title, caption, inlined, size[0] > 5, figure)


def with_other_axis(
    made: Picture, axis: str, size: tuple[float, float], draw: Callable[[Axes], None]
) -> Picture:
    """Return a picture that can also be shown with the other kind of `axis`, which `draw` draws."""
    _, document = _drawn(made.title, size, lambda f: draw(f.add_subplot()))
    label = f"{made.title}, {axis} axis. {made.caption}"
    return replace(made, other=svg.inline(document, f"other-{made.name}", label), other_axis=axis)


def _drawn(title: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> tuple[Figure, str]:
    """Return a figure and its SVG document."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(cast(Any, style.parameters())):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        said = "\n".join(textwrap.wrap(clipped(title, _TITLE), int(size[0] * 10.5)))
        figure.suptitle(said, x=0.015, ha="left", fontsize=10, fontweight="bold")
        return figure, svg.render(figure)
