"""``tc.results``: a study's results on a site, as tables, arrays and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from tiercel.artifact import layout
from tiercel.artifact.description import describe
from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, suggest
from tiercel.notebook.tables import html, table, with_units
from tiercel.notebook.tracing import trace as open_trace
from tiercel.project import project_root
from tiercel.report.data import Results as Rows
from tiercel.report.document import document
from tiercel.results import schema
from tiercel.results.dataset import to_dataset
from tiercel.results.observations import load_runs
from tiercel.results.raw import read_json
from tiercel.results.validity import FLAGS
from tiercel.runs.begun import check_begun
from tiercel.site import load_site
from tiercel.site.measured import measured_folder
from tiercel.site.model import Site
from tiercel.study.load import load_study
from tiercel.study.model import Study
from tiercel.traced import load_trace_groups, load_traces
from tiercel.traced import schema as traced
from tiercel.traces import IOFrame
from tiercel.units import format_bandwidth, format_rate


@dataclass(frozen=True)
class Picture:
    """A figure of the report: Jupyter shows it; `path` is the SVG file."""

    path: Path

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True, repr=False)
class Results:
    """A study's results on a site. `results` makes it. Sizes are bytes, times seconds, rates per second."""

    folder: Path
    """Of the tables and the report."""
    site: Site
    study: Study

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """One row for each configuration and operation: median with the bounds of its 95 % interval.

        Column `unit` is that of `median`, `low` and `high`.
        """
        rows = [{**row, "unit": schema.UNITS[row["metric"]]} for row in self._document["numbers"]]
        return table(rows, {"latency_p99": "s"})

    @cached_property
    def observations(self) -> pd.DataFrame:
        """One row for each phase of each run that counts; see docs/results.md."""
        return with_units(self._rows.observations, schema.UNITS)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row for each run that counts, failed ones with their reason."""
        return with_units(self._rows.runs, schema.UNITS)

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The measured, untraced observations as a labelled array; units and meanings are attributes."""
        return to_dataset(self._rows.observations)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Storages against each other: ratio with its interval, what is noise, and the verdict."""
        return table(self._rows.named().comparisons, {"ratio": "1", "low": "1", "high": "1"})

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What the report says, in sentences, and to whom."""
        return pd.DataFrame(self._document["findings"], columns=["audience", "severity", "sentence", "runs"])

    @cached_property
    def recommendations(self) -> pd.DataFrame:
        """Which storage is for which workload: one row for each workload and candidate."""
        path = self.folder / "report" / "recommendations.json"
        if not path.is_file():
            raise UserError(f"{path}: is not there: run `tiercel report --site {self.site.site}`")
        rows = [
            {
                **{key: of[key] for key in ("class", "experiment", "workload", "operation", "storage")},
                "against": said["against"], "candidate": name, "advice": said["advice"],
                **(said["measured"] or {}),
            }
            for of in read_json(path)["workloads"]
            for name, said in of["storages"].items()
        ]  # fmt: skip
        return table(rows, {"ratio": "1", "low": "1", "high": "1"})

    @cached_property
    def traces(self) -> pd.DataFrame:
        """One row for each traced run. UserError where the study traced none."""
        return with_units(load_traces(self.folder, self.study.study), traced.UNITS)

    @cached_property
    def trace_groups(self) -> pd.DataFrame:
        """One row for each traced run and group of its files."""
        return with_units(load_trace_groups(self.folder, self.study.study), traced.UNITS)

    @property
    def verdict(self) -> list[str]:
        """The sentences of the report's first screen."""
        return list(self._document["sentences"])

    @property
    def report(self) -> Path:
        """The report's page."""
        return self.folder / "report" / "index.html"

    @property
    def figures(self) -> dict[str, Picture]:
        """The report's figures by name."""
        return {p.stem: Picture(p) for p in sorted((self.folder / "report" / "figures").glob("*.svg"))}

    def figure(self, name: str) -> Picture:
        """Return a figure of the report. UserError for one that it has not."""
        if name not in (known := self.figures):
            raise UserError(f"no figure {name!r}: {suggest(name, known)}")
        return known[name]

    def trace(self, run: str | None = None) -> IOFrame:
        """Return the trace of a run, by default of the first traced one. UserError where there is none."""
        names = list(self.traces["run"])
        chosen = run or next(iter(names), "")
        if chosen not in names:
            raise UserError(f"no traced run {chosen!r}: {suggest(chosen, names)}")
        return open_trace(self.folder / "raw" / chosen / "trace")

    @cached_property
    def _rows(self) -> Rows:
        return Rows.from_folder(self.folder, self.study, FLAGS)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(self.folder, self.site, self.study)

    def __repr__(self) -> str:
        counts = self._document["runs"]
        return (
            f"<Results of study {self.study.study} on {self.site.site}: {len(self.numbers)} numbers, "
            f"{counts['ok']} runs, {counts['failed']} failed>"
        )

    def _repr_html_(self) -> str:
        shown = self.numbers
        if len(shown):
            values = [_shown(*row) for row in zip(shown["metric"], shown["median"], strict=True)]
            names = ["experiment", "workload", "operation", "storage", "layer", "nodes", "processes_per_node"]
            shown = shown[names].assign(median=values, repetitions=shown["n"])
        counts = self._document["runs"]
        note = f"{counts['ok']} runs, {counts['failed']} failed, {counts['traced']} traced; {self.report}"
        return html(f"{self.study.title or self.study.study} on {self.site.site}", self.verdict, shown, note)


def results(where: str | Path = "local", study: str | None = None) -> Results:
    """Return the results of `study` on a site, by default of the study that was measured last there.

    `where` is a site's name, a results folder (``results/local``) or the folder of an unpacked artifact.
    UserError where nothing was measured.
    """
    if (folder := Path(where)).joinpath(layout.DESCRIPTION).is_file():
        return _of_artifact(folder)
    if folder.is_file():
        raise UserError(f"{folder}: a file: unpack the artifact (tar -xzf) and name its folder")
    root, name = project_root(), str(where)
    if folder.joinpath("raw").is_dir() and (above := folder.resolve().parent).name == "results":
        root, name = above.parent, folder.resolve().name
    folder = measured_folder(name, root)
    asked = load_study(study or _latest(folder), root)
    check_begun(folder, name, asked.study)
    return Results(folder, load_site(name, root), asked)


def _of_artifact(folder: Path) -> Results:
    site = folder / layout.SITE
    study = folder / layout.STUDY / f"{describe(folder)['study']}.yaml"
    return Results(
        folder / layout.RESULTS,
        parse(Site, read_yaml(site), str(site), dumped=True),
        parse(Study, read_yaml(study), str(study)),
    )


def _latest(folder: Path) -> str:
    runs = load_runs(folder)
    if runs.empty:
        raise UserError(f"{folder}: holds no run")
    return str(runs.sort_values("started")["study"].iloc[-1])


def _shown(metric: str, value: float) -> str:
    return format_bandwidth(value) if schema.UNITS[metric] == "B/s" else format_rate(value)
