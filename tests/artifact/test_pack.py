"""What packing says of a report that was made earlier; runs whose records are of something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiercel.artifact.pack import same_table
from tiercel.artifact.staging import runs_of
from tiercel.errors import UserError


@pytest.mark.parametrize(
    "row, same",
    [
        ("a,0.021308117907205975,nan", True),
        ("a,0.02130811790720597,nan", True),  # rounded otherwise, on a newer processor
        ("a,0.0213082,nan", False),
        ("a,0.021308117907205975,", False),
        ("b,0.021308117907205975,nan", False),
        ("a,0.021308117907205975,nan,1", False),
        ("a,0.021308117907205975,nan\nb,1,2", False),
    ],
)
def test_a_last_digit_is_no_other_table(row: str, same: bool, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("name,x,y\na,0.021308117907205975,nan\n")
    (tmp_path / "other").write_text(f"name,x,y\n{row}\n")
    assert same_table(tmp_path / "one", tmp_path / "other") is same
    assert not same_table(tmp_path / "one", tmp_path / "none")


@pytest.mark.parametrize(
    "times", [{"started": "now"}, {"duration": "long"}, {"started": 1e300}, {"duration": float("inf")}]
)
def test_times_that_are_none(times: dict[str, object], tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "one"
    folder.mkdir(parents=True)
    record = {"status": "ok", "reason": "", "started": 1, "duration": 1, "engine_time": 1, "steps": {}}
    (folder / "run.json").write_text(json.dumps({"run": "one", "study": "s"}))
    (folder / "context.json").write_text("{}")
    (folder / "record.json").write_text(json.dumps(record))
    assert len(runs_of(tmp_path, "s")) == 1
    (folder / "record.json").write_text(json.dumps({**record, **times}))
    with pytest.raises(UserError, match="not a complete result"):
        runs_of(tmp_path, "s")
