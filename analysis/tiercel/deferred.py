"""pandas, imported when it is first used: it takes a third of a second, and many commands never use it.

``from tiercel.deferred import pd`` replaces ``import pandas as pd`` in modules that such commands import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Deferred:
        """A module that is imported when an attribute of it is first read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    pd = _Deferred("pandas")

__all__ = ["pd"]
