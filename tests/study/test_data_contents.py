"""What data contain is part of a run, where the study states it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tiercel.study.plan import _newer
from tiercel.study.workloads import DataWorkload


def workload(**keys: Any) -> DataWorkload:
    return DataWorkload(**{"operation": "write", "data_per_process": "1MiB", **keys})


def test_runs_of_studies_that_state_nothing_keep_their_names() -> None:
    assert {"compressibility", "dedup", "refill"} <= _newer(workload())
    assert _newer(workload(compressibility=0.5, dedup=0.0, refill=True)).isdisjoint(
        {"compressibility", "dedup", "refill"}
    )


def test_what_is_stated_is_a_column() -> None:
    features = workload(compressibility=0.5, dedup=0.25, refill=True).features(1, 1)
    assert (features["compressibility"], features["dedup"], features["refill"]) == (0.5, 0.25, True)
    assert workload().features(1, 1)["dedup"] is None


@pytest.mark.parametrize(
    "keys", [{"compressibility": 1.1}, {"dedup": -0.1}, {"verify": True, "dedup": 0.5}], ids=str
)
def test_what_cannot_be(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workload(**keys)
