"""Names that others resolve: DOIs, ORCIDs, addresses of repositories; checked for form, told in one way.

Nobody is asked whether they exist: a DOI is reserved before it resolves, and packing needs no network.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from tiercel.errors import UserError

#: ISO 26324: a directory (10), a registrant with subdivisions, a suffix of printable characters.
_DOI = re.compile(r"(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}(?:\.\d+)*/\S+)", re.IGNORECASE)
_ORCID = re.compile(
    r"(?:https?://(?:www\.)?orcid\.org/|orcid:\s*)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])", re.IGNORECASE
)
#: What somebody meant as an ORCID: it names one, or is nothing but its digits.
_MEANT_AS_ORCID = re.compile(r"orcid\b|[\dxX\s\u2010-\u2015-]{8,}$", re.IGNORECASE)
#: What sentences end in and DOIs do not: it came along when it was copied.
_ENDS = ".,;:/"


def doi(text: str, where: str) -> str:
    """Return `text` as 10.NNNN/SUFFIX; UserError that names `where` for what is no DOI."""
    match = _DOI.fullmatch(text.strip())
    if not match or not match[1].isprintable() or match[1][-1] in _ENDS:
        raise UserError(f"{where}: {text!r} is no DOI (such as 10.5281/zenodo.1234567)")
    return match[1]


def doi_address(name: str) -> str:
    """Return where a DOI resolves: suffixes may hold what addresses may not."""
    return f"https://doi.org/{quote(name, safe='/:;()@!$*+,=~')}"


def orcid(text: str, where: str) -> str:
    """Return `text` as 0000-0000-0000-0000; UserError that names `where` for what is none.

    Its last digit is ISO 7064's check of the others.
    """
    match = _ORCID.fullmatch(text.strip().rstrip("/"))
    if not match:
        raise UserError(f"{where}: {text!r} is no ORCID (such as 0000-0002-1825-0097)")
    found = match[1].upper()
    total = 0
    for digit in found.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    if found[-1] != ("X" if check == 10 else str(check)):
        raise UserError(f"{where}: {found} is no ORCID: its last digit does not fit the others")
    return found


def meant_as_orcid(text: str) -> bool:
    """Return whether somebody meant an ORCID, right or wrong, and no affiliation."""
    return (
        _MEANT_AS_ORCID.match(text) is not None or _ORCID.fullmatch(text) is not None or "orcid.org" in text
    )


def repository(text: str, where: str) -> str:
    """Return the address of a repository that anybody can open; UserError that names `where` otherwise."""
    said = f"{where}: {text!r} is no address of a repository (such as https://codeberg.org/us/study)"
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        port = parts.port  # raises where it is no number
    except ValueError:
        raise UserError(said) from None
    if (
        port == 0
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or re.search(r"[\s<>\"{}|\\^`]", address)
    ):
        raise UserError(said)
    if parts.username or parts.password:
        # Not shown: this is how a clone's address carries a token.
        raise UserError(f"{where}: the address holds a name or a password: give it without")
    return address
