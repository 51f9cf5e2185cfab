"""Rules that turn a trace into findings with evidence: importing this package registers them all.

All are under `base.rules`, look at one `Case`, whether the trace has events or counters, and `ask` asks them.
"""

from tiercel.traces.findings import access as access
from tiercel.traces.findings import balance as balance
from tiercel.traces.findings import cache as cache
from tiercel.traces.findings import calls as calls
from tiercel.traces.findings import collective as collective
from tiercel.traces.findings import contention as contention
from tiercel.traces.findings.ask import explain, mute, tellable, unjudged
from tiercel.traces.findings.base import Finding, Storage, findings_table, percent, rules

__all__ = [
    "Finding",
    "Storage",
    "explain",
    "findings_table",
    "mute",
    "percent",
    "rules",
    "tellable",
    "unjudged",
]
