"""From a program (or its trace) to advice: trace, explain, replay its files' I/O on every storage, judge.

advice = advise_program(["./simulate", "input"], site, results, Options())
advice.verdict, advice.ways, advice.units, advice.findings
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from tiercel.advice.capture import Capture
from tiercel.advice.hints import Hint, caching_hints
from tiercel.advice.judge import Verdict, WayResult, results_of, unit_seconds, verdict
from tiercel.advice.measure import LEAST, Measured, measure
from tiercel.advice.schedule import run_seconds
from tiercel.advice.trial import GROUPS, Bench, Trial, scratch_place
from tiercel.advice.units import PROGRAM_FILES, Unit, data_files, units_of
from tiercel.advice.ways import AGAIN, HOME, Way, all_on
from tiercel.advice.ways import home as home_way
from tiercel.errors import RunFailed, UserError
from tiercel.placement.compile import NothingToReplay, compile_trace
from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.placement.recipe import Recipe
from tiercel.programs import program
from tiercel.runs.scratch import check_scratch
from tiercel.site.model import Site, Stack
from tiercel.traces import IOFrame
from tiercel.traces.engine import quoted
from tiercel.traces.findings import Finding, explain, rules
from tiercel.units import format_size

Progress = Callable[[str], None]

#: The replay at home repeats the trace when its I/O time is within this factor of the trace's own. Syncs
#: on a disk
#: that others use take twice as long a minute later; a replay that misses what the program met is off by
#: more.
FAITHFUL = 5.0
#: I/O below this share of the run, or these seconds, needs no such proof: what it is off by decides nothing.
_MATTERS, _MATTERS_S = 0.02, 0.05
#: Rules that compare ranks.
_OF_RANKS = frozenset({"imbalance", "slow-part", "shared-file-contention"})
#: What a tracer misses is told beyond this share of what the kernel counted, and these bytes.
_UNSEEN, _UNSEEN_BYTES = 0.1, 1 << 20
#: Kinds of calls that take less of the run than this are in no finding.
_WORTH_A_WORD = 0.01
#: What one program start can be replayed within the budget at least.
_TIMEOUT_S = 3600.0
#: Where a program waits for I/O less than this share of its run, no placement is tried.
_LITTLE = 0.01
_NO_TIME = 1e-9


@dataclass(frozen=True)
class Options:
    """What the user may say. `minutes`: the budget for replays; `runs`: how often inputs that were copied
    are used;
    `home`: take all files as lying there."""

    minutes: float = 5.0
    runs: float = 1.0
    home: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class IoCost:
    """What a program's I/O costs it at home, in seconds, as replayed. `calls`: summed over all processes;
    `waited`: of these, what lengthens the run: on storage that takes no time it would be so much shorter."""

    run: float
    calls: float
    waited: float
    by_kind: dict[str, float]
    bytes_read: int
    bytes_written: int
    operations: int

    @property
    def hidden(self) -> float:
        return max(0.0, self.calls - self.waited)

    @property
    def share(self) -> float:
        return self.waited / self.run if self.run > 0 else 0.0


@dataclass(frozen=True)
class Advice:
    """All that is known. `verdict` is None where nothing could be replayed; `notes` say why."""

    site: Site
    capture: Capture | None
    trace: Path
    home: str
    storages: tuple[str, ...]
    recipe: Recipe
    units: tuple[Unit, ...]
    ways: tuple[WayResult, ...]
    verdict: Verdict | None
    io: IoCost | None
    unit_io: pd.DataFrame
    """Seconds in calls: a row for each unit, a column for each storage that was tried."""
    mode: str
    """replayed: runs are measured with their thinking; reckoned: the I/O is measured, the runs are
    reckoned."""
    warm: bool | None
    """Whether inputs were in the page cache when the program read them; None where it read none."""
    fidelity: float
    """I/O time that the trace measured at home over the replay's."""
    refused: str
    """Why no placement is advised though ways were measured: the replay does not repeat the trace."""
    left_out: dict[str, str]
    """Storages and ways that were not tried, or not to the end, with the reason."""
    findings: tuple[Finding, ...]
    hints: tuple[Hint, ...]
    notes: tuple[str, ...]
    seconds: float
    """What measuring took."""


