"""A labelled set of traces: a folder with `labels.yaml` and the traces that it names (form: README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from tiercel.errors import UserError

#: What can be wrong with a program's I/O, as the rules of `tiercel trace explain` name it.
LABELS = (
    *("small-transfers", "misaligned", "random-access", "read-again", "metadata-bound", "open-storm"),
    *("fsync-storm", "stdio", "no-mpiio", "independent-io", "shared-file-contention", "imbalance"),
    *("slow-part", "single-writer", "read-after-write", "cached-reads"),
)
Half = Literal["tuning", "kept-apart"]
HALVES: tuple[Half, ...] = get_args(Half)
TABLE = "labels.yaml"
#: The set of this project.
SET = Path(__file__).parent / "set"


@dataclass(frozen=True)
class Trace:
    """One program's trace and what is wrong with that program (no label: nothing worth changing)."""

    name: str
    file: str
    tracer: str
    labels: frozenset[str]
    #: Labels of which neither presence nor absence counts, each with the reason.
    allowed: Mapping[str, str] = field(default_factory=dict)
    half: Half = "tuning"
    reason: str = ""
    # How it was made.
    program: str = ""
    ranks: int = 1
    mpi: bool = False
    storage: str = "disk"
    slow: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    prepare: str = ""


def read_set(folder: Path) -> list[Trace]:
    """Return the traces that a folder's table names; UserError where the table is not of that form."""
    path = folder / TABLE
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: {error}") from error
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise UserError(f"{path} is not a list of traces")
    traces = [_trace(entry, path) for entry in entries]
    names = [t.name for t in traces]
    if twice := {n for n in names if names.count(n) > 1}:
        raise UserError(f"{path} names {sorted(twice)[0]} twice")
    return traces


def _trace(entry: Mapping[str, Any], path: Path) -> Trace:
    where = f"{path}: {entry.get('name', 'a trace without name')}"
    if missing := {"name", "file", "tracer", "labels"} - set(entry):
        raise UserError(f"{where}: no {sorted(missing)[0]}")
    if unknown := set(entry) - set(Trace.__dataclass_fields__):
        raise UserError(f"{where}: {sorted(unknown)[0]} means nothing here")
    labels, allowed = frozenset(entry["labels"]), dict(entry.get("allowed") or {})
    if strange := (labels | set(allowed)) - set(LABELS):
        raise UserError(f"{where}: no label {sorted(strange)[0]} (there are {', '.join(LABELS)})")
    if both := labels & set(allowed):
        raise UserError(f"{where}: {sorted(both)[0]} is a label and allowed")
    if entry.get("half", "tuning") not in HALVES:
        raise UserError(f"{where}: half is one of {', '.join(HALVES)}")
    return Trace(**{**entry, "labels": labels, "allowed": allowed})
