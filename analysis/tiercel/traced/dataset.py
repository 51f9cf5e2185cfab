"""The labelled array of a study's traced runs: ``traces.nc`` (NetCDF-4) beside ``dataset.nc``.

Dimensions: origin, storage, layer, engine, workload (``experiment/name``), nodes, processes_per_node. There
is one traced run for each, so no repetition. Texts (findings, timeline, warnings) are in the table alone, and
so are the rates, whose unit differs from row to row.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

from tiercel.columns import COUNT, NUMBER
from tiercel.errors import UserError
from tiercel.results import netcdf
from tiercel.traced.schema import TRACES

DIMENSIONS = ("origin", "storage", "layer", "engine", "workload", "nodes", "processes_per_node")
_LEFT_OUT = ("processes", "repetition", "traced_rate", "untraced_rate")
_NAMES = {"storage": "storage_label", "workload": "title"}


def to_dataset(traces: pd.DataFrame) -> xr.Dataset:
    """Return the numbers of one study's traced runs as a Dataset with units and meanings.

    Counts are floating-point numbers there, because what a trace does not hold is missing (NaN).
    """
    studies = sorted(traces["study"].unique())
    if len(studies) > 1:
        raise UserError(f"one study at a time makes a dataset (given: {', '.join(studies)})")
    table = traces.assign(workload=traces["experiment"] + "/" + traces["workload"])
    numbers = [
        c for c in TRACES
        if c.kind in (COUNT, NUMBER) and c.name not in (*DIMENSIONS, *_LEFT_OUT)
    ]  # fmt: skip
    plain = {d: "int64" if d in ("nodes", "processes_per_node") else object for d in DIMENSIONS}
    indexed = table.astype(plain).set_index(list(DIMENSIONS))
    if indexed.index.has_duplicates:
        raise UserError("two traced runs of one configuration: run `tiercel trace collect` again")
    dataset = indexed[[c.name for c in numbers]].astype("float64").to_xarray()
    for dimension, name in _NAMES.items():
        words = table.groupby(dimension)[name].first().reindex(dataset[dimension].values)
        dataset = dataset.assign_coords({name: (dimension, words.astype(object).to_numpy())})
    return netcdf.describe(dataset, TRACES, f"Traced runs: {studies[0] if studies else 'none'}", table)


def write_dataset(traces: pd.DataFrame, path: Path) -> xr.Dataset:
    """Write the Dataset of one study as NetCDF-4 (whole or not at all) and return it."""
    dataset = to_dataset(traces)
    netcdf.write(dataset, path)
    return dataset
