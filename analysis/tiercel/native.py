"""Finds the C libraries that `make setup` builds from native/. Engines that start quickly import it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

#: Where libraries of native parts are installed: by `make setup`, and inside the package by its wheel.
LIBRARIES = (Path(sys.prefix) / "lib", Path(__file__).resolve().parent / "builtin" / "lib")


def load_library(part: str, abi: int) -> ctypes.CDLL | None:
    """Return ``lib<part>.so`` of native/<part>, or None: each of its users also works without.

    The one that ``TIERCEL_<PART>`` names (``off``: none), else the installed one, else the checkout's. A
    library whose ``<part>_abi()`` is not `abi` is passed over: it belongs to another version of this code.
    """
    for place in places(part):
        try:
            library = ctypes.CDLL(str(place))
            if getattr(library, f"{part}_abi")() == abi:
                return library
        except (OSError, AttributeError):
            continue
    return None


def places(part: str) -> list[Path]:
    """Return where the library of native/<part> is looked for, in order; nowhere where it is ``off``."""
    named = os.environ.get(f"TIERCEL_{part.upper()}", "")
    if named == "off":
        return []
    name = f"lib{part}.so"
    checkout = Path(__file__).resolve().parents[2] / "native" / part / "build"
    return [Path(named)] if named else [*(folder / name for folder in LIBRARIES), checkout / name]
