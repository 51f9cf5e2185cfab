"""What a comparison says in sentences."""

from __future__ import annotations

from tiercel.pages.words import capital, count, listed, name
from tiercel.traces.against.compare import Comparison, largest

#: What became of a finding, and its heading.
FATES = {"gone": "Gone: in A alone", "new": "New: in B alone", "stayed": "Stayed: in both"}


def verdict(comparison: Comparison) -> str:
    """Return one sentence: the largest time difference, and what became of the findings."""
    first = largest(comparison.differences)
    time = capital(first.sentence) if first is not None else "No time differs that both traces tell"
    fates = [found.fate for found in comparison.found]
    told = [f"{count(fates.count(fate), 'finding')} {fate}" for fate in FATES if fate in fates]
    return f"{time}; {listed(told) if told else 'no finding in either that both could have'}."


def matched_words(comparison: Comparison) -> str:
    """Say how many files were matched, and how."""
    m = comparison.matched
    folders = " and ".join(name(folder) for folder in m.folders)
    ways = [
        f"{m.same_path} by their path" if m.same_path else "",
        f"{m.below_folder} by their name below {folders}" if m.below_folder else "",
        f"{m.by_end} by the end of their name" if m.by_end else "",
    ]
    how = f" ({listed([way for way in ways if way])})" if m.pairs else ""
    there = f"of A's {len(comparison.a.files)} and B's {len(comparison.b.files)}"
    return f"{count(len(m.pairs), 'file')} {there} matched{how}."
