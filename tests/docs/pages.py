"""What stands in a page of the documentation: files that it says to write, and commands with what they print.

A file is a block of code after a paragraph that ends with its path in backquotes and a colon. Commands are
blocks of ``console``: what follows ``$ `` is given to a shell (a line that leaves a quotation mark open goes
on), and the lines until the next ``$ `` are what it prints; ``...`` stands for anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE
)
_PATH = re.compile(r"`([\w./-]+)`:\s*$")


@dataclass(frozen=True)
class File:
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    words: str
    prints: str


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return all fenced blocks of a page: what stands before, the language, the text."""
    text, found, end = page.read_text(), [], 0
    for match in _FENCE.finditer(text):
        found.append((text[end : match.start()], match["info"].strip(), match["body"]))
        end = match.end()
    return found


def steps(page: Path) -> list[File | Command]:
    """Return what a page says to do, in its order."""
    found: list[File | Command] = []
    for before, language, text in blocks(page):
        path = _PATH.search(before)
        if language == "console":
            found += commands(text)
        elif path:
            found.append(File(path[1], text))
    return found


def commands(text: str) -> list[Command]:
    """Return the commands of a block of ``console``."""
    found: list[Command] = []
    words, prints, quoted = "", "", False
    for line in text.splitlines(keepends=True):
        if line.startswith("$ ") and not quoted:
            if words:
                found.append(Command(words, prints))
            words, prints = line[2:], ""
        elif quoted:
            words += line
        else:
            prints += line
        quoted = words.count('"') % 2 == 1
    return [*found, Command(words, prints)]


def matches(expected: str, printed: str) -> bool:
    """Say whether what was printed is what the page shows; blanks count as one, ``...`` as anything."""
    parts = [re.escape(" ".join(part.split())) for part in expected.split("...")]
    pattern = r"\s*".join(r"\s*.*?".join(parts).split("\x00"))
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None
