"""Finds how much each process of a configuration does, where its phases aim at a time (`phase_time`).

A calibration is a run of its own kind: recorded like the others, in the plan before them, and never a number
of the report. What it chose is in its record, which is written last: a kill leaves all of it or nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tiercel.engines import Measurement
from tiercel.errors import RunFailed, UserError, one_line
from tiercel.results.raw import RECORD, RawStore
from tiercel.runs.amounts import ENOUGH_S, PART_OF_ROOM, Choice, Limits, Trial, choose, next_amount, room
from tiercel.runs.execute import Equipment, Outcome, Stages, elsewhere, measure, recording
from tiercel.runs.scratch import space_problem
from tiercel.study.plan import Amount, Run, RunPlan


def calibrate(run: Run, equipment: Equipment, run_seconds: float) -> Stages[Outcome]:
    """Carry out a calibration, keep its raw folder, and return what it came to.

    `run_seconds`: what a run of the amount that it chooses may take.
    """

    def do(folder: Path, steps: list[dict[str, Any]]) -> Stages[tuple[list[Measurement], Amount | None]]:
        yield from ()  # no data rests for it
        return [], _found(run, equipment, run_seconds, folder, steps)

    return recording(run, equipment, do)


def _found(
    run: Run, equipment: Equipment, run_seconds: float, folder: Path, steps: list[dict[str, Any]]
) -> Amount:
    """Try amounts until one is clear; RunFailed where not even the first succeeds.

    Each trial is what a run of that amount would be, in a folder of its own: ``trial-0/``, ``trial-1/``...
    """
    c = run.configuration
    assert c.phase_time is not None
    written, least = c.workload.amount(c.processes_per_node), c.workload.least_amount(c.processes_per_node)
    assert written is not None
    again = ENOUGH_S if c.repeatable else 0.0
    most = room(lambda amount: _fits(run, equipment, amount), least)
    limits = Limits(c.phase_time, least, max(least, most), min(run_seconds, equipment.timeout / 4))
    trials: list[Trial] = []
    failure = ""
    while not failure and (amount := next_amount(trials, limits)) is not None:
        place = folder / f"trial-{len(trials)}"
        place.mkdir()
        tried = replace(run, amount=Amount(amount, written, "trial", "", c.phase_time, run.id, again))
        mine: list[dict[str, Any]] = []
        try:
            numbers = measure(tried, equipment, place, mine)
        except RunFailed as error:
            if not trials or not equipment.nodes_answer():
                raise
            failure = one_line(str(error))
            continue
        finally:
            steps += mine
        trials.append(_trial(tried, numbers, sum(step["seconds"] for step in mine)))
        if _cold_unproven(run, numbers):  # then only the size may keep the read cold
            limits = replace(limits, least=written, most=max(written, limits.most))
    choice = choose(trials[-1], limits)
    if failure and choice.amount > trials[-1].amount:
        choice = Choice(trials[-1].amount, "failure", f"more failed: {failure}")
    return Amount(choice.amount, written, choice.bound, choice.why, c.phase_time, run.id, again)


def amount_of(plan: RunPlan, run: Run, store: RawStore) -> Amount | None:
    """Return the amount of a run with a phase_time; None where its calibration is still to go.

    What runs that are done moved is what the others move, whatever became of the calibration since.
    """
    calibration = plan.calibrations[run.configuration.key]
    together = {key for key, other in plan.calibrations.items() if other.id == calibration.id}
    for other in plan.runs:
        if other.configuration.key in together and not other.calibration and store.finished(other.id):
            raw = store.read(other.id)
            if raw and (amount := _amount(raw.run.get("amount"))):
                return amount
    raw = store.read(calibration.id)
    if raw is None or not raw.ok:
        return None
    amount = _amount(raw.record.get("amount"))
    if amount is None:
        raise UserError(
            f"{raw.folder / RECORD}: amount: not what a calibration of this tiercel writes: move the "
            "folder away to calibrate again"
        )
    return amount


def _amount(said: Any) -> Amount | None:
    """Return the amount that a record says; None where it says none that makes sense."""
    try:
        found = Amount(**said)
        sound = min(found.amount, found.written) >= 1 and found.phase_time > 0
    except (TypeError, ValueError):
        return None
    return found if sound else None


def _fits(run: Run, equipment: Equipment, amount: int) -> bool:
    """Return whether a storage has room for several times so much."""
    c = run.configuration
    nodes = c.nodes if c.stack.storage.shared else 1
    footprint = PART_OF_ROOM * c.workload.with_amount(amount).footprint(nodes, c.processes_per_node)
    free = equipment.around.get("free_bytes")
    if free is not None and footprint > free * c.stack.storage.fill_limit:
        return False
    return bool(elsewhere(run, equipment)) or space_problem(c.stack, footprint) is None


def _trial(run: Run, numbers: list[Measurement], seconds: float) -> Trial:
    """Return what a run of one amount took; RunFailed where the engine tells no times."""
    assert run.amount is not None
    measured = {i: m.total_time for i, m in enumerate(numbers) if m.role == "measured" and m.total_time}
    if not measured:
        raise RunFailed("no measured phase has a time")
    items = getattr(run.workload, "items_per_process", 0) * run.configuration.processes
    once = {i: (m.total_time or 0.0) / _passes(m, items) for i, m in enumerate(numbers)}
    longest, shortest = max(once[i] for i in measured), min(measured.values())
    return Trial(run.amount.amount, longest, shortest, sum(once.values()), seconds)


def _passes(phase: Measurement, items: int) -> float:
    """Return how often a phase went over the items (MetadataWorkload.again); 1 of data."""
    return max(1.0, phase.operations / items) if items and phase.operations else 1.0


def _cold_unproven(run: Run, numbers: list[Measurement]) -> bool:
    """Return whether a read should be cold and nobody saw that it was."""
    workload = run.workload
    wanted = getattr(workload, "wants_cold", False) and not getattr(workload, "direct", False)
    return bool(wanted) and any(m.resident_fraction is None for m in numbers if m.role == "measured")
