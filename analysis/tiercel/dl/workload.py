"""Deep-learning workload files (DLIO's YAML schema): load, override, scale.

    workload = load_workload("cosmoflow", {"reader.read_threads": 8})
    smaller, scale = scaled(workload, 0.001, processes=2)

Source of the schema: argonne-lcf/dlio_benchmark; of the values in ``workflows/dl-workloads``: each file.
"""

from __future__ import annotations

from tiercel.dl.files.dataset import ELEMENT_BYTES, Dataset, Hdf5
from tiercel.dl.files.keys import (
    KEYS,
    markdown,
    outcome_of,
    refusals,
    refusals_on_objects,
    stated,
    without_effect,
)
from tiercel.dl.files.load import FOLDER, known_workloads, load_workload, overrides_of, workload_path
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Checkpoint, Duration, Evaluation, Model, Reader, Train, Workflow
from tiercel.dl.files.scale import Scale, scaled

__all__ = [
    "ELEMENT_BYTES",
    "FOLDER",
    "KEYS",
    "Checkpoint",
    "DLWorkload",
    "Dataset",
    "Duration",
    "Evaluation",
    "Hdf5",
    "Model",
    "Reader",
    "Scale",
    "Train",
    "Workflow",
    "known_workloads",
    "load_workload",
    "markdown",
    "outcome_of",
    "overrides_of",
    "refusals",
    "refusals_on_objects",
    "scaled",
    "stated",
    "without_effect",
    "workload_path",
]  # fmt: skip
