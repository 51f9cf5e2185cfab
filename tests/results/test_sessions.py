"""Runs whose processes share sessions in another way than those beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tiercel.results import schema
from tiercel.results.sessions import mark_sessions
from tiercel.results.validity import SESSIONS


def row(layout: str | None, **keys: Any) -> dict[str, Any]:
    plain = {
        "site": "s", "study": "x", "experiment": "e", "workload": "w", "operation": "write",
        "engine": "iokernel", "nodes": 1, "processes_per_node": 2, "flags": ["loaded-machine"],
    }  # fmt: skip
    return {**dict.fromkeys(c.name for c in schema.OBSERVATIONS), **plain, "session_layout": layout, **keys}


def marked(rows: Sequence[dict[str, Any]]) -> list[bool]:
    mark_sessions(list(rows))
    assert all("loaded-machine" in r["flags"] for r in rows)
    return [SESSIONS in r["flags"] for r in rows]


@pytest.mark.parametrize(
    ("layouts", "flagged"),
    [
        (["own", "own", "own"], [False, False, False]),
        (["own", "shared", "own"], [False, True, False]),
        (["shared", "shared", "mixed"], [False, False, True]),
        (["own", "shared"], [True, True]),  # nobody knows which of them is the usual one
        (["own", None, None, "own"], [False, False, False, False]),  # engines that do not say
    ],
)
def test_what_differs_from_most_is_flagged(layouts: list[str | None], flagged: list[bool]) -> None:
    assert marked([row(layout) for layout in layouts]) == flagged


def test_only_runs_that_are_compared_count() -> None:
    # A single process has a session of its own in any case: other scales say nothing.
    assert not any(marked([row("own", processes_per_node=1), row("shared")]))
    # Storages are compared.
    assert marked([row("own", storage="a"), row("own", storage="a"), row("shared", storage="b")])[2]


def test_it_goes_when_the_others_do() -> None:
    rows = [row("own"), row("shared"), row("own")]
    assert marked(rows)[1]
    assert marked(rows[1:2]) == [False]
