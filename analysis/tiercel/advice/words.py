"""The advice in sentences: what its I/O costs the program, where its files belong, what that saves, what
to mind."""

from __future__ import annotations

import os
from typing import Any

from tiercel.advice.answer import Advice
from tiercel.advice.judge import Span, WayResult
from tiercel.advice.units import Unit
from tiercel.advice.ways import HOME
from tiercel.units import format_latency, format_share, format_size

#: Below this share of the run, I/O is not what a program waits for.
_LITTLE = 0.03


def label(advice: Advice, storage: str) -> str:
    """Return a storage's name for people."""
    found = advice.site.storages.get(storage)
    return (found.label or storage) if found else storage


def way_title(advice: Advice, way: WayResult) -> str:
    """Return a way's name for people."""
    if way.name == HOME:
        return "where they are"
    if way.name.startswith("all on "):
        return f"all on {label(advice, way.name.removeprefix('all on '))}"
    moved = [u for u in way.moved(advice.units) if u.size]
    if len({way.systems[u.name] for u in moved}) == 1:
        return f"{_units(moved)} on {label(advice, way.systems[moved[0].name])}"
    return "each where it is fastest"


def sentences(advice: Advice) -> list[str]:
    """Return the answer: a few sentences, the most important first."""
    found = [f"{advice.refused[0].upper()}{advice.refused[1:]}."] if advice.refused else []
    if advice.io is None:
        if found:
            return found
        if not advice.units:
            return ["It reads and writes no files of its own, so there is nothing to place."]
        return ["Nothing could be measured: see the notes."]
    if advice.refused:
        # What was replayed is not what the program did: it says nothing of the whole.
        return found
    found.append(_io_sentence(advice))
    found += _verdict_sentences(advice)
    found += [hint.sentence[0].upper() + hint.sentence[1:] + "." for hint in advice.hints]
    return found


def _io_sentence(advice: Advice) -> str:
    io = advice.io
    assert io is not None
    moved = f"{format_size(io.bytes_read)} read, {format_size(io.bytes_written)} written"
    waits = format_latency(io.waited)
    if io.share < _LITTLE:
        return (
            f"I/O is not what it waits for: on storage that takes no time at all it would run {waits} of "
            f"{format_latency(io.run)} shorter ({format_share(io.share, 1)}; {moved})."
        )
    hidden = (
        f", {format_latency(io.hidden)} more is hidden behind other work"
        if io.hidden > 0.1 * io.calls
        else ""
    )
    run = format_latency(io.run)
    return f"It waits for I/O {waits} of the {run} that it runs ({format_share(io.share)}{hidden}; {moved})."


def _verdict_sentences(advice: Advice) -> list[str]:
    v = advice.verdict
    if v is None:
        return []
    said = []
    if v.way is not v.home:
        moved = [u for u in v.way.moved(advice.units) if u.size]
        said.append(
            f"Put {_units(moved)} on {_targets(advice, moved)}: a run takes {_span(v.way.saved)} less of "
            f"{format_latency(v.home.run.median)}, and copying adds {format_latency(v.way.copies)}."
        )
        for storage in sorted({v.way.systems[u.name] for u in moved}):
            said += _minds(advice, storage)
    elif v.decided:
        said.append(f"Leave the files where they are ({label(advice, advice.home)}): {_reason(advice)}.")
    else:
        said.append(
            f"Not decided, so leave the files where they are ({label(advice, advice.home)}): "
            f"{_reason(advice)}."
        )
    if v.copied is not None and v.copied.copies > 0:
        said.append(_copying_sentence(advice, v.copied))
    if v.living is not None and v.living.name != v.way.name:
        said.append(
            f"If they lived there instead of being copied for each run, "
            f"{way_title(advice, v.living)} would "
            f"save {_span(v.living.saved)}."
        )
    return said


def _copying_sentence(advice: Advice, way: WayResult) -> str:
    """Say what a way would save but for copying, and after how many runs that pays."""
    said = (
        f"But for copying, {way_title(advice, way)} makes a run {_span(way.saved)} shorter; copying in and "
        f"out adds {format_latency(way.copies)} to each"
    )
    if way.pays_from is None:
        return f"{said}, and may cost more however many runs share what was copied in."
    return f"{said}. Copied in once for {way.pays_from} runs it pays: ask again with --runs {way.pays_from}."


def _reason(advice: Advice) -> str:
    """Return the verdict's reason with ways named for people."""
    v = advice.verdict
    assert v is not None
    said = v.reason
    if len(advice.ways) == 1 and v.way is v.home and advice.left_out and "no other storage" in said:
        reasons = "; ".join(
            f"{label(advice, name.removeprefix('all on '))}: {why}" for name, why in advice.left_out.items()
        )
        return f"no other storage could be tried ({reasons})"
    for way in advice.ways:
        said = said.replace(f"{way.name} against home", f"{way_title(advice, way)} against where they are")
        said = said.replace(f"{way.name},", f"{way_title(advice, way)},").replace(
            f"{way.name} gains", f"{way_title(advice, way)} gains"
        )
    return said


def _units(units: list[Unit]) -> str:
    if len(units) == 1:
        return units[0].name
    folder = os.path.commonpath([str(u.folder) for u in units])
    return f"{len(units)} folders below {folder}" if folder != "/" else f"{len(units)} folders"


def _targets(advice: Advice, moved: list[Unit]) -> str:
    v = advice.verdict
    assert v is not None
    return " and ".join(label(advice, s) for s in sorted({v.way.systems[u.name] for u in moved}))


def _minds(advice: Advice, storage: str) -> list[str]:
    found = advice.site.storages[storage]
    name = label(advice, storage)
    if found.medium == "memory":
        return [
            f"{name} is memory: what lies there is gone after a restart, so results are copied out "
            f"after each run."
        ]
    if advice.site.node_local(found):
        return [f"{name} is seen by one node only: copy in and out in the same job."]
    return []


def _span(span: Span) -> str:
    return (
        f"{format_latency(span.median)} ({format_latency(max(0.0, span.low))} to {format_latency(span.high)})"
    )


def storage_facts(advice: Advice) -> list[dict[str, Any]]:
    """Return what a plan must know of each storage: how long files stay, who sees them, what room is left."""
    found = []
    for name, storage in advice.site.storages.items():
        try:
            space = os.statvfs(storage.mount_path())
            free: int | None = space.f_bavail * space.f_frsize
        except OSError:
            free = None
        found.append(
            {
                "storage": name,
                "label": storage.label or name,
                "type": storage.type,
                "medium": storage.medium,
                "kept": "until a restart" if storage.medium == "memory" else "until removed",
                "seen_by": "every node" if storage.shared else "this node",
                "free_bytes": free,
                "tried": name in advice.storages,
            }
        )
    return found
