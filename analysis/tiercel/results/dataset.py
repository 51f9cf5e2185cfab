"""The labelled array of a site's results: ``dataset.nc`` (NetCDF-4), an ``xarray.Dataset``.

Dimensions: origin, storage, layer, engine, workload (``experiment/name``), nodes, processes_per_node,
operation, twin, repetition. Configuration values that follow from the workload (transfer_size, pattern,
api...) are coordinates along it; those that only some workloads have are variables along it, so that
``to_dataframe().dropna()`` keeps the others' rows. A storage can be selected by ``storage`` (ext4-root) or by
``storage_label`` (ext4 /), the name that reports show. What no result has (samples a second where nothing is
trained) is not in it, and neither are traced runs and setup phases; the table has them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from tiercel.columns import NUMBER
from tiercel.errors import UserError
from tiercel.results import netcdf, schema

DIMENSIONS = (
    "origin", "storage", "layer", "engine", "workload", "nodes", "processes_per_node", "operation", "twin",
    "repetition",
)  # fmt: skip

#: A factorial sweep with tens of thousands of workloads would make a mostly empty array of this many
#: cells; such studies are read from the table.
LARGEST = 20_000_000

_COORDINATES = ("experiment", *(c.name for c in schema.FEATURES))


def to_dataset(observations: pd.DataFrame) -> xr.Dataset:
    """Return the measured, untraced observations of one study as a Dataset with units and meanings.

    Raises UserError for several studies (their workloads may share names) and for a sweep too sparse.
    """
    measured = observations[(observations["role"] == "measured") & ~observations["traced"].astype(bool)]
    studies = sorted(measured["study"].unique())
    if len(studies) > 1:
        raise UserError(f"one study at a time makes a dataset (given: {', '.join(studies)})")
    table = measured.assign(workload=measured["experiment"] + "/" + measured["workload"])
    every = (c for c in (*schema.NUMBERS, *schema.CONTEXT) if c.kind == NUMBER)
    numbers = [c for c in every if table[c.name].notna().any()]
    sizes = [table[d].nunique() for d in DIMENSIONS]
    if math.prod(sizes) * len(numbers) > LARGEST:
        raise UserError("too many configurations for one array: read observations.parquet instead")
    # NetCDF knows neither nullable integers nor pandas' strings.
    plain = {d: "int64" if pd.api.types.is_integer_dtype(table[d]) else object for d in DIMENSIONS}
    indexed = table.astype(plain).set_index(list(DIMENSIONS))
    if indexed.index.has_duplicates:
        raise UserError("two results of one configuration and repetition: run `tiercel collect` again")
    dataset = indexed[[c.name for c in numbers]].astype("float64").to_xarray()
    features = table.groupby("workload").first()
    along: dict[str, tuple[str, Any]] = {}
    partial: dict[str, tuple[str, Any]] = {}
    for name in _COORDINATES:
        feature = features[name].reindex(dataset["workload"].values)
        if name in schema.AMOUNTS:  # where it follows from the storage it is no property of the workload
            feature = feature.where(features["phase_time"].reindex(dataset["workload"].values).isna())
        number = pd.api.types.is_numeric_dtype(feature) and not pd.api.types.is_bool_dtype(feature)
        values = feature.astype("float64" if number else "string")
        filled = values if values.dtype == "float64" else values.fillna("").astype(object)
        if filled.notna().any() or filled.empty:
            (along if filled.notna().all() else partial)[name] = ("workload", filled.to_numpy())
    labels = table.groupby("storage")["storage_label"].first().reindex(dataset["storage"].values)
    along["storage_label"] = ("storage", labels.astype(object).to_numpy())
    dataset = dataset.assign_coords(along)  # at once: each time all coordinates are aligned anew
    dataset = dataset.assign(partial).set_xindex("storage_label")
    title = f"Storage evaluation: {studies[0] if studies else 'nothing measured'}"
    return netcdf.describe(dataset, (*schema.IDENTITY, *schema.FEATURES, *numbers), title, table)


def write_dataset(observations: pd.DataFrame, path: Path) -> xr.Dataset:
    """Write the Dataset of one study as NetCDF-4 (whole or not at all) and return it."""
    dataset = to_dataset(observations)
    packed = {name: {"zlib": True, "complevel": 4} for name in dataset.data_vars}
    netcdf.write(dataset, path, packed)
    return dataset
