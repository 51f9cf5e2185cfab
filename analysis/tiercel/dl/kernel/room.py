"""Whether the order of an epoch fits into memory: a mistyped number of samples must not fill the machine."""

from __future__ import annotations

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.spec import Spec
from tiercel.memory import available_memory
from tiercel.units import format_size

#: Bytes of a file's path with its place in the order, and of a sample of a process that is drawn by number.
_FILE, _SAMPLE = 200, 16


def check_memory(spec: Spec, comm: Comm, by_files: bool) -> None:
    """Raise Failure where this node has no memory for the files and samples of an epoch."""
    files = max(spec.files, spec.files_eval)
    drawn = 0 if by_files or not (spec.train or spec.evaluate) else files * spec.per_file
    each = files * _FILE + drawn // comm.size * _SAMPLE
    here, free = max(1, comm.size // comm.nodes), available_memory()
    if free is not None and here * each > free:
        raise Failure(
            f"dataset.num_files_train, dataset.num_samples_per_file: the order of so many takes "
            f"{format_size(here * each)} of memory, and {format_size(free)} are free"
        )
