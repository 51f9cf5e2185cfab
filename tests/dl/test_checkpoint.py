"""Sizes of checkpoint files, against the papers and against counting by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tiercel.dl.kernel.checkpoint import shards
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.spec import Spec, read_spec
from tiercel.dl.workload import load_workload
from tiercel.study.deep_learning.spec import spec_of

from .kernel import spec

SMALL = {
    "vocab_size": 100,
    "hidden_size": 8,
    "ffn_hidden_size": 16,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
}


def of_file(name: str) -> Spec:
    return read_spec(json.dumps(spec_of(load_workload(name))))


def test_five_files_of_the_paper() -> None:
    # Section IV.B.4: "two 1KB, one 4KB, one 64KB, and one 4MB file", by one process.
    assert sorted(n for _, n in shards(spec(), 0, 2)) == [1024, 1024, 4096, 65536, 4194304]
    assert shards(spec(), 1, 2) == []


def test_l2hmc_writes_four_files_by_the_root() -> None:
    assert [n for _, n in shards(of_file("l2hmc"), 0, 4)] == [4194304] * 4
    assert shards(of_file("l2hmc"), 3, 4) == []


def test_every_process_of_climate_segmentation_writes_4_mb() -> None:
    assert [[n for _, n in shards(of_file("climate-segmentation"), rank, 2)] for rank in (0, 1)] == [
        [4194304]
    ] * 2


def transformer(**parallelism: Any) -> Spec:
    return spec(
        model={"type": "transformer", "num_layers": 3, "transformer": SMALL, "parallelism": parallelism}
    )


def test_a_transformer_on_one_process() -> None:
    # A layer: two norms 2*8; attention 8*(8 + 2*4) with two of four heads for keys (4); output 64;
    # gated feed-forward 3*8*16. Embedding and head 100*8 each, last norm 8.
    layer = 16 + 8 * 16 + 64 + 384
    total = 3 * layer + 2 * 800 + 8
    assert [n for _, n in shards(transformer(), 0, 1)] == [2 * total, 3 * 4 * total]  # fp16; three of fp32


def test_zero_stage_3_shares_everything() -> None:
    one = sum(n for _, n in shards(transformer(), 0, 1))
    four = [sum(n for _, n in shards(transformer(zero_stage=3), rank, 4)) for rank in range(4)]
    assert max(four) - min(four) <= 16
    assert sum(four) == pytest.approx(one, rel=0.01)


def test_stages_of_a_pipeline_share_layers() -> None:
    parts = [dict(shards(transformer(pipeline=2), rank, 2)) for rank in (0, 1)]
    weights = sum(n for part in parts for name, n in part.items() if "model_states" in name)
    assert weights == shards(transformer(), 0, 1)[0][1]


def test_processes_that_are_no_multiple_of_the_group_are_refused() -> None:
    with pytest.raises(Failure, match="no multiple"):
        shards(transformer(tensor=2, pipeline=2), 0, 6)
