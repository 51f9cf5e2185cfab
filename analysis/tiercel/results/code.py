"""Which code made a row of the tables: a change reads anew what hangs on it, and nothing else."""

from __future__ import annotations

import ast
import hashlib
import sys
from functools import cache
from pathlib import Path

from tiercel.engines import engines
from tiercel.results.table import code_signature

#: Every row hangs on these.
_ALL = ("columns.py", "engines/base.py", "engines/measurement.py", "results/code.py", "results/measured.py",
        "results/observations.py", "results/raw.py", "results/schema.py", "results/validity.py",
        "study/workloads/base.py")  # fmt: skip
#: Where an adapter of the core, and a workload that it does, may lie.
_CORE = ("tiercel.engines", "tiercel.study.workloads")


def of_all() -> str:
    """Identify the code that every row hangs on."""
    return code_signature(_ALL)


@cache
def of_engine(name: str) -> str:
    """Identify the code that reads an engine's results: its adapter, and what that imports of the engines,
    the workloads and its own subject; empty for an engine that is not here."""
    if name not in engines:
        return ""
    adapter = engines.get(name).__module__
    subject = adapter.rpartition(".")[0]
    modules = _closure(adapter, _CORE if subject in _CORE else (*_CORE, subject))
    found = hashlib.sha256()
    for module in sorted(modules):
        found.update(_source(module))
    return found.hexdigest()[:12]


def _closure(module: str, within: tuple[str, ...], seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return a module and all that it imports below the packages `within`."""
    seen |= {module}
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            # What a package hands on lies in a module of its own.
            handed = (getattr(sys.modules.get(node.module), alias.name, None) for alias in node.names)
            named += [str(getattr(thing, "__module__", "")) for thing in handed]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            continue
        for name in named:
            inside = any(name.startswith(f"{package}.") for package in within)
            if inside and name in sys.modules and name not in seen:
                seen = _closure(name, within, seen)
    return seen


def _source(module: str) -> bytes:
    file = sys.modules[module].__file__
    return Path(file).read_bytes() if file else b""
