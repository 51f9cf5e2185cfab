"""Runs the programs in turns on the same files and compares their traces (paper 000, section V.B)."""

from __future__ import annotations

import math
import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from tiercel.dl.running import deep_learning
from tiercel.dl.verify.cases import CASES, Case
from tiercel.dl.verify.metrics import METRICS, TIMES, metrics, of_dataset, transfers
from tiercel.dl.verify.programs import (
    PROGRAMS,
    Program,
    Setting,
    compute_seconds,
    make_dataset,
    traced,
    tracer_for,
)
from tiercel.dl.verify.similarity import Values, closeness, ratio, raw_cosine, similarity
from tiercel.dl.workload import Duration
from tiercel.errors import RunFailed, UserError
from tiercel.pagecache import evict, residency
from tiercel.traces import open_trace

GOAL = 0.95
#: Which program is compared with which: a benchmark with what it stands for.
PAIRS = (("dlkernel", "dlio"), ("dlkernel", "training"), ("dlio", "training"))
#: Ratios within this are not worth a word.
_SAME = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")

Say = Callable[[str], None]


def verify(
    folder: Path,
    *,
    quick: bool = False,
    workloads: Sequence[str] = (),
    repetitions: int | None = None,
    processes: int | None = None,
    seed: int = 1,
    tracer: str = "auto",
    say: Say = lambda _line: None,
) -> list[dict[str, Any]]:
    """Return one row for each pair of programs and workload; `say` hears what is done and left out.

    `tracer`: see `tracer_for`. Datasets, traces and logs go below `folder`. UserError when nothing is there
    to compare with, or a program fails.
    """
    chosen = [case for case in CASES if not workloads or case.name in workloads]
    folder = folder.resolve()  # system calls show files where they lie
    rows: list[dict[str, Any]] = []
    for case in chosen:
        rows += _case(case, folder / case.name, quick, repetitions or (2 if quick else 5),
                      processes or default_processes(), seed, tracer, say)  # fmt: skip
    if not rows:
        raise UserError("dl verify: nothing to compare dlkernel with: run `make dlio` or `make dlio-torch`")
    return rows


def default_processes() -> int:
    """Return the ranks of a comparison: two where cores stay free for the readers beside them."""
    return 2 if len(os.sched_getaffinity(0)) >= 4 else 1


def _case(
    case: Case, folder: Path, quick: bool, repetitions: int, processes: int, seed: int, tracer: str, say: Say
) -> list[dict[str, Any]]:
    workload = deep_learning(case.workload, case.settings(quick), keep_steps_for=processes)
    found, _ = workload.resolved(1, processes)
    shown_by, unseen = tracer_for(found.dataset.format, tracer)
    if not shown_by:
        say(f"{case.name}: left out: nothing shows what is done to its files: {unseen}")
        return []
    programs = []
    for kind in PROGRAMS.values():
        program = kind()
        reason = program.missing(found)
        if reason:
            say(f"{case.name}: left out: {program.name}: {reason}")
        else:
            programs.append(program)
    if len(programs) < 2:
        return []
    setting = Setting(workload, found, folder, processes, shown_by, case.training)
    make_dataset(setting)
    runs: dict[str, list[Values]] = {program.name: [] for program in programs}
    sizes: dict[str, dict[str, int]] = {}
    for number, program in _turns(programs, repetitions, seed):
        say(f"{case.name}: {program.name}, repetition {number + 1} of {repetitions}")
        output = folder / f"{program.name}-{number}"
        files = sorted(str(p) for p in setting.dataset.rglob("*") if p.is_file())
        evict(files)
        try:
            trace = traced(program, setting, output)
            frame = open_trace(trace, cache=folder / "cache")
        except RunFailed as failure:
            raise UserError(f"dl verify: {case.name}: {failure} (see {output})") from None
        since = program.since(output) if shown_by == "strace" else None
        calls = of_dataset(frame, setting.dataset, since)
        values = metrics(calls, _fetched(files))
        if files and not values["opens"]:
            raise UserError(f"dl verify: {case.name}: {program.name} read nothing of {setting.dataset}")
        runs[program.name].append(values)
        sizes[program.name] = transfers(calls)
        seconds = compute_seconds(output)
        if seconds is not None and number == 0:
            setting = _with_computation(setting, seconds)
    return [
        {**_row(case.name, engine, reference, runs, setting),
         "transfers": {name: sizes[name] for name in (engine, reference)}}
        for engine, reference in PAIRS
        if engine in runs and reference in runs
    ]  # fmt: skip


