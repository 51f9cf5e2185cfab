"""The room that Parquet files are said to need is what they take: more than their numbers, by little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.parquet_size import parquet_bytes
from tiercel.dl.files.spec import spec_of
from tiercel.dl.kernel.files import file_spec
from tiercel.dl.kernel.formats import format_of
from tiercel.dl.kernel.spec import read_spec

from .kernel import workload

#: As DLRM of MLPerf Storage 3 has them: numbers one by one.
MANY = [{"name": f"f{n}", "dtype": ("float16", "float32", "float64", "int8")[n % 4]} for n in range(40)]
LISTS: list[dict[str, Any]] = [
    {"name": "vector", "dtype": "float32", "size": 128}, {"name": "old", "dtype": "list", "size": 3},
    {"name": "word", "dtype": "string"}, {"name": "raw", "dtype": "binary", "size": 50},
    {"name": "flag", "dtype": "bool"}, {"name": "pixels", "dtype": "uint8", "size": 64},
]  # fmt: skip


@pytest.mark.parametrize("columns", [[], MANY, LISTS], ids=["bytes", "many", "lists"])
@pytest.mark.parametrize(("group", "batch", "samples"), [(1, 0, 30), (16, 24, 300), (6144, 0, 8000)])
def test_the_estimate_holds_the_file(
    tmp_path: Path, columns: list[dict[str, Any]], group: int, batch: int, samples: int
) -> None:
    parquet = {"row_group_size": group, "generation_batch_size": batch, "columns": columns}
    one = workload(dataset={"format": "parquet", "num_files_train": 1, "num_samples_per_file": samples,
                            "record_length_bytes": 700, "parquet": parquet})  # fmt: skip
    spec, path = read_spec(json.dumps(spec_of(one))), tmp_path / "x.parquet"
    format_of("parquet").write(str(path), file_spec(spec, "train", 0), spec)
    real, said = path.stat().st_size, parquet_bytes(one.dataset)
    assert real <= said
    assert said <= 1.3 * real + 20_000 + 150 * -(-samples // group) * max(1, len(columns))
