"""A verdict is a value: what a comparison shows, the rule that decided, and what would change it.

Tables, pages, terminals and gates render this value. They decide nothing and invent no reason. The method
that makes it is on one page: docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tiercel.pages.words import count, factor, percent
from tiercel.units import format_duration

#: Fewer repetitions on a side than these decide nothing.
MINIMUM = 4
#: Two systems are the same if their ratio surely lies between 1 / MARGIN and MARGIN (`margin:` in a study).
MARGIN = 1.1
#: "The same" is said from so many repetitions on each side: the interval of fewer is too short.
SAME_FROM = 5
#: More repetitions of each side than these are not asked for.
MOST = 100
#: A comparison that could not have shown a doubling has no power.
POWERLESS = 2.0


class Outcome(StrEnum):
    """The first side against the second, of rates: more is better."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    NOT_DECIDED = "not decided"
    NO_POWER = "no power"

    @property
    def decided(self) -> bool:
        return self in (Outcome.BETTER, Outcome.WORSE, Outcome.SAME)


class Rule(StrEnum):
    """The rule that fired: it made the verdict, or prevented one."""

    DIFFERENCE = "difference"
    EQUIVALENCE = "equivalence"
    NO_RATE = "no rate"
    FEW_REPETITIONS = "few repetitions"
    NO_REPLICATE = "no replicate"
    REPETITIONS = "repetitions vary"
    LAYOUT = "layout sessions vary"
    ROUND_DRIFT = "round drift"
    SCALES = "scales differ"
    SOME_RUNS = "some runs only"
    NOT_IN_TURN = "not in turn"
    SESSIONS = "sessions vary"
    LOAD = "load"
    CONTRADICTED = "contradicted"


#: What would decide a comparison where no number of repetitions up to `MOST` would.
_INSTEAD = {
    Rule.NO_RATE: "check why a run gave no rate",
    Rule.NO_REPLICATE: "set `twins: true` in the study and measure again",
    Rule.NOT_IN_TURN: "set a new `seed:` in the study, so that both are measured in turn",
    Rule.REPETITIONS: f"more than {MOST} repetitions of each side would be needed",
    Rule.LAYOUT: "repeat the study with more workloads: more repetitions do not help",
    Rule.ROUND_DRIFT: "repeat the study at another time: more repetitions do not help",
    Rule.LOAD: "measure again while both machines are equally loaded",
    Rule.SCALES: "compare at each scale",
    Rule.SESSIONS: "add sessions: give several baselines",
    Rule.CONTRADICTED: "measure again in a new study",
    Rule.SOME_RUNS: "look at the single runs: only some of them differ",
}

#: Rules of a variance, which `Verdict.detectable` follows from.
_VARIES = (Rule.REPETITIONS, Rule.LAYOUT, Rule.ROUND_DRIFT, Rule.SESSIONS)


