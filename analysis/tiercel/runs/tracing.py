"""Runs a program under DFTracer's preload library.

Source: DFTracer 2.2 (preload mode, `DFTRACER_INIT=PRELOAD`); what it misses: docs/traces.md.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_LIBRARY = "lib64/libdftracer_preload.so"


@cache
def preload_library() -> Path | None:
    """Return DFTracer's preload library, or None where it is not installed."""
    # find_spec does not import: importing dftracer would start tracing this process' own I/O.
    spec = importlib.util.find_spec("dftracer")
    for place in (spec.submodule_search_locations or []) if spec else []:
        library = Path(place) / _LIBRARY
        if library.exists():
            return library
    return None


def tracing_environment(folder: Path, data: Path) -> Mapping[str, str]:
    """Return the variables that make a program log its I/O under `data` to ``folder/trace/*.pfw.gz``."""
    library = preload_library()
    if library is None:
        return {}
    (folder / "trace").mkdir(exist_ok=True)
    return {
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_LOG_FILE": str(folder / "trace" / "run"),
        "DFTRACER_DATA_DIR": str(data),
        "DFTRACER_INC_METADATA": "1",
        "LD_PRELOAD": str(library),
    }
