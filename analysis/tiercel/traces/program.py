"""The program's own files: interpreter, modules, shared libraries, configuration of the system.

A Python program opens thousands of them before it reads its first byte of data. They are I/O and in every
sum, but findings on data leave them out, and one finding is about them (findings/program.py).
"""

from __future__ import annotations

import re
from functools import lru_cache

#: In the syntax that Python's `re` and DuckDB share: what the system installs, environments of Python, and
#: modules and shared libraries wherever they lie.
PATTERN = (
    r"^/(usr|lib|lib32|lib64|bin|sbin|etc)(/|$)"
    r"|/(site|dist)-packages(/|$)|/__pycache__(/|$)|/lib(64)?/python[0-9.]+(/|\.zip|$)"
    r"|\.(dist|egg)-info(/|$)|\.egg(/|$)|/pyvenv\.cfg$|\._pth$"
    r"|\.py[cdiw]?$|\.so(\.[0-9]+)*$"
)
_PROGRAM = re.compile(PATTERN)


@lru_cache(1 << 14)
def is_program(path: str) -> bool:
    """Say whether `path` is the program's own rather than data."""
    return _PROGRAM.search(path) is not None
