"""The sentences of the first screen: where to put files, what that gains, what to mind, what is open."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.report import deciding, words
from tiercel.report.classes import WorkloadClass, in_sentence, undecided
from tiercel.report.columns import storages
from tiercel.report.data import Record, Results
from tiercel.report.room import free_bytes, storage_of
from tiercel.site.model import Site
from tiercel.statistics.ranking import reverse
from tiercel.statistics.verdict import Outcome, Rule, Verdict
from tiercel.units import format_duration, format_size

#: Places that a sentence names.
_NAMED = 3
#: What was measured over more seconds than these saw the load of more than one part of a day.
_ONE_SESSION = 12 * 3600


def where(results: Results, found: Sequence[WorkloadClass]) -> str:
    stacks = list(dict.fromkeys(s for c in found for s in c.ranking.standings))
    lasting = [s for s in stacks if s not in results.memory]
    name = results.name
    if len(stacks) == 1:
        return single(results, stacks[0])
    lost = [s.label for s in results.silent.values() if s.stack not in results.memory]
    if not lasting:
        unknown = (
            f": {words.listed(lost)} gave no number, so where to keep files is not known" if lost else ""
        )
        said = f"Everything measured here is memory, which keeps no file over a restart{unknown}."
        return said + (_through(results, found, stacks) if len(storages(stacks)) == 1 else "")
    if len(base := storages(lasting)) == 1:
        only = f"Keep your files on {name(base[0])}: it is the only storage here that keeps them."
        if lost:
            only = (
                f"Keep your files on {name(base[0])}: of the storages that keep them, it alone gave numbers."
            )
        return f"{only}{_through(results, found, lasting)}"
    best, anywhere = _places(found, lasting)
    if not best and not anywhere:
        # A storage may have no number of some class.
        if not any(of.rows for c in found for s, of in c.ranking.standings.items() if s in lasting):
            return "No place can be named: nothing that keeps files could be compared."
        avoided = _avoided(results, found, lasting)
        if not avoided:
            return _nowhere(found)
        return f"No storage here is proven to be the best for any of these workloads. {avoided}"
    parts = [f"on {name(stack)} for {_classes(some, len(found))}" for stack, some in best.items()]
    if len(best) == 1 and len(next(iter(best.values()))) == len(found):
        parts = [f"on {name(next(iter(best)))}"]
    if anywhere:
        parts.append(f"anywhere for {_classes(anywhere, len(found))}")
    told = {c.key for some in (anywhere, *best.values()) for c in some}
    left = [c for c in found if c.key not in told]
    rest = ""
    if left:
        avoided = _avoided(results, left, lasting)
        rest = f" For the other {'one' if len(left) == 1 else len(left)} no place is proven to be the best."
        rest += f" There: {in_sentence(avoided)}" if avoided else ""
    return f"Put your files {'; '.join(parts)}.{rest}"


def _nowhere(found: Sequence[WorkloadClass]) -> str:
    """Say that no place is proven better, with the largest difference that was seen."""
    rows = [row for c in found for s in c.ranking.standings.values() for row in s.rows]
    rows = [row for row in rows if row["outcome"] in (Outcome.NO_POWER, Outcome.NOT_DECIDED)]
    said = "No storage here is proven better than another for any of these workloads"
    if not rows:
        return f"{said}: put files where there is room."
    far = max(rows, key=lambda row: max(row["ratio"], 1 / row["ratio"]))
    sides = far["stack_a"], far["stack_b"]
    seen = Verdict.of(far).sentence()
    return f"{said}. The largest difference seen: {sides[0]} against {sides[1]}, {seen}."


def _avoided(results: Results, found: Sequence[WorkloadClass], lasting: Sequence[str]) -> str:
    """Name what is slower beyond chance where no place is the best; empty where nothing is."""
    slow: dict[str, list[tuple[WorkloadClass, float]]] = {}
    for c in found:
        for stack in lasting:
            if c.ranking.advice.get(stack) == "avoid":
                slow.setdefault(stack, []).append((c, 1 / c.ranking.standings[stack].rows[0]["ratio"]))
    if not slow:
        return ""
    ordered = sorted(slow, key=lambda s: (-len(slow[s]), -max(by for _, by in slow[s])))
    parts = []
    for stack in ordered[:_NAMED]:
        least, most = (words.factor(edge(by for _, by in slow[stack])) for edge in (min, max))
        by = f"{most} times slower" if least == most else f"{least} to {most} times slower"
        parts.append(f"{results.name(stack)} for {_classes([c for c, _ in slow[stack]], len(found))} ({by})")
    more = len(ordered) - _NAMED
    said = f"Avoid {'; '.join(parts)}{f'; and {more} more' if more > 0 else ''}."
    if all(len(some) == len(found) for some in slow.values()):
        said += " Among the others, put files where there is room."
    return said


def _through(results: Results, found: Sequence[WorkloadClass], stacks: Sequence[str]) -> str:
    """Say what layers in front of the one storage of `stacks` are worth: where one is ahead, where none is,
    and where that cannot be told."""
    layered = [s for s in stacks if "+" in s]
    best: dict[str, list[WorkloadClass]] = {}
    left: dict[str, list[WorkloadClass]] = {}
    for c in found:
        mine = [s for s in layered if s in c.ranking.standings]
        if mine and c.ranking.winner:
            best.setdefault(c.ranking.winner, []).append(c)
        elif mine and c.ranking.advice[c.ranking.reference] == "undecided":
            left.setdefault(words.listed(_layers(c, mine)), []).append(c)
    parts = [
        f"{f'as {results.name(s)}' if '+' in s else 'without a layer'} for {_classes(some, len(found))}"
        for s, some in best.items()
    ]
    said = f" Use it {'; '.join(parts)}." if parts else ""
    for names, some in left.items():
        what = "any of these workloads" if len(some) == len(found) > 1 else _classes(some, len(found))
        said += f" Whether {names} in front of it makes {what} faster or slower cannot be told from chance."
    return said


def _layers(found: WorkloadClass, stacks: Sequence[str]) -> list[str]:
    """Return the layers' names of stacks that have numbers, without their options."""
    layers = (layer for s in stacks if s in found.numbers for layer in found.numbers[s].layer.split("+"))
    return sorted({layer.split()[0] for layer in layers})


