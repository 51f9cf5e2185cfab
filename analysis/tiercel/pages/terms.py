"""Words of the trade in a page: each is explained where it is pointed at."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

#: Term, as it is written, and what it means to somebody who reads it for the first time.
TERMS = {
    "noise": "by how much two makings of the very same thing differ here: smaller differences mean nothing",
    "interval": "where the true value lies with 95 % certainty",
    "median": "the middle one of all repetitions",
    "fsync": "the call with which a program waits until its data is safely on the storage",
    "metadata": "names, sizes and directories of files: what creating, looking up and removing them costs",
    "page cache": "memory with the system's copies of files: a read from it never reaches the storage",
    "p50": "half of the operations took at most so long",
    "p99": "99 of 100 operations took at most so long",
    "direct I/O": "reading and writing past the page cache",
}
_WORDS = re.compile("|".join(rf"\b{re.escape(term)}\b" for term in TERMS), re.IGNORECASE)
_NAMES = {term.lower(): term for term in TERMS}


def terms(text: object, linked: bool = False) -> Markup:
    """Return a text for a page, escaped, in which each term is explained at its first place.

    `linked`: the term leads to its entry (anchor) in the page's list of words, for who has no mouse.
    """
    seen: set[str] = set()

    def explained(found: re.Match[str]) -> str:
        term = _NAMES[found[0].lower()]
        if term in seen:
            return found[0]
        seen.add(term)
        said = f'title="{escape(TERMS[term])}"'
        if linked:
            return f'<a class="term" href="#{anchor(term)}" {said}>{found[0]}</a>'
        return f"<abbr {said}>{found[0]}</abbr>"

    return Markup(_WORDS.sub(explained, str(escape(text))))


def anchor(term: str) -> str:
    """Return where a term stands in a page's list of words."""
    return f"word-{re.sub(r'[^a-z0-9]+', '-', term.lower())}"
