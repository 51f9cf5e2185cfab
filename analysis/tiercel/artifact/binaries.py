"""What of a user may be in files that cannot be cleaned: those that are no texts."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError
from tiercel.privacy import private

_BLOCK = 4 << 20


def check_binaries(folder: Path) -> None:
    """Raise UserError for a binary file in `folder` that names the home folder of who packs, or a secret.

    Texts were cleaned before (results.cleaning). What is compressed inside a binary file is not seen.
    """
    hidden = private()
    words = [word.encode() for word in (*hidden.homes, *(value for value, _ in hidden.secrets))]
    longest = max((len(word) for word in words), default=0)
    for path in sorted(folder.rglob("*")) if words else ():
        if path.is_file() and path.suffix != ".gz" and _holds(path, words, longest):
            shown = path.relative_to(folder)
            raise UserError(
                f"{shown}: a binary file that names your home folder or a secret: move its run away"
            )


def _holds(path: Path, words: list[bytes], longest: int) -> bool:
    left, binary, found = b"", False, False
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            text = left + block
            binary = binary or b"\0" in block
            found = found or any(word in text for word in words)
            left = block[-longest:]
    return binary and found
