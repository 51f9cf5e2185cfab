"""What has a file's name and is no storage: calls on it are of kind ``pseudo``.

``/proc`` and ``/sys`` are the kernel's answers, nodes in ``/dev`` are devices other than disks, and in
``/dev/shm`` communication libraries keep the memory through which processes of a node talk. An application's
own files in ``/dev/shm`` are files in memory, and stay I/O.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Segments of MPICH and its kin, Open MPI, PSM, UCX, libfabric, NCCL, MVAPICH, Intel's libraries, Python's
#: and PyTorch's shared memory, semaphores: names as these libraries make them, directly in /dev/shm.
_SEGMENTS = (
    r"mpich_|mpi_|ompi|opal|vader_segment|sm_segment|btl_|psm\d?_|ucx_|UCX|fi_shm|ofi_|cray-|cray_|pmi_|pmix|"
    r"nccl-|rccl-|slot_shmem|shmem_|cmvapich|mvapich|ib_shmem|ib_pool|Intel_MPI|I_MPI|impi|__KMP|libiomp|"
    r"torch_|pym-|psm_|wnsm_|sem\.|boost_interprocess|gmon|gasnet|hwloc|prted|orte"
)
#: Nodes of disks, and of what is made of disks.
_DISKS = (
    r"(?:sd|hd|vd|xvd)[a-z]|nvme\d+n|md\d|md/|dm-|mapper/|disk/|loop\d|mmcblk|pmem|ram\d|nbd|rbd|zvol/|drbd|"
    r"n?st\d"
)
_PSEUDO = re.compile(
    rf"/(?:proc|sys)(?:/|$)|/dev/(?!shm(?:/|$)|{_DISKS})|/dev/shm/(?:{_SEGMENTS})|<STD(?:IN|OUT|ERR)>$"
)


#: How all that `_PSEUDO` matches begins: of the many files of a job, hardly any does.
_BEGINNINGS = ("/proc", "/sys", "/dev/", "<STD")


def is_pseudo(path: str) -> bool:
    """Say whether `path` names no storage."""
    return path.startswith(_BEGINNINGS) and _matches(path)


@lru_cache(1 << 14)
def _matches(path: str) -> bool:
    return _PSEUDO.match(path) is not None


def origin(path: str) -> str:
    """Return what a pseudo-file is, in a word or two, for a sentence."""
    if path.startswith("<"):
        return "standard streams"
    if path.startswith("/dev/shm/"):
        return "segments of communication libraries in /dev/shm"
    return f"/{path.split('/', 2)[1]}"
