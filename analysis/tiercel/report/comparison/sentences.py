"""What a comparison says in sentences, and how its rows are named; on the page as in the terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime

from tiercel.compare.answer import Answer, Pair, tally, worst_first
from tiercel.compare.judging import Outcome, Row
from tiercel.compare.matching import Alone, Question
from tiercel.compare.side import Side
from tiercel.report import words

#: An outcome is a word and a sign: never a colour alone.
SIGNS: dict[Outcome, str] = {"slower": "▼", "faster": "▲", "undecided": "·"}


def summary(answer: Answer) -> list[str]:
    """Return the sentences that come first: one for each other side, and for each origin of its numbers."""
    return [_of_origin(answer, pair, origin) for pair in answer.pairs for origin in pair.origins or [""]]


def _of_origin(answer: Answer, pair: Pair, origin: str) -> str:
    who = f"{pair.other.name} against {pair.base.name}"
    if not origin:
        return f"{who}: nothing matched"
    rows = [row for row in pair.rows if row.origin == origin]
    mixed = not rows[0].alike
    lonely = 0 if mixed else len(_whole([a for a in pair.alone if a.question["origin"] == origin]))
    several = len(pair.origins) > 1 or origin != "measured"
    matched = f"{len(rows)} matched" if mixed else f"{len(rows)} of {len(rows) + lonely} matched"
    said = f"{who}{f', {origin}' if several else ''}: {matched}: {_outcomes(rows)}"
    if lonely:
        said += f"; {lonely} without a partner"
    return said


def _outcomes(rows: Sequence[Row]) -> str:
    counts, order = tally(rows), worst_first(rows)
    loaded = sum(row.loaded for row in rows)
    held = f"; {loaded} not claimed because of the load by other programs" if loaded else ""
    if counts["undecided"] == len(rows):
        return f"nothing is slower or faster beyond noise{_noise(rows)}{held}"
    parts = []
    for outcome, most in (("slower", "worst"), ("faster", "most")):
        found = [row for row in order if row.outcome == outcome]
        if found:
            example = f"{name_of(found[0])}, {words.times(found[0].comparison.ratio)}"
            parts.append(f"{len(found)} {outcome} beyond noise ({most}: {example})")
        elif outcome == "slower":
            parts.append("none slower beyond noise")
    if counts["undecided"]:
        parts.append(f"{'the rest' if parts else 'all'} not told apart")
    return ", ".join(parts) + held


def _noise(rows: Sequence[Row]) -> str:
    """Say how large a difference could have hidden."""
    known = [row.comparison.floor.high for row in rows if row.comparison.floor.known]
    if not known:
        return ", because no A/A pair was run on one side"
    return f" (which is a factor of {words.factor(statistics.median(known))} in the median)"


def remarks(answer: Answer) -> list[str]:
    """Return what must be known to read the answer: sessions, partners by map or type, notes of the sides."""
    found = []
    for pair in answer.pairs:
        who = f"{pair.base.name} and {pair.other.name}"
        if pair.interleaved:
            found.append(f"{who} are of one session: their repetitions took turns")
        elif pair.rows:
            found.append(
                f"{who} are different sessions: their repetitions did not take turns, so what changed on the "
                "machine in between looks like a difference; the wider of both sides' noise is used"
            )
        if pair.shared_runs:
            found.append(f"{who} share {words.count(pair.shared_runs, 'run')}")
        for one, two in pair.stacks.storages.items():
            if one != two:
                why = pair.stacks.why[one]
                found.append(f"{two} of {pair.other.name} stands beside {one} of {pair.base.name} ({why})")
        partial = [a for a in pair.alone if not a.whole]
        if partial:
            found.append(
                f"{who}: {words.count(len(partial), 'number')} at single scales of what is matched "
                f"{'has' if len(partial) == 1 else 'have'} no partner"
            )
    found += [f"{side.name}: {note}" for side in answer.sides for note in side.notes]
    if answer.margin:
        found.append(f"differences up to {words.percent(answer.margin)} are taken for noise (--margin)")
    return found


def differing(answer: Answer) -> list[str]:
    """Return the circumstances that differ, as ``kernel (6.1, 6.8)``."""
    return [
        f"{c.name} ({', '.join(v or 'unknown' for v in c.values)})" for c in answer.circumstances if c.differs
    ]


def equal(answer: Answer) -> str:
    """Return the circumstances that are the same on all sides, in one line."""
    same = []
    for c in answer.circumstances:
        if not c.differs:
            same.append(f"{c.name} {c.together}")
    return ", ".join(same)


def name_of(row: Row) -> str:
    """Return ``Sequential read on NFS``."""
    return f"{title_of(row.match.base)} on {stack_of(row)}"


def title_of(question: Question) -> str:
    """Return the workload's title; with the operation where the title does not say it."""
    if question.metric == "bandwidth":
        return question["title"]
    return f"{words.operation(question['operation'])}: {question['title']}"


def stack_of(row: Row) -> str:
    """Return the stack's name; both where the partner has another."""
    one, two = (words.stack(q["storage_label"], q["layer"]) for q in (row.match.base, row.match.other))
    return one if one == two else f"{one} / {two}"


def scale_of(row: Row) -> str:
    if row.scale is None:
        return f"all {len(row.match.scales)}"
    return words.scale(*row.scale)


def when(side: Side) -> str:
    """Return when a side's runs began."""
    if side.span is None:
        return ""
    first, last = (datetime.fromtimestamp(t, UTC) for t in side.span)
    if first.date() == last.date():
        return f"{first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC"
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def verdict_of(row: Row) -> str:
    """Return ``▼ slower``, or why it is undecided."""
    c = row.comparison
    said = f"{SIGNS[row.outcome]} {row.outcome}"
    return said if row.outcome != "undecided" else f"{said}: {c.reason}"


def _whole(alone: Sequence[Alone]) -> set[tuple[str, tuple[str, ...]]]:
    return {(a.side, a.question.key) for a in alone if a.whole}
