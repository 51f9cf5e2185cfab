"""Charts of a page, in HTML and SVG of our own: the drawing takes the page's width, words keep their size.

Each function returns markup. Everything that comes from a trace is escaped here.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from tiercel.pages.words import name
from tiercel.traces.page.axes import clock, ticks

#: Words of a name in a chart; the whole is in the table below it.
_NAME = 34
#: Lines of a heat map that are named, at most.
_NAMED = 20
#: What is not nothing is seen, however little against the most.
_FAINTEST = 0.12


@dataclass(frozen=True)
class Series:
    """One thing in a chart: its name, its colour, and a value for each place."""

    name: str
    colour: str
    values: Sequence[float]


def legend(series: Sequence[Series]) -> str:
    marks = "".join(
        f'<span><i style="background:{escape(s.colour)}"></i>{escape(s.name)}</span>' for s in series
    )
    return f'<p class="legend">{marks}</p>'


def stack(
    series: Sequence[Series], length: float, label: str, show: Callable[[float], str],
    top: float | None = None, base: float = 10.0,
) -> str:  # fmt: skip
    """Return stacked steps over time: each series has a value for each of equal parts of `length` seconds."""
    values = np.nan_to_num(np.array([s.values for s in series], dtype=np.float64))
    sums = np.cumsum(values, axis=0)
    marks = ticks(float(sums[-1].max(initial=0.0)) if top is None else top, base=base)
    parts = values.shape[1]
    below = np.zeros(parts)
    paths = []
    for one, upper in zip(series, sums, strict=True):
        if upper.max(initial=0.0) > below.max(initial=0.0) or (upper > below).any():
            points = _steps(upper / marks[-1], below / marks[-1])
            paths.append(f'<path d="{points}" fill="{escape(one.colour)}"/>')
        below = upper
    words = _heights(marks, show)
    drawing = (
        f'<svg class="drawing" viewBox="0 0 {parts} 100" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(paths)}{_grid(words, parts)}</svg>'
    )
    return legend(series) + _framed(drawing, words, length)


def _heights(marks: Sequence[float], show: Callable[[float], str]) -> list[tuple[float, str]]:
    """Return where the axis' marks stand (0: top, 100: bottom), and their words."""
    return [(100 - 100 * mark / marks[-1], show(mark)) for mark in marks]


def _grid(words: Sequence[tuple[float, str]], width: int) -> str:
    """Return a line across the drawing for each mark of the axis."""
    lines = "".join(f'<line x1="0" x2="{width}" y1="{y:g}" y2="{y:g}"/>' for y, _ in words)
    return f'<g class="grid">{lines}</g>'


def _steps(upper: Any, below: Any) -> str:
    """Return the outline of steps between two lines of values from 0 to 1; level ones are one line."""

    def line(values: Any, places: Sequence[int]) -> str:
        said = []
        for start, end, value in places_of(values, places):
            y = f"{100 - 100 * min(float(value), 1.0):.4g}"
            said.append(f"L{start},{y}L{end},{y}")
        return "".join(said)

    def places_of(values: Any, order: Sequence[int]) -> list[tuple[int, int, float]]:
        found: list[tuple[int, int, float]] = []
        forward = len(order) < 2 or order[1] > order[0]
        for n in order:
            start, end = (n, n + 1) if forward else (n + 1, n)
            if found and found[-1][2] == values[n]:
                found[-1] = (found[-1][0], end, found[-1][2])
            else:
                found.append((start, end, float(values[n])))
        return found

    count = len(upper)
    there, back = line(upper, range(count)), line(below, range(count - 1, -1, -1))
    return f"M{there[1:]}{back}Z"


