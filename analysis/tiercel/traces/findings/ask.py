"""Asks all rules: those on events where there are any, those on counters where there are those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiercel.errors import UserError, suggest
from tiercel.traces.analysis.common import layer_of
from tiercel.traces.findings.base import SEVERITIES, Case, Finding, Storage, rules
from tiercel.traces.findings.counted import counted_rules, explain_counters

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame


def explain(
    frame: IOFrame, storage: Storage | None = None, only: Iterable[str] | None = None, api: str | None = None
) -> list[Finding]:
    """Return what the rules (all, or those named by `only`) find in a trace, the gravest first.

    `api` is the layer whose calls count; left out, it is the lowest one that moved bytes. What a rule finds
    in events is not said once more from counters. UserError for a name that no rule has.
    """
    known = {*rules.names(), *counted_rules.names()}
    names = sorted(known) if only is None else list(only)
    for name in names:
        if name not in known:
            raise UserError(f"no finding rule named {name!r}: {suggest(name, known)}")
    storage = storage or Storage()
    found: list[Finding] = []
    if len(frame):
        case = Case(frame, layer_of(frame, api), storage)
        asked = [name for name in rules.names() if name in names]
        found = [finding for name in asked for finding in rules.get(name)(case)]
    said = {finding.rule for finding in found}
    found += [f for f in explain_counters(frame, names) if f.rule not in said]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