def _places(
    found: Sequence[WorkloadClass], lasting: Sequence[str]
) -> tuple[dict[str, list[WorkloadClass]], list[WorkloadClass]]:
    """Return the decided classes by where their files go, in as few places as will do; and those that may go
    anywhere."""
    good = {c.key: [s for s in lasting if c.ranking.advice.get(s) == "use"] for c in found}
    anywhere = [
        c for c in found
        if len(good[c.key]) > 1 and set(good[c.key]) == {s for s in lasting if s in c.ranking.standings}
    ]  # fmt: skip
    left = [c for c in found if good[c.key] and c not in anywhere]
    best: dict[str, list[WorkloadClass]] = {}
    while left:
        stack = max(lasting, key=lambda s: sum(s in good[c.key] for c in left))
        best[stack] = [c for c in left if stack in good[c.key]]
        left = [c for c in left if stack not in good[c.key]]
    return best, anywhere


def _classes(some: Sequence[WorkloadClass], of: int) -> str:
    if len(some) <= _NAMED:
        return words.listed([in_sentence(c.name) for c in some])
    if len(some) == of:
        return f"all {of} workloads"
    return f"{len(some)} of {of} workloads"


def gain(results: Results, found: Sequence[WorkloadClass]) -> str:
    free = [c for c in found if not any(n.held_back for n in c.numbers.values())]
    found = free or found
    wins = [(c, c.ranking.standings[c.ranking.winner].rows[0]) for c in found if c.ranking.winner]
    fast = [(c, c.ranking.standings[c.ranking.fastest].rows[0]) for c in found if c.ranking.fastest]
    said = []
    if wins:
        said.append(f"Against the next best place that keeps files: {_range(wins)}.")
    if fast:
        names = words.listed([results.name(s) for s in dict.fromkeys(c.ranking.fastest for c, _ in fast)])
        said.append(f"Copies in {names} (memory): {_range(fast)}.")
    if said:
        return " ".join(said)
    stacks = {s for c in found for s in c.ranking.standings}
    if len(stacks) == 1 and not any(n.invalid for c in found for n in c.numbers.values()):
        parts = [f"{c.delivered(s)} for {in_sentence(c.name)}" for c in found[:_NAMED] for s in c.numbers]
        return f"It delivers {words.listed(parts)}."
    return _not_gained(found)


def _not_gained(found: Sequence[WorkloadClass]) -> str:
    """Say why no gain can be named."""
    numbers = [n for c in found for n in c.numbers.values()]
    compared = [(c, s) for c in found for s in c.ranking.standings.values() if s.rows]
    if not compared:
        if all(n.invalid for n in numbers):
            return "Nothing could be compared: no number passed the validity checks."
        return "Nothing could be compared: no two storages have valid numbers of the same work."
    if all(c.single(s.stack, s.against) for c, s in compared):
        if all(n.origin == "simulated" for n in numbers):
            return "No difference is claimed: a model says nothing of what varies on the machine."
        return (
            "Nothing could be compared: numbers of a single repetition do not tell a difference from chance."
        )
    slower = [(c, reverse(s.rows[0])) for c, s in compared if c.ranking.advice[s.stack] == "avoid"]
    if slower:
        least, most = (words.factor(edge(row["ratio"] for _, row in slower)) for edge in (min, max))
        by = f"{least} times" if least == most else f"{least} to {most} times"
        return f"No place is proven to be the fastest; what the table says to avoid is {by} slower."
    rows = [row for _, s in compared for row in s.rows if s.outcome == "undecided"]
    rules = {row["rule"] for row in rows}
    if rules == {Rule.FEW_REPETITIONS}:
        return "No place is proven faster: there are too few repetitions to tell a difference from chance."
    if rules == {Rule.NO_REPLICATE}:
        return "No place is proven faster: no replicate was measured, so the noise is not known."
    blind = sum(row["outcome"] == Outcome.NO_POWER for row in rows)
    of_all = f"{blind} of {words.count(len(rows), 'comparison')}"
    return f"No place is proven faster.{f' {of_all} could not have shown a doubling.' if blind else ''}"


