"""Takes the figure of a statement out of what its command printed.

A reading is named by its statement; the command is in the paper's file. To add one, write a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tiercel.statistics.bootstrap import ratio_interval


@dataclass(frozen=True)
class Figure:
    """A figure of repetitions, with its 95 % interval."""

    value: float
    low: float
    high: float


Reading = Callable[[Any], float | Figure]

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
def _peak_over_gift(answer: Any) -> float:
    """The gain of `token`, which the paper describes, over GIFT as published, each in its best phase, in %.

    Not over TBF: its cap was chosen for the paper's figure.
    """
    ours, other = (
        max(phase["throughput"] for phase in _simulated(answer, name)["phases"])
        for name in ("token", "gift-published")
    )
    return float(100 * (ours / other - 1))


@_reads("themis-07")
def _steadier_than_gift(answer: Any) -> float:
    """The reduction of the second job's standard deviation against GIFT as published, in percent."""

    def deviation(scheduler: str) -> float:
        jobs = [job for phase in _simulated(answer, scheduler)["phases"] for job in phase["jobs"]]
        (second,) = [job for job in jobs if job["name"] == "second"]  # it has one phase, in the middle
        return float(second["standard_deviation"])

    return 100 * (1 - deviation("token") / deviation("gift-published"))


@_reads("themis-11")
def _efficiency_of_128(answer: Any) -> float:
    return float(100 * answer["predictions"][0]["efficiency"])


@_reads("themis-12")
def _slowest_to_fairness(answers: Any) -> float:
    """The intervals until all jobs stay within five points of their share, over the paper's; the most of the
    four cases. In each interval is one exchange; the paper has 5 intervals of 10 ms, and 2 of the longer."""

    def intervals(simulation: Any) -> float:
        first, second, *_ = sorted({row["time_s"] for row in simulation["series"]})
        return float(simulation["phases"][-1]["time_to_fairness_s"] / (second - first))

    published = (5, 2, 2, 2)
    return max(intervals(a["simulations"][0]) / paper for a, paper in zip(answers, published, strict=True))


@_reads("themis-20")
def _slowed_down(answer: Any) -> float:
    """What first come, first served costs a program beside a job with much I/O, in % of its time alone."""
    found = _under(answer, "fifo")
    if abs(found["noise"]) > found["slowdown"]:
        raise ValueError("the machine is too busy: the same twice differs more")
    return float(100 * found["slowdown"])


@_reads("themis-13")
def _slowed_down_fairly(answer: Any) -> float:
    return float(100 * _under(answer, "size-fair")["slowdown"])


@_reads("themis-10")
def _ahead_or_not(answers: Any) -> float:
    """Time beside the other job over time alone: of the training that reads ahead over the other's."""
    ahead, itself = (1 + _under(a, "fifo")["slowdown"] for a in answers)
    return float(ahead / itself)


def _under(answer: Any, policy: str) -> Any:
    return next(row for row in answer["policies"] if row["policy"] == policy)


@_reads("themis-21")
def _of_alone(answer: Any) -> float:
    """The lower throughput of the two composite policies, over that of one job alone."""
    names = ("user-then-size-fair", "group-user-size-fair")
    return float(min(c["total_to_alone"] for c in answer["sharing"] if c["contest"] in names))


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


@_reads("cache-02")
def _least_without_compute(answer: Any) -> float:
    """The observed bandwidth without computation over the most with it."""
    without, *beside = sorted(answer["checkpoint"]["rows"], key=lambda row: float(row["compute_ratio"]))
    if without["compute_ratio"] != 0:
        raise ValueError("no checkpoints without computation")
    return float(without["cached"] / max(row["cached"] for row in beside))


@_reads("cache-20")
def _writes_without_compute(answer: Any) -> Figure:
    row = _quiet(next(r for r in answer["checkpoint"]["rows"] if r["compute_ratio"] == 0))
    return Figure(row["of_plain"], *row["of_plain_interval"])


@_reads("cache-06")
def _first_epoch(answer: Any) -> Figure:
    """The middle of the cases, and of the ends of their intervals.

    The thread that copies needs a processor: that there was one, the writes of the same benchmark tell.
    """
    for row in answer["checkpoint"]["rows"]:
        _quiet(row)
    rows = [_quiet(row) for row in answer["stream"]]
    low, high = zip(*(row["first_epoch_of_plain_interval"] for row in rows), strict=True)
    return Figure(median(row["first_epoch_of_plain"] for row in rows), median(low), median(high))


@_reads("cache-21")
def _later_epochs_of_page_cache(answer: Any) -> float:
    """Of plain HDF5 that has the file in the page cache, in order: table III, case b."""
    plain, cached = (
        next(s for s in answer["stream"] if s["order"] == "sequential" and s["base_page_cache"] is kept)
        for kept in (False, True)
    )
    if plain["later_of_plain"] <= 1.25:  # as much as noise may be
        raise ValueError("without page cache later epochs are no faster than plain: the copy served nothing")
    return float(_quiet(cached)["later_of_plain"])


# -- deep learning ------------------------------------------------------------------------------------------


@_reads("dlio-05")
def _best_chunks(answer: Any) -> Figure:
    """The gain of the best chunk size over the workload file's."""
    return _largest(t for t in answer["tried"] if "dataset.chunk_size" in t["settings"])


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


def _largest(gains: Iterable[Any]) -> Figure:
    best = max(gains, key=lambda gain: float(gain["ratio"]))
    return Figure(best["ratio"], best["low"], best["high"])


def _tried(answer: Any, **settings: Any) -> Figure:
    """Return the gain of one setting that `dl optimise` tried."""
    return _largest(t for t in answer["tried"] if settings.items() <= t["settings"].items())