def check(site: Site, options: Options) -> None:
    """Raise UserError for what would make advice impossible, before a program is run for it."""
    if options.home is not None and options.home not in site.storages:
        raise UserError(
            f"--home {options.home}: site {site.site} has no such storage (there are: "
            f"{', '.join(site.storages)})"
        )
    if program("tiercel-replay") is None:
        raise UserError("tiercel-replay is not installed: run `make setup` (it builds native/replay)")


def advise(
    frame: IOFrame, capture: Capture | None, trace: Path, site: Site, options: Options,
    progress: Progress = lambda _said: None, inherit: tuple[int, ...] = (),
) -> Advice:  # fmt: skip
    """Return advice on the program of a trace. UserError where its files lie on no storage of the site.

    The caller holds the site's lock; `inherit` are its descriptors, which replays keep.
    """
    check(site, options)
    began = time.monotonic()
    unseen = _unseen(frame, capture)
    notes = [*(capture.notes if capture else ()), *frame.warnings, *unseen]
    cost = capture.call_cost if capture else 0.0
    try:
        recipe, units, storages, left_out = _prepare(frame, site, options, cost, notes)
    except NothingToReplay:
        seconds = time.monotonic() - began
        return _nothing(frame, capture, trace, site, notes, "".join(unseen[:1]), seconds)
    made = Advice(
        site, capture, trace, _home(units), tuple(storages), recipe, tuple(units), (), None, None,
        pd.DataFrame(), "", None, 1.0, "".join(unseen[:1]), left_out, (), (), tuple(notes), 0.0,
    )  # fmt: skip
    binary = program("tiercel-replay")
    assert binary is not None
    with scratch_place() as place:
        bench = Bench(site, recipe, units, binary, Path(place), inherit=inherit)
        progress("replaying its I/O where its files are")
        try:
            trials = _find_out(bench, units, recipe, capture is not None)
        except RunFailed as failure:
            why = f"its I/O could not be replayed where its files are: {failure}"
        except KeyboardInterrupt:
            why = f"interrupted during its first replays; its trace is kept: `tiercel advise {trace}` goes on"
        else:
            return _tried(made, bench, frame, options, trials, began, progress)
    return replace(
        made, notes=(*notes, why), findings=_findings(frame, None, capture), seconds=time.monotonic() - began
    )


def _tried(
    made: Advice, bench: Bench, frame: IOFrame, options: Options, trials: Sequence[Trial], began: float,
    progress: Progress,
) -> Advice:  # fmt: skip
    """Return the advice after trying the ways that could gain something."""
    recipe, units, capture = bench.recipe, bench.units, made.capture
    warm = _as_found(trials, _trace_seconds(frame, recipe, capture)["read"], capture, recipe)
    bench.warm = bool(warm)
    first = trials[bool(warm)]
    way = home_way(units)
    if _io_cost(recipe, [first], _outside(capture, frame, recipe)).share < _LITTLE:
        # Whatever its files lie on: that is answered without trying.
        found = Measured.of(bench, units, way, [first])
    else:
        ways = [way, home_way(units, AGAIN), *_candidates(units, made.storages)]
        left = options.minutes * 60.0 - (time.monotonic() - began)
        bench.think = first.elapsed * len(ways) * LEAST <= left
        found = measure(bench, ways, units, left, options.seed, progress)
        found.script = bench.script_seconds([s for s in made.storages if s != made.home][:1], made.home)
    answer = _judged(made, found, bench, frame, options, warm, time.monotonic() - began)
    return replace(answer, findings=_findings(frame, answer.io, capture))


