"""Advice as plain values (``advice.json``), and the files that ``--apply`` writes."""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tiercel.advice.bench import HOME
from tiercel.advice.judge import Span
from tiercel.advice.words import label, sentences
from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.placement.staging import Move, staged_command, staging_script
from tiercel.plain import plain
from tiercel.statistics.summary import summarize

if TYPE_CHECKING:
    from tiercel.advice.answer import Advice, Judged, Result

FORMAT = 2


def document(advice: Advice) -> dict[str, Any]:
    """Return everything that is known; times in seconds, sizes in bytes, unknown as null."""
    best = advice.advised
    at_home = advice.results.get(HOME)
    found: dict[str, Any] = {
        "format": FORMAT,
        "program": list(advice.program),
        "cwd": advice.cwd,
        "site": advice.site.site,
        "home": advice.home or None,
        "method": advice.method,
        "answer": sentences(advice),
        "advised": {
            "move": bool(best),
            "decided": advice.decided,
            "places": dict(best.result.candidate.places) if best else {},
            "storage": best.result.candidate.storages[0] if best else advice.home or None,
        },
        "home_seconds": _seconds(at_home) if at_home else None,
        "placements": [_placement(advice, r) for n, r in advice.results.items() if n != HOME],
        "folders": [asdict(f) for f in advice.folders],
        "page_cache": "emptied before each run" if advice.cold else "filled before each run",
        "discarded": "none: each run starts cold" if advice.cold else "the first run of each placement",
        "script_seconds": advice.script,
        "runs_sharing_a_copy": advice.runs_sharing,
        "program_runs": advice.program_runs,
        "estimate": None if advice.estimate is None else {
            "io_seconds": {s: list(v) for s, v in advice.estimate.seconds.items()},
            "left_out": list(advice.estimate.blind), "upper_bound": None, "why": advice.estimate.why,
        },
        "notes": list(advice.notes),
        "measured_seconds": advice.seconds,
    }  # fmt: skip
    values: dict[str, Any] = plain(found)
    return values


def _placement(advice: Advice, result: Result) -> dict[str, Any]:
    judged = next((j for j in advice.judged if j.result is result), None)
    storages = [advice.site.storages[s] for s in result.candidate.storages]
    return {
        "placement": result.candidate.name,
        "storages": result.candidate.storages,
        "labels": [label(advice, s) for s in result.candidate.storages],
        "why_tried": result.candidate.why,
        "node_local": any(advice.site.node_local(s) for s in storages),
        "memory": any(s.medium == "memory" for s in storages),
        "places": dict(result.candidate.places),
        "run_seconds": _seconds(result),
        "copy_in_seconds": _number(result.copy_in),
        "copy_out_seconds": _number(result.copy_out),
        "faster": _difference(judged, "run"),
        "faster_with_copying": _difference(judged, "total"),
        "pays_from_runs": advice.pays_from(judged) if judged else None,
        "at_least_times_slower": result.at_least,
        "output_differs": list(result.differs),
        "ended_because": result.why_not or None,
    }


def _difference(judged: Judged | None, which: str) -> dict[str, Any] | None:
    if judged is None:
        return None
    difference = judged.run if which == "run" else judged.total
    return {
        "times": _span(difference.ratio),
        "outcome": difference.outcome,
        "runs_needed": difference.runs_needed,
        "saved_seconds": _span(difference.saved),
    }


def _seconds(result: Result) -> dict[str, Any] | None:
    if not result.seconds:
        return None
    summary = summarize(result.seconds)
    return {
        "median": median(result.seconds),
        "low": summary.low,
        "high": summary.high,
        "runs": list(result.seconds),
        "waiting_for_processor": [t.queued for t in result.trials],
    }


def _span(span: Span) -> dict[str, float | None]:
    return {k: _number(v) for k, v in asdict(span).items()}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- files ---------------------------------------------------------------------------------------------------


@contextmanager
def answer_folder(folder: Path | None) -> Iterator[None]:
    """Make the folder of an answer before anything is measured, and remove it where there is no answer.

    UserError where it cannot be made or written to.
    """
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UserError(
            f"{folder}: the answer cannot be written there: {error.strerror}. Name another folder with "
            "--output"
        ) from None
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it holds something
            folder.rmdir()
        raise


def write(advice: Advice, folder: Path) -> Path:
    """Write ``advice.json`` into `folder`; return its path."""
    try:
        text = json.dumps(document(advice), indent=1) + "\n"
        return write_text(folder / "advice.json", text, errors="surrogateescape")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None


def moves_of(advice: Advice) -> list[Move]:
    """Return what the advised placement moves."""
    if advice.advised is None:
        return []
    return [
        Move(
            path, str(advice.site.storages[s].scratch_path() / "placed" / path.lstrip("/")), True, True, True
        )
        for path, s in advice.advised.result.candidate.places.items()
    ]


def apply(advice: Advice, folder: Path) -> str:
    """Write the staging script of the advised placement into `folder`; return the command to run instead,
    empty where nothing is to be moved."""
    moves, best = moves_of(advice), advice.advised
    if best is None:
        return ""
    points = {str(advice.site.storages[s].mount_path()) for s in best.result.candidate.storages}
    script = folder / "stage.py"
    write_text(script, staging_script(moves, points), errors="surrogateescape")
    return shlex.join(staged_command(script, advice.program))
