"""Checkpoints: files of the sizes that the model gives, written and read back by the processes that would.

Without a model's size these are the five files of the DLIO paper (section IV.B.4), written by process 0. A
model of `model_size_bytes` and layers gives one file of the model and one of each layer (DLIO 2.0); a
transformer gives a shard of its layers and one of its optimizer to each process, by its parallelism (DLIO 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import content
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec
from tiercel.pagecache import Residency, evict, residency

#: Two of 1 KB, one of 4 KB, one of 64 KB, one of 4 MB.
PAPER = (("meta", 1024), ("index", 1024), ("graph", 4096), ("variables-index", 65536),
         ("variables-data", 4 * 1024**2))  # fmt: skip
_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "int8": 1, "uint8": 1}
_PIECE = 16 * 1024**2
Shards = list[tuple[str, int]]


def shards(spec: Spec, rank: int, size: int) -> Shards:
    """Return (name, bytes) of the files that a process writes in one checkpoint."""
    model = spec.model
    layers, stated = model["num_layers"], model["model_size_bytes"] is not None
    if model["transformer"] and layers > 0:
        return _transformer(model, rank, size)
    if not stated and layers <= 0 and not model["optimization_groups"]:
        return [(name, length) for name, length in PAPER] if rank == 0 else []
    if rank and spec.ckpt_type == "rank_zero":
        return []
    found: Shards = []
    if model["model_size_bytes"]:
        found.append((f"model_states-{rank}", model["model_size_bytes"]))
    for layer in range(max(0, layers)):
        length = sum(n // model["parallelism"]["tensor"] for n in model["layer_parameters"])
        if length:
            found.append((f"layer-{layer}-{rank}_model_states", length))
    if model["optimization_groups"]:  # two tensors of each group and all groups in one, as DLIO has them
        found.append((f"optimizer_states-{rank}", 3 * sum(model["optimization_groups"])))
    return found


def _transformer(model: dict[str, Any], rank: int, size: int) -> Shards:
    """Return a process' shards of a transformer: weights, and optimizer state in full precision.

    Sizes: embedding and head, and for each layer norms, attention (with grouped keys and values), output
    projection and a gated feed-forward block. Source: DLIO's checkpointing of LLMs.
    """
    t, parallel, layers = model["transformer"], model["parallelism"], model["num_layers"]
    tensor, pipeline, zero = parallel["tensor"], parallel["pipeline"], parallel["zero_stage"]
    group = tensor * pipeline
    if size % group and parallel["data"] <= 0:
        raise Failure(f"model.parallelism: {size} processes are no multiple of tensor * pipeline = {group}")
    replicas = parallel["data"] if parallel["data"] > 0 else size // group
    replica, stage = rank // group, rank // tensor % pipeline
    hidden, feed = t["hidden_size"], t["ffn_hidden_size"]
    keys = hidden // t["num_attention_heads"] * t["num_kv_heads"]
    layer = 2 * hidden + hidden * (hidden + 2 * keys) + hidden * hidden + 3 * hidden * feed
    embedding = t["vocab_size"] * hidden
    total = 2 * embedding + layers * layer + hidden
    mine = layers // pipeline + (1 if stage < layers % pipeline else 0)
    weights = mine * layer // tensor
    weights += embedding // tensor if stage == 0 else 0
    weights += embedding // tensor + hidden if stage == pipeline - 1 else 0
    found: Shards = []
    place = f"zero_pp_rank_{replica}_mp_rank_{rank % group}"
    if zero == 3:
        found.append((f"{place}_model_states", weights // replicas * _BYTES[model["model_datatype"]]))
    elif replica == 0:
        found.append((f"model_{rank % group}_model_states", weights * _BYTES[model["model_datatype"]]))
    if zero > 0 or replica == 0:
        share = total // (replicas * group if zero > 0 else group)
        found.append((f"{place}_optim_states", 3 * share * _BYTES[model["optimizer_datatype"]]))
    return found


@dataclass
class Saved:
    """One checkpoint of one process: seconds and bytes of writing or reading it back."""

    kind: str
    epoch: int
    step: int
    began: float
    seconds: float
    bytes: int
    residency: Residency | None = None


class Checkpoints:
    """Writes and reads the checkpoints of one process."""

    def __init__(self, spec: Spec, folder: Path, comm: Comm, calls: IO) -> None:
        self._spec, self._folder, self._comm, self._calls = spec, folder, comm, calls
        self._mine = shards(spec, comm.rank, comm.size)
        self.written: list[tuple[int, int]] = []
        self._framework = "PyTorch" if spec.framework == "pytorch" else "TF"

    @property
    def bytes(self) -> int:
        """Bytes of this process' files in a checkpoint."""
        return sum(length for _, length in self._mine)

    def save(self, epoch: int, step: int) -> Saved:
        """Write a checkpoint; returns when this process' files are written (durable where asked for)."""
        began, folder = time(), self._path(epoch, step)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, length in self._mine:
                self._write(str(folder / f"{name}.ckpt"), f"ckpt:{name}:{epoch}:{step}", length)
        except OSError as error:
            raise Failure(f"{folder}: the checkpoint cannot be written: {error.strerror}") from None
        if self._spec.ckpt_sync_ranks:
            self._comm.barrier()
        self._calls.span(f"{self._framework}Checkpointing.save_checkpoint", "checkpoint", began)
        self.written.append((epoch, step))
        return Saved("checkpoint-write", epoch, step, began, time() - began, self.bytes)

    def load(self, epoch: int, step: int) -> Saved:
        """Read a checkpoint back from the storage: its cached pages are dropped first; what stays is told."""
        names = self._mine
        if self._spec.ckpt_shift and self._comm.nodes > 1:  # what another node wrote
            other = (self._comm.rank + self._comm.size // self._comm.nodes) % self._comm.size
            names = shards(self._spec, other, self._comm.size)
        folder = self._path(epoch, step)
        paths = [str(folder / f"{name}.ckpt") for name, _ in names]
        try:
            evict(paths)
            found = residency(paths)
            self._comm.barrier()
            began = time()
            for path, (_, length) in zip(paths, names, strict=True):
                self._read(path, length)
        except OSError as error:
            raise Failure(
                f"{error.filename or folder}: the checkpoint cannot be read: {error.strerror}"
            ) from None
        if self._spec.ckpt_sync_ranks:
            self._comm.barrier()
        self._calls.span(f"{self._framework}Checkpointing.load_checkpoint", "checkpoint", began)
        moved = sum(length for _, length in names)
        return Saved("checkpoint-read", epoch, step, began, time() - began, moved, found)

    def _path(self, epoch: int, step: int) -> Path:
        return self._folder / f"global_epoch{epoch}_step{step}"

    def _write(self, path: str, seed: str, length: int) -> None:
        descriptor = self._calls.create(path)
        try:
            for piece in _pieces(content(self._spec, seed, length)):
                done = 0
                while done < len(piece):
                    done += self._calls.write(descriptor, path, piece[done:])
            if self._spec.ckpt_fsync:
                self._calls.fsync(descriptor, path)
        finally:
            self._calls.close(descriptor, path)

    def _read(self, path: str, length: int) -> None:
        buffer = memoryview(bytearray(min(_PIECE, max(1, length))))
        descriptor, have = self._calls.open(path), 0
        try:
            while got := self._calls.read(descriptor, path, buffer):
                have += got
        finally:
            self._calls.close(descriptor, path)
        if have != length:
            raise Failure(f"{path}: has {have} bytes where {length} were written")


def _pieces(parts: Sequence[memoryview]) -> list[memoryview]:
    return [part[n : n + _PIECE] for part in parts for n in range(0, len(part), _PIECE)]
