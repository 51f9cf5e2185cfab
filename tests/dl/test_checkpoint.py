"""Sizes of checkpoint files, against the papers and against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.spec import spec_of
from tiercel.dl.kernel.checkpoint import _compared as compared
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.shards import shards
from tiercel.dl.kernel.spec import Spec, read_spec
from tiercel.dl.workload import load_workload
from tiercel.errors import UserError

from .kernel import result, rows, run, spec

SMALL = {
    "vocab_size": 100,
    "hidden_size": 8,
    "ffn_hidden_size": 16,
    "num_attention_heads": 4,
    "num_kv_heads": 2,
}


def of_file(name: str, overrides: dict[str, Any] | None = None) -> Spec:
    return read_spec(json.dumps(spec_of(load_workload(name, overrides))))


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
    # Weights in fp16; of the optimizer, in fp32, three tensors of all and three of five times the width.
    assert [n for _, n in shards(transformer(), 0, 1)] == [2 * total, 3 * 4 * (total + 5 * 8)]


def test_zero_stage_3_shares_everything() -> None:
    one = sum(n for _, n in shards(transformer(), 0, 1))
    four = [sum(n for _, n in shards(transformer(zero_stage=3), rank, 4)) for rank in range(4)]
    assert max(four) - min(four) <= 16
    assert sum(four) == one + 3 * (3 * 4 * 5 * 8)  # the small tensors are not shared


def test_stages_of_a_pipeline_share_layers() -> None:
    parts = [dict(shards(transformer(pipeline=2), rank, 2)) for rank in (0, 1)]
    weights = sum(n for part in parts for name, n in part.items() if "model_states" in name)
    assert weights == shards(transformer(), 0, 1)[0][1]


def test_processes_that_are_no_multiple_of_the_group_are_refused() -> None:
    with pytest.raises(Failure, match="no multiple"):
        shards(transformer(tensor=2, pipeline=2), 0, 6)


#: Files and bytes of a checkpoint, counted on DLIO's own code (its main branch, June 2026): the model,
#: processes, files, GiB of tensors.
UPSTREAM = [
    ("llama3-8b", 8, 16, 104.70),
    ("llama3-70b", 64, 128, 911.21),
    ("llama3-405b", 512, 1544, 5292.25),
    ("llama3-1t", 1024, 2072, 15426.59),
]


@pytest.mark.parametrize(("name", "processes", "files", "gib"), UPSTREAM)
def test_mlperf_storages_checkpoints(name: str, processes: int, files: int, gib: float) -> None:
    one = of_file(name)
    found = [shard for rank in range(processes) for shard in shards(one, rank, processes)]
    assert len({n for n, _ in found}) == len(found) == files
    assert sum(n for _, n in found) / 1024**3 == pytest.approx(gib, abs=0.005)


def test_a_pipeline_writes_a_file_for_each_layer() -> None:
    """Llama 70B with 8 * 4 model ranks: (80 layers, embedding, head, norm) * 8, and 32 optimizers."""
    one = of_file("llama3-70b", {"model.parallelism": {"tensor": 8, "pipeline": 4, "zero_stage": 1}})
    every = [shards(one, rank, 32) for rank in range(32)]
    assert sum(len(found) for found in every) == 83 * 8 + 32 == 696
    names = [n for n, _ in every[0]]
    assert names[0] == "layer_0-model_0_model_states"
    assert names[-2:] == ["layer_20-model_0_model_states", "zero_pp_rank_0_mp_rank_0_optim_states"]
    assert [n for n, _ in every[31]][-4:-1] == [f"layer_{n}-model_31_model_states" for n in (80, 81, 82)]
    # Embedding over eight tensor ranks, fp16; a layer's tensors each divided by eight, its two norms whole.
    assert every[0][0][1] == 8192 * 128256 // 8 * 2
    keys = 8192 // 128 * 8
    matrices = [8192 * (8192 + 2 * keys), 8192 * 8192, 8192 * 2 * 28672, 8192 * 28672]
    assert every[0][1][1] == 2 * (2 * 8192 + sum(n // 8 for n in matrices))
    # A second replica has its own share of the optimizer, and no weights.
    assert [n for n, _ in shards(one, 32, 64)] == ["zero_pp_rank_1_mp_rank_0_optim_states"]


def test_layers_that_do_not_divide_go_to_the_first_stages() -> None:
    one = spec(
        model={"num_layers": 5, "layer_parameters": [10], "parallelism": {"pipeline": 3, "zero_stage": 1}}
    )
    found = [[n for n, _ in shards(one, rank, 3) if "layer" in n] for rank in range(3)]
    assert found == [[f"layer_{n}-model_{rank}_model_states" for n in layers]
                     for rank, layers in enumerate(((1, 2), (3, 4), (5,)))]  # fmt: skip


def test_stated_layers_have_the_optimizer_of_the_transformer() -> None:
    # DLIO's main branch: the groups are stated, or follow from all parameters, whatever is said of layers;
    # a model that is neither a transformer nor of a stated size has 10 KiB.
    model: dict[str, Any] = {"num_layers": 2, "layer_parameters": [1000, 10], "transformer": SMALL,
                             "parallelism": {"tensor": 2, "zero_stage": 1}}  # fmt: skip
    # Embedding and head 2 * 100 * 8, a norm 8; two layers of two norms, attention, output, feed-forward.
    parameters = 1600 + 8 + 2 * (16 + 8 * 16 + 64 + 3 * 8 * 16)
    state = 3 * (parameters // 4 + 5 * 8) * 4  # shared by two tensor ranks and two replicas, fp32
    assert shards(spec(model=model), 0, 4) == [
        ("model_states-0", 10240), ("model_0_model_states", 2 * (500 + 5)),
        ("zero_pp_rank_0_mp_rank_0_optim_states", state),
    ]  # fmt: skip
    stated = {**model, "optimization_groups": [7]}
    assert shards(spec(model={**stated, "type": "transformer"}), 2, 4) == [
        ("zero_pp_rank_1_mp_rank_0_optim_states", 21)
    ]


def test_a_transformer_has_no_file_of_the_whole_model() -> None:
    model = {"type": "transformer", "model_size_bytes": 5000, "optimization_groups": [300]}
    assert shards(spec(model=model), 0, 1) == [("optimizer_states-0", 900)]
    assert shards(spec(model={**model, "type": "cnn"}), 0, 1)[0] == ("model_states-0", 5000)


def test_without_zero_the_first_replica_writes_all() -> None:
    one = transformer(tensor=2)
    assert [n for n, _ in shards(one, 1, 4)] == [
        "zero_pp_rank_0_mp_rank_1_model_states", "zero_pp_rank_0_mp_rank_1_optim_states",
    ]  # fmt: skip
    assert shards(one, 2, 4) == []


def test_a_subset_is_what_its_processes_write_of_the_whole() -> None:
    whole = of_file("llama3-70b")
    part = of_file("llama3-70b", {"checkpoint.mode": "subset", "model.parallelism.data": 8})
    assert [shards(part, rank, 8) for rank in range(8)] == [shards(whole, rank, 64) for rank in range(8)]
    with pytest.raises(Failure, match=r"128 processes are more than the whole job has .* = 64"):
        shards(part, 0, 128)


@pytest.mark.parametrize(
    ("overrides", "telling"),
    [
        ({"checkpoint.mode": "subset"}, "checkpoint.mode: subset needs model.parallelism.data"),
        ({"model.parallelism.data": 2}, "model.parallelism.data: 2 needs checkpoint.mode: subset"),
        ({"checkpoint.ksm": {}}, "checkpoint.ksm needs checkpoint.randomize_tensor: false"),
    ],
)
def test_contradictions_are_refused_by_name(overrides: dict[str, Any], telling: str) -> None:
    with pytest.raises(UserError, match=telling):
        load_workload("llama3-8b", overrides)


def files(folder: Path) -> dict[str, int]:
    return {p.stem: p.stat().st_size for p in folder.rglob("*.ckpt")}


SMALL_MODEL = {"type": "transformer", "num_layers": 3, "transformer": SMALL,
               "parallelism": {"pipeline": 2, "zero_stage": 1}}  # fmt: skip


def test_what_is_written_is_what_the_shards_say_and_is_read_back(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "model": SMALL_MODEL, "workflow": {"train": False, "generate_data": False, "checkpoint": True},
        "checkpoint": {"num_checkpoints_write": 2, "num_checkpoints_read": 1, "fsync": True},
    }  # fmt: skip
    answer = run(tmp_path, 4, **parts)
    assert answer.returncode == 0, answer.stderr
    expected = dict(shard for rank in range(4) for shard in shards(spec(**parts), rank, 4))
    assert len(expected) == 6 + 4
    for step in (1, 2):
        assert files(tmp_path / "checkpoints" / f"global_epoch1_step{step}") == expected
    assert [row["bytes"] for row in rows(tmp_path, "checkpoint-write")] == [sum(expected.values())] * 2
    assert [row["bytes"] for row in rows(tmp_path, "checkpoint-read")] == [sum(expected.values())]
    assert result(tmp_path)["generated"] is None
    # Read by a run of its own, as after a restart.
    again = {**parts, "checkpoint": {"num_checkpoints_write": 0, "num_checkpoints_read": 2}}
    answer = run(tmp_path, 4, **again)
    assert answer.returncode == 0, answer.stderr
    assert [row["kind"] for row in result(tmp_path)["rows"]] == ["checkpoint-read"] * 2


def test_tensors_of_ones(tmp_path: Path) -> None:
    model = {**SMALL_MODEL, "model_datatype": "bf16"}
    answer = run(
        tmp_path, 2, model=model, workflow={"train": False, "generate_data": False, "checkpoint": True},
        checkpoint={"num_checkpoints_write": 1, "randomize_tensor": False},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    for path in (tmp_path / "checkpoints").rglob("*.ckpt"):
        one = b"\x00\x00\x80\x3f" if "optim" in path.name else b"\x80\x3f"  # 1.0 as fp32, as bf16
        assert path.read_bytes() == one * (path.stat().st_size // len(one))


def zeroed(path: Path, first: int = 0, length: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    end = len(content) if length is None else first + length
    content[first:end] = bytes(end - first)
    path.write_bytes(content)


@pytest.mark.parametrize("random", [True, False])
def test_what_is_read_back_is_compared(tmp_path: Path, random: bool) -> None:
    """A file of zeros, one that is another, one with a lost block: none is read back as if it were whole."""
    # 2,600,000 bytes: two whole stretches of 1 MiB, and one that ends within them.
    parts: dict[str, Any] = {
        "model": {"type": "default", "num_layers": 2, "layer_parameters": [2_600_000], "parallelism": {}},
        "workflow": {"train": False, "generate_data": False, "checkpoint": True},
    }  # fmt: skip

    def ran(written: int, read: int) -> tuple[int, str]:
        keys = {"num_checkpoints_write": written, "num_checkpoints_read": read, "randomize_tensor": random}
        answer = run(tmp_path, 1, **parts, checkpoint=keys)
        return answer.returncode, answer.stderr

    assert ran(1, 0) == (0, "")
    folder = tmp_path / "checkpoints" / "global_epoch1_step1"
    layers = sorted(path for path in folder.glob("*.ckpt") if path.stat().st_size == 2_600_000)
    assert len(layers) == 2
    assert ran(0, 1) == (0, "")
    whole = layers[0].read_bytes()
    damages = (lambda: zeroed(layers[0]), lambda: zeroed(layers[0], 1 << 20, 4096),
               lambda: zeroed(layers[0], 2_599_000, 1000))  # fmt: skip
    for damage in damages:
        damage()
        code, said = ran(0, 1)
        assert code == 2 and f"{layers[0]}: does not hold what this workload writes" in said, said
        assert said.count("\n") == 1
        layers[0].write_bytes(whole)
    if random:  # of ones any file of a size is like the other
        layers[0].write_bytes(layers[1].read_bytes())
        assert ran(0, 1)[0] == 2
        layers[0].write_bytes(whole)
    assert ran(0, 1) == (0, "")


@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 5_000_000])
@pytest.mark.parametrize("piece", [1000, 4096, 1 << 19, 1 << 24])
def test_the_same_bytes_are_compared_however_they_come(length: int, piece: int) -> None:
    def offsets(step: int) -> list[int]:
        parts = ((n, min(length, n + step)) for n in range(0, length, step))
        return [n for begin, end in parts for a, b in compared(begin, end, length) for n in range(a, b)]

    found = offsets(piece)
    assert found == offsets(length) == sorted(set(found))
    assert {0, length - 1} <= set(found)
    assert set(range(0, length, 1 << 20)) <= set(found)
