"""tiercel: evaluates HPC storage end to end.

In Python and Jupyter, ``import tiercel as tc``: the names in `__all__`, typed in ``__init__.pyi``, are what
stays. Nothing is imported before it is asked for.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "Advice", "Comparison", "IOFrame", "Results", "UserError", "advise", "compare", "evaluate",
    "results", "sites", "studies",
    "trace",
]  # fmt: skip

#: Of the names, those that are packages of modules, too (tiercel.called).
_PACKAGES = ("compare", "results")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"tiercel.{name}")
    if name in __all__:
        return getattr(import_module("tiercel.notebook"), name)
    raise AttributeError(f"module 'tiercel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
