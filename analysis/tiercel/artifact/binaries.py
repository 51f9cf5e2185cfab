"""What of a user may be in files that cannot be cleaned: those that are no texts, and the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tiercel.errors import UserError
from tiercel.privacy import Private, private
from tiercel.results.torn import inflated

_BLOCK = 4 << 20
#: Of texts: those that a zero byte makes binary, too (UTF-32 is what C's wide characters are).
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def check_binaries(folder: Path) -> list[str]:
    """Look into the binary files in `folder`, and at the names of all files, for who packs.

    UserError for the home folder or a secret. Returned are the paths (in `folder`) of those that hold a
    user's or account's name, in a path or as a whole word of their own: it may be a word like any other, so
    its owner must judge.

    Texts were cleaned before (results.cleaning), those in archives (.gz) too, torn ones as far as they can be
    read: what is left there is in no text. What is compressed inside another binary file is not seen.
    """
    hidden = private()
    refused = _encoded([*hidden.homes, *(value for value, _ in hidden.secrets)])
    names = _names(hidden)
    told = _encoded([f"/{name}{end}" for name in names for end in "/\0"])
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        shown = path.relative_to(folder)
        held = _held(path, refused | told)
        if held & refused or any(value in path.name for value, _ in hidden.secrets):
            raise UserError(
                f"{shown}: holds your home folder or a secret, and is binary, or so named: move its run away"
            )
        if held or _named(shown, names):
            found.append(shown.as_posix())
    return found


def _encoded(words: Iterable[str]) -> frozenset[bytes]:
    errors = "surrogateescape", "surrogatepass"
    return frozenset(w.encode(e, errors[e != "utf-8"]) for w in words for e in _ENCODINGS)


def _names(hidden: Private) -> list[str]:
    """Return the names of users and accounts that no mount point of this machine ends with."""
    mounted = {Path(point).name for point in hidden.mounts}
    return [name for name in (*hidden.users, *hidden.accounts) if name not in mounted]


def _named(path: Path, names: Iterable[str]) -> bool:
    """Return whether a name is a whole word of the path, where that is not what tiercel named: raw/RUN."""
    own = "/".join(path.parts[2 if path.parts[0] == "raw" else 1 :])
    return any(re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", own) for name in names)


def _held(path: Path, words: frozenset[bytes]) -> set[bytes]:
    """Return which of `words` a binary file holds; none for a text."""
    if path.suffix == ".gz":
        return _within(inflated(path), words) | _within(_plain(path), words, True)
    return _within(_plain(path), words)


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _within(blocks: Iterable[bytes], words: frozenset[bytes], binary: bool = False) -> set[bytes]:
    left, longest = b"", max(map(len, words), default=0)
    found: set[bytes] = set()
    for block in blocks if words else ():
        text = left + block
        binary = binary or b"\0" in block
        found |= {word for word in words if word in text}
        left = text[-longest:]
    return found if binary else set()
