"""Who made it, what it is called, under which licence: from CITATION.cff and from options, which win."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tiercel.artifact import identifiers
from tiercel.documents import read_yaml
from tiercel.errors import UserError

#: SPDX: a licence's short name.
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True)
class Author:
    """A person (`family` is known) or a group."""

    name: str
    family: str = ""
    given: str = ""
    orcid: str = ""
    affiliation: str = ""
    website: str = ""
    """Of the affiliation: its own, or its entry at ROR."""


@dataclass(frozen=True)
class Metadata:
    """What an archive asks of a publication."""

    title: str
    authors: tuple[Author, ...]
    licence: str
    """SPDX's short name."""
    published: str
    """ISO date."""
    description: str = ""
    doi: str = ""
    keywords: tuple[str, ...] = ()
    references: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    """Of CITATION.cff, as they are."""
    repository: str = ""
    """Where the sources can be had, as an address; empty: nobody said."""
    borrowed: bool = False
    """The authors are tiercel's own."""


@dataclass(frozen=True)
class Given:
    """What the user said; None or empty: as in CITATION.cff."""

    title: str | None = None
    authors: Sequence[str] = ()
    licence: str | None = None
    published: str | None = None
    description: str | None = None
    doi: str | None = None
    keywords: Sequence[str] = ()
    repository: str | None = None


def find_metadata(given: Given, citation: Path | None, own: Path, title: str, description: str) -> Metadata:
    """Return the metadata of an artifact.

    `citation` is the project's file. `own` is that of tiercel itself: its title, DOI and abstract are not an
    artifact's, so `title` and `description` stand for them. UserError that names file and key, or the option.
    """
    content = read_yaml(citation) if citation else {}
    of_tiercel = citation is not None and own.is_file() and citation.read_bytes() == own.read_bytes()
    authors = tuple(_author(text) for text in given.authors) or _authors(content, citation)
    licence = given.licence or _word(content, "license", citation)
    if not authors:
        raise UserError(f"who made it? --author, or authors: in {citation or 'CITATION.cff'}")
    if not licence or not _LICENCE.fullmatch(licence):
        raise UserError(f"licence {licence!r}: one of SPDX's short names, such as CC-BY-4.0 (--licence)")
    said = {} if of_tiercel else content
    return Metadata(
        title=given.title or _word(said, "title", citation) or title,
        authors=authors,
        licence=licence,
        published=_date(given.published),
        description=given.description or _word(said, "abstract", citation) or description,
        doi=_identifier(identifiers.doi, "doi", given.doi, said, citation),
        keywords=tuple(given.keywords) or tuple(_words(said, "keywords", citation)),
        references=tuple(r for r in content.get("references") or () if isinstance(r, dict)),
        repository=_identifier(
            identifiers.repository, "repository-code", given.repository, content, citation, "--repository"
        ),
        borrowed=of_tiercel and not given.authors,
    )


def _author(text: str) -> Author:
    name, *more = (part.strip() for part in text.split(";"))
    if not name:
        raise UserError(
            f"--author {text!r}: 'Family, Given; ORCID; affiliation; its URL' (but the name all if known)"
        )
    orcid = affiliation = website = ""
    for part in more:
        if identifiers.meant_as_orcid(part):
            orcid = identifiers.orcid(part, f"--author {text!r}")
        elif part.startswith(("http://", "https://")):
            website = part
        elif part:
            affiliation = part
    family, comma, given = (part.strip() for part in name.partition(","))
    return Author(
        f"{given} {family}" if comma else name, family if comma else "", given, orcid, affiliation, website
    )


def _authors(content: dict[str, Any], citation: Path | None) -> tuple[Author, ...]:
    rows = content.get("authors") or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{citation}: authors: must be a list of persons")
    found = []
    for number, row in enumerate(rows, 1):
        given, family = str(row.get("given-names") or ""), str(row.get("family-names") or "")
        name = str(row.get("name") or f"{given} {family}".strip())
        if not name:
            raise UserError(f"{citation}: authors: number {number} has no name")
        orcid = str(row.get("orcid") or "")
        checked = identifiers.orcid(orcid, f"{citation}: authors: {name}") if orcid else ""
        found.append(Author(name, family, given, checked, str(row.get("affiliation") or "")))
    return tuple(found)


def _word(content: dict[str, Any], key: str, citation: Path | None) -> str:
    value = content.get(key)
    if isinstance(value, list) and value:  # license may be several: the first
        value = value[0]
    if value is not None and not isinstance(value, str):
        raise UserError(f"{citation}: {key}: must be a word (given: {value!r})")
    return value or ""


def _words(content: dict[str, Any], key: str, citation: Path | None) -> list[str]:
    value = content.get(key) or []
    if not isinstance(value, list):
        raise UserError(f"{citation}: {key}: must be a list")
    return [str(each) for each in value]


def _identifier(
    check: Callable[[str, str], str],
    key: str,
    given: str | None,
    content: dict[str, Any],
    citation: Path | None,
    option: str = "",
) -> str:
    """Return what the option says, else what the file does, in its one form; empty where neither does."""
    if given is not None:
        return check(given, option or f"--{key}")
    word = _word(content, key, citation)
    return check(word, f"{citation}: {key}") if word else ""


def _date(text: str | None) -> str:
    if text is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UserError(f"--date {text!r}: year-month-day, such as 2026-01-31") from None
