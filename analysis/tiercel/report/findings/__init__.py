"""Findings: sentences for one audience, each with the numbers that support it.

A rule is a function from results to findings. No rule claims a difference that the statistics did not:
`claim` needs a verdict, `hint` says what was seen in all repetitions and why that is no claim, `open` says
what could not be told apart. `fact` describes a number without comparing; `caution` and `failure` say what
to mind and what went wrong. To add one: a function in the file of its audience, and its name in RULES there,
or in RULES of a module that a subject names (`tiercel.subjects`).
"""

from __future__ import annotations

from tiercel.report.data import Results
from tiercel.report.findings import for_engineers, for_engineers_within, for_researchers, for_users
from tiercel.report.findings.finding import AUDIENCES, Evidence, Finding, Rule
from tiercel.subjects import load

__all__ = ["AUDIENCES", "RULES", "Evidence", "Finding", "find"]

RULES: tuple[Rule, ...] = (
    *for_users.RULES,
    *for_engineers.RULES,
    *for_engineers_within.RULES,
    *for_researchers.RULES,
    *(rule for module in load("findings") for rule in module.RULES),
)


def find(results: Results) -> list[Finding]:
    """Return the findings of all rules, in the order of the rules."""
    return [finding for rule in RULES for finding in rule(results)]
