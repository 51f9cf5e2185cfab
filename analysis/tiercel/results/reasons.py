"""Failed runs by what went wrong.

The same cause is told in other words by each run: another rank, another file, so many bytes of so many.
Those words are set aside when reasons are compared; what says which error it was (an exit code, a signal, an
errno, the text itself) is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: What is another in each run: paths, ranks and process numbers, amounts of data, durations.
_OWN = re.compile(
    r"(?P<path>(?<![\w.])/[^\s:;,'\"]+)"
    r"|\b(?P<who>rank|process|pid|thread)s? \d+"
    r"|(?P<node>\bnode )[\w.-]+"
    r"|\b\d+(?:\.\d+)?(?: of \d+(?:\.\d+)?)? (?:bytes|seconds|s|[KMGT]i?B)\b"
)


@dataclass(frozen=True)
class Failure:
    """Runs that failed for one reason."""

    reason: str
    """In the words of the first run."""
    runs: tuple[str, ...]


def by_reason(failed: Iterable[tuple[str, str]]) -> list[Failure]:
    """Return failed runs, each given by name and reason, grouped by cause: the commonest first, then as they
    came. A run without a reason counts as one more cause."""
    words: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    for run, reason in failed:
        cause = _OWN.sub(_placeholder, reason.replace(run, "RUN"))
        words.setdefault(cause, reason or "no reason recorded")
        runs.setdefault(cause, []).append(run)
    most = sorted(runs.items(), key=lambda item: -len(item[1]))
    return [Failure(words[cause], tuple(names)) for cause, names in most]


def _placeholder(found: re.Match[str]) -> str:
    return f"<{found.lastgroup or 'amount'}>"
