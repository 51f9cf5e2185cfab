"""What a workload is on storage of which every node has its own: no node sees another's files.

Paper 004 (section V) measured node-local NVMe by copying the data to the reading nodes first. Here every
process reads what it wrote itself, after its node evicted it from the page cache: as cold, without the copy.
"""

from __future__ import annotations

from tiercel.study.workloads import (
    DataWorkload,
    DeepLearningWorkload,
    MetadataWorkload,
    VectorSearchWorkload,
    Workload,
)


def node_local(workload: Workload, nodes: int) -> tuple[Workload | None, str]:
    """Return `workload` as it goes on node-local storage (None: not at all); and what differs, in words."""
    if nodes == 1:
        return workload, ""
    if isinstance(workload, MetadataWorkload):
        return None, "left out on several nodes: its processes work in one tree, which no two nodes share"
    if isinstance(workload, DeepLearningWorkload | VectorSearchWorkload):
        return workload, "on several nodes each makes and reads a whole dataset of its own"
    if isinstance(workload, DataWorkload):
        if workload.layout == "shared":
            return None, "left out on several nodes: they share no file there"
        if workload.reorder != "none" and workload.operation == "read":
            note = "on several nodes every process reads its own file, evicted before (reorder: none)"
            return workload.model_copy(update={"reorder": "none"}), note
    return workload, ""