def _unseen(frame: IOFrame, capture: Capture | None) -> list[str]:
    """Return sentences on what the tracer did not see, as far as the trace and the kernel's count tell."""
    found = []
    row = frame.query(
        "SELECT coalesce(sum(size), 0) AS moved, count(*) FILTER (file IS NOT NULL AND NOT "
        "starts_with(file, '/') "
        "AND api <> 'app' AND kind IN ('read', 'write', 'sync')) AS relative FROM events WHERE "
        "kind IN ('read', 'write', 'other')"
    ).iloc[0]
    if row["relative"]:
        found.append(
            f"{int(row['relative'])} calls name files by relative paths and the trace does not tell "
            f"below which "
            "folder: they are not in the advice (strace tells)"
        )
    if capture is not None and capture.tracer != "strace":
        lost = capture.kernel_bytes - float(row["moved"])
        if lost > _UNSEEN * capture.kernel_bytes and lost > _UNSEEN_BYTES:
            found.append(
                f"the kernel counts {format_size(capture.kernel_bytes)} read and written by the program, "
                f"{capture.tracer} saw {format_size(float(row['moved']))}: the advice is on that part "
                "(`--tracer strace` sees all)"
            )
    return found


def _nothing(
    frame: IOFrame,
    capture: Capture | None,
    trace: Path,
    site: Site,
    notes: Sequence[str],
    refused: str,
    seconds: float,
) -> Advice:
    """Return the advice on a program without files of its own."""
    return Advice(
        site, capture, trace, "", (), Recipe(), (), (), None, None, pd.DataFrame(), "", None, 1.0, refused,
        {}, _findings(frame, None, capture), (), tuple(notes), seconds,
    )  # fmt: skip


def _prepare(
    frame: IOFrame, site: Site, options: Options, cost: float, notes: list[str]
) -> tuple[Recipe, list[Unit], list[str], dict[str, str]]:
    """Return the recipe of the files that lie on the site's storages, their units, and where these could
    go."""
    seen = frame.query(
        "SELECT file, bool_or(kind = 'write') AS written FROM events WHERE file IS NOT NULL AND api <> 'app' "
        "GROUP BY file"
    )
    written = frozenset(str(n) for n in seen.loc[seen["written"], "file"])
    data = data_files((str(n) for n in seen["file"]), written)
    recipe = compile_trace(frame, only=data, per_call=cost)
    units = units_of(recipe, site, options.home)
    outside = [u for u in units if u.storage is None and u.size]
    if outside:
        size = format_size(sum(u.size for u in outside))
        notes.append(
            f"{sum(len(u.files) for u in outside)} files ({size}) lie on no storage of site {site.site} "
            f"({outside[0].folder}...): they are not replayed"
        )
    inside = [u for u in units if u.storage is not None]
    if not any(u.size for u in inside):
        raise UserError(
            f"the program's files lie on no storage of site {site.site}: name where they are to be taken as "
            f"lying, --home NAME (there are: {', '.join(site.storages)})"
        )
    if len(inside) < len(units):
        recipe = compile_trace(frame, only={f for u in inside for f in u.files}, per_call=cost)
        units = units_of(recipe, site, options.home)
    for call, count in sorted(recipe.left_out.items(), key=lambda pair: -pair[1]):
        if call in ("mmap", "mmap2"):
            notes.append(
                f"{count} mappings of its files into memory: what it reads and writes through them is in no "
                "trace of calls, and not in this advice"
            )
    left_out: dict[str, str] = {}
    usable = []
    for name, storage in site.storages.items():
        try:
            check_scratch(Stack(name, storage))
            usable.append(name)
        except UserError as error:
            left_out[name] = str(error)
    for unit in units:
        if unit.storage in left_out:
            raise UserError(f"{unit.folder} lies on a storage that cannot be tried: {left_out[unit.storage]}")
    return recipe, units, usable, left_out


def _home(units: Sequence[Unit]) -> str:
    """Return the storage that most of the bytes lie on."""
    sizes: dict[str, int] = {}
    for unit in units:
        if unit.storage:
            sizes[unit.storage] = sizes.get(unit.storage, 0) + unit.size
    return max(sizes, key=lambda s: sizes[s])


