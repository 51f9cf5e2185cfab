"""Users without their names: the same user has the same pseudonym in all surveys of whoever makes them.

The key lies in the user's configuration folder, never beside a table: who has the table alone cannot try out
names or numbers.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from tiercel.atomic_file import drafted
from tiercel.errors import UserError


def survey_key() -> str:
    """Return the key of the user's pseudonyms, made when it is first needed."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    path = (Path(base) if base.startswith("/") else Path("~/.config").expanduser()) / "tiercel" / "survey.key"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with drafted(path) as draft:
                draft.touch(mode=0o600)
                draft.write_text(secrets.token_hex(32))
        return path.read_text()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: --anonymous keeps its key there") from None


def pseudonym(name: str, key: str) -> str:
    """Return what stands for a user."""
    return "user-" + hmac.new(key.encode(), name.encode(errors="replace"), hashlib.sha256).hexdigest()[:10]


def named(what: bytes, key: str) -> str:
    """Return a short name for `what`; with a key, one that nobody without it can find by trying."""
    return hmac.new(key.encode(), what, hashlib.sha256).hexdigest()[:16]
