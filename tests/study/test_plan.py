"""The plan: what is run how often, in which order, under which names."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.site.model import Site
from tiercel.study.expand import Capabilities, expand
from tiercel.study.model import Study
from tiercel.study.plan import RunPlan, order_runs

STORAGE = {"type": "xfs", "mount": "/", "scratch": "/tmp/x"}


def site(**keys: Any) -> Site:
    content = {
        "site": "s", "nodes": 4, "processes_per_node": 8, "storages": {"a": STORAGE, "b": STORAGE}, **keys,
    }  # fmt: skip
    return parse(Site, content, "site.yaml")


def study(**keys: Any) -> Study:
    content = {
        "study": "x",
        "title": "t",
        "repetitions": {"minimum": 2, "maximum": 4},
        "experiments": {
            "scaling": {
                "nodes": [1, 2],
                "processes_per_node": [1, "half", "max"],
                "workloads": {
                    "w": {"operation": "write", "segments": 3},
                    "r": {"operation": "read", "segments": 3},
                },
            }
        },
        **keys,
    }
    return parse(Study, content, "x.yaml")


def plan(s: Study, at: Site | None = None, part_size: int = 1000) -> RunPlan:
    at = at or site()
    return order_runs(at, s, expand(s, at, Capabilities("mpiexec", {"iokernel": "1"}))[0], part_size)


def test_counts() -> None:
    # 2 nodes x 3 processes per node x 2 workloads x 2 storages = 24 configurations; in 4 rounds 96 runs.
    # Twins: one scale of 2 workloads on 2 storages, in the 2 minimum rounds: 8 runs.
    runs = plan(study()).runs
    assert len(runs) == 96 + 8
    assert Counter(r.twin for r in runs) == {"a": 96, "b": 8}
    # The scales by their processes: 1x1, 2x1, 1x4, 1x8, 2x4, 2x8. Each workload and storage takes the next.
    paired = {(c.name, c.stack.name, c.nodes, c.processes_per_node)
              for c in (r.configuration for r in runs if r.twin == "b")}  # fmt: skip
    assert paired == {("w", "a", 1, 1), ("w", "b", 2, 1), ("r", "a", 2, 1), ("r", "b", 1, 4)}


def test_pairs_go_through_the_scales_in_turn() -> None:
    """Six workloads on two storages at two scales: half of the pairs of either storage at each scale."""
    workloads = {f"w{n}": {"operation": "write", "segments": 3} for n in range(6)}
    experiments = {"e": {"nodes": [1], "processes_per_node": [1, 8], "workloads": workloads}}
    pairs = [r.configuration for r in plan(study(experiments=experiments)).runs if r.twin == "b"]
    counts = Counter((c.stack.name, c.processes) for c in pairs)
    assert counts == {(stack, scale): 3 * 2 for stack in "ab" for scale in (1, 8)}  # two rounds each


def test_traced_runs_come_last_and_once_for_each_workload_and_stack() -> None:
    traced = plan(study(trace=True))
    assert [r.traced for r in traced.runs][-4:] == [True] * 4
    assert sum(r.traced for r in traced.runs) == 4


def test_every_round_interleaves_the_stacks() -> None:
    first = [r for r in plan(study()).runs if r.repetition == 0 and r.configuration.nodes == 1]
    order = [r.configuration.stack.name for r in first]
    # Sorted by stack they would change once; a shuffle of 14 changes about 7 times.
    assert sum(x != y for x, y in pairwise(order)) > 3
    second = [r for r in plan(study()).runs if r.repetition == 1 and r.configuration.nodes == 1]
    assert [r.configuration.key for r in first] != [r.configuration.key for r in second]


def test_names_are_unique_and_repeatable() -> None:
    ids = [r.id for r in plan(study()).runs]
    assert len(set(ids)) == len(ids)
    assert ids == [r.id for r in plan(study()).runs]


def test_what_determines_a_run_is_in_its_name() -> None:
    def first(s: Study, at: Site | None = None) -> set[str]:
        return {r.configuration.key for r in plan(s, at).runs}

    base = first(study())
    assert first(study(seed=2)).isdisjoint(base)
    other_mount = {**STORAGE, "mount": "/other"}
    assert first(study(), site(storages={"a": other_mount, "b": other_mount})).isdisjoint(base)
    # The scratch folder names a place, the title is for people, bounds say how often: none of them what.
    elsewhere = {**STORAGE, "scratch": "/tmp/y"}
    assert first(study(), site(storages={"a": elsewhere, "b": elsewhere})) == base
    assert first(study(title="other", repetitions={"minimum": 3, "maximum": 3})) == base


def test_twins_and_stacks_see_the_same_seed_and_repetitions_another() -> None:
    runs = plan(study()).runs
    seeds = {(r.repetition, r.seed) for r in runs}
    assert len(seeds) == 4


@settings(max_examples=25)
@given(part=st.integers(min_value=1, max_value=60))
def test_cutting_into_jobs_loses_nothing(part: int) -> None:
    whole, cut = plan(study(trace=True)), plan(study(trace=True), part_size=part)
    assert sorted(r.id for r in cut.runs) == sorted(r.id for r in whole.runs)
    assert len({b.name for b in cut.batches}) == len(cut.batches)
    assert all(len({r.configuration.nodes for r in b.runs}) == 1 and len(b.runs) <= part for b in cut.batches)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"stacks": ["c"]}, "no storage named 'c' on site s"),
    ],
)
def test_stacks_that_are_not_there(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        plan(study(**keys))


def test_the_margin_is_a_share_and_names_no_run_anew() -> None:
    assert study().margin == 0.1
    assert study(margin="5%").margin == pytest.approx(0.05)
    assert study(margin=0.2).margin == 0.2
    assert [r.id for r in plan(study(margin="5%")).runs] == [r.id for r in plan(study()).runs]
    for wrong in ("0%", "-5%", "101%", "5", "ten", True, None, [1], math.nan, math.inf):
        with pytest.raises(UserError, match=r"^x\.yaml: margin: [^\n]*$"):
            study(margin=wrong)


def test_what_stays_in_the_page_cache_does_not_rest() -> None:
    def resting(**keys: Any) -> Study:
        content = {"operation": "read", "segments": 3, "rest": "1min", **keys}
        return study(experiments={"e": {"workloads": {"w": content}}})

    assert resting() and resting(direct=True, cold=False)
    with pytest.raises(UserError, match=r"workloads\.w: rest is of a cold read"):
        resting(cold=False)


def test_more_than_the_site_has() -> None:
    with pytest.raises(UserError, match=r"scaling.nodes: 2 is more than the 1 of site s"):
        plan(study(), site(nodes=1))
    big = study()
    big.experiments["scaling"].processes_per_node.append(9)
    with pytest.raises(UserError, match=r"processes_per_node: 9 is more than the 8 of site s"):
        plan(big)


def test_no_engine_for_a_workload() -> None:
    class Old(Capabilities):
        def unsupported(self, *_: object) -> str | None:
            return "too old"

    with pytest.raises(UserError, match=r"workloads.w: no engine can do it \(iokernel: too old\)"):
        expand(study(), site(), Old("mpiexec", {"iokernel": "1"}))


def test_sizes() -> None:
    content = {"operation": "write", "transfer_size": "4KiB", "data_per_node": "1MiB"}
    s = study(experiments={"e": {"workloads": {"w": content}}})
    w = s.experiments["e"].workloads["w"]
    assert w.bytes_per_process(3) == 348160  # type: ignore[union-attr]  # 1 MiB / 3, in whole 4 KiB: 85 x 4096
    assert w.footprint(2, 3) == 348160 * 6


def test_what_is_compared_repeats_where_it_decides() -> None:
    """With `decide:`, two storages have their minimum, and further repetitions by looks; what is held against
    nothing goes on until it is precise."""
    count = Counter(r.twin for r in plan(study(decide="1min")).runs)
    assert count == {"a": 24 * 2, "b": 8}  # as in test_counts; the minimum of 2 rounds
    one = study(decide="1min", stacks=["a"])
    assert Counter(r.twin for r in plan(one).runs)["a"] == 12 * 4
    # Experiments on one storage each are not held against each other.
    experiments = {
        name: {"stacks": [name], "nodes": [1], "processes_per_node": [1],
               "workloads": {"w": {"operation": "write", "segments": 3}}}
        for name in "ab"
    }  # fmt: skip
    assert Counter(r.twin for r in plan(study(decide="1min", experiments=experiments)).runs)["a"] == 2 * 4