def _candidates(units: Sequence[Unit], storages: Sequence[str]) -> list[Way]:
    """Return a way for each storage that would change something."""
    at_home = dict(home_way(units).systems)
    ways = [all_on(storage, units) for storage in storages]
    return [way for way in ways if dict(way.systems) != at_home]


def _findings(frame: IOFrame, io: IoCost | None, capture: Capture | None) -> tuple[Finding, ...]:
    """Return what the rules find in the program's calls on data, of the kinds that take time.

    Findings on libraries and devices, and on reads that take a thousandth of the run, help nobody; and a
    system-call trace has processes, no ranks, so that rules on ranks say nothing of it.
    """
    system = " OR ".join(f"starts_with(file, {quoted(folder)})" for folder in SYSTEM_FOLDERS)
    parts = quoted(PROGRAM_FILES.pattern)
    data = frame.where(f"file IS NULL OR NOT ({system} OR regexp_matches(file, {parts}))")
    ranks = capture is None or capture.tracer != "strace"
    found = explain(data, only=[name for name in rules.names() if ranks or name not in _OF_RANKS])
    if io is None:
        return tuple(found)
    writes = io.by_kind["write"] + io.by_kind["sync"]
    took = {
        "reads": io.by_kind["read"], "writes": writes, "fsync-storm": writes,
        "metadata-bound": io.by_kind["metadata"], "cached-reads": io.by_kind["read"],
        "random-access": io.by_kind["read"] + writes,
    }  # fmt: skip
    return tuple(f for f in found if took.get(_kind_of(f), io.calls) >= _WORTH_A_WORD * io.run)


def _kind_of(finding: Finding) -> str:
    """Return the rule of a finding, and of the rule on small transfers what they are of."""
    if finding.rule != "small-transfers":
        return finding.rule
    return "reads" if " reads move" in finding.sentence else "writes"


# -- how the program found its files -------------------------------------------------------------------------


def _find_out(bench: Bench, units: Sequence[Unit], recipe: Recipe, both: bool) -> tuple[Trial, ...]:
    """Return the first replays at home, with inputs evicted and (`both`, where it has inputs) in the page
    cache.
    RunFailed where nothing can be replayed."""
    way = home_way(units)
    cold = bench.try_(way, _TIMEOUT_S)
    if not both or not any(r.existed and r.size for r in recipe.records):
        return (cold,)
    bench.warm = True
    return cold, bench.try_(way, _TIMEOUT_S)


def _as_found(trials: Sequence[Trial], traced: float, capture: Capture | None, recipe: Recipe) -> bool | None:
    """Return whether inputs were in the page cache when the program read them: by a look just before, where
    that saw them; else by which of the replays reads as long as the trace says. None: it has no inputs."""
    if len(trials) < 2:
        return None
    if capture is not None:
        seen = capture.presence.cached([r for r in recipe.records if r.existed and r.size])
        if seen is not None:
            return seen
    cold, warm = (
        abs(np.log(max(traced, _NO_TIME) / max(float(t.files[:, 0].sum()), _NO_TIME))) for t in trials
    )
    return bool(warm < cold)


def _trace_seconds(frame: IOFrame, recipe: Recipe, capture: Capture | None) -> dict[str, float]:
    """Return the seconds in replayed calls that the trace measured, by kind, without what the tracer
    added."""
    added = capture.time_cost if capture else 0.0
    table = frame.query(
        f"SELECT kind, file, sum(greatest(0, coalesce(duration, 0) - {added!r})) AS seconds FROM events "
        "WHERE file IS NOT NULL AND api = 'posix' AND kind IN ('read', 'write', 'metadata', 'sync') "
        "GROUP BY kind, file"
    )
    table = table[table["file"].isin(set(recipe.files))]
    sums = table.groupby("kind")["seconds"].sum()
    return {kind: float(sums.get(kind, 0.0)) for kind in GROUPS}


# -- the answer ----------------------------------------------------------------------------------------------


