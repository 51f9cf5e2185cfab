"""What a plan rests on: a trained model, else a sweep that is learnt from now, else any study's numbers.

``results/<site>/placement/<study>/`` holds models and sweeps, ``observations.parquet`` the measurements.
"""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError
from tiercel.placement.dataset import TABLE, load_sweep, placement_folder
from tiercel.placement.estimate import Estimator
from tiercel.placement.model import CARD, PlacementModel
from tiercel.placement.nearest import Measurements

#: The study whose model is taken first where there are several.
PREFERRED = "placement-sweep"


def basis_of(results: Path, site: str, study: str | None = None) -> Estimator:
    """Return what is known of a site's storage systems: of `study`, or the best there is.

    In this order: a trained model, a sweep's dataset, the measurements of any study. UserError when there is
    none of them.
    """
    if study is not None:
        return _of_study(results, site, study)
    for name in (CARD, TABLE):
        found = sorted(
            (results / "placement").glob(f"*/{name}"),
            key=lambda p: (p.parent.name == PREFERRED, p.stat().st_mtime),
        )
        if found:
            return _of_study(results, site, found[-1].parent.name)
    return Measurements.load(results, site)


def _of_study(results: Path, site: str, study: str) -> Estimator:
    folder = placement_folder(results, study)
    if (folder / CARD).exists():
        return PlacementModel.load(folder, site)
    if (folder / TABLE).exists():
        table = load_sweep(folder)
        if table.attrs["provenance"]["site"] != site:
            raise UserError(
                f"{folder}: this sweep is of site {table.attrs['provenance']['site']}, not {site}"
            )
        model = PlacementModel.train(table)
        model.notes.append(
            f"learnt from the sweep {study} just now: `tiercel place train --study {study}` keeps the "
            "model and says how good it is"
        )
        return model
    return Measurements.load(results, site, study)
