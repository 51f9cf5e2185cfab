"""What the labelled arrays of results have in common: units and meanings of their columns, and their file."""

from __future__ import annotations

import io
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from xarray.backends import H5NetCDFStore

import tiercel
from tiercel.atomic_file import drafted
from tiercel.columns import Column


def describe(dataset: xr.Dataset, columns: Iterable[Column], title: str, table: pd.DataFrame) -> xr.Dataset:
    """Give what a dataset was made of: `columns` with unit and meaning, its title, the sites of its `table`.

    By the conventions for climate and forecast metadata (CF), which plotting libraries understand.
    """
    for column in columns:
        if column.name in dataset.variables:
            dataset[column.name].attrs.update(long_name=column.meaning, units=column.unit or "1")
    dataset.attrs.update(
        title=title,
        Conventions="CF-1.11",
        source=f"tiercel {tiercel.__version__}",
        site=", ".join(sorted(table["site"].unique())),
    )
    return dataset


def write(
    dataset: xr.Dataset, path: Path, encoding: Mapping[Hashable, Mapping[str, Any]] | None = None
) -> None:
    """Write a dataset as NetCDF-4, whole or not at all."""
    # Who makes a dataset and does not write it needs no HDF5.
    import h5netcdf  # noqa: PLC0415

    from tiercel.results.opened import OpensOnce  # noqa: PLC0415

    # In memory first: HDF5 that cannot write to a full disk takes the process with it.
    content = io.BytesIO()
    with OpensOnce(content, "w", track_order=True) as file, h5netcdf.File(file, "w") as netcdf:
        dataset.dump_to_store(H5NetCDFStore(netcdf), encoding=encoding)
    with drafted(path) as draft:
        draft.write_bytes(content.getbuffer())
