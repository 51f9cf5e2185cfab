"""The answer of a gate: pass, fail, or no power (nothing was found, and something could not have been)."""

from __future__ import annotations

from collections import Counter

from tiercel.compare.answer import Answer
from tiercel.pages.words import count
from tiercel.units import format_share


def gate(answer: Answer, fail_on: str, least: float) -> dict[str, str]:
    """Return ``{"answer": "pass" | "fail" | "no power", "reason": sentence}``."""
    if answer.found(fail_on):
        return {"answer": "fail", "reason": f"something is {fail_on} or lost"}
    reason = no_power(answer, least)
    if reason:
        return {"answer": "no power", "reason": reason}
    untested = len(answer.untested())
    said = f"{count(untested, 'number')} not tested: neither side has a valid one" if untested else ""
    return {"answer": "pass", "reason": said}


def no_power(answer: Answer, least: float) -> str:
    """Return what could not have shown a slowdown to `least` of the rate, why, and what to run; empty where
    every number of the baseline could."""
    said = []
    blind = answer.powerless(least)
    if blind:
        rows = len(answer.rows)
        reason, _ = Counter(row.reason for row in blind).most_common(1)[0]
        actions = Counter(action for row in blind if (action := row.comparison.value.to_detect(1 / least)))
        said.append(
            f"{len(blind)} of {rows} rows could not have shown a slowdown by {format_share(1 - least)} "
            f"(most often: {reason})"
        )
        said += [action for action, _ in actions.most_common(1)]
    missing = answer.unmeasured()
    if missing:
        reason, _ = Counter(each.reason for each in missing).most_common(1)[0]
        said.append(
            f"{count(len(missing), 'number')} of the baseline without a partner (most often: {reason}): "
            "measure again, or narrow the baseline"
        )
    said += [
        f"{side.name} has no runs.parquet, so runs that failed are not known: collect the results again"
        for side in answer.sides if not side.failures_known
    ]  # fmt: skip
    return f"no power: {'; '.join(said)}" if said else ""
