"""``$NAME`` and ``${NAME}`` in site files: what differs from user to user comes from the environment."""

from __future__ import annotations

import os
import re

from tiercel.errors import UserError

#: ``$NAME``, ``${NAME}``, and ``$$`` for a dollar sign that is part of the text.
VARIABLE = re.compile(r"\$\$|\$(\w+)|\$\{(\w+)\}")


def expand(text: str, what: str) -> str:
    """Return `text` with its variables' values; UserError that begins with `what` for one that is not set."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1] or match[2]
        found = os.environ.get(name)
        if not found:
            raise UserError(f"{what} {text}: environment variable {name} is not set: export {name}=...")
        return found

    return VARIABLE.sub(value, text)
