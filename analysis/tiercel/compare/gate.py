"""The third answer of a gate: nothing was found, and nothing could have been found."""

from __future__ import annotations

from collections import Counter

from tiercel.compare.answer import Answer
from tiercel.units import format_share


def no_power(answer: Answer, least: float) -> str:
    """Say how many rows could not have shown a slowdown to `least`, why, and what to run; empty for none."""
    blind = answer.powerless(least)
    if not blind:
        return ""
    whole = sum(row.alike for row in answer.rows)
    reason, _ = Counter(row.reason for row in blind).most_common(1)[0]
    needed = [n for row in blind if (n := row.comparison.value.needed) is not None]
    action = (
        f"run {max(needed)} more repetitions on each side" if needed else blind[0].comparison.value.action()
    )
    return (
        f"no power: {len(blind)} of {whole} rows could not have shown a slowdown by "
        f"{format_share(1 - least)} (most often: {reason}); {action}"
    )