def _judged(
    made: Advice, found: Measured, bench: Bench, frame: IOFrame, options: Options, warm: bool | None,
    seconds: float,
) -> Advice:  # fmt: skip
    notes = list(made.notes)
    trials = found.trials.get(HOME, [])
    if not trials:
        why = found.failed.get(HOME, "the budget was over before its first replay")
        return replace(made, notes=(*notes, f"its I/O could not be replayed: {why}"), seconds=seconds)
    offset = _outside(made.capture, frame, bench.recipe)
    traced = _trace_seconds(frame, bench.recipe, made.capture)
    here = options.home is None and made.capture is not None
    replayed = float(np.median(found.values(HOME, "io")))
    fidelity = sum(traced.values()) / replayed if here and replayed > 0 else 1.0
    ways = results_of(found, made.units, options.runs, offset, fidelity)
    volatile = {s: made.site.storages[s].medium == "memory" for s in made.site.storages}
    cost = _io_cost(bench.recipe, trials, offset)
    answer = verdict(ways, volatile, cost.share * max(1.0, fidelity), fidelity)
    refused = made.refused
    moves = answer is not None and answer.way is not answer.home
    spent = max(cost.calls, sum(traced.values())) if here else 0.0
    # Staying needs proof, too, where the program met much more than the replay.
    if spent > max(_MATTERS * cost.run, _MATTERS_S) and (
        fidelity > FAITHFUL or (moves and fidelity < 1 / FAITHFUL)
    ):
        refused = (
            f"the replay at home spends {replayed:.3g} s in I/O calls where the trace shows "
            f"{sum(traced.values()):.3g} s: it does not repeat what the program met, so no "
            f"placement is advised"
        )
    if found.interrupted:
        notes.append(
            f"interrupted after {found.rounds} rounds: the answer is from what was measured until then"
        )
    if found.rounds < LEAST and not found.interrupted and len(ways) > 1:
        notes.append(
            f"only {found.rounds} rounds of replays fitted into {options.minutes:g} min: --minutes "
            f"gives it more"
        )
    unit_io = pd.DataFrame(
        {
            (unit.name): {
                way.systems[unit.name]: unit_seconds(found, way.name, unit)
                for way in ways
                if way.name != "mixed"
            }
            for unit in made.units
            if unit.size
        }
    ).T
    return replace(
        made, ways=tuple(ways), verdict=answer, io=cost, unit_io=unit_io,
        mode="replayed" if bench.think else "reckoned", warm=warm, fidelity=fidelity, refused=refused,
        left_out={**made.left_out, **found.failed, **found.dropped},
        hints=tuple(caching_hints(made.site, bench.recipe, found, made.units)), notes=tuple(notes),
        seconds=seconds,
    )  # fmt: skip


def _outside(capture: Capture | None, frame: IOFrame, recipe: Recipe) -> float:
    """Return the program's seconds before its first and after its last replayed call, less the tracer's."""
    whole = capture.seconds if capture else frame.job_time
    calls = frame.query(
        f"SELECT count(*) AS n FROM events WHERE time < {recipe.began!r} OR time > {recipe.ended!r}"
    )["n"].iloc[0]
    cost = capture.call_cost if capture else 0.0
    return max(0.0, whole - (recipe.ended - recipe.began) - cost * float(calls))


def _io_cost(recipe: Recipe, trials: Sequence[Trial], offset: float) -> IoCost:
    seconds = np.median([t.files for t in trials], axis=0)
    calls = trials[0].calls
    waited = run_seconds(recipe, seconds, calls) - run_seconds(recipe, np.zeros_like(seconds), calls)
    run = float(np.median([t.wall for t in trials])) + offset
    return IoCost(
        run=run,
        calls=float(seconds.sum()),
        waited=min(max(0.0, waited), run),
        by_kind={kind: float(seconds[:, i].sum()) for i, kind in enumerate(GROUPS)},
        bytes_read=recipe.totals["read"]["bytes"],
        bytes_written=recipe.totals["write"]["bytes"],
        operations=int(calls.sum()),
    )