def _smallest(figures: Iterable[Figure]) -> Figure:
    return min(figures, key=lambda figure: figure.value)


@_reads("dlio-02")
def _larger_transfers(answers: Any) -> Figure:
    """The smaller gain of ImageNet and CosmoFlow."""
    return _smallest(_tried(a, **{"reader.transfer_size": 1024**2}) for a in answers)


@_reads("dlio-07")
def _compressed(answer: Any) -> Figure:
    return _tried(answer, **{"dataset.compression": "gzip", "dataset.compression_level": 4})


def _trained(answer: Any) -> dict[str, float]:
    """Return the times of all epochs of a `dl run` together, in seconds."""
    epochs = [m for m in answer["measurements"] if m["operation"] in ("train", "train-later")]
    names = ("total_time", "io_time", "overlapped_io", "nonoverlapped_io", "compute_time")
    return {name: sum(float(m[name]) for m in epochs) for name in names}


@_reads("dlio-06")
def _large_chunks_shuffled(answers: Any) -> float:
    """Time with chunks of 4 MiB over that with 64 KiB."""
    small, large = map(_trained, answers)
    return large["total_time"] / small["total_time"]


# -- two storages of different speed: the slower first -----------------------------------------------------


@_reads("vast-14")
def _computing(answers: Any) -> float:
    """The smaller share of computation in the runtime of the two trainings, in percent."""
    times = [_trained(a) for a in answers]
    return 100 * min(t["compute_time"] / t["total_time"] for t in times)


@_reads("vast-15")
def _hidden_of_what_is_more(answers: Any) -> float:
    """The part of the slower storage's additional I/O time that computation hides, in percent."""
    slow, fast = map(_trained, answers)
    more = slow["io_time"] - fast["io_time"]
    if more <= 0:
        raise ValueError("the machine is too busy: the slower storage is not slower")
    return 100 * (slow["overlapped_io"] - fast["overlapped_io"]) / more


@_reads("vast-16")
def _felt_of_the_difference(answers: Any) -> Figure:
    """The ratio of the application's throughputs over that of the storages' own, from the medians of epochs.

    Throughputs are of the same bytes, so this is the share of I/O that is not hidden, of one over the other.
    """
    slow, fast = (
        np.array([r["nonoverlapped_io"] / r["io"] for r in a["run"]["rows"] if r["kind"] == "train"])
        for a in answers
    )
    low, high = ratio_interval([(slow, fast)])
    return Figure(float(np.median(slow) / np.median(fast)), low, high)


# -- topologies: `site ceilings` ---------------------------------------------------------------------------


def _ceilings(answer: Any, storage: str, workload: str) -> dict[int, float]:
    """Return the ceiling of each number of nodes."""
    return {
        row["nodes"]: row["ceiling"]
        for row in answer["ceilings"]
        if (row["experiment"], row["workload"], row["storage"]) == ("scaling", workload, storage)
    }


@_reads("vast-04")
def _stops_at(answer: Any) -> float:
    """The nodes from which on VAST has no more for random reads, with another link of a node."""
    rates = _ceilings({"ceilings": [row["after"] for row in answer["ceilings"]]}, "vast", "ml")
    return float(min(n for n, rate in rates.items() if rate >= 0.99 * max(rates.values())))


@_reads("cache-07")
def _crossover(answer: Any) -> float:
    """Nodes whose own NVMe carry together what the file system does, at 128 nodes by its servers."""
    nodes = 128
    own, shared = (_ceilings(answer, s, "scientific")[nodes] for s in ("nvme", "gpfs"))
    return shared / (own / nodes)


# -- placement ---------------------------------------------------------------------------------------------


@_reads("prism-01")
def _decision_tree(answer: Any) -> float:
    return float(100 * answer["sweep"]["models"]["decision-tree"]["random"]["accuracy"])


@_reads("prism-02")
def _real_applications(answer: Any) -> float:
    """Of the file groups whose systems differ beyond noise; ValueError where one of them is always best."""
    best = {row["best"] for row in answer["applications"]["rows"] if row["differ"]}
    if len(best) < 2:
        raise ValueError("one system is the fastest for all file groups, which any guess gets right")
    return float(100 * answer["applications"]["total"]["chosen"]["accuracy_where_differ"])


@_reads("prism-03")
def _lower_rank(answer: Any) -> float:
    """The lower rank of transfer size and accesses for each open among the tree's importances."""
    ranked = sorted(answer["importances"], key=lambda row: -row["impurity"])
    names = [row["feature"] for row in ranked]
    return float(1 + max(names.index("transfer_size"), names.index("accesses_per_open")))


@_reads("prism-04")
def _falls_and_reads_more(answer: Any) -> float:
    """The smaller of two differences, in points, of the share that is fastest on the system that most are.

    Smallest less largest transfers, and reads less writes; both are above 0 where the statement holds.
    """
    rows = answer["fastest"]
    system = max(answer["systems"], key=lambda s: sum(r["share"] * r["n"] for r in rows if r["system"] == s))
    mine = [r for r in rows if r["system"] == system]

    def share(chosen: list[Any]) -> float:
        return float(sum(r["share"] * r["n"] for r in chosen) / sum(r["n"] for r in chosen))

    sizes = [r["transfer_size"] for r in mine]
    falls = share([r for r in mine if r["transfer_size"] == min(sizes)]) - share(
        [r for r in mine if r["transfer_size"] == max(sizes)]
    )
    reads, writes = (share([r for r in mine if r["operation"] == o]) for o in ("read", "write"))
    return 100 * min(falls, reads - writes)
