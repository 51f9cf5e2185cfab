"""What the rules on traces find in a program's calls on its data."""

from __future__ import annotations

from tiercel.advice.answer import IoCost
from tiercel.advice.capture import Capture
from tiercel.advice.units import PROGRAM_FILES
from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.traces import IOFrame
from tiercel.traces.engine import quoted
from tiercel.traces.findings import Finding, explain, rules

#: Rules that compare ranks.
_OF_RANKS = frozenset({
    "imbalance", "slow-part", "shared-file-contention", "single-writer", "no-mpiio", "independent-io",
    "read-after-write",
})  # fmt: skip
#: Kinds of calls that take less of the run than this are in no finding.
_WORTH_A_WORD = 0.01


def findings(frame: IOFrame, io: IoCost | None, capture: Capture | None) -> tuple[Finding, ...]:
    """Return what the rules find in the program's calls on data, of the kinds that take time.

    Findings on libraries and devices, and on reads that take a thousandth of the run, help nobody; and a
    system-call trace has processes, no ranks, so that rules on ranks say nothing of it.
    """
    system = " OR ".join(f"starts_with(file, {quoted(folder)})" for folder in SYSTEM_FOLDERS)
    parts = quoted(PROGRAM_FILES.pattern)
    data = frame.where(f"file IS NULL OR NOT ({system} OR regexp_matches(file, {parts}))")
    ranks = capture is None or capture.tracer != "strace"
    found = explain(data, only=[name for name in rules.names() if ranks or name not in _OF_RANKS])
    if io is None:
        return tuple(found)
    writes = io.by_kind["write"] + io.by_kind["sync"]
    took = {
        "reads": io.by_kind["read"], "writes": writes, "fsync-storm": writes,
        "metadata-bound": io.by_kind["metadata"], "cached-reads": io.by_kind["read"],
        "random-access": io.by_kind["read"] + writes,
    }  # fmt: skip
    return tuple(f for f in found if took.get(_kind_of(f), io.calls) >= _WORTH_A_WORD * io.run)


def _kind_of(finding: Finding) -> str:
    """Return the rule of a finding, and of the rule on small transfers what they are of."""
    if finding.rule != "small-transfers":
        return finding.rule
    return "reads" if " reads move" in finding.sentence else "writes"
