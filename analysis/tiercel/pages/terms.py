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


def terms(text: object) -> Markup:
    """Return a text for a page, escaped, in which each term is explained at its first place."""
    seen: set[str] = set()

    def explained(found: re.Match[str]) -> str:
        term = found[0].lower()
        meaning = next((said for name, said in TERMS.items() if name.lower() == term), "")
        if term in seen:
            return found[0]
        seen.add(term)
        return f'<abbr title="{escape(meaning)}">{found[0]}</abbr>'

    return Markup(_WORDS.sub(explained, str(escape(text))))
