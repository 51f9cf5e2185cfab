"""What each test takes of the processors, with the programs that it starts.

`TIERCEL_PROCESSOR_TIME=40 make test` ends with the 40 most expensive, and the 40 most expensive files.
`make test` waits for cores that are busy all the time; pytest's `--durations` counts waiting, and whatever
runs beside.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator

import pytest

_NAME = "processor_time"


def spent() -> float:
    """Return the seconds of this process and of the programs that it started and that have ended."""
    own, programs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in (own, programs))


def measured(item: pytest.Item) -> Iterator[None]:
    """Note what a part of a test takes; a generator around its fixtures, and around the test itself."""
    before = spent()
    yield
    item.user_properties.append((_NAME, spent() - before))


def lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield the sum of all tests and the most expensive ones, as many as the variable asks for."""
    asked = os.environ.get("TIERCEL_PROCESSOR_TIME")
    if not asked:
        return
    found = {
        report.nodeid: sum(seconds for name, seconds in report.user_properties if name == _NAME)
        for report in reports
    }
    yield f"processor time: {sum(found.values()):.0f} s in {len(found)} tests"
    files: dict[str, float] = {}  # a thousand cheap tests of one kind are dear, too
    for test, seconds in found.items():
        file = test.split("::")[0]
        files[file] = files.get(file, 0) + seconds
    for dear in (found, files):
        for name in sorted(dear, key=dear.__getitem__, reverse=True)[: int(asked)]:
            yield f"{dear[name]:8.1f} s  {name}"
