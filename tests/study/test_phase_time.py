"""`phase_time` in a study: what it changes in the plan, and what it leaves as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.study.test_plan import plan, site, study
from tiercel.documents import parse
from tiercel.engines import Installation, Task, engines
from tiercel.errors import UserError
from tiercel.study.assumptions import GOOD, assumed_seconds
from tiercel.study.expand import Capabilities, expand
from tiercel.study.model import Study
from tiercel.study.plan import Amount, Configuration, Run, order_runs
from tiercel.study.workloads import DataWorkload, MetadataWorkload

WRITE = {"operation": "write", "segments": 3, "fsync": "phase"}


def aiming(**keys: Any) -> Study:
    experiment = {"processes_per_node": [1, 2], "phase_time": "1s", "workloads": {"w": WRITE}, **keys}
    return study(experiments={"e": experiment}, twins=False)


def test_one_calibration_for_each_stack_and_scale_before_all_else() -> None:
    # 2 storages x 2 scales, in a round of their own; then 4 rounds of 4.
    planned = plan(aiming())
    assert [r.calibration for r in planned.runs] == [True] * 4 + [False] * 16
    assert [b.round for b in planned.batches] == [0, 1, 2, 3, 4]
    assert len({r.id for r in planned.runs}) == 20
    assert all(planned.calibrations[c.key].configuration == c for c in planned.configurations)


def test_engines_are_given_what_the_first_of_them_found() -> None:
    s, at = aiming(engines=[]), site()
    found = expand(s, at, Capabilities("mpiexec", {"iokernel": "1", "ior": "4"}))[0]
    planned = order_runs(at, s, found, 1000)
    assert sum(r.calibration for r in planned.runs) == 4
    for c in planned.configurations:
        leader = planned.calibrations[c.key].configuration
        assert leader.engine == "iokernel"
        assert (leader.stack, leader.processes_per_node) == (c.stack, c.processes_per_node)


def test_without_the_key_nothing_changes() -> None:
    plain = aiming(phase_time=None)
    assert not any(r.calibration for r in plan(plain).runs) and plan(plain).batches[0].round == 0
    assert not {r.id for r in plan(plain).runs} & {r.id for r in plan(aiming()).runs}
    assert not any("phase_time" in c.identity() for c in plan(plain).configurations)
    # The time that is aimed at determines what is measured.
    other = {c.key for c in plan(aiming(phase_time="2s")).configurations}
    assert other.isdisjoint(c.key for c in plan(aiming()).configurations)


def test_workloads_whose_size_is_part_of_them_go_as_they_are() -> None:
    training = {"operation": "deep-learning", "workload": "resnet50-vast"}
    s = study(experiments={"e": {"phase_time": "1s", "workloads": {"w": WRITE, "t": training}}}, twins=False)
    found = expand(s, site(), Capabilities("mpiexec", {"iokernel": "1"}))[0]
    assert {c.name: c.phase_time for c in found} == {"w": 1.0, "t": None}


@pytest.mark.parametrize(
    ("keys", "least"),
    [
        ({"operation": "write", "fsync": "phase"}, 8),
        ({"operation": "write", "fsync": "write"}, 8),
        # Never synced: what is smaller than memory is the speed of memory.
        ({"operation": "write"}, 3000),
        ({"operation": "write", "direct": True}, 8),
        # Evicted before the read: cold at any size. A read of what was just written is not.
        ({"operation": "read"}, 8),
        ({"operation": "read", "cold": False}, 3000),
        ({"operation": "read", "access": "RAW"}, 3000),
    ],
)
def test_never_less_than_what_keeps_a_number_honest(keys: dict[str, Any], least: int) -> None:
    workload = DataWorkload(segments=3000, **keys)
    assert workload.least_amount(processes_per_node=1) == least


def test_amounts_replace_the_size_and_nothing_else() -> None:
    data = DataWorkload(
        operation="write", transfer_size="64KiB", block_size="1MiB", data_per_node="1GiB", fsync="phase"
    )
    assert data.amount(2) == 512  # 1 GiB for 2 processes in blocks of 1 MiB
    more = data.with_amount(2048)
    assert (more.bytes_per_process(2), more.footprint(1, 2)) == (2 * 2**30, 4 * 2**30)
    sizes = {"segments", "data_per_process", "data_per_node"}
    assert more.model_dump(exclude=sizes) == data.model_dump(exclude=sizes)
    items = MetadataWorkload(operation="metadata", items_per_process=3)
    assert (items.amount(1), items.least_amount(1), items.with_amount(64).items_per_process) == (3, 3, 64)


def test_every_engine_is_told_the_amount() -> None:
    """2 processes, 64 blocks of 1 MiB each where the study says 3; 512 items where it says 1,000."""
    s = aiming(workloads={"w": WRITE, "m": {"operation": "metadata", "directories": False}})
    data, items = (next(c for c in plan(s).configurations if c.name == name) for name in "wm")

    def told(engine: str, version: str, c: Configuration, amount: int) -> list[str]:
        run = Run(c, amount=Amount(amount, 3, "phase_time", "", 1.0, "x", 0.1))
        task = Task(run.workload, 1, 2, Path("/data"), Path("/out"), 1, "mpiexec")
        adapter = engines.get(engine)()
        programs = dict.fromkeys((engine, "mpi", "fork"), Path("/bin/true"))
        return [
            word
            for step in adapter.steps(task, Installation(engine, version, programs))
            for word in step.argv
        ]

    assert "64" == after("-s", told("ior", "4.0.0", data, 64)) == after("-s", told("iokernel", "1", data, 64))
    fio = " ".join(told("fio", "3.36", data, 64))
    assert f"size={64 * 2**20}" in fio or f"size {64 * 2**20}" in fio
    assert (
        "512"
        == after("-n", told("mdtest", "4.0.0", items, 512))
        == after("-n", told("iokernel", "1", items, 512))
    )
    assert after("--again", told("iokernel", "1", items, 512)) == "0.1"
    assert "--again" not in told("mdtest", "4.0.0", items, 512)


def after(option: str, words: list[str]) -> str:
    return words[words.index(option) + 1]


def test_nothing_is_done_again_where_that_would_be_something_else() -> None:
    network = {"type": "nfs", "mount": "/", "scratch": "/tmp/x", "medium": "network"}
    metadata = {"operation": "metadata"}
    s = study(
        experiments={"e": {"nodes": [1, 2], "phase_time": "1s", "workloads": {"m": metadata}}}, twins=False
    )
    at = site(storages={"disk": {**network, "type": "xfs", "medium": "disk", "shared": True}, "nfs": network})
    found = {(c.stack.name, c.nodes): c.repeatable for c in plan(s, at).configurations}
    assert found == {("disk", 1): True, ("disk", 2): False, ("nfs", 1): False, ("nfs", 2): False}
    items = MetadataWorkload(operation="metadata")
    assert items.with_amount(64, 0.1).again == 0.1 and items.with_amount(64).again is None
    assert items.model_copy(update={"again": 0.5}).with_amount(64, 0.1).again == 0.5


def test_what_was_measured_before_there_was_again_keeps_its_name() -> None:
    metadata = {"operation": "metadata"}
    (c, *_) = plan(study(experiments={"e": {"workloads": {"m": metadata}}})).configurations
    assert "again" not in c.identity()["workload"]
    longer = {**metadata, "again": "100ms"}
    (c, *_) = plan(study(experiments={"e": {"workloads": {"m": longer}}})).configurations
    assert c.identity()["workload"]["again"] == 0.1


def test_what_it_is_assumed_to_take() -> None:
    # Two steps start in 0.1 s each on a good day; written and read: 2 s. A calibration tries three amounts.
    (c, *_) = plan(aiming()).configurations
    assert assumed_seconds(c, GOOD) == pytest.approx(0.2 + 2)
    assert assumed_seconds(c, GOOD, calibration=True) == pytest.approx(0.6 + 2)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"phase_time": "10ms"}, "experiments.e.phase_time"),
        ({"phase_time": "soon"}, "not a duration"),
    ],
)
def test_mistakes(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        aiming(**keys)


def test_a_designed_sample_keeps_its_sizes() -> None:
    sweep = {"size": 40, "levels": {"access": ["WO"]}}
    content = {"study": "x", "title": "t", "experiments": {"e": {"phase_time": "1s", "sweep": sweep}}}
    with pytest.raises(UserError, match="phase_time excludes sweep"):
        parse(Study, content, "x.yaml")
