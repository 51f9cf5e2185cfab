"""Whether the parts of a file that processes access lie between each other, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tiercel.traces.analysis.patterns import Accesses

Ints = npt.NDArray[np.int64]


def turns(accesses: Accesses) -> Ints:
    """Count, for each file, its reads (column 0) and writes (1) that lie in turn with those of others.

    One does where others begin behind what the same process accessed before it in the file (by offset, not by
    time), and before it: of ``AABB`` no access lies in turn, of ``ABAB`` each but the first of either. What
    several read alike is nobody's turn, and neither is a gap that all leave.
    """
    kind = accesses.stream & 1
    order = np.lexsort((accesses.offset, kind, accesses.file))
    file, kind, stream = accesses.file[order], kind[order], accesses.stream[order]
    begin, end = accesses.offset[order], accesses.offset[order] + accesses.size[order]
    rows = np.arange(len(order))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (begin[1:] != begin[:-1]) | (file[1:] != file[:-1]) | (kind[1:] != kind[:-1])
    # The last access that begins before each (not with it); where it is of another file, nothing below holds.
    ahead = np.maximum.accumulate(np.where(new, rows, 0)) - 1
    mine = np.argsort(stream, kind="stable")
    before = np.full(len(order), -1, dtype=np.int64)
    before[mine[1:]] = np.where(stream[mine[1:]] == stream[mine[:-1]], mine[:-1], -1)
    between = (before >= 0) & (ahead > before) & (begin[ahead] >= end[before])
    return np.bincount(file[between] * 2 + kind[between], minlength=2 * len(accesses.files)).reshape(-1, 2)
