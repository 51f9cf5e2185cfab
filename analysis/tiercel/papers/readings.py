"""Takes the figure of a statement out of what its command printed.

A reading is named by its statement; the command is in the paper's file. To add one, write a function here.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

Reading = Callable[[Any], float]

_READINGS: dict[str, Reading] = {}


def reading_of(statement: str) -> Reading | None:
    """Return the reading of a statement, None where it has none."""
    return _READINGS.get(statement)


def _reads(*statements: str) -> Callable[[Reading], Reading]:
    def file(reading: Reading) -> Reading:
        _READINGS.update(dict.fromkeys(statements, reading))
        return reading

    return file


# -- sharing: `share bench` (measured) and `share simulate`, `share calibrate` (simulated) ------------------


def _contest(answer: Any, name: str) -> dict[str, dict[str, float]]:
    found = next(c for c in answer["sharing"] if c["contest"] == name)
    return {job["job"]: job for job in found["jobs"]}


@_reads("themis-01")
def _size_fair(answer: Any) -> float:
    jobs = _contest(answer, "size-fair 4:1")
    return jobs["big"]["measured"] / jobs["small"]["measured"]


@_reads("themis-02")
def _job_fair(answer: Any) -> float:
    jobs = _contest(answer, "job-fair")
    return jobs["big"]["measured"] / jobs["small"]["measured"]


@_reads("themis-03")
def _user_fair(answer: Any) -> float:
    jobs = _contest(answer, "user-fair, 2 users")
    return (jobs["a1"]["measured"] + jobs["a2"]["measured"]) / jobs["b1"]["measured"]


@_reads("themis-04")
def _user_then_size_fair(answer: Any) -> float:
    """The largest distance of a job's share from what the policy entitles it to, in points."""
    jobs = _contest(answer, "user-then-size-fair").values()
    return 100 * max(abs(job["measured"] - job["entitled"]) for job in jobs)


@_reads("themis-05")
def _group_user_size_fair(answer: Any) -> float:
    return 100 * _contest(answer, "group-user-size-fair")["g1"]["measured"]


def _simulated(answer: Any, scheduler: str) -> Any:
    return next(s for s in answer["simulations"] if s["scheduler"] == scheduler)


@_reads("themis-06")
def _gain_over_others(answer: Any) -> float:
    """The smaller gain of `token`, which the paper describes, over the two others as published, in %."""
    ours = _simulated(answer, "token")["throughput"]
    others = [_simulated(answer, name)["throughput"] for name in ("gift-published", "tbf-published")]
    return float(100 * min(ours / other - 1 for other in others))


@_reads("themis-07")
def _steadier_than_others(answer: Any) -> float:
    """The smaller reduction of the second job's standard deviation against the two others, in percent."""

    def deviation(scheduler: str) -> float:
        jobs = _simulated(answer, scheduler)["phases"][-1]["jobs"]
        return float(next(j for j in jobs if j["name"] == "second")["standard_deviation"])

    return 100 * min(1 - deviation("token") / deviation(name) for name in ("gift-published", "tbf-published"))


@_reads("themis-11")
def _efficiency_of_128(answer: Any) -> float:
    return float(100 * answer["predictions"][0]["efficiency"])


@_reads("themis-12")
def _slowest_to_fairness(answer: Any) -> float:
    """Intervals of 500 ms until all jobs stay within five points of their share."""
    phase = answer["simulations"][0]["phases"][-1]
    return float(phase["time_to_fairness_s"] / 0.5)


@_reads("themis-20")
def _slowed_down(answer: Any) -> float:
    """What first come, first served costs a program beside a job with much I/O, in % of its time alone."""
    found = next(row for row in answer["policies"] if row["policy"] == "fifo")
    if abs(found["noise"]) > found["slowdown"]:
        raise ValueError("the machine is too busy: the same twice differs more")
    return float(100 * found["slowdown"])


# -- caching: `cache bench` ---------------------------------------------------------------------------------


def _quiet(found: Any) -> Any:
    """Return a row of the benchmark; ValueError where the same twice differs too much to tell anything."""
    if not 0.8 <= found["noise"] <= 1.25:
        raise ValueError(
            f"the machine is too busy: the same twice differs by a factor of {found['noise']:.2f}"
        )
    return found


@_reads("cache-01")
def _writes_behind_compute(answer: Any) -> float:
    rows = [_quiet(r) for r in answer["checkpoint"]["rows"] if r["compute_ratio"] >= 1]
    found = float(max(r["of_node_local"] for r in rows))
    if found > 1.25:
        raise ValueError(
            f"the machine is too busy: {found:.2f} times as fast as the storage that it writes to"
        )
    return found


@_reads("cache-02", "cache-20")
def _writes_without_compute(answer: Any) -> float:
    return float(answer["checkpoint"]["rows"][0]["of_plain"])


@_reads("cache-06")
def _first_epoch(answer: Any) -> float:
    return float(median(s["first_epoch_of_plain"] for s in answer["stream"]))


@_reads("cache-21")
def _later_epochs_of_node_local(answer: Any) -> float:
    rows = [_quiet(s) for s in answer["stream"] if s["order"] == "sequential"]
    return float(min(s["later_of_node_local"] for s in rows))


# -- deep learning ------------------------------------------------------------------------------------------


@_reads("dlio-05")
def _best_chunks(answer: Any) -> float:
    """The gain of the best chunk size over the workload file's."""
    return float(max(t["ratio"] for t in answer["tried"] if "dataset.chunk_size" in t["settings"]))


@_reads("dlio-01")
def _least_similarity(answer: Any) -> float:
    """The least similarity of dlkernel's I/O and a real training's; ValueError unless both frameworks ran."""
    found = {
        row["workload"]: row["similarity"]
        for row in answer
        if (row["engine"], row["reference"]) == ("dlkernel", "training")
    }
    if not {"resnet50-vast", "cosmoflow-vast"} <= set(found):
        raise ValueError("trainings in PyTorch and TensorFlow are needed: make dlio, make dlio-torch")
    return float(min(found.values()))
