"""Values as JSON holds them."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """Return `value` without numpy's scalars, NaN and infinity (null), and bytes that are no text (``?``)."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