def heat(
    names: Sequence[str], cells: Any, length: float, label: str, colour: str, show: Callable[[float], str]
) -> str:
    """Return a heat map: a line for each name, a column for each part of `length` seconds.

    The strongest colour is the largest cell; below it the strength is in proportion, but never so faint that
    something looks like nothing.
    """
    cells = np.nan_to_num(np.asarray(cells, dtype=np.float64))
    most = float(cells.max(initial=0.0))
    strength = np.where(cells > 0, np.clip(cells / most if most > 0 else cells, _FAINTEST, 1.0), 0.0)
    red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
    pixels = np.zeros((*cells.shape, 4), dtype=np.uint8)
    pixels[..., 0], pixels[..., 1], pixels[..., 2] = red, green, blue
    pixels[..., 3] = np.rint(255 * strength)
    picture = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(picture, "PNG", optimize=True)
    data = base64.b64encode(picture.getvalue()).decode()
    rows = len(names)
    drawing = f'<img class="drawing" alt="{escape(label)}" src="data:image/png;base64,{data}">'
    every = -(-rows // _NAMED) if rows else 1
    words = [((n + 0.5) * 100 / rows, names[n]) for n in range(0, rows, every)]
    height = min(max(rows * (1.25 if rows <= _NAMED else 0.4), 2.5), 26.0)
    scale = (
        f'<p class="legend"><span>nothing <i class="scale" style="background:linear-gradient(to right,'
        f'transparent,{escape(colour)})"></i> {escape(show(most))}</span></p>'
    )
    return scale + _framed(drawing, words, length, f"{height:g}rem", "named" if every == 1 else "lined")


def bars(
    places: Sequence[str], series: Sequence[Series], label: str, show: Callable[[float], str],
    base: float = 10.0,
) -> str:  # fmt: skip
    """Return upright bars, those of one place side by side."""
    most = max((float(v) for s in series for v in s.values), default=0.0)
    marks = ticks(most, base=base)
    wide = 0.86 / max(len(series), 1)
    drawn = []
    for number, one in enumerate(series):
        for place, value in enumerate(one.values):
            if value > 0:
                tall = max(100 * float(value) / marks[-1], 0.6)
                drawn.append(
                    f'<rect x="{place + 0.07 + number * wide:.3f}" y="{100 - tall:.4g}" width="{wide:.3f}" '
                    f'height="{tall:.4g}" fill="{escape(one.colour)}"><title>{escape(places[place])}: '
                    f"{escape(one.name)} {escape(show(float(value)))}</title></rect>"
                )
    words = _heights(marks, show)
    drawing = (
        f'<svg class="drawing" viewBox="0 0 {max(len(places), 1)} 100" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{_grid(words, len(places))}{"".join(drawn)}</svg>'
    )
    every = -(-len(places) // 6)
    below = [((n + 0.5) * 100 / len(places), places[n]) for n in range(0, len(places), every)]
    return (legend(series) if len(series) > 1 else "") + _boxed(
        drawing, words, below, "9rem", "centred", 5.2 + 7.0 * len(places)
    )


def share(parts: Sequence[Series], label: str, show: Callable[[float], str]) -> str:
    """Return one level bar of shares that add up to 1 at most; what is left is empty."""
    x, drawn, named = 0.0, [], []
    for part in parts:
        value = float(part.values[0])
        drawn.append(f'<rect x="{x:.4f}" y="0" width="{value:.4f}" height="1" fill="{escape(part.colour)}"/>')
        x += value
        named.append(Series(f"{part.name} {show(value)}", part.colour, ()))
    drawing = (
        f'<svg class="share" viewBox="0 0 1 1" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )
    return legend(named) + drawing


def _framed(
    drawing: str, words: Sequence[tuple[float, str]], length: float, height: str = "11rem", kind: str = ""
) -> str:
    below = [(100 * at / length if length > 0 else 0.0, said) for at, said in clock(length)]
    return _boxed(drawing, words, below, height, kind)


def _boxed(
    drawing: str, beside: Sequence[tuple[float, str]], below: Sequence[tuple[float, str]], height: str,
    kind: str, widest: float = 90.0,
) -> str:  # fmt: skip
    """Return a drawing with words beside it (percent from above) and below it (percent from the left)."""
    left = "".join(f'<span style="top:{at:.4g}%">{_short(said)}</span>' for at, said in beside)
    under = "".join(
        f'<span class="{"first" if at < 4 else "last" if at > 94 else ""}" style="left:{at:.4g}%">'
        f"{escape(said)}</span>"
        for at, said in below
    )
    style = f"--height:{height};max-width:{widest:g}rem"
    return (
        f'<div class="chart {kind}" style="{style}"><div class="beside-it">{left}</div>{drawing}'
        f'<div class="below-it">{under}</div></div>'
    )


def _short(text: str) -> str:
    """Return the end of a name, which tells files apart; all of it for who points at it."""
    whole = name(text)
    shown = whole if len(whole) <= _NAME else f"…{whole[1 - _NAME :]}"
    return f'<bdi dir="ltr" title="{escape(whole)}">{escape(shown)}</bdi>'
