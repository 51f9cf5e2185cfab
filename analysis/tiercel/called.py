"""Packages that are a verb of the public interface, too: ``tiercel.results`` holds modules, and
``tiercel.results("local")`` gives results."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def called_as(package: str, verb: str) -> None:
    """Let calling `package` do what tiercel.notebook's `verb` does. What that needs is imported then."""

    class Called(ModuleType):
        def __call__(self, *words: Any, **options: Any) -> Any:
            return getattr(import_module("tiercel.notebook"), verb)(*words, **options)

    sys.modules[package].__class__ = Called
