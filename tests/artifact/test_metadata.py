"""Who made it, under which licence: from CITATION.cff and options."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tiercel.artifact.metadata import Author, Given, Metadata, find_metadata
from tiercel.artifact.publication import citation, zenodo
from tiercel.errors import UserError

#: ORCID's own example of one.
ORCID = "0000-0002-1825-0097"
CFF = f"""
cff-version: 1.2.0
title: My measurements
license: CC-BY-4.0
doi: https://doi.org/10.5281/zenodo.42
repository-code: https://example.org/us/study/
keywords: [storage, I/O]
authors:
  - given-names: Ada
    family-names: Doe
    orcid: "https://orcid.org/{ORCID}"
    affiliation: Example University
  - name: The I/O group
"""


def found(folder: Path, given: Given, text: str = CFF, own: str = "title: tiercel") -> Metadata:
    (folder / "CITATION.cff").write_text(text)
    (folder / "own.cff").write_text(own)
    return find_metadata(given, folder / "CITATION.cff", folder / "own.cff", "A study", "What it is.")


def test_from_the_file(tmp_path: Path) -> None:
    metadata = found(tmp_path, Given())
    ada = Author("Ada Doe", "Doe", "Ada", ORCID, "Example University")
    assert metadata.authors == (ada, Author("The I/O group"))
    assert (metadata.title, metadata.licence, metadata.doi) == (
        "My measurements",
        "CC-BY-4.0",
        "10.5281/zenodo.42",
    )
    assert metadata.keywords == ("storage", "I/O")
    assert metadata.published == datetime.now(UTC).date().isoformat()


def test_options_win(tmp_path: Path) -> None:
    author = f"Roe, Bob; https://orcid.org/{ORCID}; Example Lab; https://lab.example"
    given = Given("Other", [author, "Somebody"], "MIT", "2026-01-31", "Said.", "doi:10.1234/x", ["one"])
    metadata = found(tmp_path, given)
    bob = Author("Bob Roe", "Roe", "Bob", ORCID, "Example Lab", "https://lab.example")
    assert metadata == Metadata(
        "Other", (bob, Author("Somebody")), "MIT", "2026-01-31", "Said.", "10.1234/x", ("one",),
        repository="https://example.org/us/study",
    )  # fmt: skip


def test_of_tiercel_only_who_and_under_what(tmp_path: Path) -> None:
    """The unchanged file of a checkout is of the program: its title and DOI are not the results'."""
    metadata = found(tmp_path, Given(), own=CFF)
    assert (metadata.title, metadata.doi, metadata.description) == ("A study", "", "What it is.")
    assert metadata.licence == "CC-BY-4.0" and len(metadata.authors) == 2
    assert metadata.borrowed and not found(tmp_path, Given(authors=["Me"]), own=CFF).borrowed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Given(authors=["Doe, Ada; 0000-0002-1825-0098"]), "last digit"),
        (Given(authors=["; me"]), "Family, Given"),
        (Given(licence="all rights reserved"), "SPDX"),
        (Given(published="31.1.2026"), "year-month-day"),
        (Given(doi="zenodo 42"), "--doi: .* no DOI"),
        (Given(doi=""), "--doi: .* no DOI"),
        (Given(authors=["Doe, Ada; 0000-0002-1825-009"]), "no ORCID"),
        (Given(repository="git@example.org:us/study"), "--repository: .* no address"),
    ],
)
def test_wrong_options_are_refused(given: Given, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        found(tmp_path, given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: T\nlicense: MIT", "who made it"),
        ("authors: [{name: A}]", "licence"),
        ("authors: Ada\nlicense: MIT", "authors: must be a list"),
        ("authors: [{affiliation: A}]\nlicense: MIT", "number 1 has no name"),
        ("authors: [{name: A, orcid: x}]\nlicense: MIT", "no ORCID"),
        ("authors: [{name: A}]\nlicense: 3", "license: must be a word"),
        ("authors: [{name: A}]\nlicense: MIT\ndoi: 42", "doi: must be a word"),
        ("authors: [{name: A}]\nlicense: MIT\ndoi: zenodo.42", "CITATION.cff: doi: 'zenodo.42' is no DOI"),
        (
            "authors: [{name: A}]\nlicense: MIT\nrepository-code: here",
            "repository-code: 'here' is no address",
        ),
    ],
)
def test_wrong_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        found(tmp_path, Given(), text)


def test_what_archives_read(tmp_path: Path) -> None:
    metadata = found(tmp_path, Given(published="2026-01-31"))
    assert zenodo(metadata) == {
        "upload_type": "dataset",
        "title": "My measurements",
        "creators": [
            {"name": "Doe, Ada", "affiliation": "Example University", "orcid": ORCID},
            {"name": "The I/O group"},
        ],
        "description": "What it is.",
        "publication_date": "2026-01-31",
        "access_right": "open",
        "license": "cc-by-4.0",
        "keywords": ["storage", "I/O"],
        "doi": "10.5281/zenodo.42",
    }
    own = yaml.safe_load(citation(metadata))
    assert own["type"] == "dataset" and own["doi"] == "10.5281/zenodo.42"
    assert own["authors"][0]["orcid"] == f"https://orcid.org/{ORCID}" and own["authors"][1] == {
        "name": "The I/O group"
    }
    # Read again, it says the same.
    again = found(tmp_path, Given(published="2026-01-31"), citation(metadata))
    assert again == replace(metadata, references=again.references)
    assert again.repository == "https://example.org/us/study"


def test_where_the_sources_are(tmp_path: Path) -> None:
    """The option wins over the project's file; that of tiercel itself names tiercel's."""
    assert found(tmp_path, Given(repository="https://example.org/other")).repository == (
        "https://example.org/other"
    )
    assert found(tmp_path, Given(), own=CFF).repository == "https://example.org/us/study"
    assert found(tmp_path, Given(), CFF.replace("repository-code", "url")).repository == ""
