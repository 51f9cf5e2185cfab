"""From a program's trace to advice: explain it, replay its files' I/O on every storage, judge.

advice = advise(open_trace(trace), capture, trace, site, Options())
advice.verdict, advice.ways, advice.units, advice.findings
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

import numpy as np
import pandas as pd

from tiercel.advice.answer import Advice, IoCost
from tiercel.advice.capture import Capture
from tiercel.advice.findings import findings
from tiercel.advice.hints import caching_hints
from tiercel.advice.judge import WayResult, results_of, unit_seconds, verdict
from tiercel.advice.measure import LEAST, measure
from tiercel.advice.measured import Measured, Terms, rows_of
from tiercel.advice.prepare import Prepared, prepare
from tiercel.advice.schedule import run_seconds
from tiercel.advice.seen import Seen, seen, unseen
from tiercel.advice.trial import GROUPS, Bench, Trial, scratch_place
from tiercel.advice.ways import AGAIN, HOME, MIXED
from tiercel.advice.ways import home as home_way
from tiercel.errors import RunFailed, UserError
from tiercel.placement.compile import NothingToReplay
from tiercel.placement.delay import Delay
from tiercel.placement.recipe import Recipe
from tiercel.placement.replaying import PATIENCE_S, replay_program
from tiercel.site.model import Site
from tiercel.traces import IOFrame

Progress = Callable[[str], None]

#: The replay at home repeats the trace when its I/O time is within this factor of the trace's own. Syncs on a
#: disk that others use take twice as long a minute later; a replay that misses what the program met is off by
#: more.
FAITHFUL = 5.0
#: I/O below this share of the run, or these seconds, needs no such proof: what it is off by decides nothing.
_MATTERS, _MATTERS_S = 0.02, 0.05
#: Where a program waits for I/O less than this share of its run, no placement is tried.
_LITTLE = 0.01
_NO_TIME = 1e-9


@dataclass(frozen=True)
class Options:
    """What the user may say. `minutes`: the budget for replays; `runs`: how often inputs that were copied are
    used; `home`: take all files as lying there."""

    minutes: float = 5.0
    runs: float = 1.0
    home: str | None = None
    seed: int = 1


def check(site: Site, options: Options) -> None:
    """Raise UserError for what would make advice impossible, before a program is run for it."""
    if options.home is not None and options.home not in site.storages:
        raise UserError(
            f"--home {options.home}: site {site.site} has no such storage (there are: "
            f"{', '.join(site.storages)})"
        )
    replay_program()


def advise(
    frame: IOFrame, capture: Capture | None, trace: Path, site: Site, options: Options,
    progress: Progress = lambda _said: None, inherit: tuple[int, ...] = (),
) -> Advice:  # fmt: skip
    """Return advice on the program of a trace. UserError where its files lie on no storage of the site.

    The caller holds the site's lock; `inherit` are its descriptors, which replays keep.
    """
    check(site, options)
    began = time.monotonic()
    missed = unseen(frame, capture)
    notes = [*(capture.notes if capture else ()), *frame.warnings, *missed]
    bare = Advice(site, capture, trace, refused="".join(missed[:1]), notes=tuple(notes))
    try:
        prepared = prepare(frame, site, options.home, capture.delay if capture else Delay())
    except NothingToReplay:
        return replace(bare, findings=findings(frame, None, capture), seconds=time.monotonic() - began)
    made = replace(
        bare, home=prepared.home, storages=tuple(prepared.storages), recipe=prepared.recipe,
        units=tuple(prepared.units), left_out=prepared.left_out, notes=(*notes, *prepared.notes),
    )  # fmt: skip
    with scratch_place() as place:
        bench = Bench(site, made.recipe, made.units, replay_program(), Path(place), inherit=inherit)
        progress("replaying its I/O where its files are")
        try:
            trials = _first(bench, capture is not None)
        except RunFailed as failure:
            why = f"its I/O could not be replayed where its files are: {failure}"
        except KeyboardInterrupt:
            kept = quote(str(trace))
            why = f"interrupted during its first replays; its trace is kept: `tiercel advise {kept}` goes on"
        else:
            told = seen(frame, made.recipe, capture)
            warm, found = _tried(bench, prepared, told, options, capture, trials, began, progress)
            answer = _judged(made, found, bench, told, options, warm)
            return replace(
                answer, findings=findings(frame, answer.io, capture), seconds=time.monotonic() - began
            )
    return replace(
        made, notes=(*made.notes, why), findings=findings(frame, None, capture),
        seconds=time.monotonic() - began,
    )  # fmt: skip


# -- how the program found its files -------------------------------------------------------------------------


def _first(bench: Bench, both: bool) -> tuple[Trial, ...]:
    """Return the first replays at home, with inputs evicted and (`both`, where it has inputs) in the page
    cache. RunFailed where nothing can be replayed."""
    way = home_way(bench.units)
    cold = bench.try_(way, PATIENCE_S)
    if not both or not any(r.existed and r.size for r in bench.recipe.records):
        return (cold,)
    bench.warm = True
    return cold, bench.try_(way, PATIENCE_S)


def _as_found(trials: Sequence[Trial], traced: float, capture: Capture | None, recipe: Recipe) -> bool | None:
    """Return whether inputs were in the page cache when the program read them: by a look just before, where
    that saw them; else by which of the replays reads as long as the trace says. None: it has no inputs."""
    if len(trials) < 2:
        return None
    if capture is not None:
        cached = capture.presence.cached([r for r in recipe.records if r.existed and r.size])
        if cached is not None:
            return cached
    cold, warm = (
        abs(np.log(max(traced, _NO_TIME) / max(float(t.files[:, 0].sum()), _NO_TIME))) for t in trials
    )
    return bool(warm < cold)


# -- the ways ------------------------------------------------------------------------------------------------


def _tried(
    bench: Bench, prepared: Prepared, told: Seen, options: Options, capture: Capture | None,
    trials: Sequence[Trial], began: float, progress: Progress,
) -> tuple[bool | None, Measured]:  # fmt: skip
    """Return how inputs were found, and what was measured of the ways that could gain something."""
    warm = _as_found(trials, told.in_calls["read"], capture, bench.recipe)
    bench.warm = bool(warm)
    first, way = trials[bool(warm)], home_way(bench.units)
    traced_here = options.home is None and capture is not None
    terms = Terms(told.outside, told.total if traced_here else None, runs=options.runs)
    rows = rows_of(bench.recipe.files, bench.units)
    if _io_cost(bench.recipe, [first], told.outside).share < _LITTLE:
        # Whatever its files lie on: that is answered without trying.
        return warm, Measured({HOME: way}, rows, terms, {HOME: [first]}, rounds=1)
    ways = [way, home_way(bench.units, AGAIN), *prepared.candidates]
    others = [s for s in prepared.storages if s != prepared.home]
    if others:
        terms = replace(terms, script=bench.script_seconds(prepared.home, others[0]))
    left = options.minutes * 60.0 - (time.monotonic() - began)
    bench.think = first.elapsed * len(ways) * LEAST <= left
    found = Measured({way.name: way for way in ways}, rows, terms)
    measure(bench, found, left, options.seed, progress)
    return warm, found


# -- the answer ----------------------------------------------------------------------------------------------


def _judged(
    made: Advice, found: Measured, bench: Bench, told: Seen, options: Options, warm: bool | None
) -> Advice:
    trials = found.trials.get(HOME, [])
    if not trials:
        why = found.failed.get(HOME, "the budget was over before its first replay")
        return replace(made, notes=(*made.notes, f"its I/O could not be replayed: {why}"))
    ways = results_of(found, made.units)
    volatile = {name: storage.medium == "memory" for name, storage in made.site.storages.items()}
    cost = _io_cost(bench.recipe, trials, told.outside)
    answer = verdict(ways, volatile, cost.share * max(1.0, found.fidelity), found.fidelity)
    moves = answer is not None and answer.way is not answer.home
    return replace(
        made, ways=tuple(ways), verdict=answer, io=cost, unit_io=_unit_io(found, made),
        mode="replayed" if bench.think else "reckoned", warm=warm, fidelity=found.fidelity,
        refused=_unfaithful(found, told, cost, moves) or made.refused,
        left_out={**made.left_out, **found.failed, **found.dropped},
        hints=tuple(caching_hints(made.site, bench.recipe, found, made.units)),
        notes=(*made.notes, *_measuring_notes(found, ways, options)),
    )  # fmt: skip


def _unfaithful(found: Measured, told: Seen, cost: IoCost, moves: bool) -> str:
    """Return why no placement is advised: the replay at home does not repeat the trace. Staying needs proof,
    too, where the program met much more than the replay."""
    if found.terms.in_calls is None:
        return ""
    spent = max(cost.calls, told.total)
    off = found.fidelity > FAITHFUL or (moves and found.fidelity < 1 / FAITHFUL)
    if not off or spent <= max(_MATTERS * cost.run, _MATTERS_S):
        return ""
    replayed = float(np.median(found.values(HOME, "io")))
    return (
        f"the replay at home spends {replayed:.3g} s in I/O calls where the trace shows {told.total:.3g} s: "
        "it does not repeat what the program met, so no placement is advised"
    )


def _measuring_notes(found: Measured, ways: Sequence[WayResult], options: Options) -> list[str]:
    if found.interrupted:
        return [f"interrupted after {found.rounds} rounds: the answer is from what was measured until then"]
    if found.rounds < LEAST and len(ways) > 1:
        return [
            f"only {found.rounds} rounds of replays fitted into {options.minutes:g} min: --minutes gives it "
            "more"
        ]
    return []


def _unit_io(found: Measured, made: Advice) -> pd.DataFrame:
    """Return the seconds in calls of each unit (row) on each storage that was tried (column)."""
    single = {
        name: way for name, way in found.ways.items() if name not in (AGAIN, MIXED) and found.trials.get(name)
    }
    return pd.DataFrame(
        {
            unit.name: {
                way.systems[unit.name]: unit_seconds(found, name, unit) for name, way in single.items()
            }
            for unit in made.units
            if unit.size
        }
    ).T


def _io_cost(recipe: Recipe, trials: Sequence[Trial], outside: float) -> IoCost:
    seconds = np.median([t.files for t in trials], axis=0)
    calls = trials[0].calls
    waited = run_seconds(recipe, seconds, calls) - run_seconds(recipe, np.zeros_like(seconds), calls)
    run = float(np.median([t.wall for t in trials])) + outside
    return IoCost(
        run=run,
        calls=float(seconds.sum()),
        waited=min(max(0.0, waited), run),
        by_kind={kind: float(seconds[:, i].sum()) for i, kind in enumerate(GROUPS)},
        bytes_read=recipe.totals["read"]["bytes"],
        bytes_written=recipe.totals["write"]["bytes"],
        operations=int(calls.sum()),
    )
