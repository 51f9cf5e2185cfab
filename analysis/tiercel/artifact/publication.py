"""Metadata as archives read them: Zenodo's ``.zenodo.json``, and a CITATION.cff of the artifact's own."""

from __future__ import annotations

from typing import Any

import yaml

import tiercel
from tiercel.artifact.metadata import Author, Metadata

#: Where tiercel itself is to be cited from.
SOFTWARE = "tiercel: end-to-end evaluation of HPC storage"


def zenodo(metadata: Metadata) -> dict[str, Any]:
    """Return what Zenodo's deposits take as ``metadata``."""
    found: dict[str, Any] = {
        "upload_type": "dataset",
        "title": metadata.title,
        "creators": [_creator(author) for author in metadata.authors],
        "description": metadata.description,
        "publication_date": metadata.published,
        "access_right": "open",
        "license": metadata.licence.lower(),
        "keywords": list(metadata.keywords),
    }
    if metadata.doi:
        found["doi"] = metadata.doi
    return {key: value for key, value in found.items() if value}


def _creator(author: Author) -> dict[str, str]:
    name = f"{author.family}, {author.given}".rstrip(", ") if author.family else author.name
    row = {"name": name, "affiliation": author.affiliation, "orcid": author.orcid}
    return {key: value for key, value in row.items() if value}


def citation(metadata: Metadata) -> str:
    """Return a CITATION.cff of the artifact, which refers to tiercel and to what its CITATION.cff named."""
    content: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them.",
        "type": "dataset",
        "title": metadata.title,
        "abstract": metadata.description,
        "authors": [_person(author) for author in metadata.authors],
        "license": metadata.licence,
        "date-released": metadata.published,
        "doi": metadata.doi,
        "repository-code": metadata.repository,
        "keywords": list(metadata.keywords),
        "references": [
            {"type": "software", "title": SOFTWARE, "version": tiercel.__version__,
             "authors": [{"name": "The tiercel developers"}]},
            *metadata.references,
        ],
    }  # fmt: skip
    return yaml.safe_dump({k: v for k, v in content.items() if v}, sort_keys=False, allow_unicode=True)


def _person(author: Author) -> dict[str, str]:
    row = {
        "family-names": author.family,
        "given-names": author.given,
        "name": "" if author.family else author.name,
        "orcid": f"https://orcid.org/{author.orcid}" if author.orcid else "",
        "affiliation": author.affiliation,
    }
    return {key: value for key, value in row.items() if value}
