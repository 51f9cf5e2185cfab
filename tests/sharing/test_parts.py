"""A policy's tree of parts, and what `tiercel share policy` says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.layers.fairshare.policies import levels_of
from tiercel.sharing.parts import Member, parts_of
from tiercel.sharing.simulator import NOT_BUILT, available

needs_simulator = pytest.mark.skipif(not available(), reason=NOT_BUILT)

#: Figure 9 of the ThemisIO paper: ana has jobs of 1 and 2 nodes, bo of 4 and 6.
JOBS = [
    "--job", "name=a,user=ana,nodes=1", "--job", "name=b,user=ana,nodes=2",
    "--job", "name=c,user=bo,nodes=4", "--job", "name=d,user=bo,nodes=6",
]  # fmt: skip


def invoke(*words: str) -> str:
    answer = CliRunner().invoke(app, ["share", "policy", *words])
    if answer.exception:
        raise answer.exception
    return answer.output


def test_parts_are_sums_of_their_jobs() -> None:
    members = [
        Member("a", {"group": "1", "user": "1"}, 0.5, 0.48),
        Member("b", {"group": "2", "user": "1"}, 0.2, 0.22),  # the same user in another group
        Member("c", {"group": "2", "user": "3"}, 0.3, 0.30),
    ]
    one, two = parts_of(("group", "user", "job"), members)
    assert [(p.level, p.name) for _, p in one.walk()] == [("group", "1"), ("user", "1"), ("job", "a")]
    assert (two.entitled, two.measured) == (pytest.approx(0.5), pytest.approx(0.52))
    assert [p.name for p in two.below] == ["1", "3"]


def test_levels() -> None:
    assert levels_of("fifo") == ()
    assert levels_of("user-fair") == ("user", "job")
    assert levels_of("group-user-then-size-fair") == ("group", "user", "size")


@needs_simulator
@pytest.mark.parametrize("policy", ["user-fair", "size-fair", "group-user-size-fair", "size-then-user-fair"])
def test_levels_are_those_of_the_layer(policy: str) -> None:
    assert tuple(json.loads(invoke(policy, *JOBS, "--json"))["levels"]) == levels_of(policy)


@needs_simulator
def test_segments_and_matrices_by_hand() -> None:
    found = json.loads(invoke("user-then-size-fair", *JOBS, "--json"))
    # Halves; of ana's a third and two thirds, of bo's 4 and 6 tenths.
    assert [job["share"] for job in found["jobs"]] == pytest.approx([1 / 6, 1 / 3, 0.2, 0.3])
    assert [job["segment"] for job in found["jobs"]] == [
        pytest.approx(pair) for pair in ([0, 1 / 6], [1 / 6, 0.5], [0.5, 0.7], [0.7, 1])
    ]
    first, second = found["matrices"]
    assert [c["value"] for c in first["columns"]] == [0.5, 0.5]
    assert [c["row"] for c in second["columns"]] == [0, 0, 1, 1]
    assert [c["value"] for c in second["columns"]] == pytest.approx([1 / 3, 2 / 3, 0.4, 0.6])


@needs_simulator
def test_words_and_figure(tmp_path: Path) -> None:
    figure = tmp_path / "tree.svg"
    said = invoke("user-then-size-fair", *JOBS, "--figure", str(figure))
    assert "user ana  50.00 %" in said and "0.5000–0.7000" in said
    assert figure.stat().st_size > 1000
    assert "guarantees no shares" in invoke("fifo", *JOBS)


@needs_simulator
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("sise-fair",), "did you mean size-fair"),
        (("fifo", "--figure", "tree.png"), "guarantees no shares"),
        (("user-fair", "--job", "x"), "KEY=VALUE"),
        (("user-fair", "--figure", "tree.txt"), "a figure is a"),
    ],
)
def test_mistakes_are_one_sentence(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as error:
        invoke(*words)
    assert "\n" not in str(error.value)