def _range(rows: Sequence[tuple[WorkloadClass, Record]]) -> str:
    """Return ``2.1 times as fast for ... (1.9–2.3), up to 4.7 times for ...``."""
    ordered = sorted(rows, key=lambda item: item[1]["ratio"])
    (least, low), (most, high) = ordered[0], ordered[-1]
    first = f"{words.factor(low['ratio'])} times as fast for {in_sentence(least.name)} ({interval_of(low)})"
    if len(ordered) == 1:
        return first
    if words.factor(low["ratio"]) == words.factor(high["ratio"]):
        names = _classes([c for c, _ in ordered], len(ordered))
        bounds = {"low": min(r["low"] for _, r in ordered), "high": max(r["high"] for _, r in ordered)}
        return f"{words.factor(low['ratio'])} times as fast for {names} ({interval_of(bounds)})"
    last = f"{words.factor(high['ratio'])} times for {in_sentence(most.name)} ({interval_of(high)})"
    return f"{first}, {'up to ' if len(ordered) > 2 else ''}{last}"


def mind(results: Results, site: Site, stacks: Sequence[str]) -> str:
    """Return what limits the use of the answer: validity of most results, memory, places, capacity, load."""
    said = [doubt] if (doubt := _doubtful(results)) else []
    memory = storages([s for s in stacks if s in results.memory])
    if memory:
        verb = "is" if len(memory) == 1 else "are"
        said.append(
            f"{words.listed([results.name(s) for s in memory])} {verb} memory: files there are gone after a "
            "restart, take memory from programs and are seen on one node only."
        )
    lasting = storages([s for s in stacks if s not in results.memory])
    local = [s for s in lasting if (known := storage_of(site, s)) and site.node_local(known)]
    if local:
        verb = "is" if len(local) == 1 else "are"
        said.append(f"{words.listed([results.name(s) for s in local])} {verb} seen on one node only.")
    plain = storages(stacks)
    tight = min(((free, s) for s in plain if (free := free_bytes(results, s)) is not None), default=None)
    if tight and not memory:
        of = f"The least room is on {results.name(tight[1])}: " if len(plain) > 1 else ""
        said.append(f"{of}{format_size(tight[0])} {'' if of else 'were '}free while measuring.")
    if busy := _busy(results, site, lasting):
        said.append(busy)
    return " ".join(said)


def _doubtful(results: Results) -> str:
    """Return the validity checks that most results did not pass; empty for none."""
    titles = [
        f"{flag.title} ({len(numbers)} of {words.count(results.total, 'result')})"
        for code, numbers in results.flags.items()
        if (flag := results.flag(code)).severity == "caution" and 2 * len(numbers) > results.total
    ]
    return f"Limited validity: {'; '.join(titles)}." if titles else ""


def _busy(results: Results, site: Site, lasting: Sequence[str]) -> str:
    """Return a sentence on load from others that lasted as long as the measurement.

    No number of rounds within one session shows it. Empty if no storage is shared with others, or if the
    measurement took more than half a day.
    """
    shared = [s for s in lasting if (known := storage_of(site, s)) and known.shared]
    runs = results.runs
    runs = runs[(runs["origin"] == "measured") & (runs["started"] > 0)]
    if not shared or len(lasting) < 2 or runs.empty:
        return ""
    took = (runs["started"] + runs["duration"].fillna(0.0)).max() - runs["started"].min()
    if took > _ONE_SESSION:
        return ""
    names = words.listed([results.name(s) for s in shared])
    return (
        f"All runs took place within {format_duration(took)}. If others kept {names} busy during that time, "
        "the results may only appear slow: repeat the measurement on another day."
    )


def left_open(results: Results, found: Sequence[WorkloadClass]) -> str:
    count = len(undecided(found))
    if not count:
        return ""
    said = f"{count} of {words.count(len(found), 'row')} {'has' if count == 1 else 'have'} an undecided cell"
    takes = deciding.sentence(deciding.open_answers(results, found), results)
    return f"{said}; {takes}" if takes else said


def single(results: Results, stack: str) -> str:
    """Return what is to be said where one stack alone has numbers."""
    name = results.name(stack)
    lost = [s.label for s in results.silent.values() if s.stack not in results.memory]
    if stack in results.memory and lost:
        return (
            f"Where to keep files is not known: of the places that keep them ({words.listed(lost)}) none "
            f"gave a number. {name} is memory, which keeps no file over a restart."
        )
    if results.silent and not lost:
        return f"Keep your files on {name}: it is the only storage here that keeps them."
    if lost:
        return f"Only {name} gave numbers, so nothing could be compared."
    return f"Only {name} has numbers here: nothing to choose between."


def interval_of(row: Record) -> str:
    return words.factors(row["low"], row["high"])
