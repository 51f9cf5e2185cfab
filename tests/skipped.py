"""The last lines of a test run: what was skipped, and which command brings it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

BUILT, INSTALLED, ALLOWED = "not built here", "not installed", "not possible here"
_OTHER = "on another machine (the reasons are listed above)"

#: What a reason says (the first that fits counts), the kind of thing that is lacking, and what brings it.
_RULES = (
    (r"asan", BUILT, "make -C native/iokernel sanitize"),
    (r"`(make dlio[a-z-]*)`", BUILT, r"\1"),
    (r"make layers|[Cc]argo|fairshare is not|cachevol is not", BUILT, "make layers"),
    (r"HDF5 with MPI", BUILT, "make parallel-hdf5"),
    (r"not built|make setup|built without|is not installed.*make setup", BUILT, "make setup"),
    (r"slurmctld|slurmd|munged", INSTALLED, "apt-get install slurm-wlm munge iproute2"),
    (r"`?(make gateway)", INSTALLED, r"\1"),
    (r"gluster", INSTALLED, "apt-get install glusterfs-server iproute2"),
    (r"fusermount3", INSTALLED, "apt-get install fuse3"),
    (r"SimGrid", INSTALLED, "apt-get install python3-simgrid"),
    (r"\b(strace|fio|git|tar|gcc) is not installed|no (chromium)", INSTALLED, r"apt-get install \1\2"),
    (r"C compiler|C library|sanitizer|shared libraries", INSTALLED, "apt-get install gcc libc6-dev"),
    (r"TIERCEL_\w+|SPACK_ROOT", INSTALLED, "what the variables name that the reasons above name"),
    (r"root may", ALLOWED, "as an ordinary user"),
    (r"root|mount|control groups?", ALLOWED, "as root"),
)


def lines(reasons: Iterable[str]) -> list[str]:
    """Return three lines at most: of each kind how many tests were skipped, and what brings them."""
    found: dict[str, Counter[str]] = {BUILT: Counter(), INSTALLED: Counter(), ALLOWED: Counter()}
    for reason in reasons:
        kind, brings = _brings(reason)
        found[kind][brings] += 1
    return [
        f"skipped, {kind}: {sum(counts.values())} tests; "
        + ", ".join(f"{brings} ({count})" for brings, count in counts.most_common())
        for kind, counts in found.items()
        if counts
    ]


def _brings(reason: str) -> tuple[str, str]:
    for pattern, kind, brings in _RULES:
        if match := re.search(pattern, reason):
            return kind, match.expand(brings) if "\\" in brings else brings
    return ALLOWED, _OTHER
