"""DOIs, ORCIDs and addresses: one form, whatever form they came in; what is none is refused in a line."""

from __future__ import annotations

import pytest

from tiercel.artifact import identifiers
from tiercel.errors import UserError


@pytest.mark.parametrize(
    "text",
    [
        "10.5281/zenodo.42",
        "doi:10.5281/zenodo.42",
        "DOI: 10.5281/zenodo.42",
        "https://doi.org/10.5281/zenodo.42",
        "http://dx.doi.org/10.5281/zenodo.42",
        "https://www.doi.org/10.5281/zenodo.42 ",
    ],
)
def test_a_doi_in_every_form(text: str) -> None:
    assert identifiers.doi(text, "--doi") == "10.5281/zenodo.42"


def test_dois_of_other_registrants() -> None:
    assert identifiers.doi("10.1000.10/123", "--doi") == "10.1000.10/123"
    old = identifiers.doi("10.1002/(SICI)1097<1::AID-X>3.0.CO;2-#", "--doi")
    assert identifiers.doi_address(old) == "https://doi.org/10.1002/(SICI)1097%3C1::AID-X%3E3.0.CO;2-%23"


@pytest.mark.parametrize(
    "text",
    ["", "zenodo 42", "5281/zenodo.42", "10.5281", "10.5281/", "10.528/x", "11.5281/zenodo.42",
     "10.5281/zenodo 42", "10.5281/zenodo.42.", "10.5281/zenodo.42/", "10.5281/zenodo.42\u200b",
     "https://zenodo.org/records/42", "https://doi.org/", "doi:doi:10.5281/zenodo.42"],
)  # fmt: skip
def test_no_doi(text: str) -> None:
    with pytest.raises(UserError, match=r"^--doi: .* is no DOI \(such as"):
        identifiers.doi(text, "--doi")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0000-0002-1825-0097", "0000-0002-1825-0097"),
        ("https://orcid.org/0000-0002-1825-0097/", "0000-0002-1825-0097"),
        ("orcid:0000-0002-1694-233x", "0000-0002-1694-233X"),
    ],
)
def test_an_orcid(text: str, found: str) -> None:
    assert identifiers.meant_as_orcid(text) and identifiers.orcid(text, "--author") == found


@pytest.mark.parametrize(
    "text",
    ["0000-0002-1825-009", "0000000218250097", "0000-0002-1825-00977", "0000\u20130002\u20131825\u20130097",
     "https://orcid.org/", "ORCID 0000-0002-1825-0097", "0000-0002-1825-0098", "0000 0002 1825 0097"],
)  # fmt: skip
def test_no_orcid(text: str) -> None:
    """Each was taken for the name of an affiliation but the last digit's."""
    assert identifiers.meant_as_orcid(text)
    with pytest.raises(UserError, match="is no ORCID"):
        identifiers.orcid(text, "--author")


@pytest.mark.parametrize("text", ["Example University", "3M", "CERN", "Institute 42", "https://lab.example"])
def test_an_affiliation_is_no_orcid(text: str) -> None:
    assert not identifiers.meant_as_orcid(text)


def test_a_repository() -> None:
    address = "https://codeberg.org:443/us/study"
    assert identifiers.repository(f" {address}/ ", "--repository") == address


@pytest.mark.parametrize(
    "text",
    ["", "git@example.org:us/study.git", "ssh://example.org/x", "example.org/us", "/home/me/study", "https://",
     "https://a b.org/x", "https://example.org:port/x", 'https://example.org/"x"', "https://[::1/x"],
)  # fmt: skip
def test_no_repository(text: str) -> None:
    with pytest.raises(UserError, match="is no address of a repository"):
        identifiers.repository(text, "--repository")


def test_a_clone_s_token_is_neither_taken_nor_shown() -> None:
    with pytest.raises(UserError, match="give it without") as refused:
        identifiers.repository("https://me:s3cret@example.org/us/study", "--repository")
    assert "s3cret" not in str(refused.value)
