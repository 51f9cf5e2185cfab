"""What a plan does again that was done before, since something changed: a version, a mount, a setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiercel.errors import UserError
from tiercel.results.raw import RawStore, read_json
from tiercel.study.plan import Run

#: Follow from the rest, or are no part of what is measured.
_IGNORED = {"format", "workload.title"}
#: Reasons that are told.
_SHOWN = 3


@dataclass(frozen=True)
class Replaced:
    """Why some runs of a plan are to come though runs of the same name have ended."""

    reason: str
    """``engine_version was 1.0 and is 1.1``."""
    runs: int


def replaced(left: Sequence[Run], store: RawStore, names: Collection[str]) -> tuple[Replaced, ...]:
    """Return what differs between `left` and finished runs of the same names; most runs first.

    `names`: all that the raw folder holds.
    """
    wanted = {_words(run.id) for run in left}
    earlier: dict[str, list[str]] = {}
    for name in names:
        if _words(name) in wanted and store.finished(name):
            earlier.setdefault(_words(name), []).append(name)
    reasons = Counter(
        reason
        for run in left
        # One of the very same name is damaged, which is told elsewhere.
        if (reason := _reason(run, store, [n for n in earlier.get(_words(run.id), []) if n != run.id]))
    )
    return tuple(Replaced(reason, count) for reason, count in reasons.most_common())


def sentence(found: Sequence[Replaced]) -> str:
    """Return ``12 of these runs replace earlier ones ...: engine_version was 1 and is 2``; empty for none."""
    if not found:
        return ""
    reasons = "; ".join(each.reason for each in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} other reasons" if len(found) > _SHOWN else ""
    runs = sum(each.runs for each in found)
    return f"{runs} of these runs replace earlier ones, because the setup changed: {reasons}{more}"


def _reason(run: Run, store: RawStore, names: Sequence[str]) -> str:
    """Return what changed since the latest of the named runs of the same study; empty for none of it.

    Runs through one layer with different options have one name: those with its options come first.
    """
    options = _options(run.configuration.identity())
    latest, row = (False, 0.0), None
    for name in names:
        path = store.path(name) / "run.json"
        try:
            found, at = read_json(path), path.stat().st_mtime
        except (OSError, UserError):
            continue  # a damaged run is told where runs are read
        if not isinstance(found, dict) or found.get("study") != run.configuration.study:
            continue
        if (rank := (_options(found) == options, at)) > latest:
            latest, row = rank, found
    if row is None:
        return ""
    said = [
        f"{name} was {_plain(old)} and is {_plain(new)}"
        for name, old, new in _differences(row, _now(run, row))
    ]
    return ", ".join(said) or "the definition of a run changed"


def _now(run: Run, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what determines a run, with the amount that the earlier one did: it is found, not given."""
    c = run.configuration
    identity = {"phase_time": None, **c.identity()}
    amount = before.get("amount")
    if amount and c.phase_time is not None:
        done = c.workload.with_amount(amount["amount"], amount["again"]).model_dump()
        identity["workload"] = {key: done[key] for key in identity["workload"]}
    return identity


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for key, value in now.items():
        name, old = prefix + key, before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from _differences(old, value, f"{name}.")
        elif name == "layers" and _options(before) == _options(now):
            for one, other in zip(old or (), value, strict=True):  # else the whole lists would be told
                yield from _differences(one, other, f"layer {one.get('layer')}: ")
        elif old != value and name not in _IGNORED:
            yield name, old, value


def _options(row: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the layers of a run without their versions."""
    found = row.get("layers")
    layers = found if isinstance(found, list) else []
    return [(one.get("layer"), one.get("options")) for one in layers if isinstance(one, Mapping)]


def _plain(value: object) -> str:
    """Return a value in words; of layers their labels."""
    if isinstance(value, list) and value and all(isinstance(v, Mapping) and v.get("label") for v in value):
        return " and ".join(str(each["label"]) for each in value)
    return "not set" if value in (None, "", []) else str(value)


def _words(run_id: str) -> str:
    """Return a run's name without what tells it from another of the same name."""
    return run_id.rpartition("-")[0]
