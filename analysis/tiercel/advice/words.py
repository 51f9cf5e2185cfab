"""The advice in sentences: where the files belong, what that saves, and how sure it is."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from tiercel.advice.bench import HOME
from tiercel.advice.judge import Span, spread_of
from tiercel.units import format_latency, format_share

if TYPE_CHECKING:
    from tiercel.advice.answer import Advice, Judged, Result


def label(advice: Advice, storage: str) -> str:
    """Return a storage's name for people."""
    found = advice.site.storages.get(storage)
    return (found.label or storage) if found else storage


def title(advice: Advice, result: Result) -> str:
    """Return a placement's name for people."""
    if result.candidate.name == HOME:
        return f"where they are ({label(advice, advice.home)})"
    paths = list(result.candidate.places)
    target = " and ".join(label(advice, s) for s in result.candidate.storages)
    if {f.path for f in advice.folders} == set(paths):
        return f"all on {target}" if len(paths) > 1 else f"{paths[0]} on {target}"
    return f"{' and '.join(paths)} on {target}"


def sentences(advice: Advice) -> list[str]:
    """Return the answer, the most important sentence first."""
    if advice.method == "nothing":
        return ["It reads and writes no files of its own, so there is nothing to place."]
    if advice.estimate is not None:
        return _estimated(advice)
    if not advice.judged:
        home = label(advice, advice.home)
        reasons = "; ".join(f"{label(advice, r.candidate.name)}: {r.why_not}" for r in _untried(advice))
        if not reasons:
            return [f"Leave the files where they are ({home}): this site has no other storage."]
        return [
            f"Leave the files where they are ({home}): no other storage was tried to the end ({reasons})."
        ]
    best = advice.advised
    found = [_move(advice, best)] if best is not None else [_stay(advice)]
    if best is not None:
        found += _mind(advice, best)
        found += (
            [
                f"Some of its output differs there from that at home: "
                f"{', '.join(best.result.differs[:3])}. Check it first."
            ]
            if best.result.differs
            else []
        )
    found += _copying(advice, best)
    lives = advice.lives
    if lives is not None and (best is None or lives.name != best.name):
        found.append(
            f"If the files lay on {label(advice, lives.name)} for good, a run would be "
            f"{_times(lives.run.ratio)} faster."
        )
    return found


def _move(advice: Advice, best: Judged) -> str:
    paths = " and ".join(best.result.candidate.places)
    targets = " and ".join(label(advice, s) for s in best.result.candidate.storages)
    at_home, there = median(advice.results[HOME].seconds), median(best.result.seconds)
    copying = advice.copying(best.result)
    return (
        f"Put {paths} on {targets}: a run takes {format_latency(there)} instead of "
        f"{format_latency(at_home)}, "
        f"{_times(best.run.ratio)} faster. Copying in and out adds {format_latency(copying)}"
        f"{_per(advice)}; with it, {_times(best.total.ratio)} faster."
    )


def _stay(advice: Advice) -> str:
    home = label(advice, advice.home)
    if advice.decided:
        return f"Leave the files where they are ({home}): no other storage is faster once copying is counted."
    near = next(j for j in advice.judged if j.total.outcome == "not decided")
    name = title(advice, near.result)
    vary = max(spread_of(advice.results[HOME].seconds), spread_of(near.result.seconds))
    return (
        f"Not decided, so leave the files where they are ({home}): with copying, {name} would be "
        f"{_compared(near.total.ratio)}, and runs vary by {format_share(vary)}. {_needed(advice, near)}"
    )


def _needed(advice: Advice, near: Judged) -> str:
    """Say what would decide it."""
    runs = near.total.runs_needed
    if runs is None:
        return (
            "More runs do not decide it as long as they vary so much or differ so little: repeat it on an "
            "idle machine, or with a longer input."
        )
    each = advice.seconds / advice.program_runs if advice.program_runs else advice.results[HOME].seconds[0]
    placements = 1 + len([j for j in advice.judged if not j.result.why_not])
    minutes = math.ceil((runs + 1) * placements * each / 6) / 10
    return f"About {runs} runs of each decide it if they vary as these do: --minutes {minutes:g}."


def _copying(advice: Advice, best: Judged | None) -> list[str]:
    """Say which storage is faster but for copying, and from how many runs on that pays."""
    faster = [j for j in advice.judged if j.run.outcome == "faster" and j.total.outcome != "faster"]
    if best is not None or not faster:
        return []
    near = max(faster, key=lambda j: j.run.ratio.median)
    said = (
        f"On {label(advice, near.result.candidate.storages[0])} a run is {_times(near.run.ratio)} faster, "
        f"but copying in "
        f"and out takes {format_latency(advice.copying(near.result))}"
    )
    pays = advice.pays_from(near)
    if near.total.outcome == "not decided" and (pays or 0) <= advice.runs_sharing:
        return [f"{said}: whether that pays is not decided."]
    if pays is None:
        return [f"{said}, more than a run saves."]
    return [f"{said}. Copied in once for {pays} runs or more, it pays (--runs {pays})."]


def _mind(advice: Advice, best: Judged) -> list[str]:
    found = []
    for name in best.result.candidate.storages:
        storage = advice.site.storages[name]
        if storage.medium == "memory":
            found.append(
                f"{label(advice, name)} is memory: copy results out after each run, a restart empties it."
            )
        elif advice.site.node_local(storage):
            found.append(
                f"{label(advice, name)} is node-local: copy in and out in the same job, on the same node."
            )
    return found


def _estimated(advice: Advice) -> list[str]:
    estimate = advice.estimate
    assert estimate is not None
    times = {s: median(v) for s, v in estimate.seconds.items()}
    found = [
        f"This is an estimate, since {estimate.why}: its traced I/O was replayed on each storage, not the "
        f"program."
    ]
    if times:
        best = min(times, key=lambda s: times[s])
        listed = ", ".join(
            f"{label(advice, s)} {format_latency(t)}" for s, t in sorted(times.items(), key=lambda p: p[1])
        )
        if best == advice.home or times[best] > 0.9 * times.get(advice.home, math.inf):
            found.append(f"Its I/O is as fast where the files are as elsewhere ({listed}).")
        else:
            found.append(
                f"Its I/O is fastest on {label(advice, best)} ({listed}). Copying is not in these times."
            )
    if estimate.blind:
        found.append(
            f"The replay leaves out {', '.join(estimate.blind)}, so the program may gain more than this "
            f"shows; there is "
            "no upper bound."
        )
    return found


def _untried(advice: Advice) -> list[Result]:
    return [r for r in advice.results.values() if r.why_not and not r.trials]


def _per(advice: Advice) -> str:
    return f" to each of {advice.runs_sharing:g} runs" if advice.runs_sharing > 1 else ""


def _compared(ratio: Span) -> str:
    """Return a ratio that may be on either side of 1 in words."""
    if ratio.median >= 1:
        return f"{_times(ratio)} faster"
    return f"{_times(Span(1 / ratio.median, 1 / ratio.high, 1 / ratio.low))} slower"


def _times(ratio: Span) -> str:
    return f"{ratio.median:.2g} times ({ratio.low:.2g} to {ratio.high:.2g})"
