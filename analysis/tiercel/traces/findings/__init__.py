"""Rules that turn a trace into findings with evidence, in a file by theme.

All are under `base.rules`, look at one `Case`, whether the trace has events or counters, and `ask` asks them.
"""

from tiercel.pages.words import percent
from tiercel.traces.findings.ask import explain, mute, no_findings, tellable, unjudged
from tiercel.traces.findings.base import Finding, Storage, findings_table, rules

__all__ = [
    "Finding",
    "Storage",
    "explain",
    "findings_table",
    "mute",
    "no_findings",
    "percent",
    "rules",
    "tellable",
    "unjudged",
]
