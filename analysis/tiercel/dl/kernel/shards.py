"""Which files of a checkpoint each process writes, and how many bytes of tensors each holds.

Three kinds of models, by their keys:

- nothing stated: the five files of the DLIO paper (section IV.B.4), written by process 0;
- `layer_parameters` without parallelism: a file of the model and one of each layer (DLIO 2.0; its main branch
  has one of all layers);
- layers with parallelism (tensor, pipeline, data, ZeRO): the files of DLIO's main branch, as MLPerf Storage
  has them. With ZeRO 1 and 2 the first replica writes the weights: one file for each layer and model rank
  where a pipeline has several stages, else one for each model rank; the optimizer's state is shared by all.
  With ZeRO 3 all processes share both. Without ZeRO the first replica writes everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.spec import Spec

#: Two of 1 KB, one of 4 KB, one of 64 KB, one of 4 MB.
PAPER = (("meta", 1024), ("index", 1024), ("graph", 4096), ("variables-index", 65536),
         ("variables-data", 4 * 1024**2))  # fmt: skip
_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "int8": 1, "uint8": 1}
#: Bytes of a model of which DLIO is told no size.
_DEFAULT_MODEL = 10240
Shards = list[tuple[str, int]]


def shards(spec: Spec, rank: int, size: int) -> Shards:
    """Return (name, bytes of tensors) of the files that process `rank` of `size` writes in one checkpoint.

    Failure where the number of processes does not go with the model's parallelism.
    """
    model = spec.model
    parallel, layers = model["parallelism"], model["num_layers"]
    stated = model["model_size_bytes"] is not None
    if not stated and layers <= 0 and not model["optimization_groups"]:
        return list(PAPER) if rank == 0 else []
    split = parallel["tensor"] * parallel["pipeline"] > 1 or parallel["zero_stage"] > 0
    if (layers > 0 and not model["layer_parameters"]) or split:
        return _parallel(spec, rank, size)
    return _layer_by_layer(spec, rank)


def _layer_by_layer(spec: Spec, rank: int) -> Shards:
    model = spec.model
    if rank and spec.ckpt_type == "rank_zero":
        return []
    found: Shards = []
    if model["model_size_bytes"] and model["type"] != "transformer":
        found.append((f"model_states-{rank}", model["model_size_bytes"]))
    for layer in range(max(0, model["num_layers"])):
        if length := sum(model["layer_parameters"]):
            found.append((f"layer-{layer}-{rank}_model_states", length))
    if length := _given_optimizer(model):
        found.append((f"optimizer_states-{rank}", length))
    return found


def _given_optimizer(model: dict[str, Any]) -> int:
    """Return the bytes of stated groups: two tensors of each, and all groups in one, as DLIO has them."""
    return 3 * sum(int(n) for n in model["optimization_groups"] if n > 0)


@dataclass(frozen=True)
class _Place:
    """Where a process stands among stages of the pipeline, model ranks and replicas."""

    model_rank: int
    replica: int
    stage: int
    replicas: int

    @classmethod
    def of(cls, spec: Spec, rank: int, size: int) -> _Place:
        parallel = spec.model["parallelism"]
        tensor, pipeline = parallel["tensor"], parallel["pipeline"]
        group = tensor * pipeline
        if spec.ckpt_subset:
            replicas = parallel["data"]
            if size > replicas * group:
                raise Failure(
                    f"checkpoint.mode: subset: {size} processes are more than the whole job has "
                    f"(tensor * pipeline * data = {replicas * group})"
                )
        elif size % group:
            raise Failure(
                f"model.parallelism: {size} processes are no multiple of tensor * pipeline = {group}: start "
                "that many, or write the part of fewer (checkpoint.mode: subset)"
            )
        else:
            replicas = size // group
        return cls(rank % group, rank // group, rank // tensor % pipeline, replicas)


def _parallel(spec: Spec, rank: int, size: int) -> Shards:
    model, place = spec.model, _Place.of(spec, rank, size)
    zero, pipeline = model["parallelism"]["zero_stage"], model["parallelism"]["pipeline"]
    if zero == 0 and place.replica:
        return []
    found: Shards = []
    whole = _DEFAULT_MODEL if model["model_size_bytes"] is None else model["model_size_bytes"]
    if model["type"] != "transformer":
        found.append((f"model_states-{rank}", whole))
    layers = {index: _layer_bytes(model, index, place.replicas) for index in _layers_of(model, place.stage)}
    sharded = f"zero_pp_rank_{place.replica}_mp_rank_{place.model_rank}"
    if zero not in (1, 2):
        found.append((f"{sharded}_model_states", sum(layers.values())))
    elif place.replica == 0 and pipeline > 1:
        found += [(f"layer_{n}-model_{place.model_rank}_model_states", size) for n, size in layers.items()]
    elif place.replica == 0:
        found.append((f"model_{place.model_rank}_model_states", sum(layers.values())))
    found.append((f"{sharded}_optim_states", _optimizer_bytes(model, place.replicas)))
    return [(name, length) for name, length in found if length]


def _layers_of(model: dict[str, Any], stage: int) -> Iterator[int]:
    """Yield the layers of a stage: 0 is the embedding, then the model's layers, then the head and its norm.

    The first stages have one layer more where they cannot have equally many.
    """
    count, stages = model["num_layers"], model["parallelism"]["pipeline"]
    if count <= 0:
        return
    each, more = divmod(count, stages)
    first = 1 + stage * each + min(stage, more)
    last = first + each - (stage >= more)
    if not model["layer_parameters"]:
        first = 0 if stage == 0 else first
        last = count + 2 if stage == stages - 1 else last
    yield from range(first, last + 1)


def _layer_bytes(model: dict[str, Any], index: int, replicas: int) -> int:
    """Return a process' bytes of one layer; every tensor is divided by itself, as DLIO does."""
    tensor = model["parallelism"]["tensor"]
    if model["layer_parameters"]:
        return sum(n // tensor for n in model["layer_parameters"] if n > 0)
    share = replicas if model["parallelism"]["zero_stage"] == 3 else 1
    t, count = model["transformer"], model["num_layers"]
    hidden, feed = t["hidden_size"], t["ffn_hidden_size"]
    keys = hidden // t["num_attention_heads"] * t["num_kv_heads"]
    if index in (0, count + 1):
        elements = hidden * t["vocab_size"] // tensor // share
    elif index == count + 2:
        elements = hidden // share
    else:
        matrices = (hidden * (hidden + 2 * keys), hidden * hidden, 2 * hidden * feed, hidden * feed)
        elements = 2 * (hidden // share) + sum(n // tensor // share for n in matrices)
    return int(elements * _BYTES[model["model_datatype"]])


def _optimizer_bytes(model: dict[str, Any], replicas: int) -> int:
    """Return a process' bytes of the optimizer's state: three tensors of its share, and three small ones."""
    if model["optimization_groups"]:
        return _given_optimizer(model)
    if model["num_layers"] <= 0:
        return 0
    parallel = model["parallelism"]
    group = parallel["tensor"] * parallel["pipeline"]
    share = model["parameters"] // (group * replicas if parallel["zero_stage"] else group)
    if not share:
        return 0
    return int(3 * (share + 5 * model["transformer"]["hidden_size"]) * _BYTES[model["optimizer_datatype"]])
