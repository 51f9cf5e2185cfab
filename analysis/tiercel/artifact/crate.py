"""The artifact described as an RO-Crate: profile Workflow Run Crate 0.5, over RO-Crate 1.1.

Source: S. Leo et al., "Recording provenance of workflow runs with RO-Crate", PLoS ONE 19(9), 2024; the
profile at https://w3id.org/ro/wfrun/workflow/0.5. Written with the library rocrate, which only describes: the
files lie where they belong already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocrate.model import ContextEntity
from rocrate.model.person import Person
from rocrate.rocrate import ROCrate

import tiercel
from tiercel.artifact import layout
from tiercel.artifact.identifiers import doi_address
from tiercel.artifact.metadata import Author, Metadata
from tiercel.artifact.software import Software
from tiercel.study.model import Study

_PROFILES = (
    ("https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate", "0.5"),
    ("https://w3id.org/workflowhub/workflow-ro-crate/1.0", "Workflow RO-Crate", "1.0"),
)
_WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
_PARQUET, _NETCDF = "application/vnd.apache.parquet", "application/netcdf"

_ZENODO, _ZENODO_DOI = "https://zenodo.org", "10.5281/zenodo."

#: Media types by the end of a name.
_TYPES = {
    ".md": "text/markdown", ".json": "application/json", ".yaml": "application/yaml", ".csv": "text/csv",
    ".svg": "image/svg+xml", ".html": "text/html", ".parquet": _PARQUET, ".nc": _NETCDF,
    ".lock": "text/plain", ".txt": "text/plain", ".gz": "application/gzip", ".sh": "application/x-sh",
    ".cff": "application/yaml",    ".smk": "text/x-python",
}  # fmt: skip

#: What files are, by path; others are described by their folder.
_MEANINGS = {
    layout.README: "What this is, and three commands: make the figures again, measure again, compare",
    layout.SITE: "The site as it was measured: machine and storage systems",
    layout.CHECKSUMS: "SHA-256 of every other file, for sha256sum -c",
    layout.DESCRIPTION: "Versions, runs and options of this artifact, for programs",
    f"{layout.RESULTS}/observations.parquet": "One row for each phase of each run; units as metadata",
    f"{layout.RESULTS}/runs.parquet": "One row for each run, failed ones with their reason",
    f"{layout.RESULTS}/dataset.nc": "The observations as a labelled array (xarray)",
    f"{layout.RESULTS}/traces.parquet": "One row for each traced run",
    f"{layout.RESULTS}/trace-groups.parquet": "One row for each traced run and group of files",
    f"{layout.RESULTS}/traces.nc": "The traced runs as a labelled array (xarray)",
    f"{layout.RESULTS}/report/index.html": "The report: one page that opens offline",
    f"{layout.RESULTS}/report/recommendations.json": "Which storage for which workload, for programs",
}
_BY_FOLDER = {
    f"{layout.RESULTS}/report/figures": "A figure of the report",
    f"{layout.RESULTS}/report/tables": "A table of the report",
    layout.STUDY: "The study, with the workload files that it names",
    f"{layout.STUDY}/as-written": "The study as its author wrote it",
    layout.LOCKS: "Versions of the software",
    layout.WORKFLOW: "Part of the Snakemake workflow",
    layout.SOFTWARE: "The sources that measured and evaluated",
}


@dataclass(frozen=True)
class Measured:
    """When and with what the runs were made."""

    started: float
    """Seconds since 1970."""
    ended: float
    runs: int
    failed: int
    engines: dict[str, list[str]]
    """Versions by engine."""
    conditions: dict[str, str]
    """Of the machine: cores, memory, kernel."""


#: A term of the profile that RO-Crate 1.1 itself does not know.
_TERMS = {"environment": "https://w3id.org/ro/terms/workflow-run#environment"}


def write_crate(
    folder: Path, metadata: Metadata, study: Study, software: Software, measured: Measured
) -> Path:
    """Describe everything in `folder` and write ro-crate-metadata.json; return its path."""
    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms.update(_TERMS)
    _describe_root(crate, metadata)
    workflow = _workflow(crate, folder, software)
    files = {path: _file(crate, folder, path) for path in _paths(folder)}
    _readme(crate, files)
    parts = [entity for path, entity in files.items() if path.startswith(f"{layout.RESULTS}/")]
    folders = [_folder(crate, folder, name) for name in layout.SOURCES]
    sources = [each for each in folders if each]
    inputs = [files[f"{layout.STUDY}/{study.study}.yaml"], files[layout.SITE]]
    _parameters(crate, workflow, inputs, sources[0], files)
    action = crate.add_action(
        workflow, "#measured", object=inputs, result=[*sources, *parts],
        properties={
            "name": f"Evaluation of study {study.study}",
            "description": f"{measured.runs} runs, {measured.failed} of which failed",
            "startTime": _time(measured.started),
            "endTime": _time(measured.ended),
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )  # fmt: skip
    action["agent"] = crate.root_dataset["author"]
    for name, value in sorted(measured.conditions.items()):
        action.append_to("environment", _value(crate, name, value), compact=True)
    for engine, versions in sorted(measured.engines.items()):
        properties = {
            "@type": "SoftwareApplication",
            "name": engine,
            "softwareVersion": ", ".join(versions) or "unknown",
        }
        identifier = f"#{engine}"
        if software.url:
            identifier = f"{software.url}#{engine}"
            properties["url"] = software.url
        program = crate.add(ContextEntity(crate, identifier, properties))
        workflow.append_to("softwareRequirements", program, compact=True)
    crate.root_dataset["mentions"] = action
    crate.metadata.write(folder)
    return folder / layout.CRATE


def _describe_root(crate: ROCrate, metadata: Metadata) -> None:
    root = crate.root_dataset
    crate.name, crate.description = metadata.title, metadata.description
    crate.datePublished = datetime.fromisoformat(metadata.published).date()
    crate.keywords = ", ".join(metadata.keywords) or None
    properties = {
        "@type": "CreativeWork",
        "name": metadata.licence,
        "description": f"SPDX: {metadata.licence}",
    }
    url = f"https://spdx.org/licenses/{metadata.licence}"
    crate.license = crate.add(ContextEntity(crate, url, properties=properties))
    authors = [_author(crate, author, n) for n, author in enumerate(metadata.authors, 1)]
    root["author"] = authors if len(authors) > 1 else authors[0]
    if metadata.doi:
        root["identifier"] = doi_address(metadata.doi)
    if metadata.doi.startswith(_ZENODO_DOI):
        about = {"@type": "Organization", "name": "Zenodo", "url": _ZENODO}
        root["publisher"] = crate.add(ContextEntity(crate, _ZENODO, about))
    for identifier, name, version in _PROFILES:
        profile = {"@type": "CreativeWork", "name": name, "version": version}
        root.append_to("conformsTo", crate.add(ContextEntity(crate, identifier, properties=profile)))


def _author(crate: ROCrate, author: Author, number: int) -> Any:
    identifier = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}"
    properties: dict[str, Any] = {"name": author.name}
    if author.affiliation:
        about = {"@type": "Organization", "name": author.affiliation}
        if author.website:
            about["url"] = author.website
        place = author.website or f"#affiliation-of-{number}"
        properties["affiliation"] = crate.add(ContextEntity(crate, place, about))
    if author.family:
        return crate.add(Person(crate, identifier, {**properties, "familyName": author.family,
                                                    "givenName": author.given}))  # fmt: skip
    return crate.add(ContextEntity(crate, identifier, {"@type": "Organization", **properties}))


def _workflow(crate: ROCrate, folder: Path, software: Software) -> Any:
    path = f"{layout.WORKFLOW}/Snakefile"
    version = f"{tiercel.__version__}" + (f" (commit {software.commit})" if software.commit else "")
    return crate.add_workflow(
        folder / path, path, main=True, lang="snakemake",
        properties={
            "name": "tiercel",
            "description": "Measures a site's storage systems with a study, and reports",
            "version": version + (", with changes" if software.modified else ""),
            "conformsTo": {"@id": _WORKFLOW_PROFILE},
            "encodingFormat": "text/x-python",
            **({"url": software.url} if software.url else {}),
        },
    )  # fmt: skip


def _paths(folder: Path) -> Iterable[str]:
    """Return the files that are described one by one; raw files are described by their folder."""
    apart = {layout.CRATE, f"{layout.WORKFLOW}/Snakefile"}
    sources = tuple(f"{layout.RESULTS}/{name}/" for name in layout.SOURCES)
    found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    return [path for path in found if path not in apart and not path.startswith(sources)]


def _file(crate: ROCrate, folder: Path, path: str) -> Any:
    place = Path(path)
    meaning = _MEANINGS.get(path, _BY_FOLDER.get(place.parent.as_posix(), ""))
    properties = {
        "name": place.name,
        "description": meaning,
        "encodingFormat": _TYPES.get(place.suffix, "text/plain"),
        "contentSize": str((folder / path).stat().st_size),
    }
    kept = {key: value for key, value in properties.items() if value}
    return crate.add_file(folder / path, path, properties=kept)


def _readme(crate: ROCrate, files: dict[str, Any]) -> None:
    if layout.README in files:
        files[layout.README]["about"] = crate.root_dataset


def _folder(crate: ROCrate, folder: Path, name: str) -> Any:
    meanings = {
        "raw": "One folder for each run: what determines it, its conditions, the engine's own output, traces",
        "looks": "What was measured further because of what was seen",
        "placement": "Placement models and plans that the report shows",
    }
    path = f"{layout.RESULTS}/{name}"
    if not (folder / path).is_dir():
        return None
    return crate.add_dataset(
        folder / path, f"{path}/", properties={"name": name, "description": meanings[name]}
    )


def _parameters(crate: ROCrate, workflow: Any, inputs: list[Any], raw: Any, files: dict[str, Any]) -> None:
    """Say which file is which input or output of the workflow."""
    report = files[f"{layout.RESULTS}/report/index.html"]
    for slot, name, kind, entity in (
        ("input", "study", "File", inputs[0]),
        ("input", "site", "File", inputs[1]),
        ("output", "raw", "Dataset", raw),
        ("output", "report", "File", report),
    ):
        parameter = crate.add_formal_parameter(
            name, kind, identifier=f"#{name}", valueRequired=slot == "input"
        )
        parameter["workExample"] = entity
        entity["exampleOfWork"] = parameter
        workflow.append_to(slot, parameter)


def _value(crate: ROCrate, name: str, value: str) -> Any:
    properties = {"@type": "PropertyValue", "name": name, "value": value}
    return crate.add(ContextEntity(crate, f"#{name.lower().replace(' ', '-')}", properties=properties))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
