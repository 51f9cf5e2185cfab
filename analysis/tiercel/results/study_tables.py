"""The tables and the dataset of one study, from the raw folder."""

from __future__ import annotations

from pathlib import Path

from tiercel.errors import UserError
from tiercel.results.current import current_runs
from tiercel.results.dataset import write_dataset
from tiercel.results.observations import collect
from tiercel.study.model import Study


def make_tables(results: Path, study: Study) -> str:
    """Write observations.parquet, runs.parquet and the study's dataset.nc in `results`.

    Returns why the dataset is without the points of sweeps, else nothing. UserError for damaged raw files.
    """
    observations, runs = collect(results)
    counted = set(current_runs(runs[runs["study"] == study.study])["configuration"])
    of_study = observations[observations["configuration"].isin(counted)]
    try:
        write_dataset(of_study, results / "dataset.nc")
    except UserError as error:  # a huge sweep has no array; its table is whole
        sampled = {name: set(e.sweep.workloads) for name, e in study.experiments.items() if e.sweep}
        named = [
            w not in sampled.get(e, ())
            for e, w in zip(of_study["experiment"], of_study["workload"], strict=True)
        ]
        write_dataset(of_study[named], results / "dataset.nc")
        return str(error)
    return ""
