"""What a comparison says in sentences, and how its rows are named; on the page as in the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from tiercel.compare.answer import Answer, Pair, tally, worst_first
from tiercel.compare.judging import Outcome, Row
from tiercel.compare.matching import Alone, Question
from tiercel.compare.side import Side
from tiercel.report import words

#: A slowdown that every watch should see.
HALVING = 0.5

#: An outcome is a word and a sign: never a colour alone.
SIGNS: dict[Outcome, str] = {"lost": "✖", "slower": "▼", "faster": "▲", "undecided": "·"}


def summary(answer: Answer) -> list[str]:
    """Return the sentences that come first: one for each other side, and for each origin of its numbers."""
    return [_of_origin(answer, pair, origin) for pair in answer.pairs for origin in pair.origins or [""]]


def _of_origin(answer: Answer, pair: Pair, origin: str) -> str:
    who = f"{pair.other.name} against {pair.base.name}"
    if not origin:
        return f"{who}: {_lost([], pair.failed)}nothing matched"
    rows = [row for row in pair.rows if row.origin == origin]
    mixed = not rows[0].alike
    failed = [a for a in pair.failed if a.question["origin"] == origin]
    whole = [a for a in pair.alone if a.whole and a.question["origin"] == origin and not mixed]
    everything = len(rows) + len(_keys(whole))
    lonely = len(_keys([a for a in whole if a.side != pair.base.name]))
    missing = len(_keys([a for a in whole if a.side == pair.base.name and not a.lost]))
    several = len(pair.origins) > 1 or origin != "measured"
    absent = f"{missing} of {pair.base.name} without a partner; " if missing else ""
    matched = f"{len(rows)} matched" if mixed else f"{len(rows)} of {everything} matched"
    said = (
        f"{who}{f', {origin}' if several else ''}: {_lost(rows, failed)}{absent}{matched}: {_outcomes(rows)}"
    )
    if lonely:
        said += f"; {lonely} of {pair.other.name} without a partner"
    return said


def _outcomes(rows: Sequence[Row]) -> str:
    rows = [row for row in rows if row.outcome != "lost"]
    if not rows:
        return "none with a rate on both sides"
    counts, order = tally(rows), worst_first(rows)
    loaded = sum(row.loaded for row in rows)
    held = f"; {loaded} not claimed because of the load by other programs" if loaded else ""
    if counts["undecided"] == len(rows):
        return f"nothing is proven slower or faster: {_undecided(rows)}{held}"
    parts = []
    for outcome, most in (("slower", "worst"), ("faster", "most")):
        found = [row for row in order if row.outcome == outcome]
        if found:
            example = f"{name_of(found[0])}, {words.times(found[0].comparison.ratio)}"
            parts.append(f"{len(found)} {outcome} beyond noise ({most}: {example})")
        elif outcome == "slower":
            parts.append("none proven slower")
    if counts["undecided"]:
        parts.append(f"the rest open: {_undecided([row for row in order if row.outcome == 'undecided'])}")
    return ", ".join(parts) + held


def _lost(rows: Sequence[Row], failed: Sequence[Alone]) -> str:
    """Say what the other side was asked for and did not give: worse than slower, and therefore first."""
    lost = [row for row in rows if row.outcome == "lost"]
    parts = []
    if failed:
        often, most = Counter(a.detail for a in failed).most_common(1)[0][::-1]
        where = "" if often == len(failed) else "most often: "
        parts.append(f"{len(_keys(failed))} lost, their runs failed ({where}{most})")
    if lost:
        parts.append(f"{len(lost)} lost, without a rate ({name_of(lost[0])}: {lost[0].lost})")
    return "".join(f"{part}; " for part in parts)


def _undecided(rows: Sequence[Row]) -> str:
    """Return what undecided rows could have shown, and the largest effect among those that could not."""
    blind = [row for row in rows if row.blind(HALVING)]
    if not blind:
        return "each could have shown a halving"
    largest = worst_first(blind)[0]
    effect, reason = largest.comparison.value.effect(), largest.reason
    return (
        f"{len(blind)} of {words.count(len(rows), 'row')} could not have shown a halving "
        f"(largest effect: {name_of(largest)}, {effect}; {reason})"
    )


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
                "machine in between looks like a difference; sessions are taken to vary by 5 %, or by what "
                "--baseline shows"
            )
        found += _of_values(pair)
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
        least, most = 1 / (1 + answer.margin), 1 + answer.margin
        found.append(f"ratios from {least:.3g} to {most:.3g} are taken for noise (--margin)")
    return found


def _of_values(pair: Pair) -> list[str]:
    """Return what no single row says: values that are no rates, unknown load."""
    found = []
    for side, number in ((pair.base, 0), (pair.other, 1)):
        with_strays = [row for row in pair.rows if row.strays[number]]
        if with_strays:
            values = words.count(sum(row.strays[number] for row in with_strays), "value")
            of_rows = words.count(len(with_strays), "row")
            found.append(
                f"{side.name}: {values} of {of_rows} missing, infinite, negative or zero: no rates, and left "
                "out"
            )
    if pair.load_unknown and pair.rows and not pair.interleaved:
        found.append(
            f"{pair.load_unknown}: nobody recorded how much of the cores other programs used: a difference "
            "may be them"
        )
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
        if not c.differs and c.known:
            same.append(f"{c.name} {c.together}")
    return ", ".join(same)


def unknown(answer: Answer) -> str:
    """Return the circumstances that a side does not say, so that nobody knows whether they differ."""
    return "; ".join(
        f"{c.name} ({', '.join(v or 'unknown' for v in c.values)})"
        for c in answer.circumstances
        if not c.differs and not c.known
    )


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
    said = f"{SIGNS[row.outcome]} {row.outcome}"
    if row.outcome == "undecided":
        return f"{SIGNS[row.outcome]} {row.comparison.value.sentence()}"
    return f"{said}: {row.reason}" if row.outcome == "lost" else said


def findable_of(row: Row) -> str:
    """Return below which ratio an undecided row would have been claimed as slower, or ``nothing``."""
    if row.outcome != "undecided" or row.same:
        return ""
    return f"below {words.times(row.findable)}" if math.isfinite(row.findable) else "nothing"


def _keys(alone: Sequence[Alone]) -> set[tuple[str, tuple[str, ...]]]:
    return {(a.side, a.question.key) for a in alone}
