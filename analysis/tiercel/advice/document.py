"""Advice as a plain document (``advice.json``) and as a plan that can be carried out (``plan/``)."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tiercel.advice.answer import Advice
from tiercel.advice.judge import Span, WayResult
from tiercel.advice.units import Unit
from tiercel.advice.words import sentences, storage_facts
from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.placement.staging import Move, staging_script
from tiercel.plain import plain
from tiercel.statistics.comparison import Comparison

FORMAT = 1


def document(advice: Advice) -> dict[str, Any]:
    """Return everything that is known as plain values; times in seconds, sizes in bytes, NaN as null."""
    capture = advice.capture
    found: dict[str, Any] = {
        "format": FORMAT,
        "program": list(capture.argv) if capture else None,
        "cwd": str(capture.cwd) if capture else None,
        "site": advice.site.site,
        "home": advice.home,
        "answer": sentences(advice),
        "run": None
        if capture is None
        else {
            "traced_seconds": capture.seconds, "exit_code": capture.exit_code,
            "tracer": {"name": capture.tracer, "version": capture.tracer_version, "why": capture.why,
                       "seconds_per_call": advice.recipe.per_call or capture.cost.delay},
        },
        "io": None
        if advice.io is None
        else {
            **asdict(advice.io), "hidden": advice.io.hidden, "share_of_run": advice.io.share,
            "inputs_cached": advice.warm,
        },
        "mode": advice.mode,
        "fidelity": {"trace_over_replay": advice.fidelity, "refused": advice.refused},
        "verdict": _verdict(advice),
        "ways": [_way(advice, way) for way in advice.ways],
        "units": [_unit(advice, unit) for unit in advice.units if unit.size],
        "storages": storage_facts(advice),
        "left_out": advice.left_out,
        "caching": [asdict(hint) for hint in advice.hints],
        "findings": [
            {"rule": f.rule, "severity": f.severity, "sentence": f.sentence, "advice": f.advice}
            for f in advice.findings
        ],
        "not_replayed": advice.recipe.left_out,
        "notes": list(advice.notes),
        "measured_seconds": advice.seconds,
        "trace": str(advice.trace),
        "plan": "plan" if moves_of(advice) else None,
    }  # fmt: skip
    document: dict[str, Any] = plain(found)
    return document


def _verdict(advice: Advice) -> dict[str, Any] | None:
    v = advice.verdict
    if v is None:
        return None
    moves = v.way is not v.home and not advice.refused
    way = v.way if moves else v.home
    return {
        "decided": v.decided and not advice.refused,
        "way": way.name,
        "reason": advice.refused or v.reason,
        "run_seconds": {"home": _span(v.home.run), "advised": _span(way.run)},
        "saved_seconds": _span(way.saved),
        "saved_share": _span(way.saved.scaled(1 / v.home.run.median)) if v.home.run.median else None,
        "io_seconds": {"home": _span(v.home.io), "advised": _span(way.io)},
        "staging_seconds": {"in": way.copy_in, "out": way.copy_out},
        "if_files_lived_there": None
        if v.living is None or advice.refused
        else {"way": v.living.name, "saved_seconds": _span(v.living.saved)},
        "but_for_copying": None
        if v.copied is None or advice.refused
        else {
            "way": v.copied.name,
            "saved_seconds": _span(v.copied.saved),
            "pays_from_runs": v.copied.pays_from,
        },
    }


def _way(advice: Advice, way: WayResult) -> dict[str, Any]:
    return {
        "way": way.name, "replays": way.n, "run_seconds": _span(way.run), "io_seconds": _span(way.io),
        "staging_seconds": {"in": way.copy_in, "out": way.copy_out}, "saved_seconds": _span(way.saved),
        "against_home": _comparison(way.comparison), "against_home_without_staging": _comparison(way.living),
        "systems": dict(way.systems),
    }  # fmt: skip


def _comparison(c: Comparison | None) -> dict[str, Any] | None:
    if c is None:
        return None
    words = {"higher": "faster", "lower": "slower", "undecided": "undecided"}
    return {
        "ratio": c.ratio, "low": c.low, "high": c.high, "p_corrected": c.p_corrected,
        "noise": [c.floor.low, c.floor.high], "verdict": words[c.verdict], "reason": c.reason,
    }  # fmt: skip


def _unit(advice: Advice, unit: Unit) -> dict[str, Any]:
    v = advice.verdict
    moved = v is not None and not advice.refused
    known = unit.name in advice.unit_io.index
    seconds = dict(advice.unit_io.loc[unit.name].dropna()) if known else {}
    return {
        "unit": unit.name, "files": len(unit.files), "bytes": unit.size, "home": unit.storage,
        "storage": v.way.systems[unit.name] if moved and v is not None else unit.storage,
        "io_seconds": {str(k): float(s) for k, s in seconds.items()},
        "moves": "as a folder" if unit.whole else "file by file", "cannot_move": unit.stays or None,
        "bytes_in": unit.bytes_before, "bytes_out": unit.bytes_after,
    }  # fmt: skip


def _span(span: Span) -> dict[str, float]:
    return {"median": span.median, "low": span.low, "high": span.high}


# -- the plan ------------------------------------------------------------------------------------------------


def moves_of(advice: Advice) -> list[tuple[Unit, Move]]:
    """Return what the advised way moves: whole folders, and input files one by one."""
    v = advice.verdict
    if v is None or advice.refused:
        return []
    found: list[tuple[Unit, Move]] = []
    moved = [u for u in v.way.moved(advice.units) if u.size]
    for unit in moved:
        storage = v.way.systems[unit.name]
        if any(o.whole and o is not unit and o.folder in (unit.folder, *unit.folder.parents) for o in moved):
            continue  # goes with the folder around it
        place = advice.site.storages[storage].scratch_path() / "placed"
        if unit.whole:
            inside = [o for o in moved if unit.folder in (o.folder, *o.folder.parents)]
            paths = [(str(unit.folder), True, True, any(o.changed or o.results for o in inside))]
        else:
            results = set(unit.results)
            paths = [(name, False, True, name in results) for name in unit.inputs]
        found += [
            (unit, Move(path, str(place / path.lstrip("/")), folder, brings_in, brings_out))
            for path, folder, brings_in, brings_out in paths
        ]
    return found


def _mounts(advice: Advice, moves: list[tuple[Unit, Move]]) -> set[str]:
    """Return the mount points of the storages that a plan moves from and to."""
    v = advice.verdict
    assert v is not None
    names = {s for unit, _ in moves for s in (unit.storage, v.way.systems[unit.name]) if s}
    return {str(advice.site.storages[name].mount_path()) for name in names}


def write(advice: Advice, folder: Path) -> Path:
    """Write ``advice.json`` and, where something moves, ``plan/`` into `folder`; return the document's
    path."""
    moves = moves_of(advice)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if moves:
            _write_plan(advice, moves, folder / "plan")
        text = json.dumps(document(advice), indent=1) + "\n"
        return write_text(folder / "advice.json", text, errors="surrogateescape")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None


def _write_plan(advice: Advice, moves: list[tuple[Unit, Move]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    v = advice.verdict
    assert v is not None
    (folder / "stage.sh").write_text(
        staging_script([move for _, move in moves], _mounts(advice, moves)),
        encoding="utf-8", errors="surrogateescape",
    )  # fmt: skip
    with (folder / "placement.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "unit", "storage", "home", "bytes", "input", "result"])
        records = {r.name: r for r in advice.recipe.records}
        for unit in advice.units:
            inputs, results = set(unit.inputs), set(unit.results)
            for name in unit.files:
                if not records[name].folder:
                    writer.writerow(
                        [name, unit.name, v.way.systems[unit.name], unit.storage, records[name].largest,
                         name in inputs, name in results]
                    )  # fmt: skip
    entries = [
        {"path": move.home, "place": move.place, "folder": move.folder, "system": v.way.systems[unit.name],
         "stage_in": move.brings_in, "stage_out": move.brings_out}
        for unit, move in moves
    ]  # fmt: skip
    (folder / "burst-buffer.map").write_text(
        "".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8", errors="surrogateescape"
    )
    (folder / "plan.json").write_text(
        json.dumps(
            {"site": advice.site.site, "home": advice.home, "way": v.way.name, "moves": entries,
             "storages": storage_facts(advice)}, indent=1,
        )
        + "\n",
        encoding="utf-8", errors="surrogateescape",
    )  # fmt: skip
