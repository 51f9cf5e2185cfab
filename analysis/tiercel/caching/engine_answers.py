"""What the embedded HDF5 programs left in a run's folder: what each process did, and how long it took."""

from __future__ import annotations

import json
from pathlib import Path

from tiercel.engines.iokernel import results_in
from tiercel.errors import RunFailed

#: Of processes that the kernel starts itself, and of those of iokernel, who share a file.
OWN, SHARED = "h5kernel.json", "steps.json"

Answers = list[list[dict[str, float]]]


def answers_of(folder: Path) -> tuple[Answers, int | None]:
    """Return the answers of each process, and the size of the file that they share (None: they share none).

    An answer is of a checkpoint (total, compute and observed seconds; bytes) or of each epoch (seconds, cpu;
    bytes). RunFailed for an answer that is missing, torn or of a run that failed.
    """
    own, shared = folder / OWN, folder / SHARED
    try:
        if not shared.is_file():
            return json.loads(own.read_text(encoding="utf-8")), None
        (result,) = results_in(shared)
        return result["ranks"], int(result["fileBytes"])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        name = SHARED if shared.is_file() else OWN
        raise RunFailed(f"{name} is not a complete result: {error!r}") from None