def _fetched(files: Sequence[str]) -> float | None:
    """Return the bytes of the files in the page cache; None where they always are, or nobody can tell."""
    found = residency(files)
    return None if found.method == "none" or found.memory_backed else float(found.resident * _PAGE)


def _turns(programs: Sequence[Program], repetitions: int, seed: int) -> Iterator[tuple[int, Program]]:
    """Yield every program once in each repetition, in random order; first of all the real training.

    The benchmarks only emulate computation: how long a step takes, they learn from it.
    """
    generator = random.Random(seed)
    for number in range(repetitions):
        order = list(programs)
        generator.shuffle(order)
        if number == 0:
            order.sort(key=lambda program: program.name != "training")
        for program in order:
            yield number, program


def _with_computation(setting: Setting, seconds: float) -> Setting:
    train = setting.found.train.model_copy(update={"computation_time": Duration(mean=seconds)})
    found = setting.found.model_copy(update={"train": train})
    return replace(setting, found=found)


def _row(
    workload: str, engine: str, reference: str, runs: dict[str, list[Values]], setting: Setting
) -> dict[str, Any]:
    values, others = typical(runs[engine]), typical(runs[reference])
    pairs = list(combinations(runs[reference], 2))
    floor = {
        "similarity": _median([similarity(a, b) for a, b in pairs]),
        "closeness": _median([closeness(a, b) for a, b in pairs]),
    }
    compared = {
        name: {"value": values[name], "reference": others[name], "ratio": ratio(values[name], others[name]),
               "unit": unit}
        for name, unit in METRICS.items()
        if values[name] or others[name]
    }  # fmt: skip
    asked = [name for name in METRICS if name not in TIMES]
    # Two that do nothing to files do the same.
    found, requests, close = (
        similarity(values, others),
        similarity({n: values[n] for n in asked}, {n: others[n] for n in asked}),
        closeness(values, others),
    ) if compared else (1.0, 1.0, 1.0)  # fmt: skip
    return {
        "workload": workload, "engine": engine, "reference": reference, "similarity": found,
        "goal": GOAL, "reached": found >= GOAL,
        # What the programs ask for, without how fast the storage answered just then.
        "similarity_of_requests": requests,
        "closeness": close, "raw_cosine": raw_cosine(values, others),
        "reference_with_itself": floor, "repetitions": len(runs[engine]), "processes": setting.processes,
        "format": setting.found.dataset.format, "tracer": setting.tracer,
        "computation_time": setting.found.train.computation_time.expected,
        "explanation": explain(compared), "metrics": compared,
    }  # fmt: skip


def typical(runs: Sequence[Values]) -> dict[str, float | None]:
    """Return the median of each metric over repetitions; None where no repetition has it."""
    found: dict[str, float | None] = {}
    for name in METRICS:
        known = [value for run in runs if (value := run[name]) is not None]
        found[name] = statistics.median(known) if known else None
    return found


def _median(values: Sequence[float]) -> float | None:
    known = [v for v in values if not math.isnan(v)]
    return statistics.median(known) if known else None


def explain(compared: dict[str, dict[str, Any]]) -> str:
    """Return a sentence: in which metrics the two differ, those of the storage's speed apart."""

    def apart(names: Sequence[str]) -> list[str]:
        off = [(n, compared[n]["ratio"]) for n in names if n in compared]
        off = [(n, r) for n, r in off if r is None or abs(math.log(max(r, 1e-9))) > _SAME]
        off.sort(key=lambda pair: -math.inf if pair[1] is None else -abs(math.log(max(pair[1], 1e-9))))
        return [f"{n} ({'only one has it' if r is None else f'{r:.2f} times'})" for n, r in off]

    requests = apart([n for n in METRICS if n not in TIMES])
    times = apart(TIMES)
    parts = []
    parts.append(f"They ask for different things: {', '.join(requests)}." if requests
                 else "They ask the storage for the same within 5 %.")  # fmt: skip
    if times:
        parts.append(f"Calls were answered at different speeds: {', '.join(times)}.")
    return " ".join(parts)