@dataclass(frozen=True)
class Verdict:
    """One comparison. Every number is of the first side over the second."""

    outcome: Outcome
    rule: Rule
    ratio: float
    """Of rates. NaN where a side has none."""
    low: float
    """The 95 % interval of the ratio; NaN where it is unknown."""
    high: float
    p: float = math.nan
    """Corrected for the family of comparisons."""
    n_a: int = 0
    """Repetitions of a side at its scale; of several scales the fewest."""
    n_b: int = 0
    family: int = 1
    """How many comparisons the correction is for."""
    detectable: float = math.inf
    """The smallest ratio above 1 that this comparison detects with a chance of 80 %."""
    needed: int | None = None
    """How many more repetitions on each side would decide it; None where repetitions would not."""
    margin: float = MARGIN
    extent: float = math.nan
    """What the rule rests on: the ratio that layout sessions, rounds or sessions alone reach; the ratio at
    the farthest scale; the seconds between two sides that were not measured in turn."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict of a row of any table of comparisons (:meth:`columns`)."""
        needed = row.get("needed", math.nan)
        return cls(
            Outcome(row["outcome"]), Rule(row["rule"]), float(row["ratio"]), float(row["low"]),
            float(row["high"]), float(row["p_corrected"]), int(row["n_a"]), int(row["n_b"]),
            int(row["family"]), float(row["detectable"]), None if math.isnan(needed) else int(needed),
            float(row.get("margin", MARGIN)), float(row["extent"]),
        )  # fmt: skip

    def columns(self) -> dict[str, Any]:
        """Return the value as columns of a table.

        `verdict` and `reason` are the columns of earlier releases and say the same.
        """
        old = {Outcome.BETTER: "higher", Outcome.WORSE: "lower"}
        return {
            "ratio": self.ratio, "low": self.low, "high": self.high, "n_a": self.n_a, "n_b": self.n_b,
            "p_corrected": self.p, "outcome": str(self.outcome), "rule": str(self.rule),
            "family": self.family, "detectable": self.detectable, "extent": self.extent,
            "needed": math.nan if self.needed is None else float(self.needed), "margin": self.margin,
            "verdict": old.get(self.outcome, "undecided"), "reason": self.reason,
        }  # fmt: skip

    def reversed(self) -> Verdict:
        """Return the verdict of the second side against the first."""
        turned = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}
        return replace(
            self, outcome=turned.get(self.outcome, self.outcome), ratio=_over(self.ratio),
            low=_over(self.high), high=_over(self.low), n_a=self.n_b, n_b=self.n_a,
            extent=_over(self.extent) if self.rule is Rule.SCALES else self.extent,
        )  # fmt: skip

    def became(self, outcome: Outcome, rule: Rule, p: float = math.nan) -> Verdict:
        """Return the value with another outcome, by the rule that fired last."""
        return replace(
            self, outcome=outcome, rule=rule, p=self.p if math.isnan(p) else p, needed=None, extent=math.nan
        )

    @property
    def repetitions(self) -> int:
        """Return the repetitions of the side that has fewer."""
        return min(self.n_a, self.n_b)

    @property
    def reason(self) -> str:
        """Return why nothing is decided; empty for a decision."""
        p = f"p = {self.p:.2g}" + (f" among {self.family} comparisons" if self.family > 1 else "")
        return {
            Rule.NO_RATE: "a value is zero or missing",
            Rule.FEW_REPETITIONS: f"{self.repetitions} of {MINIMUM} repetitions",
            Rule.NO_REPLICATE: "no replicate was measured, so the noise is unknown",
            Rule.REPETITIONS: f"repetitions vary as much ({p})",
            Rule.LAYOUT: f"layout sessions of one system differ by up to {factor(self.extent)} times ({p})",
            Rule.ROUND_DRIFT: f"the two changed against each other between rounds by up to "
            f"{percent(self.extent - 1)} ({p})",
            Rule.SCALES: f"the ratio is {factor(self.extent)} at one scale and {factor(self.ratio)} over all",
            Rule.SOME_RUNS: "some runs differ, usual ones do not",
            Rule.NOT_IN_TURN: f"not measured in turn: one side began {_duration(self.extent)} later",
            Rule.SESSIONS: f"two sessions of one system differ by up to {factor(self.extent)} times ({p})",
            Rule.LOAD: "other programs loaded one machine more than the other",
            Rule.CONTRADICTED: "an earlier round claimed a difference and later ones do not confirm it",
        }.get(self.rule, "")  # fmt: skip

    def effect(self) -> str:
        """Return ``258 times faster, 95 % CI 81 to 562``: what was seen, whatever is decided."""
        if not math.isfinite(self.ratio) or self.ratio <= 0:
            return "no ratio"
        ratio, low, high, word = self.ratio, self.low, self.high, "faster"
        if ratio < 1:
            ratio, low, high, word = 1 / ratio, _over(high), _over(low), "slower"
        known = math.isfinite(low) and math.isfinite(high)
        return f"{factor(ratio)} times {word}, " + (
            f"95 % CI {factor(low)} to {factor(high)}" if known else "interval unknown"
        )

    def confidence(self) -> str:
        """Return ``confirmed (p = 0.003)`` or ``not yet confirmed: 3 of 4 repetitions``."""
        if self.outcome is Outcome.SAME:
            return f"the same within {percent(self.margin - 1)}"
        if self.outcome.decided:
            return f"confirmed (p = {self.p:.2g})"
        seen = math.isfinite(self.ratio) and max(self.ratio, 1 / self.ratio) > self.margin
        said = f"{'not yet confirmed' if seen else 'not decided'}: {self.reason}"
        if self.outcome is Outcome.NO_POWER and self.rule in _VARIES:
            said += "; " + (
                f"only {factor(self.detectable)} times or more would have been detected"
                if math.isfinite(self.detectable) else "no difference would have been detected"
            )  # fmt: skip
        return said

    def action(self) -> str:
        """Return what would decide it; empty where it is decided."""
        if self.outcome.decided:
            return ""
        if self.needed is not None:
            return f"run {count(self.needed, 'more repetition')} of each side"
        return _INSTEAD.get(self.rule, "repeat the study: more repetitions do not help")

    def to_detect(self, ratio: float) -> str:
        """Return what to do so that a repeated comparison detects a `ratio` above 1."""
        more = MINIMUM - self.repetitions if self.rule is Rule.FEW_REPETITIONS else 0
        if self.rule is Rule.REPETITIONS and math.isfinite(self.detectable):
            # An interval is as wide as one over the root of the repetitions.
            times = (math.log(self.detectable) / math.log(ratio)) ** 2
            more = math.ceil(self.repetitions * (times - 1))
        if 0 < more <= MOST:
            return f"run at least {count(more, 'more repetition')} of each side"
        return _INSTEAD.get(self.rule, "")

    def sentence(self) -> str:
        """Return effect, confidence and action, in this order."""
        return "; ".join(part for part in (self.effect(), self.confidence(), self.action()) if part)


def _over(number: float) -> float:
    return 1 / number if number else math.inf


def _duration(seconds: float) -> str:
    return format_duration(seconds) if math.isfinite(seconds) else "some time"
