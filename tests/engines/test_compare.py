"""Engines against each other: what is paired with what, and that numbers come from every side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.engines import Installation, Step, Task, engines
from tiercel.engines.base import Engine, Measurement
from tiercel.errors import UserError
from tiercel.programs import program
from tiercel.runs import compare
from tiercel.runs.compare import compare_engines
from tiercel.site.model import Stack, Storage
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.study.workloads import Workload

SITE = "site: local\nlauncher: fork\ndiscover: true\n"


class Pretender(Engine):
    """Burns as many shell loops as `cost` says for each operation and reports what it is told to."""

    needs_mpi = False
    note = "not here"
    cost = 1
    rate = 1000.0
    broken = False

    def find(self) -> Installation | None:
        return Installation(self.name, "1", {}) if self.cost else None

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        return None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        burn = f"i=0; while [ $i -lt {4000 * self.cost * _operations(task)} ]; do i=$((i+1)); done"
        end = "; exit 3" if self.broken else ""
        return [Step(getattr(task.workload, "operation", ""), ("sh", "-c", burn + end), launch="once")]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        return [Measurement("write", bandwidth=self.rate, operations=_operations(task))]


def _operations(task: Task) -> int:
    return 1 if getattr(task.workload, "block_size", None) is None else 10


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Compare the named pretenders on one small shape and a folder of the test's."""
    (tmp_path / "site-configs" / "local").mkdir(parents=True)
    (tmp_path / "site-configs" / "local" / "site.yaml").write_text(SITE)
    mount = mount_of(tmp_path, read_mounts())
    assert mount is not None and mount.medium is not None
    scratch = str(tmp_path / "scratch")
    storage = Storage(type=mount.type, mount=str(mount.point), medium=mount.medium, scratch=scratch)
    monkeypatch.setattr(compare, "_SHAPES", ((4096, 1, (65536, 65536)),))
    monkeypatch.setattr(compare, "_QUICK", (3, 60.0))

    def run(names: list[str], **classes: type[Engine]) -> dict[str, Any]:
        for name, cls in classes.items():
            cls.name = name
            monkeypatch.setitem(engines._classes, name, cls)
        answer = compare_engines(names, True, tmp_path, [Stack("main", storage)])
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer
        return answer

    return run


def test_ratios_are_to_the_baseline(here: Callable[..., dict[str, Any]]) -> None:
    class Plain(Pretender):
        pass

    class Dear(Pretender):
        cost, rate = 4, 250.0

    answer = here(["plain", "dear"], plain=Plain, dear=Dear)
    pairs = {(p["case"], p["metric"]): p for p in answer["pairs"]}
    assert set(pairs) == {
        (f"main 4 KiB {operation}", metric)
        for operation in ("write", "read")
        for metric in ("bandwidth", "cpu_per_operation")
    }
    write = pairs["main 4 KiB write", "bandwidth"]
    assert (write["engine"], write["baseline"], write["n"]) == ("dear", "plain", 3)
    assert (write["ratio"], write["low"], write["high"]) == pytest.approx((0.25, 0.25, 0.25))
    assert write["floor"] == pytest.approx([1.0, 1.0])
    # Ten operations burn 4 times the loops of the baseline's, and start-up is taken off both.
    assert 2.0 < pairs["main 4 KiB write", "cpu_per_operation"]["ratio"] < 8.0
    assert answer["engines"] == {"plain": "1", "dear": "1"}


def test_what_is_missing_or_fails_is_noted(here: Callable[..., dict[str, Any]]) -> None:
    class Absent(Pretender):
        cost = 0

    class Broken(Pretender):
        broken = True

    class Plain(Pretender):
        pass

    answer = here(["plain", "absent", "broken"], plain=Plain, absent=Absent, broken=Broken)
    assert "absent was not found: not here" in answer["notes"]
    assert any(n.startswith("broken failed in main 4 KiB write: write: exit code 3") for n in answer["notes"])
    assert not [p for p in answer["pairs"] if p["engine"] != "plain"]


def test_one_engine_alone_is_compared_with_itself(here: Callable[..., dict[str, Any]]) -> None:
    class Plain(Pretender):
        pass

    answer = here(["plain"], plain=Plain)
    assert {(p["engine"], p["baseline"]) for p in answer["pairs"]} == {("plain", "plain")}
    assert {p["verdict"] for p in answer["pairs"]} == {"undecided"}
    assert "there is nothing but plain, so it is compared with itself" in answer["notes"]


def test_no_engine_at_all(here: Callable[..., dict[str, Any]]) -> None:
    class Absent(Pretender):
        cost = 0

    with pytest.raises(UserError, match=r"no engine to compare \(absent was not found: not here"):
        here(["absent"], absent=Absent)


def test_an_unknown_name(here: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(UserError, match="no engine named 'iorr'"):
        here(["iorr"])


@pytest.mark.skipif(program("iokernel") is None, reason="iokernel is not built")
def test_the_real_iokernel_alone(
    here: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "_SHAPES", ((4096, 1, (8 * 1024**2, 0)),))
    answer = here(["iokernel"])
    bandwidths = [p for p in answer["pairs"] if p["metric"] == "bandwidth"]
    assert [p["case"] for p in bandwidths] == ["main 4 KiB write", "main 4 KiB read"]
    assert all(p["n"] == 3 and 0 < p["low"] <= p["ratio"] <= p["high"] for p in bandwidths)
