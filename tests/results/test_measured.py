"""What a run's own files say of its workload."""

from __future__ import annotations

import pytest

from tiercel.errors import RunFailed
from tiercel.results.measured import workload_of


def test_a_key_of_a_later_version_is_named() -> None:
    """That extra inputs are not permitted was said, and not which."""
    workload = {"title": "W", "operation": "read", "colour": "red"}
    with pytest.raises(RunFailed, match="colour is no key of it"):
        workload_of({"workload": workload})
