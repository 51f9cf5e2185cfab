"""How figures look: sober, colour-blind safe, the same colour for a stack everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tiercel.pages import colours as told_apart

COLOURS = told_apart.COLOURS

#: Replaced by the page's own colours where a figure is part of the page (see svg.py).
INK = "#222222"
PAPER = "#ffffff"

#: Origin of a number: marker and line. Measured is the plain one; where stacks are told apart, `shapes`.
MARKERS = {"measured": "o", "imported": "s", "simulated": "D"}
#: Seven, so that eight colours and seven shapes together tell 56 stacks apart.
_SHAPES = ("o", "^", "v", "P", "p", "<", ">")
LINES = {"measured": "-", "imported": "--", "simulated": ":"}


def colours(stacks: Iterable[str]) -> dict[str, str]:
    return {stack: COLOURS[i % len(COLOURS)] for i, stack in enumerate(stacks)}


def shapes(stacks: Iterable[str]) -> dict[str, str]:
    """Return a marker for each stack, told apart without colour; none of those of other origins."""
    return {stack: _SHAPES[i % len(_SHAPES)] for i, stack in enumerate(stacks)}


def parameters() -> dict[str, Any]:
    """Return matplotlib's settings for all figures of a report."""
    return {
        "figure.facecolor": PAPER,
        "axes.facecolor": PAPER,
        "savefig.facecolor": PAPER,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.labelsize": 9,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "axes.linewidth": 0.8,
        "lines.solid_capstyle": "round",
        "patch.edgecolor": "w",
        "patch.force_edgecolor": True,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": INK,
        "grid.alpha": 0.12,
        "grid.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
        # Text stays text: small, searchable, and any narrower font fits where DejaVu Sans did.
        "svg.fonttype": "none",
        # A label may hold dollar signs; nothing here is mathematics.
        "text.parse_math": False,
        "svg.hashsalt": "tiercel",
    }
