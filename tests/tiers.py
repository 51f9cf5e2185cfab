"""Two tiers: `make test` runs the first one, `make test-full` both.

``second_tier.txt`` lists the second one: tests of more than 0.6 s of processor time
(`TIERCEL_PROCESSOR_TIME=400 make test-full` prints what each takes), except those that are the only ones to
enter their part of tiercel. A line is a test, or one of its cases (``file::name[case]``).
A line whose test is gone does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent


@cache
def second() -> frozenset[str]:
    """Return the tests of the second tier, as the list names them."""
    return frozenset((_TESTS / "second_tier.txt").read_text().splitlines())


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of the second tier with `full`."""
    for item in items:
        name = item.nodeid.removeprefix(f"{_TESTS.name}/")
        if not second().isdisjoint((name, name.partition("[")[0])):
            item.add_marker("full")
