"""What says of itself that it is an artifact, and is none: one line, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiercel as tc
from tiercel.artifact.description import describe
from tiercel.errors import UserError

GOOD = {"format": 1, "site": "local", "study": "quick", "slim": False}


@pytest.mark.parametrize(
    "change",
    [
        {"site": "../x"}, {"site": ""}, {"site": ".."}, {"site": "a\0b"}, {"site": "x" * 300}, {"site": 1},
        {"study": "a\nb"}, {"study": None}, {"study": "/etc/passwd"}, {"slim": "yes"}, {"format": 2},
    ],
)  # fmt: skip
def test_what_leads_elsewhere_or_is_no_name(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "artifact.json"
    path.write_text(json.dumps(GOOD))
    assert describe(tmp_path) == GOOD
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(UserError):
        describe(tmp_path)
    with pytest.raises(UserError, match=r"artifact\.json"):
        tc.results(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 100_000, "\0" * 100])
def test_no_description(text: str, tmp_path: Path) -> None:
    (tmp_path / "artifact.json").write_text(text)
    with pytest.raises(UserError, match=r"artifact\.json"):
        tc.results(tmp_path)


def test_an_archive_is_unpacked_first(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").touch()
    with pytest.raises(UserError, match="unpack the artifact"):
        tc.results(tmp_path / "x.tar.gz")
