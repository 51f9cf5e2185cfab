"""What every command prints in one way."""

from __future__ import annotations

import json

from tiercel.plain import plain


def print_json(answer: object) -> None:
    """Print an answer as one valid JSON value: numpy's scalars as numbers, NaN and infinity as null."""
    print(json.dumps(plain(answer), allow_nan=False))
