"""Inference: what serving a model asks of storage, a cache of keys and values, and the search of vectors.

Sources: docs/inference.md. A file of this kind knows no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tiercel.quantities import Size
from tiercel.study.workloads.base import Workload, workload_kinds


@workload_kinds.register("kv-cache")
class KVCacheWorkload(Workload):
    """Conversations whose keys and values lie on the storage in blocks of one size.

    A request reads the blocks of its conversation that are there, writes those that are not and the new ones;
    the least recently used go when the cache is full. Everything is for each process.
    """

    operation: Literal["kv-cache"]
    block_size: Size = Field(default=2 * 1024**2, ge=512, description="a file; 16 tokens of Llama 3.1 8B")
    capacity: Size = Field(default=256 * 1024**2, ge=512, description="bytes of blocks that are kept")
    conversations: int = Field(default=32, ge=1, le=1_000_000, description="at a time")
    skew: float = Field(default=1.0, ge=0, le=5, description="Zipf exponent of which one asks; 0: all alike")
    context_blocks: int = Field(default=16, ge=1, description="blocks at which a conversation ends")
    new_blocks: int = Field(default=2, ge=1, description="added by each request")
    decode_reads: int = Field(default=0, ge=0, description="of its new blocks, while an answer is generated")
    requests: int = Field(default=200, ge=1, description="how many are answered")
    cold: bool = Field(default=True, description="a block is made durable, and read from the storage again")

    @model_validator(mode="after")
    def _fits(self) -> KVCacheWorkload:
        if self.new_blocks > self.context_blocks:
            raise ValueError("new_blocks must not be more than context_blocks")
        if self.capacity < self.context_blocks * self.block_size:
            raise ValueError(
                f"capacity must hold a whole conversation: {self.context_blocks * self.block_size} bytes "
                "(context_blocks times block_size)"
            )
        return self

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        return self.capacity * nodes * processes_per_node

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": "file-per-process",
            "pattern": "random",
            "transfer_size": self.block_size,
            "bytes_per_process": self.capacity,
        }


#: Hops after which any index is reached as a whole: two edges a node are enough for 2^64 nodes.
_MANY_HOPS = 64


@workload_kinds.register("vector-search")
class VectorSearchWorkload(Workload):
    """Queries that walk a graph of vectors in one file that all processes share, nodes of a few KiB.

    Each hop reads `beam` nodes at once, and the next hop waits for them. Hop h chooses among the nodes that
    are within h + 1 edges of the entry; the nodes nearest to it are in memory.
    """

    operation: Literal["vector-search"]
    index_size: Size = Field(default=256 * 1024**2, ge=4096, description="of the one file")
    node_size: Size = Field(default=4096, ge=512, le=1024**2, description="bytes of a read")
    degree: int = Field(default=64, ge=2, le=4096, description="edges of a node")
    beam: int = Field(default=4, ge=1, le=1024, description="nodes that are read at once")
    hops: int = Field(default=25, ge=1, le=10_000, description="reads of a query that wait for each other")
    nodes_in_memory: int = Field(default=0, ge=0, description="of the graph, kept in the process' memory")
    queries: int = Field(default=200, ge=1, description="of each process")
    cold: bool = Field(default=True, description="no node stays in the page cache")

    @model_validator(mode="after")
    def _fits(self) -> VectorSearchWorkload:
        if self.index_nodes < max(self.beam, self.degree):
            raise ValueError("index_size must hold as many nodes as beam and degree have, at least")
        if self.degree < self.beam:
            raise ValueError("degree must be at least beam: the first hop reads neighbours of the entry")
        reached = min(self.index_nodes, self.degree ** min(self.hops, _MANY_HOPS))
        if self.nodes_in_memory >= reached:
            raise ValueError(f"nodes_in_memory must be below {reached}, the nodes that queries come to: else "
                             "none is read")  # fmt: skip
        return self

    def node_local(self) -> tuple[Workload | None, str]:
        return self, "on several nodes each makes and reads a whole index of its own"

    @property
    def index_nodes(self) -> int:
        return self.index_size // self.node_size

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        return self.index_size

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": "shared",
            "pattern": "random",
            "transfer_size": self.node_size,
            "bytes_per_process": self.queries * self.hops * self.beam * self.node_size,
            "queue_depth": self.beam,
        }
